"""The sequence program of a GEMM whose panels of B stay in the memtiles.

A step is one column step over many row panels, the one that moved back included: B's panel comes once, or as much of
it as the pool holds, and is sent again for every row panel. Memtiles get their BDs for B when a sequence starts, since
they follow from the depth alone; steps only push tasks. docs/operators/gemm_sequences.md explains the protocol.
"""

from collections.abc import Sequence
from typing import NamedTuple

from bdforge.design.sequences import Expr, Program, all_of, ceildiv, largest, least, select
from bdforge.design.sequences.builder import register_words
from bdforge.design.sequences.expressions import Operand
from bdforge.design.sequences.sequence_program import ProgramBd
from bdforge.devices import TileKind
from bdforge.devices.limits import GRANULE_BYTES, TASK_QUEUE_ENTRIES, TASK_REPEAT_MAX
from bdforge.devices.registers import MEMTILE_WINDOW_BYTES, MEMTILE_WINDOW_LOCKS, TILE_REGISTERS, address
from bdforge.operators.gemm.mapping import MappedGemm
from bdforge.operators.gemm.operands import A, B, C, R, S
from bdforge.operators.gemm.program import Area, GemmProgram
from bdforge.operators.gemm.resident import SLOTS, Division, divided

_MEMTILE = TILE_REGISTERS[TileKind.MEMTILE]
_ROW, _CHANNEL = 1, 0  # of memtiles; of B in them
_TASKS = 2  # of a step on one of these channels
_ON, _OFF = 1, 0
_FREE, _FULL, _CHUNK_FREE, _CHUNK_FULL = range(4)


def gemm_program(plan: MappedGemm) -> Program:
    """The program that serves every problem of a design."""
    return (ResidentProgram if plan.pool else GemmProgram)(plan).program()


class _Numbers(NamedTuple):
    """BD numbers: fills and passes of each panel, then chunks; the second panel's stand for the chunks from 1 on."""

    parts: int
    chunks: int

    def fill(self, panel: int) -> int:
        return 2 + panel * (1 + 2 * self.parts)

    def part(self, panel: int, last: int, number: int) -> int:
        """Of part `number` in a pass that keeps it, or in the last one."""
        return self.fill(panel) + 1 + last * self.parts + number

    @property
    def fill_chunk(self) -> int:
        return 0

    def chunk(self, number: int) -> int:
        return self.fill(1) + number - 1 if number else 1


