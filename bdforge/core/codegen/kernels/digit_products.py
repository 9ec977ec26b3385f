"""Products on AIE2P of operands in two block floats, or one, as `kernels/include/two_digits.h` has them, with its bits.

Rows come as digits that another function made: *planes*, mantissas of pairs of rows of tiles, tile by tile along the
depth, high ones of both rows and low ones, if any, 64 bytes each, and behind all of them their exponents in the same
order, 8 bytes each.
Columns are bfloat16 and become digits at each use, by way of the last accumulator: a tile is widened into it for its
high digit, and once more for what that leaves. A block is 2 x 2 tiles of sums, in the other accumulators.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import prod
from re import sub
from typing import Any

from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.kernels.lane_block import Ops
from bdforge.core.codegen.pipeline.dataflow import DataflowOp, named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, set_register
from bdforge.core.codegen.pipeline.pointer_walks import PointerWalk, Steppers
from bdforge.core.codegen.pipeline.product import AIE2P, BLOCK_CONF, SQUARE_HALVES
from bdforge.core.codegen.pipeline.steps_in_blocks import BlockOfSteps, stepped

TILE, EXPONENTS = 64, 8
"""Bytes of a digit's mantissas and exponents; elements of a tile."""
SUMS_BYTES = 256
"""Of a tile of float32."""
IDENTITY = "ex11"
"""Minus the identity."""
_CONF, _TURN = "r0", ("r1", "r2")
_SPARE = 4  # the accumulator in which digits are made
_MOVED = "m7"
_ONE_DIGIT = 8  # cycles of a tile of the depth, at least: both columns of one digit pass the last accumulator
_UNIT, _BYTES, _MINUS_ONE = 127, 0x01010101, 0xC0  # exponent of mantissas in 1/64; -64

Nest = tuple[tuple[int, int, int], ...]
"""In which order blocks come: (passes, pairs of rows and of columns to the next pass), the outermost first."""


def minus_identity(spare: str = "r8") -> Iterator[AssemblyOp]:
    """Minus the identity as a digit; x0, x1 and l7 are worked with."""
    for register, value in {"r14": 0x08040201, "r15": 0x80402010, spare: 0}.items():
        yield set_register(register, value)
    yield AssemblyOp(f"vbcst.32 x0, {spare}")
    yield from (set_register(spare, _MINUS_ONE * _BYTES), AssemblyOp(f"vbcst.32 x1, {spare}"))
    yield AssemblyOp(f"vsel.8 x{IDENTITY[2:]}, x0, x1, l7")
    yield from same_exponents(IDENTITY, _UNIT, spare)


def same_exponents(register: str, exponent: int, spare: str = "r8") -> Iterator[AssemblyOp]:
    """One exponent for all blocks of a register ex."""
    yield set_register(spare, exponent * _BYTES)
    yield from (AssemblyOp(f"mov e{half}{register[2:]}, {spare}") for half in "lh")


def moved(pointer: str, size: int) -> Iterator[AssemblyOp]:
    """A pointer so many bytes further."""
    if size:
        yield from (set_register(_MOVED, size), AssemblyOp(f"padda [{pointer}], {_MOVED}"))


