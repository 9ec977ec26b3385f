"""Cycles of our kernels: as C++ is compiled, and as ideal schedules have them; nothing here is fitted.

A compiled matrix kernel makes blocks of 2 x 2 micro-tiles of C, fewer at odd edges (`kernels/include/multiply.h`). Its
inner loop is software pipelined: an iteration, of one step of K or of two, takes its interval, the busiest slot or the
way of a sum to the next product. Of such a call

- `sequential_cycles` = blocks · (a micro-tile's way from memory to memory + interval · (trips - 1) + C of the block's
  other micro-tiles), a loop nest as a compiler emits it. The way is what a list scheduler makes of one micro-tile;
- `slot_cycles` = the busiest slot's instructions: no order of the same instructions is faster;
- `cycles`, the ideal, is what the generator of machine code expects of the kernel that this project assembles, within a
  few percent of what is counted. Kernels that are not assembled overlap all of C's traffic with inner loops there.

A pass over C is counted from its machine code where that is assembled, else it takes its busiest slot. All leave out
stalls at memory banks and the call itself (`Timing.kernel_call_cycles`), unless `call_cycles` is given.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from bdforge.core.codegen.basic_block import AssemblyOp, instruction
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels import assembled, expected
from bdforge.core.codegen.kernels.kernel_options import Options
from bdforge.core.codegen.schedule import placed
from bdforge.core.isa import load
from bdforge.devices import AIE2, Generation
from bdforge.devices.types import type_named
from bdforge.operators.gemm.kernels import KERNELS, Kernel
from bdforge.perf.errors import PerfError
from bdforge.perf.kernels.loop_texts import INNER_LOOPS, PASSES, Texts, moved

Schedule = Literal["ideal", "sequential", "slots"]
"""Which of a cost's cycles: the ideal, a plain loop nest, or the busiest slot alone."""

BLOCKING = (2, 2)
"""Rows and columns of micro-tiles in one block of our kernels (`kernels/include/multiply.h`)."""
_MLIR_AIE_ON_AIE2 = {"int8": (4, 2), "bf16": (4, 4)}

SLOTS = ("lda", "ldb", "st", "alu", "mv", "vec")
"""Issue slots of the longest bundle, one instruction each per cycle."""
_EITHER, _LOADS = "either load", ("lda", "ldb")
_NONE: dict[str, float] = dict.fromkeys((*SLOTS, _EITHER), 0)


class ScheduleError(PerfError):
    """A kernel or tile of which no cycles are known; says what knows some of any."""

    def __init__(self, message: object):
        super().__init__(f"{message}; or choose --kernel fitted")


@dataclass(frozen=True, slots=True)
class _Loop:
    """The loop of one shape of blocks: slots and cycles of an iteration, those of C, and the sequential ends."""

    interval: float
    slots: Mapping[str, float]
    c_slots: Mapping[str, float]
    ends: float

    def alone(self, trips: Any) -> Any:
        """Cycles of one block, nothing of which overlaps with others."""
        return self.ends + self.interval * (trips - 1)

    def busiest(self, trips: Any) -> Any:
        """Instructions of one block in its busiest slot."""
        return _busiest({slot: self.slots[slot] * trips + self.c_slots[slot] for slot in self.slots})

    def among(self, trips: Any) -> Any:
        """Cycles of a block among others whose C is on its way meanwhile."""
        return np.maximum(self.interval * trips, self.busiest(trips))


@dataclass(frozen=True, slots=True)
class _Blocks:
    """`count` blocks of one shape with so many trips; numbers or arrays."""

    loop: _Loop
    count: Any
    trips: Any


