"""The runtime sequence of any problem: what the host's controller does, as instruction words.

One loaded design serves every M, K, N; a sequence is all that differs. The same plan of steps makes the words here, the
MLIR in `mlir_sequence` and, from the manifest's numbers, the words in `host/include/bdforge/sequence.hpp`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bd_patterns import AwaitC, Grid, RuntimeParameters, Start, Transfer, runtime_parameters, schedule, walk
from bd_patterns import Problem as Sizes
from bd_patterns.walk import Operand
from bdforge.devices import Generation, TileKind, mlir_device_named
from bdforge.devices.limits import GRANULE_BYTES
from bdforge.devices.registers import RUNTIME_AXI_CACHE, TILE_REGISTERS, address
from bdforge.plan.addresses import core_addresses
from bdforge.plan.gemm import RTP_K_STEPS, RTP_OUTPUT_TILES, Plan
from bdforge.plan.model import Allocation
from bdforge.plan.spec import Problem
from bdforge.plan.staging import Staging, stage, tiling
from bdforge.txn.bd import burst_code, encode_bd, runtime_transfer
from bdforge.txn.codec import encode
from bdforge.txn.operations import S2MM, BlockWrite, Operation, Patch, Sync, Write

ARGUMENTS = {"A": 0, "B": 1, "C": 2}
"""Arguments of every GEMM's runtime sequence."""

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
    events: tuple[Start | AwaitC, ...]

    @property
    def grid(self) -> Grid:
        """Where the tiles lie."""
        return Grid(tiling(self.plan), self.sizes)

    @property
    def parameters(self) -> RuntimeParameters:
        """What every core reads when the GEMM starts."""
        return runtime_parameters(self.grid.tiling, self.sizes)

    @property
    def a_elements(self) -> int:
        """Elements from the first to the last that the shims may read of A, whole rows."""
        return self.sizes.M * self.sizes.lda

    @property
    def b_bytes(self) -> int:
        """Bytes of packed B."""
        return self.grid.n_tiles * self.grid.tiling.b_tile_bytes(self.grid.depth)

    @property
    def c_elements(self) -> int:
        """Elements of C, whole rows."""
        return self.sizes.M * self.sizes.ldc

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
            steps=sum(isinstance(event, Start) for event in self.events),
            operations=len(operations),
            words=len(self._encoded(operations)),
            output_tiles=tiles,
            macs=tiles * spec.tile.m * spec.tile.n * grid.depth,
        )

    def edges(self) -> Edges:
        """How each operand's edges are handled."""
        return _edges(self)

    @property
    def processed(self) -> tuple[int, int, int]:
        """M, K, N as the array computes them: whole row panels, slabs and column steps."""
        grid = self.grid
        tiles = grid.tiling
        return grid.panels * tiles.panel_rows, grid.depth, grid.column_steps * tiles.step_columns


def sequence(plan: Plan, M: int, K: int, N: int, *, lda: int | None = None, ldc: int | None = None) -> GemmSequence:
    """The runtime sequence of C (M x N) = A (M x K) B (K x N), 1 <= M, K, N <= 2^20.

    A and C are row-major with `lda` and `ldc` elements from row to row (K and N by default); B is packed as
    `bdforge.runtime.packed_weights` does. SpecError lists every reason why the plan cannot compute it, WalkError why
    the shims cannot move it.
    """
    problem = Problem(M, K, N)
    staging, sizes = stage(plan, problem, K if lda is None else lda, N if ldc is None else ldc)
    limits = plan.device.generation.limits(TileKind.SHIM)
    steps = walk(tiling(plan), sizes, limits)
    return GemmSequence(plan, problem, staging, sizes, tuple(schedule(steps, limits)))


def shim_channels(plan: Plan) -> dict[tuple[Operand, int], Allocation]:
    """The shim channel of each operand in each column of the array that moves it."""
    by_name = {allocation.name: allocation for allocation in plan.array.allocations}
    tiles = tiling(plan)
    columns = range(tiles.columns)
    used: dict[Operand, Iterable[int]] = {"A": map(tiles.a_column, range(tiles.rows)), "B": columns, "C": columns}
    return {(name, column): by_name[f"{name.lower()}_{column}"] for name, found in used.items() for column in found}


def _operations(planned: GemmSequence) -> Iterator[Operation]:
    k_steps, output_tiles = planned.parameters
    for core in core_addresses(planned.plan):
        yield Write(core.parameters + GRANULE_BYTES * RTP_K_STEPS, k_steps)
        yield Write(core.parameters + GRANULE_BYTES * RTP_OUTPUT_TILES, output_tiles)
        yield Write(core.go, 1)
    channels = shim_channels(planned.plan)
    for event in planned.events:
        match event:
            case Start(step, bd_ids):
                for transfer, ids in zip(step.transfers, bd_ids, strict=True):
                    channel = channels[transfer.operand, transfer.column]
                    yield from _task(planned.plan.device.generation, channel, transfer, ids)
            case AwaitC():
                yield Sync(S2MM, 0, 0, 1, planned.plan.spec.columns, channels["C", 0].channel)


def _task(generation: Generation, channel: Allocation, transfer: Transfer, ids: tuple[int, ...]) -> Iterator[Operation]:
    """Write a chain's BDs, say where their memory is, and push the task."""
    column = transfer.column
    for bd, bd_id, next_id in zip(transfer.bds, ids, (*ids[1:], None), strict=True):
        words = _bd_words(generation, bd.sizes, bd.strides, transfer.element_bits, next_id)
        offset_bytes = bd.offset * transfer.element_bits // 8
        at = address(column, 0, _SHIM.bd_offset(bd_id))
        yield BlockWrite(at, _at_offset(words, offset_bytes))
        yield Patch(at + GRANULE_BYTES * _ADDRESS_WORD, ARGUMENTS[transfer.operand], offset_bytes)
    entry = {"token": int(transfer.token), "repeat": transfer.runs - 1, "bd": ids[0]}
    queue = _SHIM.queue_offset(channel.direction, channel.channel)
    yield Write(address(column, 0, queue), _SHIM.queue.encode(entry)[0])


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
    transfer = runtime_transfer(
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
    grid, sizes, tiles = planned.grid, planned.sizes, planned.grid.tiling
    a, b, c, overlapping = [], [], [], []
    staged = {"A": planned.staging.a, "C": planned.staging.c}
    a += [str(staged["A"])] if staged["A"] else []
    c += [str(staged["C"])] if staged["C"] else []
    if over := grid.panels * tiles.panel_rows - sizes.M:
        a.append(f"reads {over} rows again")
        c.append(f"writes {over} rows again")
        overlapping.append("M")
    if over := grid.depth - sizes.K:
        a.append(f"reads {over} columns again")
        b.append(f"holds weight 0 for {over} rows of the last slab")
        overlapping.append("K")
    if over := grid.column_steps * tiles.step_columns - sizes.N:
        b.append(f"is packed in {grid.n_tiles} n-tiles")
        c.append(f"writes {over} columns again")
        overlapping.append("N")
    brief = [f"{', '.join(overlapping)} overlap"] if overlapping else []
    brief += [f"{name} staged" for name, buffer in staged.items() if buffer]
    return Edges(tuple(a), tuple(b), tuple(c), "; ".join(brief) or "none")
