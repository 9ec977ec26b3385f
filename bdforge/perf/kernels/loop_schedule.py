"""Cycles of our kernels from slot-and-latency schedules of their loops; nothing here is fitted.

A matrix kernel makes blocks of accumulators: 2 x 2 micro-tiles, fewer at odd edges (`kernels/include/multiply.h`). For
blocks with `trips` iterations of the inner loop, k / s or half as many of two steps, at the initiation interval II:

- `sequential_cycles` = blocks · (prologue + II · trips + epilogue + C load and store that neither hides), a loop nest
  as a compiler emits it;
- `cycles` = one such block + (blocks - 1) · (II · trips + what C's traffic adds when consecutive blocks overlap), the
  ideal kernel schedule of this project: the inner loop whole, everything around it overlapped;
- `slot_cycles` = the busiest slot's instructions: no order of the same instructions is faster.

All are modelled. They leave out memory bank stalls and the call itself (`Timing.kernel_call_cycles`), unless
`call_cycles` is given. Published rates of compiled kernels stand beside them in `published`.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from bdforge.devices import Generation
from bdforge.devices.types import type_named
from bdforge.perf.kernels.blocks import Block
from bdforge.perf.kernels.initiation_interval import LoopSchedule, schedule
from bdforge.perf.kernels.loop import ScheduleError, SlotChoices, shared_slots
from bdforge.perf.kernels.loops import ELEMENT_KERNELS, MATRIX_KERNELS, ElementKernel, MatrixKernel
from bdforge.perf.kernels.scheduled_forms import SLOTS, VECTOR_REGISTERS

__all__ = [
    "BLOCKING", "KernelCost", "Schedule", "ScheduleError", "kernel_cost", "kernel_costs", "kernel_multiples",
    "known_kernels",
]  # fmt: skip

Schedule = Literal["overlapped", "sequential", "slots"]
"""Which of a cost's cycles: the ideal kernel schedule, a plain loop nest, or the busiest slot alone."""

BLOCKING = (2, 2)
"""Rows and columns of micro-tiles in one block of our kernels (`kernels/include/multiply.h`)."""

_EFFICIENCY_LIMITS: Mapping[Schedule, int] = {"overlapped": 1, "slots": 1, "sequential": 2}


