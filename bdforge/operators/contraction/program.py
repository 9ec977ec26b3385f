"""The sequence program of a contraction on a GEMM design's array: the cores loop on the same two parameters.

A step is a panel, a tile of C for each core row, with as many column steps as one task of each channel repeats. Steps
go through column steps, then panels, then batches. Parameters are the dimensions by name; the program is for one set of
sizes and says so, since parts, staging and BDs follow from them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bdforge.design.sequences import Axis, Builder, Expr, Program
from bdforge.devices import TileLimits
from bdforge.devices.limits import BYTE_BITS, TASK_QUEUE_ENTRIES
from bdforge.devices.types import TYPES
from bdforge.operators.contraction.boxes import Indices, Spread, box_count, digits
from bdforge.operators.contraction.sides import Side
from bdforge.operators.contraction.walks import Chain, WalkReason
from bdforge.operators.gemm.core_tiles import K_STEPS, OUTPUT_TILES, fixed_steps
from bdforge.operators.gemm.operands import packed_values
from bdforge.operators.gemm.plan import GemmPlan

A, B, C = range(3)


@dataclass(frozen=True, slots=True)
class Mapped:
    """A contraction on an array: its operands' walks, and how tiles of M and N are dealt to rows and columns."""

    sides: tuple[Side, Side, Side]
    rows: Spread
    columns: Spread
    gemm: GemmPlan

    @property
    def batches(self) -> int:
        """Products one after the other."""
        return box_count(self.sides[0].tiles.batch)

    @property
    def depth(self) -> int:
        """K as the cores compute it."""
        return box_count(self.sides[0].tiles.k) * self.gemm.tiling.k_mt

    @property
    def steps(self) -> int:
        """Steps of the sequence."""
        return self.batches * self.rows.steps * self.columns.steps

    @property
    def limits(self) -> TileLimits:
        """Of the shims."""
        return self.gemm.limits

    def run(self, tensor: int) -> int:
        """Elements from turn to turn of a step: the next column steps."""
        return self.sides[tensor].tile_strides().get(self.columns.run, 0) * self.columns.run_stride

    @property
    def joined(self) -> bool:
        """Whether one walk of C goes through all core rows' tiles."""
        if not self.rows.joined:
            return False
        try:
            return len(self.c_chain().bds) <= self.gemm.tiling.rows
        except WalkReason:
            return False

    def c_chain(self) -> Chain:
        """C of all core rows, whose tiles lie at equal distances."""
        side = self.sides[C]
        return side.walk(self.limits, [(self.rows.units, side.tile_strides()[self.rows.unit])], False)

    def chain(self, tensor: int) -> Chain:
        """The walk of a tile; WalkReason, with the operand's name, where there is none."""
        repeated = tensor == A or self.columns.turns == 1
        try:
            return self.sides[tensor].walk(self.limits, (), repeated and tensor != C)
        except WalkReason as reason:
            raise WalkReason(f"{self.sides[tensor].name} {reason}") from None

    def bds(self) -> list[int]:
        """BDs of a step by column."""
        a, b, tiling = len(self.chain(A).bds), len(self.chain(B).bds), self.gemm.tiling
        c = len(self.c_chain().bds) if self.joined else tiling.rows * len(self.chain(C).bds)
        feeding = {tiling.a_column(row) for row in range(tiling.rows)}
        return [b + c + a * (column in feeding) for column in range(tiling.columns)]

    def program(self) -> Program:
        """The program; WalkReason where no BDs walk an operand."""
        return _Writer(self).program()