@dataclass(frozen=True, slots=True)
class KernelCost:
    """What one call of a kernel costs; module docstring for the three cycle counts. Numbers, or arrays for many sizes.

    `m`, `k`, `n` are the rows, depth and columns that the call works on (k = 0 for a pass over C). `kinds` are its
    blocks by shape, largest first; a pass is one block. `call_cycles` are in each count.
    """

    symbol: str
    generation: Generation
    m: Any
    k: Any
    n: Any
    kinds: tuple[_Blocks, ...]
    transposed: frozenset[str] = frozenset()
    call_cycles: int = 0
    counted: bool = False

    @property
    def sequential_cycles(self) -> Any:
        """As a loop nest is compiled."""
        return _whole(sum(kind.count * kind.loop.alone(kind.trips) for kind in self.kinds)) + self.call_cycles

    @property
    def slot_cycles(self) -> Any:
        """Of the busiest slot."""
        return _whole(sum(kind.count * kind.loop.busiest(kind.trips) for kind in self.kinds)) + self.call_cycles

    @property
    def cycles(self) -> Any:
        """As machine code is expected to take, else all blocks but what the first needs alone in their busiest slot."""
        least = self._expected()
        if least is None:
            fill = 0  # of the first block there is: nothing of it hides behind another
            for kind in reversed(self.kinds):
                more = np.maximum(kind.loop.alone(kind.trips) - kind.loop.among(kind.trips), 0)
                fill = np.where(np.greater(kind.count, 0), more, fill)
            least = fill + sum(kind.count * kind.loop.among(kind.trips) for kind in self.kinds)
        return np.minimum(_whole(least) + self.call_cycles, self.sequential_cycles)

    def _expected(self) -> Any:
        """What the generator of machine code expects; None where this project assembles no such matrix kernel."""
        if not self.symbol.startswith("mm_"):
            return None
        try:
            return expected_cycles(self.symbol, self.generation, self.transposed, self.m, self.k, self.n)
        except CodegenError:
            return None

    @property
    def basis(self) -> str:
        """Whose cycles `cycles` are."""
        if self.counted:
            return "counted"
        return "modelled by slots" if self._expected() is None else "expected of machine code"

    @property
    def main(self) -> _Blocks:
        """The blocks that take most of the time."""
        return max(self.kinds, key=lambda kind: kind.count * kind.loop.interval)

    @property
    def interval(self) -> int:
        """Cycles of an iteration of the main blocks."""
        return round(self.main.loop.interval)

    @property
    def trips(self) -> int:
        """Iterations of a main block."""
        return int(self.main.trips)

    @property
    def blocks(self) -> int:
        """How many of all shapes."""
        return int(sum(kind.count for kind in self.kinds))

    @property
    def slot_use(self) -> Mapping[str, int]:
        """Instructions of an iteration of the main blocks by slot; none where the cycles are counted."""
        return {} if self.counted else _shared(self.main.loop.slots)

    @property
    def macs(self) -> Any:
        return self.m * self.k * self.n

    @property
    def macs_per_cycle(self) -> float:
        """Rate of the ideal."""
        return self.macs / self.cycles

    @property
    def bound(self) -> str:
        """Slots that are full in every cycle of the loop, or `latency` where none is."""
        full = [slot for slot in SLOTS if self.slot_use.get(slot) == self.interval]
        return f"slot {'+'.join(full)}" if full else "latency"

    def cycles_of(self, which: Schedule) -> Any:
        """The cycle count of one of the three."""
        return {"ideal": self.cycles, "sequential": self.sequential_cycles, "slots": self.slot_cycles}[which]


def _whole(cycles: Any) -> Any:
    """Cycles begun count whole; one number as Python's own."""
    found = np.ceil(cycles)
    return found if np.ndim(found) else int(found)


def mlir_aie_blocking(generation: Generation, a: str) -> tuple[int, int]:
    """Micro-tiles in a block of mlir-aie's kernels (`aie_kernels/*/mm.cc`) for A of a type; on AIE2P they are ours."""
    return _MLIR_AIE_ON_AIE2.get(a, BLOCKING) if generation == AIE2 else BLOCKING