@dataclass(frozen=True, slots=True)
class KernelCost:
    """What one call of a kernel costs; module docstring for the three cycle counts.

    `m`, `k`, `n` are the rows, depth and columns that the call works on (k = 0 for a pass over C). `interval` is the
    inner loop's initiation interval, `stages` the iterations in flight, `slot_use` the instructions of one iteration
    by slot, all of the blocks that take most of the time. `bound` says what `cycles` is made of: `slot vec` (the slots
    that are full in every cycle of the loop), `latency` or `registers` (the loop runs below what its slots allow), or
    `overhead` (half of the cycles or more lie outside the loops).
    """

    symbol: str
    generation: Generation
    m: int
    k: int
    n: int
    cycles: int
    sequential_cycles: int
    slot_cycles: int
    interval: int
    resource_interval: int
    recurrence_interval: int
    stages: int
    trips: int
    blocks: int
    slot_use: Mapping[str, int]
    live_registers: int
    bound: str
    notes: tuple[str, ...] = ()

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the call."""
        return self.m * self.k * self.n

    @property
    def macs_per_cycle(self) -> float:
        """Rate of the ideal kernel schedule."""
        return self.macs / self.cycles

    def cycles_of(self, which: Schedule) -> int:
        """The cycle count of one of the three schedules."""
        return {"overlapped": self.cycles, "sequential": self.sequential_cycles, "slots": self.slot_cycles}[which]


def kernel_cost(
    kernel: str | tuple[str, str, str], m: int, k: int, n: int, *,
    generation: Generation, a_rows: int | None = None, transposed: Collection[str] = (),
    call_cycles: int = 0, blocking: tuple[int, int] = BLOCKING, options: Collection[str] = (),
) -> KernelCost:  # fmt: skip
    """Cost of one call of a kernel on a core's tile m x k x n.

    `kernel` is an entry point (`mm_i8_i2_i32`, `zero_i32`) or the types of A, B and C (`("int8", "int2", "int32")`).
    With asymmetric tile buffering a matrix kernel works on `a_rows` of the m rows at a time (m / a_rows is rho, the
    number of calls); passes over C always take all m. `transposed` names the operands ("a", "b", "c") whose
    micro-tiles are stored column by column. `call_cycles` are added to each count. `blocking` is for kernels of others.
    `options` are macros that a pass over C is built with; `SCALE` changes its cost.

    ScheduleError: no such kernel for this generation, or sizes that are no positive multiples of its micro-tiles.
    """
    found = _kernel(_symbol(kernel), generation, options)
    if unknown := sorted(set(transposed) - set("abc")):
        raise ScheduleError(f"{found.symbol}: transposed names {', '.join(unknown)}; the operands are a, b and c")
    if isinstance(found, ElementKernel):
        return _element_cost(found, m, n, call_cycles)
    rows = m if a_rows is None else a_rows
    if rows < 1 or m % rows:
        raise ScheduleError(
            f"{found.symbol}: a_rows = {rows} does not divide m = {m}; m / a_rows is rho, a whole number"
        )
    return _matrix_cost(found, (rows, k, n), frozenset(transposed), call_cycles, blocking)


@dataclass(frozen=True, slots=True)
class CallCycles:
    """Cycles of one call by each schedule (module docstring): numbers, or arrays for many sizes of one kernel."""

    ideal: Any
    sequential: Any
    slots: Any


def matrix_cycles(
    kernel: str | tuple[str, str, str], rows: Any, k: Any, n: Any, *,
    generation: Generation, transposed: Collection[str] = (),
) -> CallCycles:  # fmt: skip
    """Cycles of calls of a matrix kernel on rows x k x n, numbers or arrays of one length; errors as `kernel_cost`."""
    found = _matrix_kernel(kernel, generation)
    return _joined(_kinds(found, (rows, k, n), frozenset(transposed), BLOCKING))


def pass_cycles(symbol: str, elements: Any, generation: Generation) -> Any:
    """Cycles of one call of a pass over C (`zero_i32`, `unscale_i32`, `finish_i32_bf16`, …) on m · n `elements`.

    A number or an array; ScheduleError where no such pass is known.
    """
    found = _kernel(symbol, generation)
    if not isinstance(found, ElementKernel):
        raise ScheduleError(f"{symbol} is a matrix kernel, not a pass over C")
    pipelined = _element_schedule(found)
    return pipelined.span + (elements / found.elements - 1) * pipelined.interval


def kernel_costs(
    kernels: Iterable[str], m: int, k: int, n: int, *,
    generation: Generation, a_rows: int | None = None, transposed: Collection[str] = (),
    which: Schedule = "overlapped", efficiency: float = 1.0, options: Collection[str] = (),
) -> dict[str, int]:  # fmt: skip
    """Cycles per call by entry point, without the call itself, for a core's tile: what timed emulation charges.

    `efficiency` divides the cycles of matrix kernels (`compiled_efficiency` of `published` gives what
    compiled kernels reach of a schedule), never below what the busiest slot needs. ScheduleError as `kernel_cost`, or
    for an efficiency outside (0, 1]; against the sequential schedule, which overlapping code may beat, outside (0, 2].
    """
    limit = _EFFICIENCY_LIMITS[which]
    if not 0 < efficiency <= limit:
        raise ScheduleError(
            f"efficiency {efficiency} is outside (0, {limit}]; it is the share of the {which} schedule's rate reached"
        )
    found = {
        symbol: kernel_cost(
            symbol, m, k, n, generation=generation, a_rows=a_rows, transposed=transposed, options=options
        )
        for symbol in kernels
    }
    return {
        symbol: max(cost.slot_cycles, math.ceil(cost.cycles_of(which) / (efficiency if cost.macs else 1)))
        for symbol, cost in found.items()
    }


def known_kernels(generation: Generation) -> tuple[str, ...]:
    """Entry points with a cost on this generation."""
    return tuple(symbol for name, symbol, option in _by_name() if name == generation.name and not option)


def kernel_multiples(kernel: str | tuple[str, str, str], generation: Generation) -> tuple[int, int, int]:
    """What m, k and n must be multiples of for a matrix kernel; ScheduleError if it is none."""
    return _matrix_kernel(kernel, generation).multiples


def _matrix_kernel(kernel: str | tuple[str, str, str], generation: Generation) -> MatrixKernel:
    found = _kernel(_symbol(kernel), generation)
    if isinstance(found, ElementKernel):
        raise ScheduleError(
            f"{found.symbol} is a pass over C, not a matrix kernel; it needs m · n % {found.elements} == 0"
        )
    return found


def _symbol(kernel: str | tuple[str, str, str]) -> str:
    return kernel if isinstance(kernel, str) else "_".join(("mm", *(type_named(name).code for name in kernel)))


def _kernel(symbol: str, generation: Generation, options: Collection[str] = ()) -> MatrixKernel | ElementKernel:
    for option in (*options, ""):
        if found := _by_name().get((generation.name, symbol, option)):
            return found
    known = ", ".join(known_kernels(generation))
    raise ScheduleError(
        f"no loop of a kernel {symbol!r} for {generation.name}; known: {known}. "
        "Describe it in bdforge/perf/kernels/loops.py"
    )


@cache
def _by_name() -> Mapping[tuple[str, str, str], MatrixKernel | ElementKernel]:
    """Kernels by generation, entry point and the option with which they cost this."""
    matrix = {(k.generation.name, k.symbol, ""): k for k in MATRIX_KERNELS}
    return matrix | {(k.generation.name, k.symbol, k.option): k for k in ELEMENT_KERNELS}


@dataclass(frozen=True, slots=True)
class _Kind:
    """`count` blocks of `rows` x `columns` micro-tiles: cycles of one alone, of one among others, and of its busiest
    slot. Numbers, or arrays."""

    rows: int
    columns: int
    count: Any
    alone: Any
    period: Any
    slots: Any


def _matrix_cost(
    kernel: MatrixKernel, size: tuple[int, int, int], transposed: frozenset[str], call_cycles: int,
    blocking: tuple[int, int],
) -> KernelCost:  # fmt: skip
    kinds = _kinds(kernel, size, transposed, blocking)
    joined, steps = _joined(kinds), size[1] // kernel.product.s
    run = kernel.run(steps)
    trips = steps // run
    blocks = [(kind.count, kernel.block(kind.rows, kind.columns, transposed, run)) for kind in kinds]
    main = blocks[max(range(len(kinds)), key=lambda i: kinds[i].count * kinds[i].period)][1]
    cycles, loops = int(joined.ideal), trips * sum(count * block.pipelined.interval for count, block in blocks)
    return KernelCost(
        kernel.symbol, kernel.generation, *size,
        cycles=cycles + call_cycles,
        sequential_cycles=int(joined.sequential) + call_cycles,
        slot_cycles=int(joined.slots) + call_cycles,
        trips=trips, blocks=sum(kind.count for kind in kinds),
        bound="overhead" if cycles + call_cycles >= 2 * loops else _loop_bound(main.pipelined),
        notes=_notes(main, len(kinds)),
        **_loop_facts(main.pipelined),
    )  # fmt: skip


def _kinds(
    kernel: MatrixKernel, size: tuple[Any, Any, Any], transposed: frozenset[str], blocking: tuple[int, int]
) -> list[_Kind]:
    """The blocks of calls by their shape, largest first; ScheduleError for sizes that are no whole micro-tiles."""
    for name, extent, multiple in zip("mkn", size, kernel.multiples, strict=True):
        if np.any(extent < 1) or np.any(extent % multiple):
            raise ScheduleError(
                f"{kernel.symbol}: {name} = {extent} is no positive multiple of {multiple}; change the tile"
            )
    (m, k, n), product = size, kernel.product
    return [
        _Kind(rows, columns, down * across, *_block_facts(kernel, rows, columns, transposed, k // product.s))
        for rows, down in _split(m // product.r, blocking[0])
        for columns, across in _split(n // product.t, blocking[1])
    ]


def _split(tiles: Any, size: int) -> list[tuple[int, Any]]:
    """(micro-tiles in a block, blocks) along one side: whole blocks and the rest."""
    whole, rest = divmod(tiles, size)
    counts = [(size, whole), *((extent, (rest == extent) * 1) for extent in range(1, size))]
    return [(extent, count) for extent, count in counts if np.any(count)]


def _joined(kinds: list[_Kind]) -> CallCycles:
    """A call's blocks one after another: overlapped, the first of those that take most of the time stands alone."""
    ideal = sum(kind.count * kind.period for kind in kinds)
    first, most = 0.0, -1.0
    for kind in kinds:
        busy = kind.count * kind.period
        first, most = np.where(busy > most, kind.alone - kind.period, first), np.maximum(most, busy)
    return CallCycles(
        np.ceil(first + ideal), sum(k.count * k.alone for k in kinds), sum(k.count * k.slots for k in kinds)
    )


