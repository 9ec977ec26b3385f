"""Compositions: built designs that run one after the other in one command, each on what the others left in DRAM.

A composition is data: TOML names the designs, their sizes, and the tensors that their operands are. What is built of it
is a design like any other, with a manifest whose sequence program runs all steps and changes the array's configuration
between them by register writes (`bdforge.array.lower.transition`), so nothing is loaded while it runs.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from bdforge.array.images.cdo import cdo, joined
from bdforge.array.images.pdi import pdi
from bdforge.array.images.read import configurations
from bdforge.array.images.xclbin_write import xclbin
from bdforge.common.files import read_bytes, read_toml, write_whole
from bdforge.common.messages import InputError, clip, clip_path, form_fault, listed
from bdforge.design.manifest import (
    COMPOSITION,
    CONFIGURATIONS,
    ELF_KERNEL,
    OWN_TOOLCHAIN,
    REFERENCE,
    SCHEMA_VERSION,
    SIZE_MAX,
    XCLBIN_KERNEL,
    spec_hash,
)
from bdforge.design.sequences import PlannedSequence, Program, ProgramError, planned
from bdforge.design.sequences.composed_tensors import NOTHING_EARLY, UNCHANGED, ChangeNumbers, ComposedStep, View
from bdforge.design.sequences.composer import Composer
from bdforge.design.sequences.expressions import ExpressionError
from bdforge.devices import Device
from bdforge.devices.txn_format.codec import encode
from bdforge.runtime.built_design import BuildError, BuiltDesign
from bdforge.runtime.configuration_changes import ConfigurationChanges, StepOrder, configuration_changes
from bdforge.runtime.toolchain.full_elf import ElfTools, write_full_elf

UNFINISHED = "unfinished"
"""A folder in a composition's: what is being built, or what failed."""
MANIFEST = "manifest.json"


class CompositionFault(InputError):
    """A composition that cannot be read or built; the message says why."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


Name = Annotated[str, Field(pattern=r"^[^\x00-\x1f{}]{1,64}$")]
"""Of a step, a tensor or a buffer: no braces, which messages have for values."""
Parameter = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]


def _no_choice(name: str) -> str:
    if name in ("all", "default"):
        raise ValueError("names no design, but what scons builds by that word")
    return name


DesignName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$"), AfterValidator(_no_choice)]


class StepForm(_Part):
    """A step: a built design by name, its sizes, and the tensors that its operands are."""

    design: DesignName
    name: Name | None = None
    sizes: dict[str, int | str] = {}
    tensors: dict[str, Name] = {}


class ViewForm(_Part):
    """A tensor that is part of another, from row `first` on."""

    of: Name
    first: int | str = 0


class ProblemSizes(BaseModel):
    """A problem that is built in, by parameter."""

    model_config = ConfigDict(extra="allow")
    name: str = ""


class CompositionForm(_Part):
    """The file of a composition."""

    kind: Literal["composition"]
    parameters: list[Parameter] = []
    steps: list[StepForm] = Field(min_length=1)
    buffers: dict[Name, list[Name]] = {}
    outputs: list[Name] = []
    in_place: dict[Name, Name] = {}
    views: dict[Name, ViewForm] = {}
    roles: dict[Name, Name] = {}
    """What the host's tensors are to programs that run whole models."""
    problems: list[ProblemSizes] = []
    programs_ahead: bool = False
    """Whether a core's program memory may be written while it runs, where its program is not."""
    resident: bool = False
    """Whether tiles stay as a design's run left them until it runs again, if none between uses them."""
    loaded: DesignName | None = None
    """The built composition that is loaded, and whose configuration a run leaves as it was; None: its own."""

    @property
    def order(self) -> StepOrder:
        """Its designs, step by step."""
        return StepOrder(tuple(step.design for step in self.steps), self.programs_ahead, self.resident)


