"""The sequence program of attention: Y of any number of queries and keys, round by round of what all rows take up.

Q and Y are (queries, heads, d), K and V (keys, KV heads, d), line by line, as models have them. A last block of
queries, or of keys, moves back until it ends with them; where there is less than a block, operands are staged, zeros
behind.
Which item a core has is told by arithmetic on both sides: here, and in kernels/aie2p/attention_begin_bf16.cc.
"""

from typing import NamedTuple

from bdforge.design import RtpAddresses
from bdforge.design.sequences import Axis, Builder, Dim, Expr, Program, all_of, any_of, ceildiv, largest, least, select
from bdforge.design.sequences.sequence_program import ProgramBd
from bdforge.operators.attention.mapping import KEYS, QUERIES, ROUNDS
from bdforge.operators.attention.tiling import AttentionTiling
from bdforge.operators.specs import LARGEST_SIZE

AXES = ("queries", "keys")
Q, K, V, Y = range(4)
"""Arguments."""


class Pass(NamedTuple):
    """What a row of cores takes up: a pass of a KV head, the first item in it, and the last one."""

    head: Expr
    first: Expr
    last: Expr


class Dealt(NamedTuple):
    """What streams take up in a round; the first `alike` passes follow each other, of KV heads side by side."""

    passes: list[Pass]
    alike: Expr


class Blocks(NamedTuple):
    """Blocks of keys from number `start` to before `end`; `last` where they may end with the last one of all."""

    start: Expr
    end: Expr
    last: bool


