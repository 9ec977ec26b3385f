"""`bdforge compose`: built designs put together, so that one command runs them one after the other."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from bdforge.cli.options import DEFAULT_PRODUCT, ProductName
from bdforge.cli.step_resources import resource_table
from bdforge.common.files import FileError
from bdforge.common.messages import clip, clip_path, listed
from bdforge.common.screen import new_table, put, say, screen
from bdforge.common.tree import scons, tree
from bdforge.design.manifest import COMPOSITION
from bdforge.design.sequences.composed_tensors import ChangeNumbers
from bdforge.devices import device_named
from bdforge.devices.timing import Timing, timing_of
from bdforge.operators import load_spec, plan
from bdforge.perf.bounds.composition_time import change_us
from bdforge.runtime.built_design import BuildError, BuiltDesign
from bdforge.runtime.composition import (
    UNFINISHED,
    Composition,
    CompositionFault,
    CompositionForm,
    check_steps,
    compose,
    load_composition,
)
from bdforge.runtime.toolchain import ToolError, find_aiebu, find_xrt, missing_report
from bdforge.runtime.toolchain.full_elf import ElfTools

app = typer.Typer()


@app.command(name="compose")
def compose_command(
    file: Annotated[Path, typer.Argument(help="The composition: TOML with its steps.")],
    device: ProductName = DEFAULT_PRODUCT,
    built: Annotated[
        Path, typer.Option(help="Folder of the built designs, each in DEVICE/NAME; what is missing is built there.")
    ] = Path("build"),
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for what is built, by default beside the designs.")
    ] = None,
    format_: Annotated[
        Literal["xclbin", "elf"],
        typer.Option("--format", help="What the NPU loads: an xclbin, or a full ELF besides, by XRT's tools."),
    ] = "xclbin",
) -> None:
    """Build a composition of designs: one command that runs them all, with changes of the array between them.

    Designs that are not built yet are: those of files beside the composition, and those that came with bdforge.
    """
    tools = _elf_tools() if format_ == "elf" else None
    name, home = file.stem, built / device
    folder = out or home / name
    _check_folder(folder, name)
    form = load_composition(file)
    if tools is not None and not form.problems:
        raise CompositionFault(f"{clip_path(file)}: a full ELF runs the problems of the file alone; add [[problems]]")
    if form.loaded and not _is_built(home / form.loaded, None):
        first = clip_path(file.parent / f"{form.loaded}.toml")
        raise CompositionFault(f"{clip_path(file)}: runs where {form.loaded} is loaded; bdforge compose {first} first")
    _build_missing(form, name, file.parent, home)
    made = compose(form, name, lambda design: BuiltDesign.load(home / design))
    try:
        made.write(folder, tools)
    except ToolError as error:
        raise BuildError(f"{error}\n{clip(error.output.strip())}") from None
    _print(made)
    say(f"wrote {clip_path(folder)}; run it: bdforge run {clip_path(folder)}")


def _elf_tools() -> ElfTools:
    """xclbinutil and aiebu-asm; BuildError where one is missing."""
    found = find_xrt(), find_aiebu()
    if report := missing_report(found):
        raise BuildError(f"--format elf needs tools that are not there:\n{report}")
    xclbinutil, aiebu = ([tool.path] for tool in found if tool.path)
    return ElfTools(xclbinutil, aiebu)


def _build_missing(form: CompositionForm, name: str, beside: Path, home: Path) -> None:
    """Build designs of which there is no folder yet, or one of another spec, once all steps are known to fit together;
    BuildError where that fails."""
    designs = {step.design for step in form.steps}
    files = {name: own for name in designs if (own := beside / f"{name}.toml").is_file()}
    missing = sorted(name for name in designs if not _is_built(home / name, files.get(name)))
    if not missing:
        return
    specs = {name: files.get(name, tree() / "designs" / f"{name}.toml") for name in missing}
    if all(spec.is_file() for spec in specs.values()):
        there = {name: BuiltDesign.load(home / name).program for name in designs.difference(missing)}
        product = device_named(home.name)
        check_steps(form, name, there | {name: plan(load_spec(spec), product).program for name, spec in specs.items()})
    wanted = ",".join(str(files[name].resolve()) if name in files else name for name in missing)
    say(f"building {listed(missing)}", err=True)
    choices = [f"device={home.name}", f"design={wanted}", f"build={home.parent.resolve()}", "toolchain=bdforge"]
    code, said = scons(*choices, quiet=True)
    if code:
        raise BuildError(
            f"{listed(missing)} cannot be built: {said.strip().splitlines()[-1] if said.strip() else code}"
        )


def _is_built(folder: Path, file: Path | None) -> bool:
    """Whether a folder holds a design, that of a file's spec if there is one."""
    try:
        held = BuiltDesign.load(folder).manifest
    except BuildError:  # nothing, or of another version
        return False
    return file is None or held.spec_hash == load_spec(file).hash


def _check_folder(folder: Path, name: str) -> None:
    """Only a composition is built anew; FileError for a folder with something else."""
    if folder.is_file():
        raise FileError(f"{clip_path(folder)}: is a file; choose a folder with --out")
    if not folder.is_dir() or all(one.name == UNFINISHED for one in folder.iterdir()):
        return
    kind, held = _held(folder / "manifest.json")
    if (kind, held) != (COMPOSITION, name):
        what = f"{held} ({kind})" if kind else "files of others"
        raise FileError(f"{clip_path(folder)}: holds {what}, not the composition {name}; choose another with --out")


def _held(manifest: Path) -> tuple[str, str]:
    """Kind and name of what a manifest describes, of another version's, too; none of what is no manifest."""
    try:
        content = json.loads(manifest.read_bytes())
        return str(content["kind"]), str(content["design"])
    except (OSError, ValueError, TypeError, KeyError):
        return "", ""


def _print(made: Composition) -> None:
    """The steps, and what each change of the configuration takes."""
    timing = timing_of(made.first.manifest.device)
    table = new_table(
        f"{made.name}: {len(made.form.steps)} steps", "=step", "design", ">change", ">KB", ">us, modelled"
    )
    for step, number in zip(made.form.steps, made.changes.numbers, strict=False):
        table.add_row(step.name or step.design, step.design, *_change(made, number, timing))
    if any(number is not None for number in made.changes.numbers[-1]):
        table.add_row("", "back to the first", *_change(made, made.changes.numbers[-1], timing))
    used = [number for change in made.changes.numbers for number in change if number is not None]
    kb = sum(map(made.change_bytes, made.changes.numbers)) / 1024
    us = sum(change_us(made.changes.operations[number], timing) for number in used)
    put(
        screen(),
        table,
        resource_table([*made.designs.values()]),
        f"changes of a run: {kb:.0f} KB of its instruction stream, {us:.0f} us (modelled)",
    )


def _change(made: Composition, numbers: ChangeNumbers, timing: Timing) -> Sequence[str]:
    """Operations, of them those ahead, KB of the stream and microseconds, of them those ahead."""
    ahead, then = (() if number is None else made.changes.operations[number] for number in numbers)
    if not ahead and not then:
        return "-", "-", "-"
    us = [f"{change_us(part, timing):.0f}" for part in (ahead, then) if part]
    return (
        " + ".join(str(len(part)) for part in (ahead, then) if part),
        f"{made.change_bytes(numbers) / 1024:.0f}",
        " + ".join(us),
    )
