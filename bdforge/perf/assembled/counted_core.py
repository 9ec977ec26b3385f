"""Exact cycles of a GEMM design's cores with assembled kernels: their whole program on the exact core model.

Kernels, calls, locks and loops are all in it, and stalls at banks that the core itself uses twice in a cycle at the
addresses of its plan. Not in it are waits: for locks, and for banks that a DMA or a neighbour uses (timed emulation
models both). All cores of a design cost the same, as their memories are laid out alike.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from bdforge.array.core_bodies.core_program import Tile, core_program, core_symbols, device_programs
from bdforge.array.mlir import parsed
from bdforge.array.mlir.array_ops import CoreOp
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels import assembled
from bdforge.core.exact.alone import Alone, run_alone
from bdforge.core.isa import load
from bdforge.core.isa.elf import CoreProgram as ElfProgram
from bdforge.core.isa.elf import core_segments, program_of
from bdforge.devices import Device
from bdforge.operators import render
from bdforge.operators.gemm import GemmPlan, GemmSpec, plan_gemm
from bdforge.operators.gemm.core_tiles import K_STEPS, OUTPUT_TILES, fixed_steps

MAIN = "main"
"""What is around the kernels, in names of functions."""

_WORD = 4
_FEW, _MANY = 2, 4
"""Steps and tiles of runs whose differences are taken; even, so that ping and pong come equally often."""


@dataclass(frozen=True, slots=True)
class Cycles:
    """Cycles by function: `issue`, and `stalls` at banks that the core itself uses twice in a cycle."""

    issue: Mapping[str, float]
    stalls: Mapping[str, float]

    def of(self, name: str) -> float:
        return self.issue.get(name, 0.0) + self.stalls.get(name, 0.0)

    @property
    def total(self) -> float:
        return sum(self.issue.values()) + sum(self.stalls.values())


@dataclass(frozen=True, slots=True)
class CoreCosts:
    """What a core takes for a `step` of K, with all its rho calls, and for the `ends` of a tile of C beside its steps:
    zeroing and finishing. `multiply` names the matrix kernel."""

    step: Cycles
    ends: Cycles
    multiply: str
    code_bytes: int


def core_costs(plan: GemmPlan) -> CoreCosts:
    """Costs of a plan's cores; CodegenError where a kernel has no machine code."""
    return _costs(plan.spec, plan.device)


@lru_cache(maxsize=64)
def _costs(spec: GemmSpec, device: Device) -> CoreCosts:
    plan = plan_gemm(spec, device)
    core = next(op for op in parsed(render(plan, [])).walk() if isinstance(op, CoreOp))
    generation = device.generation.name.lower()
    kernels = {name: assembled(name, generation, plan.kernels.defines) for name in plan.kernels.symbols}
    program = core_program(core, kernels)
    ((segment,), _, names) = core_segments(program.elf)
    functions = {address: name for address, name in names.items() if name in {MAIN, *kernels}}
    symbols = core_symbols(core.tile.device_op, core.tile.column, core.tile.row)

    def run(steps: int, tiles: int) -> Alone:
        words = {symbols["rtp"] + _WORD * K_STEPS: steps, symbols["rtp"] + _WORD * OUTPUT_TILES: tiles}
        return run_alone(load(generation), segment.data, functions, words, {symbols["go"]: 1})

    few, deep, wide = run(_FEW, _FEW), run(_MANY, _FEW), run(_FEW, _MANY)
    steps = _FEW + fixed_steps(plan.spec)
    step, ends = {}, {}
    for kind in ("issue", "stalls"):
        less, deeper, wider = (Counter(getattr(ran, kind)) for ran in (few, deep, wide))
        step[kind] = _told({name: (deeper[name] - less[name]) / (_FEW * (_MANY - _FEW)) for name in deeper})
        tile = {name: (wider[name] - less[name]) / (_MANY - _FEW) for name in wider}
        ends[kind] = _told({name: cycles - steps * step[kind].get(name, 0.0) for name, cycles in tile.items()})
    return CoreCosts(Cycles(**step), Cycles(**ends), plan.kernel.multiply, program.code_bytes)


def core_elfs(plan: GemmPlan, text: str) -> dict[Tile, ElfProgram]:
    """What the cores of a plan run, by column and row; `text` is its MLIR. CodegenError as `core_costs`."""
    device = next(op for op in parsed(text).walk() if isinstance(op, DeviceOp))
    generation = plan.device.generation.name.lower()
    made = device_programs(device, lambda name: assembled(name, generation, plan.kernels.defines))
    if made.without:
        raise CodegenError(next(iter(made.without.values())))
    elfs = {program.elf: program_of(program.elf) for program in made.programs.values()}
    return {tile: elfs[program.elf] for tile, program in made.programs.items()}


def _told(cycles: Mapping[str, float]) -> dict[str, float]:
    return {name: number for name, number in cycles.items() if number}