class _Writer:
    def __init__(self, mapped: Mapped):
        self.mapped, self.gemm, self.tiling = mapped, mapped.gemm, mapped.gemm.tiling
        parts = {part.dim.name: part.dim.size for side in mapped.sides for part in side.parts}
        self.build, self.sizes = Builder(list(parts), self.gemm.spec.sequence.steps, TASK_QUEUE_ENTRIES), parts
        self.scales = [side.store.bits / self.memory_bits(side) for side in mapped.sides]

    def memory_bits(self, side: Side) -> int:
        return BYTE_BITS if side.packed else side.store.bits

    def program(self) -> Program:
        for name, size in self.sizes.items():
            text = f"{name} = {{}}: this program is for {name} = {size}; plan the contraction again"
            self.build.require(self.build.parameter(name).equals(size), text, self.build.parameter(name))
        for side, memory in zip(self.mapped.sides, self.gemm.memory, strict=True):
            note = "staged tile by tile" if side.staged else "in place"
            count = side.elements * side.store.bits // self.memory_bits(side)
            self.build.argument(side.name, memory, self.memory_bits(side), count, note)
        for side, type_ in zip(self.mapped.sides, self.gemm.types, strict=True):
            self.operand(side, type_)
        with self.build.loop(self.mapped.steps) as index:
            self.step(index)
        return self.build.program

    def operand(self, side: Side, type_: str) -> None:
        """One axis for each dimension; the last tile of K, moved back, has zeros for what the one before it holds."""
        axes = [
            Axis(
                self.build.parameter(part.dim.name), part.walked if side.staged else part.dim.size,
                part.size if side.staged else None, side.staged and part in side.tiles.k,
            )
            for part in side.axes
        ]  # fmt: skip
        facts = packed_values(type_) if TYPES[type_].packed_only else {}
        self.build.operand(
            side.name, side.tensor, "out" if side.tensor == C else "in", type_, side.store.bits, axes, side.placed(),
            staged=int(side.staged), **facts,
        )  # fmt: skip

    def step(self, index: Expr) -> None:
        mapped, tiling = self.mapped, self.tiling
        column_step, later = index % mapped.columns.steps, index // mapped.columns.steps
        panel, batch = later % mapped.rows.steps, later // mapped.rows.steps
        box = mapped.sides[0].tiles.batch
        own = digits(batch, [part.count for part in box])
        batches = {part.dim.name: index for part, index in zip(box, own, strict=True)}
        rows = [mapped.rows.indices(panel, row) for row in range(tiling.rows)]
        columns = [mapped.columns.indices(column_step, column) for column in range(tiling.columns)]
        note = "batch {}, panel {}, column step {}"
        with self.build.step([(*self.gemm.channels[C], 0, tiling.columns)], note, (batch, panel, column_step)):
            for row in range(tiling.rows):
                self.task(A, tiling.a_column(row), [{**batches, **rows[row]}], mapped.chain(A))
            for column in range(tiling.columns):
                self.task(B, column, [{**batches, **columns[column]}], mapped.chain(B))
            with self.build.when(index.equals(0)):
                self.release()
            walk, joined = (mapped.c_chain(), rows[:1]) if mapped.joined else (mapped.chain(C), rows)
            for column in range(tiling.columns):
                self.task(C, column, [{**batches, **row, **columns[column]} for row in joined], walk)

    def task(self, tensor: int, column: int, tiles: Sequence[Indices], walk: Chain) -> None:
        """The tiles' walks one after the other, again for each turn of the step."""
        side, turns, scale = self.mapped.sides[tensor], self.mapped.columns.turns, self.scales[tensor]
        runs = (
            (walk.turns, int(walk.stride * scale)) if walk.turns > 1 else (turns, int(self.mapped.run(tensor) * scale))
        )
        if tensor == A and walk.turns == 1:
            runs = None
        found = []
        for tile in tiles:
            start = side.offset(tile)
            for bd in walk.bds:
                *outer, last = bd.sizes
                sizes = (*outer, int(last * scale))
                strides = (*(int(stride * scale) for stride in bd.strides[:-1]), bd.strides[-1])
                found.append(self.build.bd(tensor, self.scaled(start + bd.offset, scale), sizes, strides, runs))
        self.build.task(*self.gemm.channels[tensor], column, *found, runs=turns * walk.turns, token=tensor == C)

    def scaled(self, offset: Expr | int, scale: float) -> Expr | int:
        return offset if scale == 1 else offset // round(1 / scale)

    def release(self) -> None:
        """Every core's parameters, then the lock that says that they are there."""
        mapped = self.mapped
        tiles = mapped.batches * mapped.rows.tiles * mapped.columns.tiles
        depth = mapped.depth // self.tiling.k - fixed_steps(self.gemm.spec)
        for core in self.gemm.cores:
            self.build.set_parameters(core.parameters, {K_STEPS: depth, OUTPUT_TILES: tiles}, core.go)
