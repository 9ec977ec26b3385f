"""What a host must know of a built design, as JSON; `manifest_schema` says what each member means."""

from collections.abc import Mapping, Sequence
from typing import Any

from bdforge.devices import mlir_device_named
from bdforge.devices.types import TYPES
from bdforge.operators.gemm.plan import RTP_K_STEPS, RTP_OUTPUT_TILES, Plan
from bdforge.operators.gemm.sequence import sequence
from bdforge.operators.gemm.spec import Problem
from bdforge.operators.gemm.staging import Staged
from bdforge.sequences.words import target_facts

SCHEMA_VERSION = 1
XCLBIN_KERNEL = "MLIR_AIE"  # aiecc's default for --xclbin-kernel-name
ELF_KERNEL = "main"  # a full ELF's kernels are its MLIR's devices, their instances the runtime sequences
_HOST_ROLES = ("mlir", "host_kernels")


def built_files(plan: Plan, problems: Sequence[Problem]) -> dict[str, str]:
    """Paths of all that builds make of `plan`, by role, relative to the manifest's folder."""
    name = plan.spec.name
    insts = {f"insts_{problem.sequence}": f"insts_{problem.sequence}.bin" for problem in problems}
    images = {"xclbin": f"{name}.xclbin", "elf": f"{name}.elf", "placement": "placement.json"}
    return {"mlir": f"{name}.mlir", "host_kernels": f"kernels/lib{name}.so"} | images | insts


def manifest(
    plan: Plan, problems: Sequence[Problem], hashes: Mapping[str, str] | None = None, read_back: str = ""
) -> dict[str, Any]:
    """The manifest of `plan` with one entry for each built-in problem.

    `hashes` are the SHA-256 of the files that were built, by their roles in `built_files`; xclbin, ELF and instruction
    streams are listed when they have one. `read_back` is what confirmed the addresses of the buffers, if anything did.
    """
    known = hashes or {}
    files = built_files(plan, problems)
    spec, kernel = plan.spec, plan.kernel
    tile = {"m": spec.tile.m, "k": spec.tile.k, "n": spec.tile.n}
    return {
        "schema": SCHEMA_VERSION,
        "design": spec.name,
        "kind": "gemm",
        "spec_hash": spec.hash,
        "device": plan.device.name,
        "mlir_device": plan.mlir_device,
        "kernel": XCLBIN_KERNEL,
        "elf_kernel": ELF_KERNEL,
        "kernels": list(plan.kernels.symbols),
        "tile": tile | {"k_mt": spec.buffers.k_mt, "r": kernel.r, "s": kernel.s, "t": kernel.t},
        "array": {"rows": spec.rows, "columns": spec.columns},
        "arguments": [
            {"name": "A", "dtype": spec.a, "layout": _layout(spec.a, spec.layouts.a, "M x K")},
            {"name": "B", "dtype": spec.b, "layout": _b_layout(plan)},
            {"name": "C", "dtype": spec.c, "layout": _layout(spec.c, spec.layouts.c, "M x N")},
        ],
        "runtime_parameters": {"K/k": RTP_K_STEPS, "output tiles per core": RTP_OUTPUT_TILES},
        "sequence": {
            "program": plan.program.model_dump(exclude_none=True),
            "target": target_facts(mlir_device_named(plan.mlir_device)),
        },
        "placement": {"read_back": read_back, "buffers": plan.design.buffer_addresses},
        "spec": spec.content,
        "files": {
            role: {"path": path, "sha256": known.get(role, "")}
            for role, path in files.items()
            if role in _HOST_ROLES or role in known
        },
        "problems": [_problem(plan, problem) for problem in dict.fromkeys(problems)],
    }


def _layout(type_name: str, order: str, shape: str) -> str:
    blocks = ", lines of 8 x 8 blocks of 72 bytes" if TYPES[type_name].blocked else ""
    return f"{order}-major {shape}{blocks}"


def _b_layout(plan: Plan) -> str:
    spec, kernel = plan.spec, plan.kernel
    if spec.layouts.b != "packed":
        return _layout(spec.b, spec.layouts.b, "K x N")
    if not kernel.field_scaled:
        return f"packed {spec.b}, [n-tile][K/k][n/{kernel.t}][k/{kernel.s}] micro-tiles"
    return (
        "ternary, four codes u = w + 1 to a byte: "
        f"[n-tile][K/k][n/{4 * kernel.t}][k/{kernel.s}][{kernel.s}][{kernel.t}], "
        f"bits 2j+1:2j hold column j * {kernel.t} of a group of {4 * kernel.t}"
    )


def _problem(plan: Plan, problem: Problem) -> dict[str, Any]:
    planned = sequence(plan, problem.M, problem.K, problem.N)
    return {
        "name": problem.name,
        "sequence": problem.sequence,
        "M": problem.M,
        "K": problem.K,
        "N": problem.N,
        "edges": str(planned.edges()),
        "staged": {name.upper(): _shape(getattr(planned.staging, name)) for name in "abc"},
    }


def _shape(staged: Staged | None) -> list[int] | None:
    return None if staged is None else [staged.rows, staged.columns]
