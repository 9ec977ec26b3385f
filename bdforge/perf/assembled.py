"""Exact cycles of a GEMM design's cores with assembled kernels: their whole program on the exact core model.

Kernels, calls, locks and loops are all in it, and stalls at banks that the core itself uses twice in a cycle at the
addresses of its plan. Not in it are waits: for locks, and for banks that a DMA or a neighbour uses (timed emulation
models both). All cores of a design cost the same, as their memories are laid out alike.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from bdforge.codegen.core_program import core_program
from bdforge.codegen.kernels import assembled
from bdforge.codegen.symbols import core_symbols
from bdforge.emulator.cores.isa.alone import run_alone
from bdforge.images.elf import core_segments
from bdforge.isa import load
from bdforge.mlir import parse
from bdforge.mlir.array_ops import CoreOp
from bdforge.operators import render
from bdforge.operators.gemm import Plan
from bdforge.operators.gemm.core_tiles import K_STEPS, OUTPUT_TILES, fixed_steps

_WORD = 4
_FEW, _MANY = 2, 4
"""Steps and tiles of runs whose differences are taken; even, so that ping and pong come equally often."""


@dataclass(frozen=True, slots=True)
class CoreCosts:
    """Cycles of a core by function, `main` being what is around the kernels: of one step of K, with all rho calls, and
    of what comes once for each tile of C beside its steps. `step_conflicts` are stalls at own banks in a step."""

    step_parts: Mapping[str, float]
    ends_parts: Mapping[str, float]
    step_conflicts: float
    code_bytes: int

    @property
    def step(self) -> float:
        """Cycles of one step of K."""
        return sum(self.step_parts.values())

    @property
    def ends(self) -> float:
        """Cycles of a tile of C besides its steps: zeroing and finishing, with calls and locks."""
        return sum(self.ends_parts.values())


def core_costs(plan: Plan) -> CoreCosts:
    """Costs of a plan's cores; CodegenError where a kernel has no machine code."""
    core = next(op for op in parse(render(plan, [])).walk() if isinstance(op, CoreOp))
    generation = plan.device.generation.name.lower()
    kernels = {name: assembled(name, generation, plan.kernels.defines) for name in plan.kernels.symbols}
    program = core_program(core, kernels)
    ((segment,), _, names) = core_segments(program.elf)
    functions = {address: name for address, name in names.items() if name in {"main", *kernels}}
    symbols = core_symbols(core.tile.device_op, core.tile.column, core.tile.row)

    def run(steps: int, tiles: int) -> Counter[str]:
        words = {symbols["rtp"] + _WORD * K_STEPS: steps, symbols["rtp"] + _WORD * OUTPUT_TILES: tiles}
        found = run_alone(load(generation), segment.data, functions, words, {symbols["go"]: 1})
        return Counter({**found.parts, _CONFLICTS: found.conflicts})

    few, deep, wide = run(_FEW, _FEW), run(_MANY, _FEW), run(_FEW, _MANY)
    step = _per(deep, few, _FEW * (_MANY - _FEW))
    tile = _per(wide, few, _MANY - _FEW)
    conflicts, steps = step.pop(_CONFLICTS, 0.0), _FEW + fixed_steps(plan.spec)
    ends = {name: cycles - steps * step.get(name, 0.0) for name, cycles in tile.items() if name != _CONFLICTS}
    return CoreCosts(step, {name: cycles for name, cycles in ends.items() if cycles}, conflicts, program.code_bytes)


_CONFLICTS = ""


def _per(more: Counter[str], less: Counter[str], times: int) -> dict[str, float]:
    return {name: (more[name] - less[name]) / times for name in more if more[name] != less[name]}
