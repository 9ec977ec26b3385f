"""The runtime sequence of any problem: what the host's controller does, as instruction words.

One loaded design serves every M, K, N; a sequence is all that differs. The same plan of steps makes the words here, the
MLIR in `mlir_sequence` and, from the manifest's numbers, the words in `host/include/bdforge/sequence.hpp`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

import numpy as np

from bdforge.design.model import Allocation
from bdforge.devices import Generation, TileKind, mlir_device_named
from bdforge.devices.limits import GRANULE_BYTES, SHIM_CONTROLLER_ID
from bdforge.devices.registers import CONTROLLER_ID_MASK, RUNTIME_AXI_CACHE, TILE_REGISTERS, address
from bdforge.operators.gemm.addresses import core_addresses
from bdforge.operators.gemm.grid import BYTE_BITS, Grid, RuntimeParameters, Storage, runtime_parameters
from bdforge.operators.gemm.grid import Problem as Sizes
from bdforge.operators.gemm.plan import RTP_K_STEPS, RTP_OUTPUT_TILES, Plan
from bdforge.operators.gemm.schedule import AwaitC, Event, Release, Start, schedule
from bdforge.operators.gemm.spec import Problem, SpecError
from bdforge.operators.gemm.staging import Leading, Staging, stage
from bdforge.operators.gemm.walk import Operand, Transfer, walk
from bdforge.txn.bd import burst_code, encode_bd, task_transfer
from bdforge.txn.codec import encode
from bdforge.txn.operations import S2MM, BlockWrite, MaskWrite, Operation, Patch, Sync, Write

ARGUMENTS: dict[Operand, int] = {"A": 0, "B": 1, "C": 2, "R": 3, "S": 4}
"""Arguments of every GEMM's runtime sequence; R and S only where the epilogue is fed."""

_SHIM = TILE_REGISTERS[TileKind.SHIM]
_ADDRESS_WORD = _SHIM.bd.fields["address_low"].word
_WORD_MASK = 0xFFFFFFFF
_TRANSFER_SIZES = 4  # of a runtime transfer; the outermost is the BD's iteration


@dataclass(frozen=True, slots=True)
class Counts:
    """How long a stream is, and what it makes the array do."""

    steps: int
    operations: int
    words: int
    output_tiles: int
    macs: int

    @property
    def bytes(self) -> int:
        """Size of the stream."""
        return 4 * self.words

    @property
    def words_per_tile(self) -> float:
        """Words of the stream for each core's tile of C."""
        return self.words / self.output_tiles


@dataclass(frozen=True, slots=True)
class Edges:
    """How the edges of each operand are handled, one sentence to an edge."""

    a: tuple[str, ...]
    b: tuple[str, ...]
    c: tuple[str, ...]
    brief: str

    def __str__(self) -> str:
        named = zip("ABC", (self.a, self.b, self.c), strict=True)
        return "; ".join(f"{name} {', '.join(edges)}" for name, edges in named if edges) or "none"


@dataclass(frozen=True, slots=True)
class GemmSequence:
    """What the controller does for one problem: C (M x N) = A (M x K) B (K x N).

    `sizes` are those that the shims walk: the problem's and its leading dimensions, or those of the buffers that
    `staging` asks for.
    """

    plan: Plan
    problem: Problem
    staging: Staging
    sizes: Sizes
    events: tuple[Event, ...]

    @property
    def grid(self) -> Grid:
        """Where the tiles lie."""
        return Grid(self.plan.tiling, self.sizes)

    @property
    def parameters(self) -> RuntimeParameters:
        """What every core reads when the GEMM starts."""
        return runtime_parameters(self.grid.tiling, self.sizes)

    @property
    def a_elements(self) -> int:
        """Memory elements of A from the first to the last that the shims may read, whole lines."""
        return _extent(self.plan.tiling.a, self.sizes.M, self.grid.a_depth, self.sizes.lda)

    @property
    def b_elements(self) -> int:
        """Memory elements of B, bytes for packed B."""
        if self.plan.tiling.b.order == "packed":
            return self.grid.n_tiles * self.plan.tiling.b_tile_bytes(self.grid.depth)
        return _extent(self.plan.tiling.b, self.sizes.K, self.sizes.N, self.sizes.ldb)

    @property
    def b_bytes(self) -> int:
        """Size of B."""
        bits = BYTE_BITS if self.plan.tiling.b.order == "packed" else self.plan.tiling.b.bits
        return self.b_elements * bits // BYTE_BITS

    @property
    def fed_bytes(self) -> tuple[int, int]:
        """Bytes of R, for every row panel, and of S, for every n-tile; 0 where the epilogue is not fed."""
        by_panel, by_tile = self.plan.tiling.fed_bytes
        return self.grid.panels * by_panel, self.grid.n_tiles * by_tile

    @property
    def c_elements(self) -> int:
        """Memory elements of C, whole lines."""
        return _extent(self.plan.tiling.c, self.sizes.M, self.sizes.N, self.sizes.ldc)

    def operations(self) -> list[Operation]:
        """The operations of the instruction stream."""
        return list(_operations(self))

    def words(self) -> np.ndarray:
        """The instruction stream, uint32."""
        return self._encoded(self.operations())

    def _encoded(self, operations: list[Operation]) -> np.ndarray:
        return encode(operations, mlir_device_named(self.plan.mlir_device))

    def counts(self) -> Counts:
        """Length of the stream and work of the array."""
        grid, spec = self.grid, self.plan.spec
        tiles = self.parameters.output_tiles * spec.rows * spec.columns
        operations = self.operations()
        return Counts(
            steps=sum(isinstance(event, AwaitC) for event in self.events),
            operations=len(operations),
            words=len(self._encoded(operations)),
            output_tiles=tiles,
            macs=tiles * spec.tile.m * spec.tile.n * grid.depth,
        )

    def waits(self) -> tuple[Sync, ...]:
        """What waits for C of one step: a token from each column."""
        columns, channel = self.plan.spec.columns, shim_channels(self.plan)["C", 0].channel
        width = self.plan.spec.sequence.wait_columns(columns)
        return tuple(Sync(S2MM, 0, first, 1, width, channel) for first in range(0, columns, width))

    def edges(self) -> Edges:
        """How each operand's edges are handled."""
        return _edges(self)

    @property
    def processed(self) -> tuple[int, int, int]:
        """M, K, N as the array computes them: whole row panels, slabs and column steps."""
        grid = self.grid
        tiles = grid.tiling
        return grid.panels * tiles.panel_rows, grid.depth, grid.column_steps * tiles.step_columns


