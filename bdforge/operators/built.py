"""What is made of a plan: MLIR text, and the manifest, which says what a host must know of a built design."""

from collections.abc import Mapping, Sequence
from typing import Any

from bdforge.design import Design
from bdforge.design.manifest import ELF_KERNEL, SCHEMA_VERSION, XCLBIN_KERNEL
from bdforge.design.sequences import PlannedSequence, Program
from bdforge.design.sequences.instruction_words import target_facts
from bdforge.devices import mlir_device_named
from bdforge.operators.operator_api import Plan
from bdforge.operators.specs import Problem


def render(plan: Plan, problems: Sequence[Problem]) -> str:
    """MLIR of the array configuration with one runtime sequence for each problem; SpecError, WalkError as of a plan."""
    return plan.text(_sequences(plan, problems))


def design_for(plan: Plan, problems: Sequence[Problem]) -> Design:
    """The array configuration with one runtime sequence for each problem; SpecError, WalkError as of a plan."""
    return plan.with_sequences(_sequences(plan, problems))


def _sequences(plan: Plan, problems: Sequence[Problem]) -> dict[str, PlannedSequence]:
    return {problem.sequence: plan.sequence(problem) for problem in problems}


_HOST_ROLES = ("mlir", "host_kernels")


def built_files(plan: Plan, problems: Sequence[Problem]) -> dict[str, str]:
    """Paths of all that builds make of `plan`, by role, relative to the manifest's folder."""
    name = plan.spec.name
    written = [problem.sequence for problem in problems if plan.writes_sequences]
    insts = {f"insts_{name}": f"insts_{name}.bin" for name in written}
    images = {
        "xclbin": f"{name}.xclbin", "emulated": f"{name}.emulated.xclbin", "elf": f"{name}.elf",
        "placement": "placement.json", "toolchain": "toolchain.json",
    }  # fmt: skip
    if (reference := plan.reference_file) is not None:
        images["reference"] = f"reference{reference.suffix}"
    return {"mlir": f"{name}.mlir", "host_kernels": f"kernels/lib{name}.so"} | images | insts


def manifest(
    plan: Plan,
    problems: Sequence[Problem],
    hashes: Mapping[str, str] | None = None,
    read_back: str = "",
    toolchain: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The manifest of `plan` with one entry for each built-in problem.

    `hashes` are the SHA-256 of the files that were built, by their roles in `built_files`; xclbin, ELF, instruction
    streams and the copy of a reference are listed when they have one. `read_back` is what confirmed the addresses of
    the buffers, if anything did, `toolchain` the facts of what made the image.
    """
    known, files = hashes or {}, built_files(plan, problems)
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
        "document": plan.document | _reference(plan, files if "reference" in known else {}),
        "files": {
            role: {"path": path, "sha256": known.get(role, "")}
            for role, path in files.items()
            if role in _HOST_ROLES or role in known
        },
        "problems": [
            {
                "name": problem.name,
                "sequence": problem.sequence if plan.writes_sequences else "",
                "sizes": dict(problem.sizes),
            }
            for problem in dict.fromkeys(problems)
        ],
    }


def _reference(plan: Plan, files: Mapping[str, str]) -> dict[str, str]:
    """Where the manifest finds a file that says what outputs must be: its copy among `files`, or its whole path."""
    if (file := plan.reference_file) is None:
        return {}
    _, colon, name = plan.document["reference"].partition(":")
    return {"reference": f"{files.get('reference', file)}{colon}{name}"}


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