@dataclass(frozen=True)
class DigitProduct:
    """Sums of pairs of tiles, `steps` deep, in blocks that follow each other as `nest` tells: rows in planes at p0,
    columns at p1, `turned` or not.

    Sums begin with what lies at p6, and go to p2: for either the bytes from a tile to that below and beside it, and
    from a block to these. `added` is the register of a number times the identity that is added to them, if any.
    """

    steps: int
    nest: Nest
    turned: bool
    begin: tuple[tuple[int, int], tuple[int, int]]
    sums: tuple[tuple[int, int], tuple[int, int]]
    added: str = ""
    digits: int = 2

    def part(self, setup: list[AssemblyOp]) -> FunctionPart:
        """All blocks; `setup` gives pointers, and what is added."""
        made = Steppers(AIE2P.small, AIE2P.access)
        walks = made.walks(list(self._walks))
        names = ("rows", "exponents", "columns", "begin", "sums")
        after = dict(zip(names, walks, strict=True))
        constants = [set_register(register, value) for register, value in made.constants.items()]
        modes = [set_register(register, mode) for register, mode in zip(_TURN, SQUARE_HALVES, strict=True)]
        first = [set_register(_CONF, BLOCK_CONF), *(modes if self.turned else ()), *minus_identity()]
        step = partial(self._step, after)
        block = BlockOfSteps(
            list(self._begin(after["begin"])), step, list(self._end(after["sums"])), self.steps // 2,
            {"x": range(11 - bool(self.added)), "dm": [_SPARE]}, **self._settled(step(0)),
        )  # fmt: skip
        return stepped("aie2p", [*setup, *first, *constants], block, prod(passes for passes, *_ in self.nest))

    def _settled(self, step: list[DataflowOp]) -> dict[str, Any]:
        """What is known of a block's schedule; a step of one digit is searched."""
        if self.digits == 1:
            return {"shortest": 2 * _ONE_DIGIT}
        cycles = _TURNED if self.turned else _STRAIGHT
        return {"fixed": cycles.of(step), "apart": cycles.apart, "shortest": 2 * cycles.tile}

    @property
    def planes_bytes(self) -> int:
        """Of mantissas of all pairs of rows."""
        pairs = 1 + sum((passes - 1) * down for passes, down, _ in self.nest)
        return pairs * self.steps * 2 * self.digits * TILE

    @property
    def _walks(self) -> Iterator[PointerWalk]:
        count, pair = 2 * self.digits * self.steps, self.steps * 2 * TILE
        yield self._walk("p0", [TILE * i for i in range(count)], (count * TILE, 0))
        yield self._walk("p4", [4 * i for i in range(2 * count)], (count * EXPONENTS, 0), access=4)
        places = [c * pair + i * 2 * TILE + h * TILE for i in range(self.steps) for c in (0, 1) for h in (0, 1)]
        yield self._walk("p1", places, (0, 2 * pair))
        for pointer, (apart, further) in (("p6", self.begin), ("p2", self.sums)):
            tiles = [i * apart[0] + j * apart[1] for i in (0, 1) for j in (0, 1)]
            yield self._walk(pointer, [at + TILE * q for at in tiles for q in range(4)], further)

    def _walk(self, pointer: str, offsets: list[int], further: tuple[int, int], access: int = 0) -> PointerWalk:
        """A pointer that goes `further` from a pair of rows, and of columns, to the next."""
        loops = tuple((passes, down * further[0] + across * further[1]) for passes, down, across in self.nest)
        return PointerWalk(pointer, tuple(offsets), loops, access=access)

    def _begin(self, after: list[str]) -> Iterator[DataflowOp]:
        for number in range(16):
            text = f"vlda{access(f'{AIE2P.parts[number % 4]}{number // 4}', 'p6', after[number])}"
            yield DataflowOp(f"begin {number}", (text,), bank="begin", late=True)

    def _end(self, after: list[str]) -> Iterator[DataflowOp]:
        for lane in range(4 if self.added else 0):
            yield DataflowOp(f"add {lane}", (f"vmac.f dm{lane}, dm{lane}, {IDENTITY}, {self.added}, {_CONF}",))
        for number in range(16):
            text = f"vst{access(f'{AIE2P.parts[number % 4]}{number // 4}', 'p2', after[number])}"
            yield DataflowOp(f"sums {number}", (text,), bank="sums")

    def _step(self, after: dict[str, list[str]], i: int) -> list[DataflowOp]:
        """Two tiles of the depth, since some values live longer than one takes."""
        tiles = [(half, op) for half in (0, 1) for op in self._tile(after, 2 * i + half)]
        return [_renamed(op, half) for half, op in tiles]

    def _tile(self, after: dict[str, list[str]], i: int) -> list[DataflowOp]:
        rows, words = (
            after[name][size * i :] for name, size in (("rows", 2 * self.digits), ("exponents", 4 * self.digits))
        )
        ops = [op for column in (0, 1) for op in self._column(column, after, 4 * i + 2 * column)]
        places = [f"{name}{row}" for name in ("high", "low")[: self.digits] for row in (0, 1)]
        for number, place in enumerate(places):
            text = f"vldb{access(f'x{{{place}}}', 'p0', rows[number])}"
            ops.append(named_op(text, "rows", f"rows {number}"))
        for number, (place, half) in enumerate((place, half) for place in places for half in "lh"):
            text = f"lda{access(f'e{half}{{{place}}}', 'p4', words[number])}"
            ops.append(named_op(text, "rows", f"words {number}"))
        for one, other in (("high", "high"), ("high", "low"), ("low", "high"))[: 2 * self.digits - 1]:
            for lane in range(4):
                row, column = divmod(lane, 2)
                factors = f"ex{{{one}{row}}}, ex{{{other}of{column}}}"
                ops.append(named_op(f"vmac.f dm{lane}, dm{lane}, {factors}, {_CONF}", key=f"{one} {other} {lane}"))
        return ops

    def _column(self, column: int, after: dict[str, list[str]], first: int) -> Ops:
        """The digits of a tile of bfloat16."""
        made = "raw" if self.turned else "given"
        for h in (0, 1):
            text = f"vldb{access(f'x{{{made}{column}{h}}}', 'p1', after['columns'][first + h])}"
            yield named_op(text, "columns", f"columns {2 * column + h}")
        for h in range(2 * self.turned):
            text = f"vshuffle x{{given{column}{h}}}, x{{raw{column}0}}, x{{raw{column}1}}, {_TURN[h]}"
            yield named_op(text, key=f"turn {2 * column + h}")
        for way in ("whole", "rest")[: self.digits]:
            for h in (0, 1):
                text = f"vconv.fp32.bf16 cm{'lh'[h]}{{{way}{column}}}, x{{given{column}{h}}}"
                yield named_op(text, key=f"{way} {column} {h}")
            if way == "whole":
                yield _digit(f"highof{column}", f"whole{column}")
        if self.digits == 1:
            return
        factors = f"ex{{highof{column}}}, {IDENTITY}, {_CONF}"
        yield named_op(f"vmac.f dm{{less{column}}}, dm{{rest{column}}}, {factors}", key=f"less {column}")
        yield _digit(f"lowof{column}", f"less{column}")