STEPS_MAX = 1 << 14
"""Of one sequence: its stream would have tens of MiB, and making it takes minutes."""


def sequence(
    plan: Plan, M: int, K: int, N: int, *, lda: int | None = None, ldb: int | None = None, ldc: int | None = None
) -> GemmSequence:
    """The runtime sequence of C (M x N) = A (M x K) B (K x N), 1 <= M, K, N <= 2^20.

    `lda`, `ldb`, `ldc`: positions from one line to the next (without gaps by default), lines being rows of row-major
    operands and columns of column-major ones; packed B, as `bdforge.runtime.b_operand` makes it, has none. It waits as
    the spec says, or as `Plan.waiting` was told. SpecError lists every reason why the plan cannot compute it, WalkError
    why the shims cannot move it.
    """
    problem = Problem(M, K, N)
    given = {name: value for name, value in (("a", lda), ("b", ldb), ("c", ldc)) if value is not None}
    staging, sizes = stage(plan, problem, replace(natural_leading(plan, problem), **given))
    limits = plan.device.generation.limits(TileKind.SHIM)
    steps = list(islice(walk(plan.tiling, sizes, limits), STEPS_MAX + 1))
    if len(steps) > STEPS_MAX:
        raise SpecError(f"{plan.spec.name}: {problem}: takes more than {STEPS_MAX} steps of a sequence; split it")
    events = schedule(steps, limits, in_flight=plan.spec.sequence.steps)
    return GemmSequence(plan, problem, staging, sizes, tuple(events))


def natural_leading(plan: Plan, problem: Problem) -> Leading:
    """Leading dimensions of operands without gaps."""
    M, K, N, layouts = problem.M, problem.K, problem.N, plan.spec.layouts
    shapes = ((layouts.a, M, K), (layouts.b, K, N), (layouts.c, M, N))
    return Leading(*(down if order == "column" else across for order, down, across in shapes))


def _extent(storage: Storage, rows: int, columns: int, leading: int) -> int:
    """Memory elements of a matrix whose lines are `leading` positions apart."""
    lines = columns if storage.order == "column" else rows // storage.block
    return lines * leading * storage.run


def shim_channels(plan: Plan) -> dict[tuple[Operand, int], Allocation]:
    """The shim channel of each operand in each column of the array that moves it."""
    by_name = {allocation.name: allocation for allocation in plan.array.allocations}
    fed = [feed.column for feed in plan.tiling.feeds()]
    columns = range(plan.tiling.columns)
    used: dict[Operand, Iterable[int]] = {"A": fed, "B": columns, "C": columns}
    return {(name, column): by_name[f"{name.lower()}_{column}"] for name, found in used.items() for column in found}


def _operations(planned: GemmSequence) -> Iterator[Operation]:
    channels, waits = shim_channels(planned.plan), planned.waits()
    for event in planned.events:
        match event:
            case Start(_, transfers, bd_ids):
                for transfer, ids in zip(transfers, bd_ids, strict=True):
                    channel = channels[transfer.operand, transfer.column]
                    yield from _task(planned.plan.device.generation, channel, transfer, ids)
            case Release():
                yield from _release(planned)
            case AwaitC():
                yield from waits


