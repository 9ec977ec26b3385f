"""Designs that people write: documents, Python, templates or plain MLIR with a document's `[sequence]`, `[[operand]]`.

Each is planned as an operator's spec is, so that builds, hosts and commands take all of them alike. What outputs must
be a design says by `reference`: "module:function", "file.py:function" with a file beside it, or a golden file (.npz)
of operands by name; else the operator that it was `made_from` says it, if there is one.
"""

import runpy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from bdforge.common.files import parsed_toml, read_bytes, read_text
from bdforge.common.messages import clip, clip_path, listed
from bdforge.common.watched import foreign
from bdforge.design import Call, Design
from bdforge.design.core_code import statements
from bdforge.design.document import STDIN, design_of, document, document_in, program_of
from bdforge.design.document.toml_text import toml_text
from bdforge.design.sequences import PlannedSequence, Program, SequenceOptions
from bdforge.design.sequences.buffers import inputs_of, outputs_of, sizes_of
from bdforge.design.sequences.operands import OperandError
from bdforge.design.template import KIND as TEMPLATE
from bdforge.design.template import TemplateSpec, named_in, render_template, template_spec
from bdforge.devices import Device
from bdforge.devices.types import TYPES
from bdforge.operators.operator_api import Cost, Expected, Kernels, Operator, Plan
from bdforge.operators.specs import Problem, ProblemForm, Spec, SpecError, validated

DOCUMENT = "design"
KINDS = (DOCUMENT, TEMPLATE)
_RAW_BF16 = np.dtype("V2")


class _Sizes(ProblemForm, extra="allow"):
    """A problem's sizes, by the names of the sequence's; `WrittenSpec.of` judges them."""


@dataclass(frozen=True)
class WrittenSpec(Spec):
    """A design that somebody wrote, of kind "design" or "template"; `tables` are those of its file.

    Of a template `made` holds no tiles: they stand in its text. Files that it names are looked for beside `folder`.
    """

    name: str
    tables: Mapping[str, Any]
    made: Design
    problems: tuple[Problem, ...]
    sequence: SequenceOptions
    folder: Path

    @classmethod
    def of(cls, name: str, made: Design, tables: Mapping[str, Any], folder: Path, where: str) -> "WrittenSpec":
        """The spec of a design with its sequence; SpecError where that is missing, or a problem has other sizes."""
        if made.program is None:
            raise SpecError(
                f"{where}: has no [sequence] of any size with its [[operand]]s, which hosts need; docs/document.md has "
                "them"
            )
        sizes, problems = made.program.sizes, []
        for one in tables.get("problems", []):
            found = validated(_Sizes, one, where).model_dump()
            called = found.pop("name")
            if set(found) != set(sizes) or not all(type(n) is int and n > 0 for n in found.values()):
                raise SpecError(f"{where}: problems: {clip(repr(one))} should give {', '.join(sizes)}, each from 1 on")
            kind = _planned_from(made) or tables["kind"]
            problems.append(Problem(kind, {size: found[size] for size in sizes}, called))
        return cls(name, tables, made, tuple(problems), SequenceOptions("column", made.program.in_flight), folder)

    @property
    def kind(self) -> str:  # type: ignore[override]
        """ "design" or "template"."""
        return self.tables["kind"]

    @property
    def golden(self) -> str:
        """The program that checks what was built, of a template that names one."""
        return self.tables.get("golden", "")

    @property
    def program(self) -> Program:
        """Its sequence of any size."""
        assert self.made.program is not None
        return self.made.program

    @property
    def facts(self) -> dict[str, Any]:
        """Its tables but for problems."""
        return {key: value for key, value in self.tables.items() if key not in ("kind", "problems")}

    @property
    def content(self) -> dict[str, Any]:
        """Its tables."""
        return dict(self.tables)

    @property
    def operator(self) -> Operator:
        """What stands for the operator of a design that has none: its sizes are those of its sequence."""
        kind = _planned_from(self.made) or self.kind
        return Operator(kind, self.program.sizes, written_spec, plan_written, lambda spec, device: spec.fits(device))

    @cached_property
    def template(self) -> TemplateSpec | None:
        """What a template's file says, None of a document."""
        return template_spec(self.tables, self.name) if self.kind == TEMPLATE else None

    def file(self, name: str) -> Path:
        """A file that it names."""
        folders = _folders(self.folder)
        found = (folder / name for folder in folders)
        return next((path for path in found if path.is_file()), folders[0] / name)

    @property
    def reference_label(self) -> str:
        """What messages call its `reference`."""
        return f"{self.name}: reference {clip(self.made.reference)}"

    def called(self, inputs: Mapping[str, np.ndarray]) -> Any:
        """What the function "module:function" or "file.py:function" makes of inputs; SpecError where it cannot."""
        label = self.reference_label
        place, _, name = self.made.reference.partition(":")
        if place.endswith(".py") and not self.file(place).is_file():
            folders = listed(dict.fromkeys(map(clip_path, (folder / place for folder in _folders(self.folder)))))
            raise SpecError(f"{label}: there is no such file; looked for {folders}")
        with foreign(label, SpecError):
            known = runpy.run_path(str(self.file(place))) if place.endswith(".py") else vars(import_module(place))
        if not callable(known.get(name)):
            raise SpecError(
                f"{label}: {clip_path(place)} has no function {clip(repr(name))}; name module:function, "
                "file.py:function or a golden file (.npz)"
            )
        with foreign(label, SpecError, "calling it"):
            return known[name](**inputs)

    def fits(self, device: Device) -> bool:
        """Whether a product has the array: npu2_1col is a column of npu2."""
        return self.made.device.partition("_")[0] == device.mlir


