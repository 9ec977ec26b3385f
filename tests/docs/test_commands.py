"""What the pages tell readers to type: every `bdforge` command of a code block runs, and every option exists.

Blocks whose lines begin with `$` show what is printed: those lines come, in that order. Python blocks run page by page,
each in the names of those before it. What runs elsewhere, or not at all, is named here with the reason.
"""

import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.core import TyperGroup

import bdforge
from bdforge.cli import main
from bdforge.cli.commands import app
from bdforge.perf.rows import MEASURED
from support.built_designs import ROOT, PlannedDesign
from support.page_shell import FENCED, untimed
from support.small_designs import loopback
from support.weight_files import ternary, write_gguf_i2s

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
ELSEWHERE = {
    "tour.md": "tests/test_tour.py runs it in a tree of its own",
    "layer.md": "tests/runtime/test_layer_example.py builds and runs what the page does",
    "debugging.md": "tests/emulator/test_stories.py runs the page's design, and compares every output",
    **{path.name: "tests/docs/test_tutorials.py follows it" for path in (ROOT / "docs" / "tutorials").glob("*.md")},
    "your_project.md": "tests/build/test_wheel.py makes, builds and runs a project",
}
SLOW = (
    "bdforge compose examples/layer/bitnet",
    "bdforge tune ",
    "bdforge plot roofline",
    "bdforge plot timeline timeline.json",
    "bdforge plot utilisation",
    "bdforge run $flagship",
)
NOT_HERE = {
    "bdforge demo": "takes long: tests/cli/test_demo_command.py, tests/build/test_wheel.py",
    "bdforge doctor": "tells of this machine: tests/cli/test_small_commands.py",
    "bdforge build mine.toml": "compiles: tests/build/test_wheel.py",
    "bdforge run build/strix_halo/mine": "runs what was built before: tests/build/test_wheel.py",
    "bdforge generate examples/bitnet/licence.gguf": "needs a built design: tests/models, tests/cli",
    "bdforge new project": "tests/cli/test_new_project.py",
    "bdforge puzzle 1": "ends with 1 while it is open: tests/cli/test_puzzle_command.py",
    "bdforge disasm design.xclbin": "needs an image with programs of cores: tests/isa",
    "bdforge disasm final.xclbin": "as before",
    "bdforge emulate design.mlir --arg a.npy ...": "left open: tests/cli/test_emulate_machine_code.py",
    "bdforge emulate examples/pass_through.mlir --arg from.npy --arg to.npy --xclbin": "needs an NPU: tests/runtime",
}


@dataclass(frozen=True)
class Shown:
    """A command of a page, and what the page says that it prints."""

    page: str
    command: str
    printed: tuple[str, ...]

    @property
    def words(self) -> str:
        return " ".join(self.command.split())


def shown() -> Iterator[Shown]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        plain = FENCED.sub("", text)
        indented = [line[4:] for line in plain.splitlines() if line.startswith("    ") and line[4:5].strip()]
        blocks = [body for language, body in FENCED.findall(text) if language in ("", "sh", "console")]
        for block in (*blocks, "\n".join(indented)):
            lines = block.replace("\\\n", "").splitlines()
            for i, line in enumerate(lines):
                command = line.removeprefix("$ ")
                if not command.startswith("bdforge ") or (found := command.partition("  #")[0]).startswith("bdforge: "):
                    continue
                rest = lines[i + 1 :] if line.startswith("$ ") else []
                end = next((j for j, other in enumerate(rest) if other.startswith("$ ")), len(rest))
                yield Shown(page.name, found.strip(), tuple(rest[:end]))


ALL = list(shown())
COMMANDS = [one for one in ALL if one.page not in ELSEWHERE]
HERE = [one for one in COMMANDS if not one.words.startswith(tuple(NOT_HERE))]


def kept(name: str) -> Any:
    return pytest.param(name, marks=pytest.mark.slow) if name.startswith(SLOW) else name


@pytest.fixture
def run(monkeypatch, capfd, tmp_path) -> Callable[[str], tuple[int, str]]:
    """Runs a command of a page in a folder that has the files which pages speak of: exit code, and what it printed."""
    for name in ("designs", "examples"):  # copies: commands write beside them
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "design.mlir").write_text(loopback())
    (tmp_path / "gemm.mlir").write_bytes((ROOT / "docs" / "hanging" / "gemm.mlir").read_bytes())
    (tmp_path / "kernel.s").write_text("nop\nnop\nret\nnop\nnop\nnop\nnop\nnop\n")
    for name, elements in (("a", 96), ("b", 96), ("from", 4096), ("to", 4096)):
        np.save(tmp_path / f"{name}.npy", np.zeros(elements, np.int32))
    (tmp_path / "in.csv").write_bytes(MEASURED.read_bytes())
    layers = {f"blk.0.ffn_{name}.weight": (ternary(1, 256, 128), 1.0) for name in ("gate", "up")}
    write_gguf_i2s(tmp_path / "model.gguf", layers)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    kept = tmp_path / "kept"  # results of this user would be taken over
    monkeypatch.setattr("bdforge.cli.options.kept_results", lambda: kept)

    def run(command: str) -> tuple[int, str]:
        code, printed = 0, ""
        for part in command.split(" && "):
            words, _, file = part.partition(" > ")
            monkeypatch.setattr(sys, "argv", shlex.split(words))
            if not file:  # a terminal shows both streams, in the order of their lines
                monkeypatch.setattr(sys, "stderr", sys.stdout)
            with pytest.raises(SystemExit) as end:
                main()
            out, err = capfd.readouterr()
            if file:
                Path(file).write_text(out)
            code, printed = code or int(end.value.code or 0), printed + out + err
        return code, printed

    return run