class ResidentProgram(GemmProgram):
    """Column step by column step, all row panels of it."""

    in_flight_max = TASK_QUEUE_ENTRIES // _TASKS

    def __init__(self, plan: MappedGemm):
        super().__init__(plan)
        assert plan.pool is not None
        self.pool = plan.pool
        self.numbers = _Numbers(*self.pool.room)
        tiles = self.depth // self.tiling.k
        self.division: Division = divided(self.pool, tiles, self.fed)
        most = (self.pool.tiles * self.pool.room.chunks // SLOTS) * self.tiling.k
        told = "K = {} is too deep for B to stay in memtiles, which hold panels of up to about {}; use a design without"
        self.build.require(self.division.fits, told, self.K, self.build.constant(most))

    # Which part of the problem each step covers.

    def areas(self) -> None:
        """Blocks of row panels; the panel that moved back joins the last one."""
        most = self.most_panels()
        blocks = largest(ceildiv(self.whole, most), 1)
        self.named("blocks", blocks)
        with self.build.loop(self.steps * blocks, "turn") as index:
            block, step = index % blocks, self.named("step", index // blocks)
            first = self.named("first_panel", block * most)
            panels = self.named("step_panels", least(most, self.whole - first))
            moved = self.named("moved", all_of((block + 1).equals(blocks), self.panels - self.whole))
            whole = Area(first, panels, step, self.build.constant(1))
            last = Area(self.whole, self.build.constant(1), step, self.build.constant(1))
            self.panels_step(index, whole, last, moved)

    def most_panels(self) -> Expr:
        """As A's BDs and the runs of chunks allow, with one more that moved back."""
        chunks = largest(self.division.chunks, 1)
        return largest(least(super().most_panels(), self.build.constant(TASK_REPEAT_MAX) // chunks) - 1, 1)

    # The tasks of a step.

    def panels_step(self, index: Expr, whole: Area, last: Area, moved: Expr) -> None:
        """Data of A and B first, then what memtiles do with B, then C, whose last tokens end the step."""
        passes, some = whole.panels + moved, whole.panels > 0
        note = "{} row panels from panel {} on, column step {}"
        tokens = [(*self.plan.channels[C], 0, self.tiling.columns)]
        with self.build.step(tokens, note, (passes, whole.panel, whole.first)):
            for when, area in ((some, whole), (moved, last)):
                with self.build.when(when):
                    self.rows_of_a(area)
            self.panels_of_b(whole, passes)
            with self.build.when(index.equals(0)):
                self.prepare()
            self.send(index, passes)
            with self.build.when(index.equals(0)):
                self.release()
            for when, area, token in (
                (all_of(some, moved), whole, False), (all_of(some, ~moved), whole, True), (moved, last, True),
            ):  # fmt: skip
                with self.build.when(when):
                    self.tiles_of_c(area, token)

    def rows_of_a(self, area: Area) -> None:
        for column, row, part in self.feeds():
            self.task(A, column, self.a(area, row, part), area.panels)

    def tiles_of_c(self, area: Area, token: bool) -> None:
        groups = self.groups(area.panel)
        with self.build.loop(self.tiling.columns, "column") as column:
            self.task(C, column, *self.c(area, groups, column), token=token)

    def panels_of_b(self, area: Area, passes: Expr) -> None:
        """What stays of each column's n-tile once, then the rest and an epilogue's numbers for every pass."""
        found, size = self.division, self.pool.tile_bytes
        kept, rest = found.kept * size, (found.depth - found.kept) * size
        with self.build.loop(self.tiling.columns, "column") as column:
            n_tile = self.named("n_tile", self.n_tile(area.first, column))
            start = n_tile * self.b_bytes
            with self.build.when(found.kept > 0):
                self.task(B, column, [self.build.bd(B, start, (kept,), (1,))], self.build.constant(1))
            with self.build.when(found.chunks > 0):
                streamed = [self.build.bd(B, start + kept, (rest,), (1,), when=rest > 0)]
                self.task(B, column, [*streamed, *self.numbers_of(area, n_tile, passes)], passes)

    def numbers_of(self, area: Area, n_tile: Expr, passes: Expr) -> Sequence[ProgramBd | None]:
        """An epilogue's, of the row panels one after the other and of the n-tile."""
        if not self.fed:
            return ()
        by_panel, by_tile = self.tiling.fed_bytes
        return [*self.bytes(R, area.panel, by_panel, passes, 1), self.build.bd(S, n_tile * by_tile, (by_tile,), (1,))]

    # What memtiles do.

    def register(self, column: Expr, offset: int) -> Expr:
        return column * address(1, 0, 0) + address(0, _ROW, offset)

    def prepare(self) -> None:
        """Every BD and how many parts are free, in each memtile."""
        words = [word for bd in self.bds() for word in bd]
        free = self.division.parts * (1 + self.division.twice)
        with self.build.loop(self.tiling.columns, "column") as column:
            self.build.write(self.register(column, _MEMTILE.bd_offset(0)), *words)
            self.build.write(self.register(column, _MEMTILE.lock_offset(self.pool.locks[_FREE].id)), free)

    def send(self, index: Expr, passes: Expr) -> None:
        """Fill a panel and chunks; send the panel for all row panels but the last, then a last time."""
        found, numbers = self.division, self.numbers
        second = all_of(found.twice, index % 2)
        kept, chunks = found.kept > 0, found.chunks > 0
        fill = numbers.fill(0) + second * (numbers.fill(1) - numbers.fill(0))
        keep, last = (select(kept, fill + 1 + end * numbers.parts, numbers.chunk(0)) for end in (0, 1))
        tasks = (
            ("S2MM", kept, fill, found.parts), ("S2MM", chunks, numbers.fill_chunk, found.chunks * passes),
            ("MM2S", passes > 1, keep, passes - 1), ("MM2S", self.build.constant(1), last, 1),
        )  # fmt: skip
        for direction, when, first, runs in tasks:
            with self.build.when(when), self.build.loop(self.tiling.columns, "column") as column:
                self.push(direction, column, first, runs)

    def push(self, direction: str, column: Expr, first: Operand, runs: Operand) -> None:
        queue = self.register(column, _MEMTILE.queue_offset(direction, _CHANNEL))
        self.build.write(queue, *register_words(_MEMTILE.queue, {"repeat": runs - 1, "bd": first}))

    def bds(self) -> list[list[Expr]]:
        """Words of all BDs by number. Those that the problem has no use for hold whatever its numbers make of them."""
        found, numbers = self.division, self.numbers
        made = {numbers.fill_chunk: self.fill_chunk(), numbers.chunk(0): self.chunk(0)}
        for panel in range(2):
            made[numbers.fill(panel)] = self.fill(panel)
            for part in range(numbers.parts):
                for last in range(2):
                    made[numbers.part(panel, last, part)] = self.part(panel, last, part)
        several = found.chunks > 1
        for chunk in range(1, numbers.chunks):
            at, words = numbers.chunk(chunk), self.chunk(chunk)
            other = made.get(at, words)
            made[at] = [select(several, word, kept) for word, kept in zip(words, other, strict=True)]
        return [made[number] for number in range(len(made))]

    def bd(
        self, first: Expr, tiles: Operand, acquire: tuple[int, Operand], release: tuple[int, Operand],
        iteration: tuple[Operand, Operand] = (1, 1), following: tuple[Operand, Operand] = (0, _OFF),
    ) -> list[Expr]:  # fmt: skip
        """A linear run of `tiles` tiles from tile `first` of the pool on; an iteration of (count, tiles apart)."""
        words = self.pool.tile_bytes // GRANULE_BYTES
        start = (MEMTILE_WINDOW_BYTES + self.pool.address) // GRANULE_BYTES
        locks = self.pool.locks
        count, apart = (value + self.build.constant(0) for value in iteration)
        value, field = acquire[1], _MEMTILE.bd.fields["acquire_value"]
        least_value = (field.mask >> field.low) + 1 - value + self.build.constant(0)  # minus: at least so much
        return register_words(_MEMTILE.bd, {
            "length": tiles * words, "address": first * words + start, "d0_step": 0,
            "next": following[0], "use_next": following[1],
            "iteration_wrap": count - 1, "iteration_step": (count > 1) * (apart * words - 1), "valid": _ON,
            "acquire_enable": _ON, "acquire_id": MEMTILE_WINDOW_LOCKS + locks[acquire[0]].id,
            "acquire_value": least_value,
            "release_id": MEMTILE_WINDOW_LOCKS + locks[release[0]].id, "release_value": release[1],
        })  # fmt: skip

    def fill(self, panel: int) -> list[Expr]:
        """Part after part."""
        found = self.division
        return self.bd(found.kept * panel, found.part, (_FREE, 1), (_FULL, 1), (found.parts, found.part))

    def part(self, panel: int, last: int, number: int) -> list[Expr]:
        """A part as it is sent: one that stays takes as many as must be there and gives them back."""
        found, numbers = self.division, self.numbers
        use = ((_FULL, 1), (_FREE, 1)) if last else ((_FULL, number + 1), (_FULL, number + 1))
        inside = (number + 1) < found.parts
        chunks = found.chunks > 0
        following = select(inside, numbers.part(panel, last, number) + 1, numbers.chunk(0))
        return self.bd(
            found.kept * panel + found.part * number, found.part, *use, following=(following, largest(inside, chunks))
        )

    def slot(self, number: int) -> Expr:
        found = self.division
        return found.kept * (1 + found.twice) + found.chunk * number

    def fill_chunk(self) -> list[Expr]:
        """Slot after slot."""
        found = self.division
        return self.bd(self.slot(0), found.chunk, (_CHUNK_FREE, 1), (_CHUNK_FULL, 1), (SLOTS, found.chunk))

    def chunk(self, number: int) -> list[Expr]:
        """Chunks take turns in the slots; one alone changes them from pass to pass, of several each keeps its own."""
        found, numbers = self.division, self.numbers
        alone = found.chunks.equals(1)
        iteration = (select(alone, SLOTS, 1), found.chunk) if number == 0 else (1, 1)
        more = (number + 1) < found.chunks
        following = numbers.chunk(number + 1) if number + 1 < numbers.chunks else 0
        use = (_CHUNK_FULL, 1), (_CHUNK_FREE, 1)
        return self.bd(self.slot(number % SLOTS), found.chunk, *use, iteration, (following, more))