def _planned_from(made: Design) -> str:
    """The operator that a design was planned from, whose name its sequences keep; "" where there is none."""
    return str((made.made_from or {}).get("kind", ""))


def document_at(path: Path) -> str | None:
    """The text of the document of a file: a document itself, or that of a Python file's `DESIGN`; None of another file.

    InputErrors say what is wrong.
    """
    if path.suffix != ".py":
        return document_in(path)
    with foreign(clip_path(path), SpecError):
        found = runpy.run_path(str(path)).get("DESIGN")
    if not isinstance(found, Design):
        raise SpecError(f"{clip_path(path)}: has no DESIGN, a bdforge.design.Design")
    return document(found)


def load_written(path: Path) -> WrittenSpec:
    """The design of a document, a template's file or a Python file with a `DESIGN`; InputErrors say what is wrong."""
    if (text := document_at(path)) is None:
        text = read_text(path, SpecError)
    tables = parsed_toml(text, path, SpecError)
    name = path.stem if str(path) != STDIN else clip(tables.get("name", DOCUMENT))
    if tables.get("kind") not in KINDS:
        raise SpecError(f"{clip_path(path)}: is no document; give a spec by its file")
    return written_spec(tables, name, document_name(path), text, path.parent)


def document_name(path: Path) -> str:
    """What messages call the text of a file's document, which of Python's is the one that `bdforge plan` prints."""
    return f"{path}'s document" if path.suffix == ".py" else str(path)


def written_spec(
    tables: Mapping[str, Any], name: str, where: str = "design", text: str = "", folder: Path | None = None,
    program: Program | None = None,
) -> WrittenSpec:  # fmt: skip
    """The design that tables say, with their `text` for messages; `program` where it is known already.

    Errors of documents and templates are InputErrors that tell every fault.
    """
    text, beside = text or toml_text(dict(tables)), folder or Path()
    if tables["kind"] == DOCUMENT:
        made = design_of(text, where)
    else:
        spec = template_spec(tables, where)
        if program is None and spec.sequence is not None:
            program = program_of(
                tables, text, where, spec.values, lambda: named_in(_rendered(spec, beside), spec.array)
            )
        made = Design(
            name, spec.array, (), reference=spec.reference, kernels=tuple(spec.kernels), macros=tuple(spec.defines)
        )
    return WrittenSpec.of(name, replace(made, program=made.program or program), tables, beside, where)


def _rendered(spec: TemplateSpec, folder: Path) -> str:
    """The MLIR of a template's file in a folder."""
    folders = _folders(folder)
    return render_template(spec, *folders, *(folder / "templates" for folder in folders))


def _folders(folder: Path) -> tuple[Path, Path]:
    """Where files are looked for that a design in a folder names: there, then in the one above, a project's."""
    own = folder.resolve()
    return own, own.parent


