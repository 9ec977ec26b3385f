"""What is made of a plan: MLIR text, and the manifest, which says what a host must know of a built design."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bdforge.design import Design
from bdforge.design.events import placed_sequence
from bdforge.design.manifest import ELF_KERNEL, SCHEMA_VERSION, XCLBIN_KERNEL
from bdforge.design.render import render as render_design
from bdforge.design.sequences import PlannedSequence, Program
from bdforge.design.sequences.instruction_words import target_facts
from bdforge.devices import mlir_device_named
from bdforge.operators.operator_api import Plan
from bdforge.operators.specs import Problem


def render(plan: Plan, problems: Sequence[Problem]) -> str:
    """MLIR of the array configuration with one runtime sequence for each problem; SpecError, WalkError as of a plan."""
    return render_design(design_for(plan, problems))


def design_for(plan: Plan, problems: Sequence[Problem]) -> Design:
    """The array configuration with one runtime sequence for each problem; SpecError, WalkError as of a plan."""
    return _with_sequences(plan, {problem.sequence: plan.sequence(problem) for problem in problems})


def render_sequences(plan: Plan, sequences: Mapping[str, PlannedSequence]) -> str:
    """MLIR of the array configuration with runtime sequences by name.

    The templates write the dialect's form of March 2026; `bdforge.array.mlir.convert` has the other one.
    """
    return render_design(_with_sequences(plan, sequences))


def _with_sequences(plan: Plan, sequences: Mapping[str, PlannedSequence]) -> Design:
    placed = (
        placed_sequence(
            name, plan.note(planned), plan.design, planned.program, planned.elements, planned.events, planned.wide
        )
        for name, planned in sequences.items()
    )
    return replace(plan.design, sequences=tuple(placed), program=plan.program, made_from=plan.spec.content)


_HOST_ROLES = ("mlir", "host_kernels")


def built_files(plan: Plan, problems: Sequence[Problem]) -> dict[str, str]:
    """Paths of all that builds make of `plan`, by role, relative to the manifest's folder."""
    name = plan.spec.name
    insts = {f"insts_{problem.sequence}": f"insts_{problem.sequence}.bin" for problem in problems}
    images = {
        "xclbin": f"{name}.xclbin", "emulated": f"{name}.emulated.xclbin", "elf": f"{name}.elf",
        "placement": "placement.json", "toolchain": "toolchain.json",
    }  # fmt: skip
    return {"mlir": f"{name}.mlir", "host_kernels": f"kernels/lib{name}.so"} | images | insts


def manifest(
    plan: Plan,
    problems: Sequence[Problem],
    hashes: Mapping[str, str] | None = None,
    read_back: str = "",
    toolchain: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The manifest of `plan` with one entry for each built-in problem.

    `hashes` are the SHA-256 of the files that were built, by their roles in `built_files`; xclbin, ELF and instruction
    streams are listed when they have one. `read_back` is what confirmed the addresses of the buffers, if anything did,
    `toolchain` the facts of what made the image.
    """
    known = hashes or {}
    spec, program = plan.spec, plan.program
    return {
        "schema": SCHEMA_VERSION,
        "design": spec.name,
        "kind": spec.kind,
        "spec_hash": spec.hash,
        "device": plan.device.name,
        "mlir_device": plan.mlir_device,
        "kernel": XCLBIN_KERNEL,
        "elf_kernel": ELF_KERNEL,
        "kernels": list(plan.kernels.symbols),
        "arguments": _arguments(program),
        "sequence": {
            "program": program.model_dump(exclude_none=True),
            "target": target_facts(mlir_device_named(plan.mlir_device)),
            "wide": plan.wide,
        },
        "placement": {"read_back": read_back, "buffers": plan.design.buffer_addresses},
        **({"toolchain": dict(toolchain)} if toolchain else {}),
        "spec": spec.content,
        "files": {
            role: {"path": path, "sha256": known.get(role, "")}
            for role, path in built_files(plan, problems).items()
            if role in _HOST_ROLES or role in known
        },
        "problems": [
            {"name": problem.name, "sequence": problem.sequence, "sizes": dict(problem.sizes)}
            for problem in dict.fromkeys(problems)
        ],
    }


def _arguments(program: Program) -> list[dict[str, str]]:
    """Host buffers with the types of the operands in them."""
    types = [
        ", ".join(dict.fromkeys(operand.type for operand in program.operands if operand.argument == index))
        for index in range(len(program.arguments))
    ]
    return [
        {"name": argument.name, "dtype": type_ or argument.type, "layout": argument.note}
        for argument, type_ in zip(program.arguments, types, strict=True)
    ]