@dataclass(frozen=True)
class Composition:
    """A composition of built designs; `compose` makes it."""

    name: str
    form: CompositionForm
    designs: Mapping[str, BuiltDesign]
    program: Program
    changes: ConfigurationChanges
    loaded: "Composition | None" = None

    @property
    def first(self) -> BuiltDesign:
        """The design that is loaded."""
        return self.designs[self.form.steps[0].design]

    @property
    def widest(self) -> BuiltDesign:
        """The design of most columns, all of which the composition has; or that of what is loaded."""
        others = () if self.loaded is None else (self.loaded.widest,)
        return max((*others, *self.designs.values()), key=lambda design: design.array.columns)

    @property
    def device(self) -> Device:
        return self.widest.array

    @cached_property
    def document(self) -> dict[str, Any]:
        """Its tables, with those of the designs that it is made of."""
        parts = {
            name: {"kind": one.manifest.kind, "spec_hash": one.manifest.spec_hash, "document": _document(name, one)}
            for name, one in self.designs.items()
        }
        return self.form.model_dump(exclude_defaults=True) | {"kind": COMPOSITION, "name": self.name, "designs": parts}

    def write(self, folder: Path, tools: ElfTools | None = None) -> None:
        """The built design: manifest, image, changes and a text of its array.

        With `tools` a full ELF, too, which runs the problems of the file; ToolError where they fail. All is made in the
        folder `UNFINISHED` there and moved at the end, so that what was there before stays as it is until then.
        """
        made = folder.resolve() / UNFINISHED
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        files = self._files()
        for path, content in files.values():
            write_whole(made / path, content)
        if tools is not None:
            elf = made / f"{self.name}.elf"
            write_full_elf(self._sequences(), made / files["xclbin"][0], elf, tools)
            files["elf"] = elf.name, read_bytes(elf, BuildError)
        hashes = {
            role: {"path": path, "sha256": hashlib.sha256(content).hexdigest()}
            for role, (path, content) in files.items()
        }
        write_whole(made / MANIFEST, json.dumps(self._manifest(hashes), indent=1).encode())
        for path in (*(path for path, _ in files.values()), MANIFEST):
            (made / path).replace(folder / path)
        shutil.rmtree(made)

    def _files(self) -> dict[str, tuple[str, bytes]]:
        """Names and contents by role."""
        files = {
            "mlir": (f"{self.name}.mlir", f"aie.device({self.device.name}) @main {{\n}}\n".encode()),
            "xclbin": (f"{self.name}.xclbin", self._image()),
            CONFIGURATIONS: (f"{CONFIGURATIONS}.bin", self._encoded()),
        }
        for name, one in self.designs.items():
            if REFERENCE in one.manifest.files:
                file = one.image(REFERENCE)
                files[f"{REFERENCE}_{name}"] = f"{name}_{file.name}", read_bytes(file, BuildError)
        return files

    def _sequences(self) -> dict[str, PlannedSequence]:
        """A stream for each problem, by its name in a full ELF."""
        sizes = map(sizes_of_problem, self.form.problems)
        found = (planned(self.program, one, self.device, None, self.changes.operations) for one in sizes)
        return {_sequence_name(sequence.parameters): sequence for sequence in found}

    def _image(self) -> bytes:
        """The first step's for all columns, with what a run leaves beside it; or that of what is loaded."""
        if self.loaded is not None:
            return self.loaded._image()
        image = read_bytes(self.first.image("xclbin"), BuildError)
        if not self.changes.left and self.first.array == self.device:
            return image
        _, ((first, *others),) = configurations(image)
        content = pdi([joined([cdo(self.changes.left), first]), *others])
        return xclbin(content, self.device.columns)

    def change_bytes(self, change: ChangeNumbers) -> int:
        """What a change takes of an instruction stream."""
        return sum(
            encode(self.changes.operations[number], self.device).nbytes for number in change if number is not None
        )

    def _encoded(self) -> bytes:
        """The changes as instruction streams, one behind the other."""
        return b"".join(encode(change, self.device).astype("<u4").tobytes() for change in self.changes.operations)

    def _manifest(self, files: Mapping[str, Any]) -> dict[str, Any]:
        first = self.widest.manifest
        return {
            "schema": SCHEMA_VERSION, "design": self.name, "kind": COMPOSITION, "spec_hash": spec_hash(self.document),
            "device": first.device, "mlir_device": first.mlir_device, "kernel": XCLBIN_KERNEL, "elf_kernel": ELF_KERNEL,
            "kernels": [],
            "arguments": [{"name": a.name, "dtype": a.type, "layout": "slices"} for a in self.program.arguments],
            "sequence": {
                "program": self.program.model_dump(exclude_none=True), "target": first.sequence.target.model_dump(),
                "wide": False,
            },
            "toolchain": {"name": OWN_TOOLCHAIN, "tools": [], "host_cores": []},
            "document": self.document, "files": dict(files),
            "problems": [
                {"name": p.name, "sequence": _sequence_name(sizes_of_problem(p)), "sizes": sizes_of_problem(p)}
                for p in self.form.problems
            ],
        }  # fmt: skip


def _sequence_name(sizes: Mapping[str, int]) -> str:
    """Such as composition_1x1024."""
    return f"{COMPOSITION}_{'x'.join(map(str, sizes.values()))}"


def _document(name: str, design: BuiltDesign) -> dict[str, Any]:
    """A step's design, its reference, if that is a file, under the name of its copy."""
    document = design.manifest.document
    if REFERENCE not in design.manifest.files:
        return document
    return document | {REFERENCE: f"{name}_{document[REFERENCE]}"}


def sizes_of_problem(problem: ProblemSizes) -> dict[str, int]:
    """A problem's sizes by parameter."""
    return {name: size for name, size in problem.model_dump().items() if name != "name"}


