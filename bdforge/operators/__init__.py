"""Operators, a package each: spec, mapping to a design, numpy reference, cost, kernels' names.

`OPERATORS` is all that others know of them: those of this folder, and those of installed packages (`registry`).
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from bdforge.common.files import read_toml
from bdforge.common.messages import clip, clip_path
from bdforge.design.document import STDIN
from bdforge.design.manifest import COMPOSITION, Manifest
from bdforge.design.sequences import WalkError
from bdforge.devices import Device, device_named
from bdforge.operators.built import built_files, design_for, manifest, render
from bdforge.operators.composed import ComposedPlan, ComposedSpec
from bdforge.operators.input_data import DATA, input_data
from bdforge.operators.operator_api import Cost, Expected, Kernels, Operator, Plan
from bdforge.operators.registry import OPERATORS, own_kinds
from bdforge.operators.specs import (
    STACK_BYTES,
    ArraySection,
    Count,
    FormSpec,
    PlacedArray,
    Problem,
    ProblemForm,
    Section,
    Size,
    Spec,
    SpecError,
    SpecForm,
    array_reasons,
    design_reasons,
    for_array,
    refuse,
    stack_reasons,
)
from bdforge.operators.written import (
    KINDS,
    WrittenPlan,
    WrittenSpec,
    document_at,
    document_name,
    load_written,
    plan_written,
    written_spec,
)

__all__ = [
    "DATA",
    "KINDS",
    "OPERATORS",
    "STACK_BYTES",
    "ArraySection",
    "ComposedPlan",
    "ComposedSpec",
    "Cost",
    "Count",
    "Expected",
    "FormSpec",
    "Kernels",
    "Operator",
    "PlacedArray",
    "Plan",
    "Problem",
    "ProblemForm",
    "Section",
    "Size",
    "Spec",
    "SpecError",
    "SpecForm",
    "WalkError",
    "WrittenSpec",
    "array_reasons",
    "built_files",
    "design_for",
    "design_reasons",
    "document_at",
    "document_name",
    "for_array",
    "input_data",
    "load_spec",
    "manifest",
    "of_own_code",
    "operator_of",
    "plan",
    "plan_of",
    "refuse",
    "render",
    "spec_from",
    "stack_reasons",
]  # fmt: skip


def operator_of(spec: Spec) -> Operator:
    """The operator of a spec."""
    return spec.operator if isinstance(spec, WrittenSpec | ComposedSpec) else OPERATORS[spec.kind]


def load_spec(path: Path | str) -> Spec:
    """Read a design spec of any kind, a document ("-": on standard input), a template's file, or Python's `DESIGN`.

    InputErrors say which file, and list every fault, one to a line.
    """
    path = Path(path)
    if path.suffix == ".mlir":
        raise SpecError(
            f"{clip_path(path)}: is MLIR; a design is a spec or document in TOML, of which bdforge render makes MLIR. "
            "bdforge verify, show and emulate take this"
        )
    read_otherwise = path.suffix == ".py" or str(path) == STDIN
    content = {} if read_otherwise else read_toml(path, SpecError)
    if read_otherwise or content.get("kind") in KINDS:
        return load_written(path)
    return spec_from(content, path.stem, str(path))


def spec_from(content: dict[str, Any], name: str, where: str = "design") -> Spec:
    """A spec of any kind from TOML content; `where` heads every message."""
    kind = content.get("kind")
    if kind in KINDS:
        return written_spec(content, name, where)
    if kind == COMPOSITION:
        raise SpecError(f"{where}: is a composition of designs, no design; bdforge compose builds it")
    if kind is None or kind not in iter(OPERATORS):  # `in` a mapping would import what it finds
        told = "missing; add it" if kind is None else f"unknown operator {clip(repr(kind))}"
        others = "that of a package is there when it is installed (pip install -e .)"
        raise SpecError(f"{where}: kind: {told}; there is {', '.join([*OPERATORS, *KINDS])}; {others}")
    return OPERATORS[kind].load(content, name, where)


def plan_of(built: Manifest, folder: Path | None = None) -> Plan:
    """The plan of a built design by its manifest, in whose folder its reference is looked for, if it is a file.

    SpecError for a spec that this version does not have.
    """
    name = built.design
    if built.kind == COMPOSITION:
        return ComposedPlan(ComposedSpec(built), device_named(built.device), partial(_part, built, folder))
    if built.kind in KINDS:
        spec = written_spec(built.document, name, name, folder=folder, program=built.sequence.program)
    else:
        spec = spec_from(built.document.get("made_from", {}), name, name)
    return plan(spec, device_named(built.device))


def of_own_code(plan: Plan) -> bool:
    """Whether what plans a design and judges its runs is all bdforge's, no installed package's and no reference's."""
    if isinstance(plan, ComposedPlan):
        return all(map(of_own_code, plan.parts.values()))
    if isinstance(plan, WrittenPlan):
        return not plan.design.reference and (plan.origin is None or of_own_code(plan.origin))
    return plan.spec.kind in own_kinds()


def _part(composition: Manifest, folder: Path | None, name: str, facts: Mapping[str, Any]) -> Plan:
    """The plan of a design of a composition, by what its document says of it."""
    document = facts["document"]
    spec = (
        written_spec(document, name, name, folder=folder)
        if facts["kind"] in KINDS
        else spec_from(document.get("made_from", {}), name, name)
    )
    return plan(spec, device_named(composition.device))


def plan(spec: Spec, device: Device) -> Plan:
    """Plan a spec for a product; SpecError lists every reason why it cannot be built."""
    if isinstance(spec, WrittenSpec) and spec.made.made_from:
        return plan_written(spec, device, plan(spec_from(dict(spec.made.made_from), spec.name), device))
    operator = operator_of(spec)
    made = operator.plan(spec, device)
    if operator.axes and made.program.sizes[: len(operator.axes)] != operator.axes:
        raise SpecError(
            f"operator {spec.kind}: has the sizes {', '.join(operator.axes)}, its sequence program the sizes "
            f"{', '.join(made.program.sizes)}; name the same"
        )
    return made