def kernel_cost(
    kernel: str | tuple[str, str, str], m: Any, k: Any, n: Any, *,
    generation: Generation, a_rows: Any = None, transposed: Collection[str] = (),
    call_cycles: int = 0, blocking: tuple[int, int] = BLOCKING, options: Collection[str] = (),
) -> KernelCost:  # fmt: skip
    """Cost of one call of a kernel on a core's tile m x k x n: numbers, or arrays of one length.

    `kernel` is an entry point (`mm_i8_i2_i32`, `zero_i32`) or the types of A, B and C (`("int8", "int2", "int32")`).
    With asymmetric tile buffering a matrix kernel works on `a_rows` of the m rows at a time (m / a_rows is rho, the
    number of calls); passes over C always take all m. `transposed` names the operands ("a", "b", "c") whose
    micro-tiles are stored column by column. `blocking` is for kernels of others. `options` are macros that a pass over
    C is built with; `SCALE` changes its cost, and `BIAS` that of `finish_i32_bf16`.

    ScheduleError: no such kernel for this generation, or sizes that are no positive multiples of its micro-tiles.
    """
    symbol = _symbol(kernel)
    if unknown := sorted(set(transposed) - set("abc")):
        raise ScheduleError(f"{symbol}: transposed names {', '.join(unknown)}; the operands are a, b and c")
    if not symbol.startswith("mm_"):
        found = _pass(symbol, generation, tuple(options))
        if np.any(np.less(m, 1)) or np.any(np.less(n, 1)) or np.any(m * n % found.elements):
            raise ScheduleError(
                f"{symbol}: m · n = {m * n} is no positive multiple of {found.elements}; change the tile"
            )
        block = _Blocks(found.loop, 1, m * n // found.elements)
        return KernelCost(symbol, generation, m, 0, n, (block,), call_cycles=call_cycles, counted=found.counted)
    rows = m if a_rows is None else a_rows
    if np.any(np.less(rows, 1)) or np.any(np.mod(m, rows)):
        raise ScheduleError(f"{symbol}: a_rows = {rows} does not divide m = {m}; m / a_rows is rho, a whole number")
    kinds = _matrix_blocks(matrix_kernel(symbol, generation), (rows, k, n), frozenset(transposed), blocking)
    return KernelCost(symbol, generation, rows, k, n, kinds, frozenset(transposed), call_cycles)


def _matrix_blocks(
    kernel: Kernel, sizes: tuple[Any, Any, Any], turned: frozenset[str], blocking: tuple[int, int]
) -> tuple[_Blocks, ...]:
    for name, extent, multiple in zip("mkn", sizes, kernel.multiples, strict=True):
        if np.any(np.less(extent, 1)) or np.any(np.mod(extent, multiple)):
            raise ScheduleError(
                f"{kernel.multiply}: {name} = {extent} is no positive multiple of {multiple}; change the tile"
            )
    rows, k, n = sizes
    steps, run = k // kernel.s, INNER_LOOPS[kernel.generation.name, kernel.a.name, kernel.b.name].run
    runs = [(run, steps % run == 0), (1, steps % run != 0)] if run > 1 else [(1, steps > 0)]
    return tuple(
        _Blocks(_loop(kernel, height, width, turned, each), down * across * chosen, steps // each)
        for each, chosen in runs if np.any(chosen)
        for height, down in _split(rows // kernel.r, blocking[0])
        for width, across in _split(n // kernel.t, blocking[1])
    )  # fmt: skip


def pass_cycles(symbol: str, elements: Any, generation: Generation, options: tuple[str, ...] = ()) -> Any:
    """Cycles of one call of a pass over C (`zero_i32`, `unscale_i32`, `finish_i32_bf16`, …) on m · n `elements`.

    A number or an array; ScheduleError where no such pass is known. `options` as `kernel_cost` takes them.
    """
    found = _pass(symbol, generation, options)
    return found.loop.alone(elements / found.elements)


def matrix_kernel(kernel: str | tuple[str, str, str], generation: Generation) -> Kernel:
    """The matrix kernel of an entry point or of types; ScheduleError lists those there are."""
    symbol = _symbol(kernel)
    known = {k.multiply: k for k in KERNELS.values() if k.generation == generation}
    if symbol not in known:
        raise ScheduleError(f"no matrix kernel {symbol!r} for {generation.name}; known: {', '.join(known)}")
    return known[symbol]


def _symbol(kernel: str | tuple[str, str, str]) -> str:
    return kernel if isinstance(kernel, str) else "_".join(("mm", *(type_named(name).code for name in kernel)))


def _split(tiles: Any, size: int) -> list[tuple[int, Any]]:
    """(micro-tiles in a block, blocks) along one side: whole blocks and the rest."""
    whole, rest = np.divmod(tiles, size)
    counts = [(size, whole), *((extent, (rest == extent) * 1) for extent in range(1, size))]
    return [(extent, count) for extent, count in counts if np.any(count)]


@cache
def _loop(kernel: Kernel, rows: int, columns: int, transposed: frozenset[str], run: int) -> _Loop:
    generation, tiles = kernel.generation.name, rows * columns
    inner = INNER_LOOPS[generation, kernel.a.name, kernel.b.name]
    a, b = (side.texts(name in transposed) for name, side in (("a", inner.a), ("b", inner.b)))
    c = moved(generation, kernel.accumulator.name, "c" in transposed)
    step = (*a * rows, *inner.share, *b * columns, *(inner.product,) * tiles)
    slots = _slots(generation, (*inner.a.opened * rows, *inner.b.opened * columns, *step * run))
    way = (*inner.a.opened, *a, *inner.b.opened, *inner.share, *b, *c.enter, inner.product, *c.leave)
    others = (tiles - 1) * sum(int(_busiest(_slots(generation, texts))) for texts in (c.enter, c.leave))
    c_slots = _slots(generation, (*c.enter, *c.leave) * tiles)
    chain = _length(generation, (inner.product,) * 2) - 1  # cycles from a product of a sum to the next
    interval = max(int(_busiest(slots)), run * chain)
    return _Loop(interval, slots, c_slots, _length(generation, way) + others + (run - 1) * interval // run)


def _slots(generation: str, texts: Iterable[str]) -> dict[str, int]:
    """Instructions by slot; loads that either unit takes are `_EITHER`."""
    counts = Counter(dict.fromkeys(_NONE, 0))
    for text, times in Counter(texts).items():
        for slot in (_EITHER,) if "?" in text else instruction(generation.lower(), text).form.slots:
            counts[slot] += times
    return dict(counts)


def _busiest(slots: Mapping[str, Any]) -> Any:
    """Instructions of the busiest slot, loads shared out as evenly as may be; numbers or arrays."""
    loads = sum(slots[slot] for slot in (*_LOADS, _EITHER))
    return np.maximum.reduce([-(-loads // len(_LOADS)), *(slots[slot] for slot in SLOTS)])


def _shared(slots: Mapping[str, Any]) -> dict[str, int]:
    """The same with a unit for each load."""
    lda, ldb, either = (slots[slot] for slot in (*_LOADS, _EITHER))
    first = min(max((lda + ldb + either + 1) // 2 - lda, 0), either)
    found = {slot: slots[slot] for slot in SLOTS} | {"lda": lda + first, "ldb": ldb + either - first}
    return {slot: count for slot, count in found.items() if count}


def _length(generation: str, texts: Texts) -> int:
    """Cycles from the first issue to the last, as a list scheduler places a straight piece of code."""
    return len(placed(load(generation.lower()), [AssemblyOp(text.replace("?", "b")) for text in texts]))


def expected_cycles(symbol: str, generation: Generation, transposed: Collection[str], rows: Any, k: Any, n: Any) -> Any:
    """What the generator of machine code expects of calls of a matrix kernel, numbers or arrays; CodegenError for
    types that are not assembled."""
    rows, k, n = np.broadcast_arrays(rows, k, n)
    # Of a search's many candidates few differ in their call, and each asks the generator.
    calls, index = np.unique(np.stack([rows, k, n]).reshape(3, -1), axis=1, return_inverse=True)
    name, turned = generation.name.lower(), tuple(sorted(f"{side.upper()}_TRANSPOSED" for side in transposed))
    cycles = np.array([_expected(symbol, name, turned, *map(int, call)) for call in calls.T])
    return cycles[index].reshape(rows.shape)[()]


@lru_cache(maxsize=1 << 16)
def _expected(symbol: str, generation: str, turned: tuple[str, ...], rows: int, k: int, n: int) -> float:
    return expected(symbol, generation, Options.of((f"DIM_M={rows}", f"DIM_K={k}", f"DIM_N={n}", *turned)))


class _Pass(NamedTuple):
    """A pass over C: its loop, of which an iteration takes so many elements."""

    loop: _Loop
    elements: int
    counted: bool


_SAMPLES = ((16, 32), (64, 64))  # tiles of C of which passes are counted: a line goes through them


@cache
def _pass(symbol: str, generation: Generation, options: tuple[str, ...]) -> _Pass:
    name = generation.name
    option = next((option for option in options if (name, symbol, option) in PASSES), "")
    if (name, symbol, option) in PASSES:
        elements, texts = PASSES[name, symbol, option]
        slots = _slots(name, texts)
        return _Pass(_Loop(int(_busiest(slots)), slots, _NONE, _length(name, texts)), elements, counted=False)
    function = [option for option in options if option.startswith("FUNCTION=")]
    try:
        if symbol.startswith("mm_"):
            raise CodegenError(f"{symbol} is a matrix kernel")
        few, many = (
            assembled(symbol, generation.name.lower(), (f"DIM_M={m}", f"DIM_N={n}", "SHIFT=1", *function)).cycles or 0
            for m, n in _SAMPLES
        )
    except CodegenError as error:
        raise ScheduleError(f"no pass over C {symbol!r} for {generation.name}: {error}") from None
    sizes = [m * n for m, n in _SAMPLES]
    each = (many - few) / (sizes[1] - sizes[0])
    return _Pass(_Loop(each, _NONE | {SLOTS[-1]: each}, _NONE, few - each * (sizes[0] - 1)), 1, counted=True)
