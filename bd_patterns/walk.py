"""How the shims walk A, B and C of a GEMM: steps, transfers, BD reuse.

The mapping is output-stationary: core (row i, column j) holds one m x n tile of C and sees all of K before the next.
A *row panel* is rows * m rows of A and C, a *column step* is columns * n columns of B and C. A step of the walk is one
row panel over as many column steps as one BD of each operand can describe.

Host buffers: A is row-major, `lda` elements between rows; C likewise with `ldc`; B is packed in the order in which the
cores eat it, `[N/n][K/k][bytes of a k x n tile]`, so that column c of the array takes n-tiles c, c + columns, ...
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from bd_patterns.granules import GRANULE_BITS
from bd_patterns.legality import problems
from bd_patterns.pattern import Pattern
from bdforge.devices.limits import TASK_QUEUE_ENTRIES, TASK_REPEAT_MAX, TileLimits

Operand = Literal["A", "B", "C"]
OPERANDS: tuple[Operand, ...] = ("A", "B", "C")
BYTE_BITS = 8


class WalkError(ValueError):
    """A problem that the tiles cannot walk; the message lists every reason."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """A core's tile m x k x n, the depth k_mt of a memtile's slab, the array, and the operands' element widths."""

    m: int
    k: int
    n: int
    k_mt: int
    rows: int = 4
    columns: int = 8
    a_bits: int = 8
    b_bits: int = 2
    c_bits: int = 32

    @property
    def panel_rows(self) -> int:
        """Rows of A and C in one row panel."""
        return self.rows * self.m

    @property
    def step_columns(self) -> int:
        """Columns of B and C in one column step."""
        return self.columns * self.n

    def a_column(self, row: int) -> int:
        """The array column whose shim feeds A to core row `row`: 0, 2, 4, 6 for four rows and eight columns."""
        return row * (self.columns // self.rows)

    def b_tile_bytes(self, depth: int) -> int:
        """Bytes of one n-tile column of packed B that is `depth` = K deep."""
        return depth * self.n * self.b_bits // BYTE_BITS


@dataclass(frozen=True, slots=True)
class Problem:
    """Padded sizes M, K, N, and the elements from one row to the next in A (`lda`) and C (`ldc`)."""

    M: int
    K: int
    N: int
    lda: int
    ldc: int


@dataclass(frozen=True, slots=True)
class Transfer:
    """One task of one shim channel.

    `pattern` counts elements of the operand's host buffer, bytes for B. The task runs it `repeat` times; only C asks
    for a token.
    """

    operand: Operand
    column: int
    direction: Literal["MM2S", "S2MM"]
    bd_id: int
    pattern: Pattern
    element_bits: int
    repeat: int
    token: bool


@dataclass(frozen=True, slots=True)
class Step:
    """Row panel `panel` over `count` column steps from `first`; all its BDs belong to `slot`."""

    index: int
    slot: int
    panel: int
    first: int
    count: int
    transfers: tuple[Transfer, ...]

    def of(self, operand: Operand) -> tuple[Transfer, ...]:
        """The transfers of one operand, by column."""
        return tuple(t for t in self.transfers if t.operand == operand)


@dataclass(frozen=True, slots=True)
class Start:
    """Configure and start every transfer of a step."""

    step: Step


@dataclass(frozen=True, slots=True)
class AwaitC:
    """Wait for one token from each C transfer of a step; all of its BDs are free afterwards."""

    step: Step


class RuntimeParameters(NamedTuple):
    """The two 32-bit words that every core reads when a GEMM starts."""

    k_steps: int
    output_tiles: int


def runtime_parameters(tiling: Tiling, problem: Problem) -> RuntimeParameters:
    """`K/k` and the tiles of C that each core makes; WalkError when the sizes are no multiples."""
    _require(_size_faults(tiling, problem), tiling, problem)
    tiles = (problem.M // tiling.panel_rows) * (problem.N // tiling.step_columns)
    return RuntimeParameters(problem.K // tiling.k, tiles)


def walk(
    tiling: Tiling,
    problem: Problem,
    limits: TileLimits,
    *,
    max_count: int = TASK_REPEAT_MAX,
    slots: int = TASK_QUEUE_ENTRIES,
) -> tuple[Step, ...]:
    """Every step in order: row panel by row panel, each over all column steps, `max_count` at most in one step.

    A step covers as many column steps as its BDs can describe under `limits`, the shim's. BD ids repeat after `slots`
    steps. WalkError lists every reason why the problem cannot be walked.
    """
    _require(_size_faults(tiling, problem) + _slot_faults(limits, slots, max_count), tiling, problem)
    _require(_count_faults(tiling, problem, limits, 1), tiling, problem)
    total = problem.N // tiling.step_columns
    counts = range(min(max_count, total, TASK_REPEAT_MAX), 0, -1)
    best = next(count for count in counts if not _count_faults(tiling, problem, limits, count))
    ranges = [
        (panel, first, min(best, total - first))
        for panel in range(problem.M // tiling.panel_rows)
        for first in range(0, total, best)
    ]
    return tuple(
        Step(index, index % slots, *where, _transfers(tiling, problem, limits, index % slots, *where))
        for index, where in enumerate(ranges)
    )


def schedule(steps: Iterable[Step]) -> Iterator[Start | AwaitC]:
    """When to start and await what: a step waits until the C tokens of the step before it in its slot have come.

    With s slots at most s steps are in flight, hence s tasks per channel. C's tokens are enough: C is complete only
    after all of A and B was consumed.
    """
    in_flight: dict[int, Step] = {}
    for step in steps:
        if step.slot in in_flight:
            yield AwaitC(in_flight.pop(step.slot))
        in_flight[step.slot] = step
        yield Start(step)
    yield from map(AwaitC, in_flight.values())


def _transfers(
    tiling: Tiling, problem: Problem, limits: TileLimits, slot: int, panel: int, first: int, count: int
) -> tuple[Transfer, ...]:
    bd_ids = {operand: len(OPERANDS) * slot + place for place, operand in enumerate(OPERANDS)}
    rows_of_column = {tiling.a_column(row): row for row in range(tiling.rows)}
    b_range = b_pattern(tiling, problem, limits, first, count)
    c_range = c_pattern(tiling, problem, panel, first, count)
    transfers = []
    for column in range(tiling.columns):
        if column in rows_of_column:
            a = a_pattern(tiling, problem, panel, rows_of_column[column])
            transfers.append(Transfer("A", column, "MM2S", bd_ids["A"], a, tiling.a_bits, count, False))
        b = b_range.shifted(column * tiling.b_tile_bytes(problem.K))
        transfers.append(Transfer("B", column, "MM2S", bd_ids["B"], b, BYTE_BITS, 1, False))
        c = c_range.shifted(column * tiling.n)
        transfers.append(Transfer("C", column, "S2MM", bd_ids["C"], c, tiling.c_bits, 1, True))
    return tuple(transfers)


def a_pattern(tiling: Tiling, problem: Problem, panel: int, row: int) -> Pattern:
    """Core row `row`'s m x K rows of A in slabs of k_mt: `(K/k_mt, k_mt)(m, lda)(k_mt, 1)`, in elements."""
    sizes = (problem.K // tiling.k_mt, tiling.m, tiling.k_mt)
    return Pattern(sizes, (tiling.k_mt, problem.lda, 1), (panel * tiling.rows + row) * tiling.m * problem.lda)


def b_pattern(tiling: Tiling, problem: Problem, limits: TileLimits, first: int, count: int) -> Pattern:
    """Column 0's n-tiles of `count` column steps, in bytes: `(count, columns*L)(a, b)(b, 1)` with a * b = L bytes.

    One column step is linear. So are several if L has no two factors that fit the wraps; that pattern is then too long
    for a BD, which is for `problems` to say.
    """
    length = tiling.b_tile_bytes(problem.K)
    offset = first * tiling.columns * length
    if count == 1:
        return Pattern((length,), (1,), offset)
    inner = _inner_bytes(length, limits)
    return Pattern((count, length // inner, inner), (tiling.columns * length, inner, 1), offset)


def c_pattern(tiling: Tiling, problem: Problem, panel: int, first: int, count: int) -> Pattern:
    """Column 0's part of C: `(count, columns*n)(rows*m, ldc)(n, 1)`, in elements."""
    offset = panel * tiling.panel_rows * problem.ldc + first * tiling.step_columns
    sizes = (count, tiling.panel_rows, tiling.n)
    return Pattern(sizes, (tiling.step_columns, problem.ldc, 1), offset)


def _inner_bytes(length: int, limits: TileLimits) -> int:
    """The longest inner run that splits `length` bytes into two wraps; `length` itself when none does."""
    word_bytes = GRANULE_BITS // BYTE_BITS
    words = length // word_bytes
    fitting = (w for w in range(limits.wraps[0], 0, -1) if words % w == 0 and words // w <= limits.wraps[1])
    return word_bytes * next(fitting, words)


def _count_faults(tiling: Tiling, problem: Problem, limits: TileLimits, count: int) -> list[str]:
    """Why one step cannot cover `count` column steps; panels and columns differ in whole multiples of legal strides."""
    a = problems(a_pattern(tiling, problem, 0, 0), limits, tiling.a_bits, static=False, repeat=count)
    b = problems(b_pattern(tiling, problem, limits, 0, count), limits, BYTE_BITS, static=False)
    c = problems(c_pattern(tiling, problem, 0, 0, count), limits, tiling.c_bits, static=False)
    return [f"{operand}: {fault}" for operand, faults in zip(OPERANDS, (a, b, c), strict=True) for fault in faults]


def _size_faults(tiling: Tiling, problem: Problem) -> list[str]:
    small = [
        f"{name} = {value} is below 1"
        for source in (tiling, problem)
        for name in source.__slots__
        if (value := getattr(source, name)) < 1
    ]
    return small or [*_multiple_faults(tiling, problem), *_row_faults(tiling, problem)]


def _multiple_faults(tiling: Tiling, problem: Problem) -> Iterator[str]:
    for name, size, part_name, part in (
        ("M", problem.M, "rows * m", tiling.panel_rows),
        ("K", problem.K, "k_mt", tiling.k_mt),
        ("k_mt", tiling.k_mt, "k", tiling.k),
        ("N", problem.N, "columns * n", tiling.step_columns),
        ("columns", tiling.columns, "rows", tiling.rows),
    ):
        if size % part:
            action = f"; pad it to {-(-size // part) * part}" if name in ("M", "K", "N") else ""
            yield f"{name} = {size} is no multiple of {part_name} = {part}{action}"


def _row_faults(tiling: Tiling, problem: Problem) -> Iterator[str]:
    if problem.lda < problem.K:
        yield f"lda = {problem.lda} is below K = {problem.K}; rows of A would overlap"
    if problem.ldc < problem.N:
        yield f"ldc = {problem.ldc} is below N = {problem.N}; rows of C would overlap"
    tile_bits = tiling.k * tiling.n * tiling.b_bits
    if tile_bits % GRANULE_BITS:
        yield f"a tile of B has k * n * b_bits = {tile_bits} bit, no multiple of {GRANULE_BITS} bit; enlarge k or n"


def _slot_faults(limits: TileLimits, slots: int, max_count: int) -> list[str]:
    faults = []
    most = min(TASK_QUEUE_ENTRIES, limits.bds // len(OPERANDS))
    if not 1 <= slots <= most:
        faults.append(
            f"slots = {slots} is outside 1 to {most}: a channel queues {TASK_QUEUE_ENTRIES} tasks and a slot takes "
            f"{len(OPERANDS)} of {limits.bds} BDs"
        )
    if max_count < 1:
        faults.append(f"max_count = {max_count} is below 1")
    return faults


def _require(faults: list[str], tiling: Tiling, problem: Problem) -> None:
    if faults:
        raise WalkError("\n  - ".join([f"{problem} cannot be walked with {tiling}:", *faults]))
