"""One vocabulary: an option means the same in every command, and whatever writes a file says how."""

from collections.abc import Iterator

import pytest
import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

import bdforge
from bdforge.cli.commands import app
from support.differences import as_reviewed

WRITTEN = {"--html", "--out", "--picture", "--timeline", "--trace"}


def commands(group: TyperGroup, path: str = "bdforge") -> Iterator[tuple[str, TyperCommand]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from commands(command, f"{path} {name}")
        elif isinstance(command, TyperCommand):
            yield f"{path} {name}", command


def tree() -> dict[str, TyperCommand]:
    whole = typer.main.get_command(app)
    assert isinstance(whole, TyperGroup)
    return dict(commands(whole))


COMMANDS = tree()
KEPT = {"bdforge build", "bdforge compose"}
"""Commands that bring a folder of their own up to date, as `scons` does."""
OPTIONS = {
    path: {name: option for option in command.params if isinstance(option, TyperOption) for name in option.opts}
    for path, command in COMMANDS.items()
}


EXCEPTIONS = {
    "--design": "a roofline takes several",
    "--device": "timed emulation takes the array's own product where none is named",
    "--out": "says what is written, and whether it is a file or a folder",
    "--shape": "a picture shows one problem",
    "--sizes": "of an access pattern, beside its strides as in MLIR, of a contraction, or of a sweep's problems",
    "--split": "of a model's operators as they are estimated, or of its products as they run",
    "--strides": "of an access pattern, or of the three tensors of a contraction",
    "--types": "a peak has two, a search may say the accumulator",
}
"""Words whose help differs from verb to verb, with the reason. All others have one text, `bdforge.cli.options`' own."""
SYNONYMS = (
    ("--device", "--product"), ("--module", "--mlir-device"), ("--shape", "-M"), ("--shape", "-K"), ("--shape", "-N"),
    ("--tokens", "--rows"), ("--out", "--output"), ("--force", "--overwrite"), ("--kernel", "--basis"),
    ("--layouts", "--b-layouts"), ("--kernels", "--library"), ("--core", "--place"),
)  # fmt: skip
"""The word, and one that was or could be used for the same."""


def helps(name: str) -> set[str | None]:
    return {options[name].help for options in OPTIONS.values() if name in options}


def test_the_commands_are_found():
    assert {"bdforge run", "bdforge insts encode", "bdforge plot kmt", "bdforge doctor"} <= OPTIONS.keys()


@pytest.mark.parametrize("path", OPTIONS)
def test_what_writes_a_file_takes_out_and_force(path: str):
    options = OPTIONS[path]
    if (written := WRITTEN & options.keys()) and path not in KEPT:
        assert "--force" in options, f"{path} writes by {written}"
    if "--out" in options:
        assert "-o" in options
    assert not [p for p in COMMANDS[path].params if isinstance(p, TyperArgument) and p.name == "out"]


def test_a_word_means_the_same_everywhere():
    """The table is exact: what is no exception any more has to leave it."""
    used = [name for options in OPTIONS.values() for name in options]
    differing = {name for name in used if len(helps(name)) > 1}
    assert differing == EXCEPTIONS.keys() | {"-o"}


@pytest.mark.parametrize(("one", "other"), SYNONYMS)
def test_one_thing_has_one_word(one: str, other: str):
    used = {name for options in OPTIONS.values() for name in options}
    assert one in used
    assert other not in used


@pytest.mark.parametrize("path", OPTIONS)
def test_a_design_is_planned_for_a_product_that_can_be_chosen(path: str):
    specs = [p for p in COMMANDS[path].params if p.name == "design" and "Design spec" in (getattr(p, "help", "") or "")]
    assert not specs or "--device" in OPTIONS[path]


def test_every_command_helps_by_h_and_tells_its_version(run):
    for path in OPTIONS:
        code, out, _ = run(*path.split()[1:], "-h")
        assert (code, "Usage: " in out) == (0, True)
    assert run("--version")[:2] == (0, f"bdforge {bdforge.__version__}\n")


def test_completion_can_be_installed(run):
    assert "--install-completion" in run("-h")[1]


def facts(option: TyperOption | TyperArgument) -> str:
    """What a value may be, and what it is when nothing is given."""
    ends = [getattr(option, name, None) for name in ("min", "max")]
    parts = [f"from {ends[0]} to {ends[1]}"] if ends != [None, None] else []
    parts += [
        "required" if option.required else f"default {option.default}",
        *(["repeatable"] if option.multiple else []),
    ]
    return f"{'/'.join([*option.opts, *option.secondary_opts])}: {', '.join(parts)}"


def test_options_have_the_limits_and_defaults_that_were_reviewed(file_regression):
    """`--force-regen` writes the table anew; read what changes."""
    users: dict[str, list[str]] = {}
    for path, command in sorted(COMMANDS.items()):
        for parameter in command.params:
            if isinstance(parameter, TyperOption | TyperArgument):
                users.setdefault(facts(parameter), []).append(path.removeprefix("bdforge "))
    lines = [f"{fact} ({', '.join(paths)})\n" for fact, paths in sorted(users.items())]
    file_regression.check("".join(lines), check_fn=as_reviewed)
