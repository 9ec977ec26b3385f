"""A GEMM's sequence program run for one problem, as steps and transfers by operand."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bd_patterns import Pattern
from bdforge.design import RtpAddresses
from bdforge.design.sequences import Await, Event, Start, StartedTask, interpret
from bdforge.devices import TileLimits
from bdforge.operators.gemm.grid import Tiling
from bdforge.operators.gemm.operands import Packing
from bdforge.operators.gemm.resident_program import gemm_program
from bdforge.operators.gemm.sequence_basis import SequenceBasis, ShimChannel

OPERANDS = {("MM2S", 0): "A", ("MM2S", 1): "B", ("S2MM", 0): "C"}
CHANNELS: Any = tuple(ShimChannel(*key) for key in OPERANDS)
CORE = RtpAddresses(0, 0x200400, 0x21F060)


@dataclass(frozen=True)
class Problem:
    """Sizes as the shims walk them; lines of A, C and B are `lda`, `ldc` and `ldb` positions apart."""

    M: int
    K: int
    N: int
    lda: int
    ldc: int
    ldb: int = 0
    a_in_slabs: bool = False


def runtime_parameters(tiling: Tiling, problem: Problem) -> tuple[int, int]:
    """Steps of K in whole slabs, and the tiles of C that each core makes."""
    slabs, panels = -(-problem.K // tiling.k_mt), -(-problem.M // (tiling.rows * tiling.m))
    return slabs * tiling.k_mt // tiling.k, panels * -(-problem.N // (tiling.columns * tiling.n))


@dataclass(frozen=True)
class Transfer:
    """One task of one shim channel."""

    operand: str
    column: int
    direction: str
    bds: tuple[Pattern, ...]
    element_bits: int
    runs: int
    token: bool


@dataclass(frozen=True)
class Step:
    """`panels` row panels from `panel` over `count` column steps from `first`."""

    panel: int
    panels: int
    first: int
    count: int
    transfers: tuple[Transfer, ...]

    def of(self, operand: str) -> tuple[Transfer, ...]:
        return tuple(t for t in self.transfers if t.operand == operand)


def events(
    tiling: Tiling, problem: Problem, limits: TileLimits, *, max_count: int = 256, in_flight: int = 4
) -> Iterator[Event]:
    """What the program tells the controller; operands lie where the problem says."""
    memory, types = ("i8", "i8", "i32"), ("int8", "int8", "int32")
    packing = Packing(tiling.k, tiling.n, tiling.m)
    basis = SequenceBasis(
        tiling, limits, 1 << 20, 1 << 20, CHANNELS, (CORE,), memory, types, packing, in_flight, max_count
    )
    given = {"M": problem.M, "K": problem.K, "N": problem.N}
    lda = problem.lda
    if problem.a_in_slabs:  # the user's own A; the staged one has no gaps
        lda = problem.M if tiling.a.order == "column" else problem.K
    return interpret(gemm_program(basis), given | {"lda": lda, "ldb": problem.ldb, "ldc": problem.ldc}, limits)


def walk(tiling: Tiling, problem: Problem, limits: TileLimits, *, max_count: int = 256) -> tuple[Step, ...]:
    """The steps of a problem, each of at most `max_count` panels or column steps."""
    started = (e for e in events(tiling, problem, limits, max_count=max_count) if isinstance(e, Start))
    return tuple(step_of(event, tiling) for event in started)


def step_of(event: Start, tiling: Tiling) -> Step:
    """What a step starts; its note tells what it covers."""
    panels, panel, count, first = map(int, re.findall(r"\d+", event.note))
    tasks = (item for item in event.items if isinstance(item, StartedTask))
    return Step(panel, panels, first, count, tuple(_transfer(task, tiling) for task in tasks))


def _transfer(task: StartedTask, tiling: Tiling) -> Transfer:
    operand = OPERANDS[task.direction, task.channel]
    store = getattr(tiling, operand.lower())
    bits = 8 if store.order == "packed" else store.bits
    bds = tuple(bd.pattern for bd in task.bds)
    return Transfer(operand, task.column, task.direction, bds, bits, task.runs, task.token)


__all__ = ["Await", "Problem", "Start", "Step", "Transfer", "events", "runtime_parameters", "step_of", "walk"]