MADE = {
    "insts.bin": "bdforge insts encode design.mlir -o insts.bin",
    "a.bin": "bdforge insts encode design.mlir -o a.bin",
    "b.bin": "bdforge insts encode design.mlir -o b.bin",
    "design.pdi": "bdforge lower design.mlir -o design.pdi",
    "design.xclbin": "bdforge lower design.mlir -o design.xclbin",
    "insts.txt": "bdforge insts encode design.mlir -o insts.txt",
    "core.elf": "bdforge asm kernel.s -o core.elf",
    "timeline.json": "bdforge run $one --shape 37x64x32 --timeline timeline.json",
    "code.bin": "bdforge asm kernel.s -o code.bin",
    "bitnet.toml": "bdforge plan designs/gemm_i8_i8_i32_one_core.toml --shape 64x64x64 -o bitnet.toml",
}
"""Files that commands read, and the commands that make them."""


@pytest.mark.parametrize("command", [kept(one.words) for one in HERE])
def test_a_command_runs_as_written(run, request, small: PlannedDesign, command: str):
    told = next(one for one in HERE if one.words == command)
    words = command.replace("[", "").replace("]", "").replace("$one", str(small.folder))
    if "$flagship" in words:
        words = words.replace("$flagship", str(request.getfixturevalue("flagship").folder))
    outputs = set(re.findall(r"(?:-o|--out) (\S+)", words))
    for file, making in MADE.items():
        if file in words.split() and file not in outputs:
            assert run(making.replace("$one", str(small.folder)))[0] == 0
    if words.startswith("bdforge disasm code.bin"):
        Path("code.bin").write_bytes(bytes(16))
    code, printed = run(words)
    assert code == 0, printed
    assert "Traceback" not in printed
    lines = iter(untimed(line) for line in printed.splitlines())
    for line in told.printed:
        wanted = untimed(line)
        assert wanted == "..." or any(wanted == other for other in lines), f"{line!r} is not printed:\n{printed}"


def test_what_is_not_run_here_is_still_there():
    assert [name for name in NOT_HERE if not any(one.words.startswith(name) for one in COMMANDS)] == []
    assert ELSEWHERE.keys() <= {page.name for page in PAGES}
    assert all((ROOT / word.rstrip(":,")).exists() for why in (*NOT_HERE.values(), *ELSEWHERE.values())
               for word in why.split() if word.startswith("tests/"))  # fmt: skip


def options() -> dict[tuple[str, ...], set[str]]:
    """Every verb's options, by its words."""

    def walk(group: TyperGroup, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], set[str]]]:
        for name, command in group.commands.items():
            if isinstance(command, TyperGroup):
                yield from walk(command, (*path, name))
            else:
                yield (
                    (*path, name),
                    {opt for p in command.params for opt in (*p.opts, *p.secondary_opts)} | {"--help", "-h"},
                )

    whole = typer.main.get_command(app)
    assert isinstance(whole, TyperGroup)
    return dict(walk(whole, ()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_verb_and_option_that_a_page_names_exists(page: Path):
    known = options()
    inline = re.findall(r"`bdforge ([a-z][^`]*)`", FENCED.sub("", page.read_text(encoding="utf-8")))
    parts = [part for one in ALL if one.page == page.name for part in one.words.split(" && ")]
    blocks = [part.removeprefix("bdforge ") for part in parts if part.startswith("bdforge ")]
    for command in (*inline, *blocks):
        words = re.sub(r"[\[\]|…]", " ", command).split()
        verb = tuple(words[:2]) if tuple(words[:2]) in known else tuple(words[:1])
        if verb not in known:
            assert any(path[: len(verb)] == verb for path in known), f"{page.name}: bdforge {command}"
            continue
        named = {word.partition("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word)}
        assert named <= known[verb], f"{page.name}: bdforge {command}"


GIVEN: dict[str, Callable[[PlannedDesign], dict[str, Any]]] = {
    "emulator.md": lambda small: {
        "mlir": (ROOT / "examples" / "add_one" / "add_one.mlir").read_text(), "kernels": None,
        "args": [np.zeros(96, np.int32), np.zeros(96, np.int32)],
    },
    "sequences.md": lambda small: {"plan": small.plan, "folder": small.folder},
    "contractions.md": lambda small: {"folder": small.folder},
}  # fmt: skip
"""Names that the Python of a page takes for granted, besides bdforge and numpy."""
PYTHON = {
    page.name: [body for language, body in FENCED.findall(page.read_text()) if language == "python"] for page in PAGES
}


@pytest.mark.parametrize("page", [name for name, found in PYTHON.items() if found and name not in ELSEWHERE])
def test_the_python_of_a_page_runs(page: str, small: PlannedDesign, run):
    built = Path("build/strix_halo")
    built.mkdir(parents=True)
    (built / "gemm_i8_i2_bitnet").symlink_to(small.folder)  # smaller, of the same types
    names: dict[str, Any] = {"bdforge": bdforge, "np": np} | GIVEN.get(page, lambda small: {})(small)
    for body in PYTHON[page]:
        exec(compile(body, page, "exec"), names)
