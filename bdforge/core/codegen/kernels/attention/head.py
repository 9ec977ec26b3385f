"""What attention's functions on AIE2P know of an item: sizes, numbers, the state (`kernels/include/attention.h`)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels.kernel_options import Options
from bdforge.core.codegen.kernels.row_scalars import op, with_constant
from bdforge.core.codegen.pipeline.pipelined_function import set_register

TILE_FLOATS, VECTOR = 256, 64
"""Bytes of a tile of 8 x 8 in float32, and of a vector."""
BLOCKS, BLOCK, POSITION, QUERIES, KEYS, START, FRESH, HAS_MASK = range(0, 32, 4)
HAS_MOVED = 32
"""Bytes of the state's numbers."""
_HEADER, _ROW = 64, 32
LOG2_E = 1.4426950408889634
CONDITION = "r27"
"""What SEL looks at."""
Ops = Iterator[AssemblyOp]


@dataclass(frozen=True)
class Head:
    """Lines of queries and keys of a core's tile, dimensions, what scores are multiplied by, heads side by side; digits
    of each operand; ranges of a KV head's keys; and elements that stand before each pair of rows of given queries.
    """

    queries: int
    keys: int
    dim: int
    scale: float
    causal: bool
    window: int
    cap: float
    shares: tuple[int, int, int, int]
    heads: int = 1
    digits: int = 2
    splits: int = 1
    queries_from: int = 0

    @classmethod
    def of(cls, name: str, generation: str, options: Options) -> "Head":
        """From a kernel's options; CodegenError for those without an assembled kernel."""
        if generation != "aie2p":
            raise CodegenError(f"{name} is not assembled for {generation}, only for aie2p")
        queries, dim, keys = (options.number(size) for size in ("DIM_M", "DIM_K", "DIM_N"))
        if queries % 16 or dim % 16 or keys % 16 or min(queries, dim, keys) < 16:
            raise CodegenError(f"{name}: queries, dimensions, keys = {queries}, {dim}, {keys} are no multiples of 16")
        digits = options.number("DIGITS", 2)
        if digits not in (1, 2):
            raise CodegenError(f"{name}: DIGITS={digits} is not 1 or 2")
        group, kv_heads, rows, columns = (options.number(of, 1) for of in ("GROUP", "KV_HEADS", "ROWS", "COLUMNS"))
        cap, scale = (float(options.given.get(of, "0")) for of in ("SOFT_CAP", "SCORE_SCALE"))
        if not scale > 0:
            raise CodegenError(f"{name}: SCORE_SCALE={scale} is not above 0")
        causal, window = options.number("CAUSAL", 1) == 1, options.number("WINDOW", 0)
        heads = options.number("HEADS", 1)
        if not 1 <= heads <= queries or group % heads:
            raise CodegenError(f"{name}: HEADS={heads} are not 1 to {queries}, or no part of GROUP={group}")
        splits = options.number("KV_SPLITS", 1)
        if splits > 1 and columns > 1:
            raise CodegenError(f"{name}: KV_SPLITS={splits} have one item in common, COLUMNS={columns} must be 1")
        shares = group // heads, kv_heads, rows, columns
        before = options.number("QUERIES_FROM", 0)
        return cls(queries, keys, dim, scale, causal, window, cap, shares, heads, digits, splits, before)

    @property
    def item_queries(self) -> int:
        """Queries of a tile, each of `heads` lines."""
        return self.queries // self.heads

    def query_of(self, line: int) -> int:
        """Of a line; lines that are left are like those of the last query."""
        return min(line // self.heads, self.item_queries - 1)

    @property
    def row_tiles(self) -> int:
        return self.queries // 8

    @property
    def pairs(self) -> int:
        """Pairs of rows of tiles."""
        return self.queries // 16

    @property
    def key_tiles(self) -> int:
        return self.keys // 8

    @property
    def dim_tiles(self) -> int:
        return self.dim // 8

    @cached_property
    def _scale(self) -> tuple[int, float]:
        """K and c1 of c = c1 2^-K."""
        c, exponent = self.scale * LOG2_E, 0
        while c < 1:
            c, exponent = c * 2, exponent + 1
        while c >= 2:
            c, exponent = c / 2, exponent - 1
        return exponent, c

    @property
    def exponent(self) -> int:
        return self._scale[0]

    @property
    def multiplier(self) -> int:
        """c1 in 2^-15."""
        return min(int(self._scale[1] * 32768 + 0.5), 65535)

    @property
    def inverse(self) -> tuple[int, int]:
        """1 / c1 = high / 2^14 + low / 2^28."""
        whole = int((1 << 28) / self._scale[1])
        return whole >> 14, whole & 16383

    @property
    def magic(self) -> int:
        """Bits of 1.5 * 2^(15 + K)."""
        return (15 + self.exponent + 127) << 23 | 0x400000

    def state(self, part: str) -> int:
        """Where numbers of rows begin in the state: one word each of `power` and `offset`, eight of the others."""
        words = {"power": 0, "offset": 4, "begin": 8, "sums": 40, "next": 72, "shift": 104}
        return _HEADER + words[part] * self.queries


LOW_SUM, HIGH_SUM = (127 - 40) << 23, (127 + 80) << 23
"""Bits of 2^-40 and 2^80, between which sums are as they should be."""
MASKED = 0xF1800000
"""Bits of -2^100."""


def plain(text: str) -> AssemblyOp:
    return AssemblyOp(text)


def pointer(to: str, base: str, offset: int) -> Ops:
    """to = base + offset, by way of m7."""
    yield AssemblyOp(f"mov {to}, {base}")
    if offset:
        yield from (set_register("m7", offset), AssemblyOp(f"padda [{to}], m7"))


def of_pair(head: Head, pointers: Mapping[str, int]) -> Ops:
    """Pointers to the pair of rows of tiles number r0, each of which takes so many bytes; r8 is worked with."""
    if head.pairs > 1:
        for p, size in pointers.items():
            yield from (*with_constant("mul", "r8", "r0", size), AssemblyOp("mov m7, r8"))
            yield AssemblyOp(f"padda [{p}], m7")


def chosen(to: str, comparison: str, pair: tuple[str, str], then: str, other: str) -> Ops:
    """to = then where the comparison of a pair holds, other where not."""
    yield op(comparison, CONDITION, *pair)
    yield AssemblyOp(f"sel.nez {to}, {then}, {other}, {CONDITION}")


def least(to: str, a: str, b: str) -> Ops:
    """The smaller one of signed numbers."""
    yield from chosen(to, "lt", (a, b), a, b)


def most(to: str, a: str, b: str) -> Ops:
    """The larger one of signed numbers."""
    yield from chosen(to, "lt", (a, b), b, a)


def divided(to: str, x: str, divisor: int, spare: tuple[str, str]) -> Ops:
    """x // divisor of x from 0 to 2^26, by products with its inverse in 16 bits: from x / 1024, of what that leaves,
    and one more where that is left. `to`, x and `spare` are others."""
    if divisor & divisor - 1 == 0:
        yield from with_constant("lshl", to, x, 1 - divisor.bit_length())
        return
    bits = 15 + divisor.bit_length()
    inverse, (rest, part) = (1 << bits) // divisor, spare
    yield from with_constant("lshl", to, x, -10)
    yield from with_constant("mul", to, to, inverse)
    yield from with_constant("lshl", to, to, 10 - bits)
    for last in (False, True):
        yield from with_constant("mul", part, to, divisor)
        yield op("sub", rest, x, part)
        if last:
            yield from with_constant("ge", part, rest, divisor)
        else:
            yield from with_constant("mul", part, rest, inverse)
            yield from with_constant("lshl", part, part, -bits)
        yield op("add", to, to, part)