def _renamed(op: DataflowOp, half: int) -> DataflowOp:
    """An op of one of two tiles, with values of its own."""
    return named_op(sub(r"\{(\w+)\}", rf"{{\1of{half}}}", op.texts[0]), op.bank, f"{op.key} {half}")


def _digit(name: str, source: str) -> DataflowOp:
    return named_op(f"vconv.bfp16ebs8.fp32 ex{{{name}}}, dm{{{source}}}", key=name)


@dataclass(frozen=True)
class _Cycles:
    """A step's cycles, which slots leave no choice: of products of high digits, high and low, low and high for each
    lane, of loads of rows, their exponents, columns, and of turning these.

    The last accumulator holds five values in turn for each column, so that two of these find room in 14 cycles if one
    is two cycles behind the other. Products take what is left of their slot, each lane's 3 cycles apart. Blocks are
    `apart` cycles apart: in fewer there is no room for 16 stores of sums and as many loads.
    """

    tile: int
    apart: int
    products: tuple[tuple[int, ...], ...]
    rows: tuple[int, ...]
    words: tuple[int, ...]
    columns: tuple[int, ...]
    turns: tuple[int, ...] = ()

    def of(self, step: list[DataflowOp]) -> dict[str, int]:
        """By the keys of a step's ops, of two tiles."""
        found = {f"{key} {half}": at + half * self.tile for key, at in self._of_tile().items() for half in (0, 1)}
        assert found.keys() == {op.key for op in step}
        return found

    def _of_tile(self) -> dict[str, int]:
        found = {}
        for column in (0, 1):
            at = 2 * column
            found |= {f"highof{column}": at + 3, f"less {column}": at + 7, f"lowof{column}": at + 13}
            found |= {
                f"{way} {column} {h}": at + first + h for way, first in (("whole", 0), ("rest", 7)) for h in (0, 1)
            }
        for kind, cycles in zip(("high high", "high low", "low high"), self.products, strict=True):
            found |= {f"{kind} {lane}": at for lane, at in enumerate(cycles)}
        loads = (("rows", self.rows), ("words", self.words), ("columns", self.columns), ("turn", self.turns))
        for kind, cycles in loads:
            found |= {f"{kind} {i}": at for i, at in enumerate(cycles)}
        return found


_STRAIGHT = _Cycles(
    14, 28, ((13, 14, 15, 16), (17, 19, 18, 20), (22, 24, 25, 26)), (3, 7, 14, 16), (4, 5, 6, 8, 9, 11, 13, 15),
    (-8, -6, -5, -4),
)  # fmt: skip
_TURNED = _Cycles(
    15, 20, ((13, 15, 14, 16), (17, 19, 18, 20), (21, 25, 23, 26)), (2, 6, 12, 15), (3, 4, 5, 7, 11, 13, 14, 16),
    (-14, -12, -11, -10), (-3, -4, -2, -1),
)  # fmt: skip


def access(register: str, pointer: str, after: str) -> str:
    """What follows the mnemonic of a load or store: dimensions, the register, and the address with its step."""
    dimensions = ".3d" if after.endswith("_3d") else ".2d" if after.startswith("d") else ""
    return f"{dimensions} {register}, [{pointer}], {after}"