def _block_facts(
    kernel: MatrixKernel, rows: int, columns: int, transposed: frozenset[str], steps: Any
) -> tuple[Any, Any, Any]:
    """Cycles of one block with so many steps of K: alone, among others, in the busiest slot."""
    if np.ndim(steps) == 0:
        return _facts(kernel, rows, columns, transposed, int(steps))
    table = _facts_table(kernel, rows, columns, transposed, 1 << int(steps.max()).bit_length())
    alone, period, slots = table[:, steps]
    return alone, period, slots


@cache
def _facts_table(kernel: MatrixKernel, rows: int, columns: int, transposed: frozenset[str], most: int) -> np.ndarray:
    """Facts of blocks by steps of K, below `most`."""
    found = [_facts(kernel, rows, columns, transposed, steps) for steps in range(1, most)]
    return np.array([(0.0,) * 3, *found]).T


@cache
def _facts(
    kernel: MatrixKernel, rows: int, columns: int, transposed: frozenset[str], steps: int
) -> tuple[int, float, int]:
    run = kernel.run(steps)
    block = kernel.block(rows, columns, transposed, run)
    return *_block_cycles(block, steps // run), _busiest(block, steps // run)


@cache
def _block_cycles(block: Block, trips: int) -> tuple[int, float]:
    """Cycles of one block alone and of one among overlapped blocks."""
    settled = block.settled_trips()
    if trips > settled:
        alone, period = _block_cycles(block, settled)
        more = (trips - settled) * block.pipelined.interval
        return alone + more, period + more
    return block.sequential_cycles(trips), block.overlapped_cycles(trips)


def _element_cost(kernel: ElementKernel, m: int, n: int, call_cycles: int) -> KernelCost:
    if m < 1 or n < 1 or m * n % kernel.elements:
        raise ScheduleError(
            f"{kernel.symbol}: m · n = {m * n} is no positive multiple of {kernel.elements}; change the tile"
        )
    pipelined = _element_schedule(kernel)
    trips = m * n // kernel.elements
    cycles = pipelined.span + (trips - 1) * pipelined.interval
    loops = trips * pipelined.interval
    return KernelCost(
        kernel.symbol, kernel.generation, m, 0, n,
        cycles=cycles + call_cycles, sequential_cycles=cycles + call_cycles, slot_cycles=loops + call_cycles,
        trips=trips, blocks=1,
        bound="overhead" if cycles + call_cycles >= 2 * loops else _loop_bound(pipelined),
        **_loop_facts(pipelined),
    )  # fmt: skip


@cache
def _element_schedule(kernel: ElementKernel) -> LoopSchedule:
    return schedule(kernel.loop())


def _loop_facts(pipelined: LoopSchedule) -> dict[str, Any]:
    return {
        "interval": pipelined.interval,
        "resource_interval": pipelined.loop.resource_interval,
        "recurrence_interval": pipelined.loop.recurrence_interval,
        "stages": pipelined.stages,
        "slot_use": pipelined.loop.slot_use,
        "live_registers": pipelined.live_registers,
    }


def _loop_bound(pipelined: LoopSchedule) -> str:
    loop = pipelined.loop
    if pipelined.interval == loop.resource_interval:
        return "slot " + "+".join(s for s in SLOTS if loop.slot_use[s] == pipelined.interval)
    return "latency" if pipelined.interval == loop.recurrence_interval else "registers"


def _busiest(block: Block, trips: int) -> int:
    """Instructions of one block in its busiest slot, C included; alternatives are shared out evenly."""
    counts: Counter[SlotChoices] = Counter()
    for operation in block.loop.body:
        counts[operation.slot_choices] += trips
    for form in (form for chain in (*block.load, *block.store) for form in chain):
        counts[(form.slots,)] += len(block.tiles)
    return max(shared_slots(counts).values())


def _notes(block: Block, kinds: int) -> tuple[str, ...]:
    notes = ["no memory bank stalls"]
    pipelined = block.pipelined
    if pipelined.loop.registers == VECTOR_REGISTERS:
        notes.append(f"{pipelined.live_registers} of {VECTOR_REGISTERS} vector registers live")
    if kinds > 1:
        notes.append("smaller blocks at the edge of an odd number of micro-tiles")
    return tuple(notes)
