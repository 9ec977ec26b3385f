"""What a host must know of a built design, as JSON."""

from collections.abc import Sequence
from typing import Any

from bdforge.plan.gemm import RTP_K_STEPS, RTP_OUTPUT_TILES, Plan
from bdforge.plan.runtime_facts import runtime_facts
from bdforge.plan.sequence import sequence
from bdforge.plan.spec import Problem
from bdforge.plan.staging import Staged

SCHEMA_VERSION = 1


def manifest(plan: Plan, problems: Sequence[Problem]) -> dict[str, Any]:
    """The manifest of `plan` with one entry for each built-in problem."""
    spec, kernel = plan.spec, plan.kernel
    tile = {"m": spec.tile.m, "k": spec.tile.k, "n": spec.tile.n}
    return {
        "schema": SCHEMA_VERSION,
        "design": spec.name,
        "kind": "gemm",
        "spec_hash": spec.hash,
        "device": plan.device.name,
        "mlir_device": plan.mlir_device,
        "kernels": [name for name in (kernel.multiply, kernel.zero, kernel.finish) if name],
        "tile": tile | {"k_mt": spec.k_mt, "r": kernel.r, "s": kernel.s, "t": kernel.t},
        "array": {"rows": spec.rows, "columns": spec.columns},
        "arguments": [
            {"name": "A", "dtype": spec.a, "layout": "row-major M x K"},
            {"name": "B", "dtype": "uint8", "layout": _packing(plan)},
            {"name": "C", "dtype": spec.c, "layout": "row-major M x N"},
        ],
        "runtime_parameters": {"K/k": RTP_K_STEPS, "output tiles per core": RTP_OUTPUT_TILES},
        "runtime": runtime_facts(plan),
        "spec": spec.content,
        "files": {"mlir": f"{spec.name}.mlir", "host_kernels": f"kernels/lib{spec.name}.so"},
        "problems": [_problem(plan, problem) for problem in dict.fromkeys(problems)],
    }


def _packing(plan: Plan) -> str:
    kernel = plan.kernel
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
        "staged": {"A": _shape(planned.staging.a), "C": _shape(planned.staging.c)},
    }


def _shape(staged: Staged | None) -> list[int] | None:
    return None if staged is None else [staged.rows, staged.columns]