def _release(planned: GemmSequence) -> Iterator[Operation]:
    """Every core's parameters, then the lock that says that they are there."""
    k_steps, output_tiles = planned.parameters
    for core in core_addresses(planned.plan):
        yield Write(core.parameters + GRANULE_BYTES * RTP_K_STEPS, k_steps)
        yield Write(core.parameters + GRANULE_BYTES * RTP_OUTPUT_TILES, output_tiles)
        yield Write(core.go, 1)


def _task(generation: Generation, channel: Allocation, transfer: Transfer, ids: tuple[int, ...]) -> Iterator[Operation]:
    """Write a chain's BDs, say where their memory is, and push the task."""
    column = transfer.column
    for i, (bd, bd_id, next_id) in enumerate(zip(transfer.bds, ids, (*ids[1:], None), strict=True)):
        words = _bd_words(generation, bd.sizes, bd.strides, transfer.element_bits, next_id)
        offset_bytes = bd.offset * transfer.element_bits // 8
        at = address(column, 0, _SHIM.bd_offset(bd_id))
        yield BlockWrite(at, _at_offset(words, offset_bytes))
        yield Patch(at + GRANULE_BYTES * _ADDRESS_WORD, ARGUMENTS[transfer.source(i)], offset_bytes)
    if transfer.token:
        control = _SHIM.control_offset(channel.direction, channel.channel)
        yield MaskWrite(address(column, 0, control), token_control(), CONTROLLER_ID_MASK)
    entry = {"token": int(transfer.token), "repeat": transfer.runs - 1, "bd": ids[0]}
    queue = _SHIM.queue_offset(channel.direction, channel.channel)
    yield Write(address(column, 0, queue), _SHIM.queue.encode(entry)[0])


def token_control() -> int:
    """Value of a channel's control register under CONTROLLER_ID_MASK, so that its tokens find their way."""
    return _SHIM.control.encode({"controller_id": SHIM_CONTROLLER_ID})[0]


def _at_offset(words: tuple[int, ...], offset_bytes: int) -> tuple[int, ...]:
    """The BD with an address, which the patch replaces: mlir-aie writes it, so do we."""
    low, high = words[_ADDRESS_WORD : _ADDRESS_WORD + 2]
    address_words = (low | offset_bytes & _WORD_MASK, high | offset_bytes >> 32)
    return (*words[:_ADDRESS_WORD], *address_words, *words[_ADDRESS_WORD + 2 :])


@lru_cache(maxsize=4096)
def _bd_words(
    generation: Generation, sizes: tuple[int, ...], strides: tuple[int, ...], element_bits: int, next_bd: int | None
) -> tuple[int, ...]:
    """Register words of a BD; the same BD comes back for every column and, often, for every step."""
    missing = _TRANSFER_SIZES - len(sizes)
    transfer = task_transfer(
        generation.limits(TileKind.SHIM), (1,) * missing + sizes, (0,) * missing + strides, element_bits
    )
    return tuple(
        encode_bd(
            TileKind.SHIM,
            length_words=transfer.length_words,
            dims_words=transfer.dims_words,
            iteration=transfer.iteration,
            next_bd=next_bd,
            burst=burst_code(generation, 0),
            axi_cache=RUNTIME_AXI_CACHE,
        )
    )


def _edges(planned: GemmSequence) -> Edges:
    grid, sizes, tiles, staging = planned.grid, planned.sizes, planned.grid.tiling, planned.staging
    packed = tiles.b.order == "packed"
    staged = {"A": staging.a, "B": staging.b, "C": staging.c}
    edges = {name: [str(buffer)] if buffer else [] for name, buffer in staged.items()}
    overlapping = []
    if over := grid.panels * tiles.panel_rows - sizes.M:
        edges["A"].append(f"reads {over} rows again")
        edges["C"].append(f"writes {over} rows again")
        overlapping.append("M")
    if over := grid.depth - sizes.K:
        zeros, again = f"holds 0 for {over} {{}} of the last slab", f"reads {over} {{}} again"
        edges["A"].append((again if packed else zeros).format("columns"))
        edges["B"].append((zeros if packed else again).format("rows"))
        overlapping.append("K")
    if over := grid.column_steps * tiles.step_columns - sizes.N:
        edges["B"].append(f"is packed in {grid.n_tiles} n-tiles" if packed else f"reads {over} columns again")
        edges["C"].append(f"writes {over} columns again")
        overlapping.append("N")
    brief = [f"{', '.join(overlapping)} overlap"] if overlapping else []
    brief += [f"{name} staged" for name, buffer in staged.items() if buffer]
    return Edges(tuple(edges["A"]), tuple(edges["B"]), tuple(edges["C"]), "; ".join(brief) or "none")