class AttentionProgram:
    """Writes the program that serves every problem of a mapped design."""

    def __init__(
        self, tiling: AttentionTiling, cores: tuple[RtpAddresses, ...], causal: bool, window: int, in_flight: int,
        first_column: int = 0,
    ):  # fmt: skip
        self.tiling, self.cores, self.causal, self.window = tiling, cores, causal, window
        self.build = Builder(AXES, in_flight, first_column=first_column)
        self.queries, self.keys = (self.build.parameter(axis) for axis in AXES)
        self.walked_queries = largest(self.queries, tiling.item_queries)
        self.walked_keys = largest(self.keys, tiling.keys)
        self.items_aside = tiling.group // tiling.heads_of_item
        self.items = ceildiv(self.queries, tiling.item_queries) * self.items_aside
        self.units = ceildiv(self.items, tiling.sharing) * tiling.kv_heads
        self.rounds = ceildiv(self.units, tiling.streams)
        self.blocks = ceildiv(self.keys, tiling.keys)
        self.before = self.keys - self.queries if causal else self.build.constant(0)

    def program(self) -> Program:
        """The whole program."""
        self.require()
        self.operands()
        awaits = [("S2MM", 0, first, columns) for first, columns in self.ending()]
        with (
            self.build.loop(self.rounds, "round") as number,
            self.build.step(awaits, "round {} of {}", (number, self.rounds)),
        ):
            self.round(number)
        return self.build.program

    def require(self) -> None:
        """Refuse sizes that are out of range, and queries before the first key."""
        for axis, size in zip(AXES, (self.queries, self.keys), strict=True):
            outside = any_of(size < 1, size > LARGEST_SIZE)
            self.build.require(~outside, f"{axis} = {{}} is outside 1 to {LARGEST_SIZE}", size)
        if self.causal:
            told = "queries = {} are more than keys = {}: each needs its own key, where it stands"
            self.build.require(self.keys >= self.queries, told, self.queries, self.keys)

    def operands(self) -> None:
        """All as they lie, or staged copies of one block."""
        tiling = self.tiling
        few_queries, few_keys = self.queries < tiling.item_queries, self.keys < tiling.keys
        self.operand("Q", "in", self.queries, self.walked_queries, tiling.heads, few_queries)
        self.operand("K", "in", self.keys, self.walked_keys, tiling.kv_heads, few_keys)
        self.operand("V", "in", self.keys, self.walked_keys, tiling.kv_heads, few_keys)
        self.operand("Y", "out", self.queries, self.walked_queries, tiling.heads, few_queries)

    def operand(self, name: str, way: str, size: Expr, walked: Expr, heads: int, staged: Expr) -> None:
        dim = self.tiling.head_dim
        argument = self.build.argument(name, "bf16", 16, walked * (heads * dim))
        axes = [Axis(size, walked), Axis(heads), Axis(dim)]
        dims = [Dim(0, walked, stride=heads * dim), Dim(1, heads, stride=dim), Dim(2, dim)]
        self.build.operand(name, argument, way, "bf16", 16, axes, dims, staged=staged, parallel=name == "Q")

    def round(self, number: Expr) -> None:
        """A pass for each stream: the longest ones first."""
        dealt = self.dealt(number)
        if self.tiling.few:
            self.own_streams(dealt.passes, number)
        else:
            self.rows_of_streams(dealt)
            self.tell(number, self.cores)
        for first, columns in self.ending():
            for column in range(first, first + columns):
                self.build.task("S2MM", 0, column, *self.results(dealt, column), token=True)

    def dealt(self, number: Expr) -> Dealt:
        """A round's passes: those of one and the rest are of two lengths, so in every other round the rest comes first,
        and each stream has as much to do in the end."""
        streams, kv_heads = self.tiling.streams, self.tiling.kv_heads
        first = largest(self.units - (number + 1) * streams, 0)
        of_one = least(kv_heads - first % kv_heads, streams)
        turned = number % 2 * of_one % streams
        places = [first + (turned + stream) % streams for stream in range(streams)]
        passes = [self.taken(least(place, self.units - 1)) for place in places]
        return Dealt(passes, select(turned > 0, streams - of_one, of_one))

    def results(self, dealt: Dealt, column: int) -> list[ProgramBd | None]:
        """Y of a column's cores."""
        if self.tiling.few:
            return self.lines_of(Y, dealt.passes[self.tiling.place_of(column)[0]])
        return self.items_of(Y, dealt, column)

    def ending(self) -> list[tuple[int, int]]:
        """Columns by which Y leaves: the first one of each run of them, and how many there are."""
        tiling = self.tiling
        if tiling.splits == 1:
            return [(0, tiling.columns)]
        return [(column, 1) for column in range(tiling.columns) if tiling.ends(column)]

    def rows_of_streams(self, dealt: Dealt) -> None:
        """Q to all cores, K and V to each row of them by two columns."""
        for column in range(self.tiling.columns):
            self.build.task("MM2S", 0, column, *self.items_of(Q, dealt, column))
        for row, taken in enumerate(dealt.passes):
            column = self.tiling.stream_column(row)
            blocks = self.range_of(taken)
            for argument in (K, V):
                self.build.task("MM2S", 1, column + argument - K, *self.stream(argument, taken, blocks))

    def own_streams(self, passes: list[Pass], number: Expr) -> None:
        """To each core its queries, as often as a block of keys holds them, its keys, and its values.

        Columns are told one by one, so that the first ones work while the controller writes what the last ones need.
        """
        tiling = self.tiling
        for column, core in enumerate(self.cores):
            stream, part = tiling.place_of(column)
            taken, blocks = passes[stream], self.range_of(passes[stream], part)
            self.build.task("MM2S", 0, column, *self.lines_of(Q, taken), runs=tiling.keys // tiling.queries)
            with self.build.when(self.build.constant(1) if blocks.last else blocks.end > blocks.start):
                self.build.task("MM2S", 0, column, *self.stream(K, taken, blocks))
                self.build.task("MM2S", 1, column, *self.stream(V, taken, blocks))
            self.tell(number, (core,))

    def tell(self, number: Expr, cores: tuple[RtpAddresses, ...]) -> None:
        """Cores their parameters, in the first round."""
        words = {ROUNDS: self.rounds, QUERIES: self.queries, KEYS: self.keys}
        with self.build.when(number.equals(0)):
            for core in cores:
                self.build.set_parameters(core.parameters, words, core.go)

    def taken(self, unit: Expr) -> Pass:
        first = unit // self.tiling.kv_heads * self.tiling.sharing
        return Pass(unit % self.tiling.kv_heads, first, least(first + self.tiling.sharing, self.items) - 1)

    def first_query(self, item: Expr) -> Expr:
        """Where an item's queries begin."""
        queries = self.tiling.item_queries
        return least(item // self.items_aside * queries, self.walked_queries - queries)

    def lines_of(self, argument: int, taken: Pass) -> list[ProgramBd | None]:
        """A tile's lines: all heads of each of an item's queries, and what is left as the first ones of the last."""
        tiling, line = self.tiling, self.tiling.heads * self.tiling.head_dim
        whole, left = divmod(tiling.queries, tiling.group)
        first = self.first_query(taken.first) * line + taken.head * (tiling.group * tiling.head_dim)
        bds = [self.build.bd(argument, first, (whole, tiling.group * tiling.head_dim), (line, 1))]
        if left:
            bds.append(self.build.bd(argument, first + (whole - 1) * line, (left * tiling.head_dim,), (1,)))
        return bds

    def items_of(self, argument: int, dealt: Dealt, column: int) -> list[ProgramBd | None]:
        """Items of a column's cores, row after row; those of one pass, a KV head apart, in one BD."""
        tiling, passes = self.tiling, dealt.passes
        rows = len(passes)
        if tiling.kv_heads < rows:
            return [self.items_bd(argument, taken, column, 1) for taken in passes]
        last, others = passes[-1], rows - dealt.alike
        behind = self.items_bd(argument, last._replace(head=last.head - others + 1), column, others, others > 0)
        return [
            self.items_bd(argument, passes[0], column, dealt.alike),
            None if tiling.kv_heads % rows == 0 else behind,
        ]

    def items_bd(self, argument: int, taken: Pass, column: int, heads: Expr | int, when: Expr | int = 1):
        """Items of `heads` KV heads at a column, from a pass on."""
        tiling, line = self.tiling, self.tiling.heads * self.tiling.head_dim
        item = least(taken.first + column, taken.last)
        head = taken.head * tiling.group + item % tiling.group
        offset = self.first_query(item) * line + head * tiling.head_dim
        sizes = (heads, tiling.queries, tiling.head_dim)
        return self.build.bd(argument, offset, sizes, (tiling.group * tiling.head_dim, line, 1), when=when)

    def range_of(self, taken: Pass, part: int = 0) -> Blocks:
        """The blocks that one of a pass needs; of them the range number `part`, of almost as many as each."""
        tiling, splits = self.tiling, self.tiling.splits
        end, start = self.blocks, self.build.constant(0)
        if self.causal:
            furthest = self.before + self.first_query(taken.last) + tiling.item_queries - 1
            end = least(furthest // tiling.keys + 1, self.blocks)
        if self.window:
            start = largest(self.before + self.first_query(taken.first) + 1 - self.window, 0) // tiling.keys
        if splits == 1:
            return Blocks(start, end, True)
        first, behind = ((end - start) * bound // splits for bound in (part, part + 1))
        return Blocks(start + first, start + behind, part == splits - 1)

    def stream(self, argument: int, taken: Pass, blocks: Blocks) -> list[ProgramBd | None]:
        """Blocks of K or V, the last of all moved back."""
        tiling, line = self.tiling, self.tiling.kv_heads * self.tiling.head_dim
        offset, block = taken.head * tiling.head_dim, tiling.keys * line
        lines, apart = (tiling.keys, tiling.head_dim), (line, 1)
        ragged, start = self.build.constant(0), blocks.start * block + offset
        if blocks.last:
            ragged = all_of(~(self.walked_keys % tiling.keys).equals(0), blocks.end.equals(self.blocks))
        straight, last = blocks.end - blocks.start - ragged, (self.walked_keys - tiling.keys) * line + offset
        return [
            self.build.bd(argument, start, (straight, *lines), (block, *apart), when=straight > 0),
            self.build.bd(argument, last, lines, apart, when=ragged),
        ]