@dataclass(frozen=True, repr=False)
class WrittenPlan(Plan):
    """A design that somebody wrote, on a product."""

    spec: WrittenSpec
    device: Device
    origin: Plan | None = None
    """Of the operator that it was made from."""

    @property
    def design(self) -> Design:  # type: ignore[override]
        """The array's configuration; of a template without its tiles."""
        return replace(self.spec.made, sequences=())

    @property
    def program(self) -> Program:
        """The runtime sequence of any size."""
        return self.spec.program

    @property
    def kernels(self) -> Kernels:
        """What cores call; of a template the function that each source is named after."""
        made = self.spec.made
        bodies = (statements(tile.core.body) for tile in made.tiles if tile.core)
        called = [s.function for body in bodies for s in body if isinstance(s, Call)]
        symbols = dict.fromkeys(called or (Path(source).stem for source in made.kernels))
        return Kernels(tuple(symbols), tuple(str(Path("kernels", source)) for source in made.kernels), made.macros)

    @property
    def writes_sequences(self) -> bool:
        """Not where a template writes the text."""
        return self.spec.template is None

    @property
    def document(self) -> dict[str, Any]:
        """The tables that were written."""
        return self.spec.content

    @property
    def whole(self) -> Design:
        """The design as it was written."""
        return replace(self.design, program=self.program)

    @property
    def reference_file(self) -> Path | None:
        """The file that its `reference` names; None for a module, or where there is no such file."""
        place = self.spec.made.reference.partition(":")[0]
        file = self.spec.file(place)
        return file if place.endswith((".py", ".npz")) and file.is_file() else None

    def text(self, sequences: Mapping[str, PlannedSequence]) -> str:
        """The MLIR; a template's as it is."""
        if (spec := self.spec.template) is None:
            return super().text(sequences)
        return _rendered(spec, self.spec.folder)

    def random(self, problem: Problem, seed: int) -> dict[str, np.ndarray]:
        """Inputs of their types, or those of the golden file."""
        if self._golden:
            return {operand.name: self._golden[operand.name] for operand in inputs_of(self.program)}
        if self.origin is not None:
            return self.origin.random(problem, seed)
        return super().random(problem, seed)

    def reference(self, inputs: Mapping[str, np.ndarray]) -> dict[str, Expected]:
        """Outputs by its `reference`; none where nothing says them, or for other inputs than the golden file's.

        SpecError where its function cannot be called, or gives other outputs than the design has.
        """
        names = [operand.name for operand in outputs_of(self.program)]
        if golden := self._golden:
            same = all(name in golden and np.array_equal(array, golden[name]) for name, array in inputs.items())
            return {name: Expected(golden[name]) for name in names} if same else {}
        if not self.design.reference:
            return self.origin.reference(inputs) if self.origin else {}
        found = self.spec.called(inputs)
        if not isinstance(found, dict):
            found = found if isinstance(found, tuple) else (found,)
            if len(found) > len(names):
                raise SpecError(f"{self.spec.reference_label}: gives {len(found)} arrays; there is {listed(names)}")
            found = dict(zip(names, found, strict=False))
        outputs = {str(name): np.asarray(array) for name, array in found.items()}
        self._check_outputs(inputs, outputs)
        return {name: Expected(array) for name, array in outputs.items()}

    def _check_outputs(self, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray]) -> None:
        """Without it numpy would repeat a row or a number, and compare."""
        label = self.spec.reference_label
        operands = outputs_of(self.program)
        if lost := [operand.name for operand in operands if operand.name not in outputs]:
            raise SpecError(f"{label}: gives no {listed(lost)}; return one array, a tuple, or arrays by name")
        shaped = {o.name: np.empty(outputs[o.name].shape, TYPES[o.type].dtype) for o in operands}
        try:
            sizes_of(self.program, {**inputs, **shaped})
        except OperandError as error:
            raise SpecError(f"{label}: {error}") from None

    def cost(self, problem: Problem) -> Cost:
        """What a run moves; what its cores do is not known, but of the operator that it was made from."""
        if self.origin is not None:
            return self.origin.cost(problem)
        sequence = self.sequence(problem)
        made = sum(int(np.prod([sequence.values[a.size] for a in o.axes])) for o in outputs_of(self.program))
        return Cost.of(sequence, made, 0.0)

    @cached_property
    def _golden(self) -> dict[str, np.ndarray]:
        if not self.design.reference.endswith(".npz"):
            return {}
        path = self.spec.file(self.design.reference)
        found = _archive(path)
        if lost := [operand.name for operand in self.program.operands if operand.name not in found]:
            raise SpecError(f"{clip_path(path)}: holds no {listed(lost)}")
        types = {operand.name: TYPES[operand.type].dtype for operand in self.program.operands}
        plain = {name: array for name, array in found.items() if name in types}  # what numpy saves of bfloat16 is raw
        found = {name: a.view(types[name]) if a.dtype == _RAW_BF16 else a for name, a in plain.items()}
        try:
            sizes_of(self.program, found)
        except OperandError as error:
            raise SpecError(f"{clip_path(path)}: {error}") from None
        return found


def _archive(path: Path) -> dict[str, np.ndarray]:
    content = read_bytes(path, SpecError)
    try:
        with np.load(BytesIO(content)) as file:
            return dict(file)
    except Exception as error:  # numpy and zipfile raise whatever they do of a damaged file
        reason = clip(str(error).partition("\n")[0] or type(error).__name__)
        raise SpecError(f"{clip_path(path)}: is no .npz of arrays: {reason}; write one with numpy.savez") from None


def plan_written(spec: WrittenSpec, device: Device, origin: Plan | None = None) -> WrittenPlan:
    """Plan a written design; SpecError where the product has another array."""
    if not spec.fits(device):
        raise SpecError(f"{spec.name}: is for {spec.made.device}, but {device.name} is an {device.mlir}")
    return WrittenPlan(spec, device, origin)