def is_composition(path: Path) -> bool:
    """Whether a file says that it is one."""
    if path.suffix != ".toml" or not path.is_file():
        return False
    return read_toml(path, CompositionFault).get("kind") == COMPOSITION


def load_composition(path: Path) -> CompositionForm:
    """The file of a composition; CompositionFault for what it lacks or has wrong."""
    try:
        return CompositionForm.model_validate(read_toml(path, CompositionFault))
    except ValidationError as error:
        faults = (f"{clip_path(path)}: {form_fault(e, '.'.join(map(str, e['loc'])))}" for e in error.errors())
        raise CompositionFault(listed(faults, "\n")) from None


def compose(form: CompositionForm, name: str, built: Callable[[str], BuiltDesign]) -> Composition:
    """Put built designs together; `built` finds one by its name.

    CompositionFault says what does not fit: designs for different arrays or with cores without machine code, steps
    whose operands differ.
    """
    designs = {step.design: built(step.design) for step in form.steps}
    loaded = None if form.loaded is None else _composed(form.loaded, built)
    known, order = (designs, None) if loaded is None else ({**loaded.designs, **designs}, loaded.form.order)
    for design in known.values():
        _check_design(design, next(iter(known.values())))
    changes = configuration_changes(form.order, known, order)
    program = _program(form, name, {name: design.program for name, design in designs.items()}, changes)
    return Composition(name, form, designs, program, changes, loaded)


def check_steps(form: CompositionForm, name: str, programs: Mapping[str, Program]) -> None:
    """CompositionFault for steps that do not fit together, by the programs of designs that need not be built yet."""
    numbers, early = (UNCHANGED,) * (len(form.steps) + 1), (NOTHING_EARLY,) * len(form.steps)
    _program(form, name, programs, ConfigurationChanges((), numbers, early, ()))


def _program(
    form: CompositionForm, name: str, programs: Mapping[str, Program], changes: ConfigurationChanges
) -> Program:
    steps = [
        ComposedStep(step.name or step.design, programs[step.design], step.sizes, step.tensors, number, early)
        for step, number, early in zip(form.steps, changes.numbers, changes.early, strict=False)
    ]
    try:
        views = {name: View(view.of, view.first) for name, view in form.views.items()}
        composer = Composer(form.parameters, form.buffers, form.outputs, form.in_place, views)
        program = composer.program(steps, changes.numbers[-1])
    except (ProgramError, ExpressionError) as error:
        raise CompositionFault(f"{name}: {error}") from None
    if untold := [one for one in form.parameters if one not in program.sizes]:
        raise CompositionFault(
            f"{name}: no tensor's shape tells {listed(untold)}: an axis of an input must be just that"
        )
    hosts = [operand.name for operand in program.operands if operand.direction != "between"]
    if odd := [tensor for tensor in form.roles if tensor not in hosts]:
        raise CompositionFault(f"{name}: roles: {listed(odd)}: no such input or output; they are {listed(hosts)}")
    for problem in form.problems:
        _check_problem(problem, program, name)
    return program


def _composed(name: str, built: Callable[[str], BuiltDesign]) -> Composition:
    """A built composition once more; CompositionFault where its designs were built anew since."""
    design = built(name)
    if design.manifest.kind != COMPOSITION:
        raise CompositionFault(f"loaded = {name!r}: is of kind {design.manifest.kind}, no composition")
    tables = {key: value for key, value in design.manifest.document.items() if key not in ("name", "designs")}
    found = compose(CompositionForm.model_validate(tables), name, built)
    if found._image() != read_bytes(design.image("xclbin"), BuildError):
        raise CompositionFault(f"loaded = {name!r}: its designs were built anew since; compose it again")
    return found


def _check_problem(problem: ProblemSizes, program: Program, name: str) -> None:
    sizes = sizes_of_problem(problem)
    right = all(type(size) is int and 0 < size <= SIZE_MAX for size in sizes.values())
    if sizes.keys() != set(program.sizes) or not right:
        given, wanted = clip(repr(problem.model_dump())), listed(program.sizes) or "no sizes"
        raise CompositionFault(f"{name}: problems: {given} should give {wanted}, each from 1 to {SIZE_MAX}")


def _check_design(design: BuiltDesign, first: BuiltDesign) -> None:
    mine, theirs = design.manifest, first.manifest
    if mine.device != theirs.device:
        raise CompositionFault(
            f"{design.name} is for {mine.device}, {first.name} for {theirs.device}; a composition runs on one product"
        )
    if "xclbin" not in mine.files or (mine.toolchain is not None and mine.toolchain.host_cores):
        raise CompositionFault(
            f"{design.name}: has no image with machine code in every core; build it with scons "
            f"device={mine.device} design={design.name} toolchain=bdforge, or with aiecc"
        )
