"""C += A B for integers: kernels `mm_*` of one core tile, by blocks of 2 x 2 micro-tiles.

Layouts and rounding are those of the C++ kernels of the same names (kernels/mm_*.cc). A block keeps its sums in
accumulators over all of k: they come from memory before, and go back after. Each type brings its operands into x
registers in its own way; what is multiplied is int8 by int8 always.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bdforge.codegen.errors import CodegenError
from bdforge.codegen.kernels.function import Function, Options
from bdforge.codegen.kernels.vectors import VECTORS, Vectors

_DEPTH = 8  # of a micro-tile
_COLUMNS = 8
_SIGNED = 0x308  # 8 x 8 x 8 (AIE2: 4 x 8 x 8), both operands signed
_TRANSPOSE = 35  # VSHUFFLE mode T8_8x8
_UNROLLED = 16  # steps of k in a block; more go round in a loop
_A, _B, _C, _C_BELOW = ("p0", "p1"), ("p2", "p3"), "p4", "p5"
_A_ROWS, _B_BYTES, _B_FIRST = ("r2", "r3"), "r4", "r8"
"""Registers that keep where rows of A, packed bytes of B and its first column begin."""
_SIZES = {"i8": 1, "i16": 2, "i32": 4}
_FIELDS = 4  # ternary weights in a byte


@dataclass(frozen=True, slots=True)
class _Tile:
    """A kernel's tile and types: m is the rows of a call.

    C column by column is the product of what is turned, in the other order: `swapped`. `turns_a` and `turns_b` tell
    whether micro-tiles lie otherwise than they are multiplied.
    """

    m: int
    k: int
    n: int
    rho: int
    weights: str
    c_bytes: int
    turns_a: bool
    turns_b: bool
    swapped: bool
    shift: int
    rounding: int
    vectors: Vectors

    @property
    def steps(self) -> int:
        """Micro-tiles along k."""
        return self.k // _DEPTH

    @property
    def a_bytes(self) -> int:
        """Of a micro-tile of A."""
        return self.vectors.rows * _DEPTH

    @property
    def b_bytes(self) -> int:
        """Of a micro-tile of B; ternary ones come four in one."""
        return _DEPTH * _COLUMNS // (2 if self.weights == "i4" else 1)

    @property
    def c_tile_bytes(self) -> int:
        """Of a micro-tile of C."""
        return self.vectors.rows * _COLUMNS * self.c_bytes


def multiply(name: str, generation: str, options: Options) -> Callable[[], str]:
    """What writes the kernel's assembly; CodegenError for types or options without an assembled kernel."""
    return partial(_written, name, generation, _tile(name, generation, options))


def _written(name: str, generation: str, tile: "_Tile") -> str:
    f = Function(name, generation, _about(name, tile))
    _begin(f, tile)
    rows, odd = divmod(tile.m // tile.vectors.rows, 2)
    f.loop("r5", rows, lambda: _row_of_blocks(f, tile, 2), "rows")
    if odd:
        _row_of_blocks(f, tile, 1)
    return f.text()


def _tile(name: str, generation: str, options: Options) -> _Tile:
    _, a, weights, c = name.split("_")
    vectors = VECTORS[generation]
    if a != "i8" or weights not in ("i8", "i4", "i2") or c not in _SIZES or (generation == "aie2" and weights != "i8"):
        raise CodegenError(f"{name} is not assembled for {generation}: A is int8, B int8, on AIE2P also int4 and int2")
    for turned in "AC" if generation == "aie2" else "":
        if options.has(f"{turned}_TRANSPOSED"):
            raise CodegenError(f"{name} is not assembled with transposed micro-tiles of {turned}")
    rho = options.number("DIM_RHO", 1)
    m, k, n = options.number("DIM_M") // rho, options.number("DIM_K"), options.number("DIM_N")
    columns = _COLUMNS * (_FIELDS if weights == "i2" else 1)
    if m % vectors.rows or k % _DEPTH or n % columns:
        least = f"{vectors.rows}, {_DEPTH}, {columns}"
        raise CodegenError(f"{name}: m/rho, k, n = {m}, {k}, {n} are no multiples of {least}")
    swapped = options.has("C_TRANSPOSED")
    return _Tile(
        m, k, n, rho, weights, _SIZES[c], options.has("A_TRANSPOSED") != swapped,
        options.has("B_TRANSPOSED") != swapped, swapped, options.number("SHIFT", 0), options.rounding, vectors,
    )  # fmt: skip


def _about(name: str, tile: _Tile) -> str:
    return (
        f"{name}: C += A B, {tile.m} x {tile.k} x {tile.n} a call, 2 x 2 micro-tiles of {tile.vectors.rows} x 8 x 8.\n"
        f"Operands as in kernels/{name}.cc: p0 = A, p1 = B, p2 = C{', r0 = part' if tile.rho > 1 else ''}."
    )


def _begin(f: Function, tile: _Tile) -> None:
    """Constants, and pointers: p0, p1 rows of A, p2, p3 columns of B, p4, p5 rows of C."""
    row = tile.steps * tile.a_bytes
    f.add("mov p4, p2", "C")
    if tile.rho > 1:
        f.set("r1", tile.m * tile.n * tile.c_bytes)
        f.add("mul r0, r0, r1", "rows of this part")
        f.add("mov m0, r0")
        f.add("padda [p4], m0")
    f.add("mov p2, p1", "B")
    f.set("r0", _SIGNED, "8 x 8 products, both signed")
    f.set("m0", row, "a row of A")
    f.set("m2", tile.steps * tile.b_bytes, "a column of B")
    f.set("m3", tile.n // _COLUMNS * tile.c_tile_bytes, "a row of C")
    f.set("m4", 2 * tile.c_tile_bytes)
    f.add(f"mov {_B_FIRST}, p2", "the first column of B")
    if tile.turns_a or tile.turns_b:
        f.set("r1", _TRANSPOSE)
    if tile.weights == "i4":
        f.control("crUnpackSize", 0, "4 bits")
    if tile.c_bytes < 4:
        _narrow(f, tile)
    if tile.vectors.generation == "aie2":
        for number in range(6):  # upper halves, which a product does not look at, must hold something
            f.add(f"vbcst.32 x{number}, r0")
    f.add("mov p1, p0")
    f.add("padda [p1], m0", "the second row of A")


def _narrow(f: Function, tile: _Tile) -> None:
    f.set("r14", tile.shift, "SHIFT")
    f.add("mov s0, r14")
    f.control("crRnd", tile.rounding, "rounding")
    f.control("crSat", 1, "saturate")
    if tile.vectors.generation == "aie2p":
        f.control("crSRSMode", 0, "lanes of 32 bits")
        f.control("crUPSMode", 0)


def _row_of_blocks(f: Function, tile: _Tile, rows: int) -> None:
    """Blocks along a row of C, then on to the next one or two."""
    f.add("mov p5, p4")
    f.add("padda [p5], m3", "the row of C below")
    f.add("mov p6, p4")
    for kept, pointer in zip(_A_ROWS, _A[:rows], strict=False):
        f.add(f"mov {kept}, {pointer}", "rows of A, for each column")
    if tile.weights == "i2":
        f.loop("r6", tile.n // _COLUMNS // _FIELDS, lambda: _fields(f, tile, rows), f"columns_of_{rows}")
    else:
        pairs, odd = divmod(tile.n // _COLUMNS, 2)
        f.loop("r6", pairs, lambda: _columns(f, tile, rows, 2), f"columns_of_{rows}")
        if odd:
            _columns(f, tile, rows, 1)
    for _ in range(rows):
        f.add("padda [p0], m0", "next rows of A")
        f.add("padda [p1], m0")
        f.add("padda [p6], m3", "and C")
    f.add("mov p4, p6")
    f.add(f"mov p2, {_B_FIRST}")


def _columns(f: Function, tile: _Tile, rows: int, columns: int) -> None:
    """A block, whose B lies in a column each."""
    if columns == 2:
        f.add("mov p3, p2")
        f.add("padda [p3], m2", "the next column of B")
    _block(f, tile, rows, [None] * columns)
    if columns == 2:
        f.add("padda [p2], m2")


def _fields(f: Function, tile: _Tile, rows: int) -> None:
    """Two blocks of the same bytes of B: fields 0 and 1, then 2 and 3."""
    f.add(f"mov {_B_BYTES}, p2")
    for field in (0, 2):
        for i in range(2):
            shift = 2 * (field + i)
            f.set(f"r{10 + 2 * i}", 3 << shift)
            f.set(f"r{11 + 2 * i}", 1 << shift)
            f.add(f"vbcst.8 x{8 + 2 * i}, r{10 + 2 * i}", f"mask of field {field + i}")
            f.add(f"vbcst.8 x{9 + 2 * i}, r{11 + 2 * i}", "its 0")
        _block(f, tile, rows, [field, field + 1])
        if field == 0:
            f.add(f"mov p2, {_B_BYTES}", "the same bytes again")


def _block(f: Function, tile: _Tile, rows: int, fields: list[int | None]) -> None:
    """Sums from memory, all steps of k, and back."""
    places = [((_C, _C_BELOW)[i], j * tile.c_tile_bytes) for i in range(rows) for j in range(len(fields))]
    for number, place in enumerate(places):
        tile.vectors.load_sums(f, number, place, tile.c_bytes, f"c{number}")
    rounds, rest = divmod(tile.steps, _UNROLLED)
    if rounds == 1 and tile.steps < 2 * _UNROLLED:
        rounds, rest = 0, tile.steps
    f.loop("r7", rounds, lambda: _steps(f, tile, rows, fields, _UNROLLED), "steps")
    _steps(f, tile, rows, fields, rest)
    for number, place in enumerate(places):
        tile.vectors.store_sums(f, number, place, tile.c_bytes, f"c{number}")
    for pointer in (_C, _C_BELOW)[:rows]:
        f.add(f"padda [{pointer}], m4")
    for kept, pointer in zip(_A_ROWS, _A[:rows], strict=False):
        f.add(f"mov {pointer}, {kept}")


def _steps(f: Function, tile: _Tile, rows: int, fields: list[int | None], count: int) -> None:
    for step in range(count):
        a = [_load_a(f, tile, row, step) for row in range(rows)]
        packed = fields[0] is not None
        b = _ternary(f, tile, step) if packed else [_load_b(f, tile, j, step) for j in range(len(fields))]
        for i, x in enumerate(a):
            for j, y in enumerate(b):
                sums = tile.vectors.sums(i * len(b) + j)
                left, right = (y, x) if tile.swapped else (x, y)
                f.add(f"vmac {sums}, {sums}, {left}, {right}, r0", f"step {step}")


def _load_a(f: Function, tile: _Tile, row: int, step: int) -> str:
    copies = 2 if tile.weights == "i2" else 3
    number = copies * row + step % copies
    tile.vectors.load_tile(f, "a", number, _A[row], tile.a_bytes, "a")
    if tile.turns_a:
        f.add(f"vshuffle x{number}, x{number}, x{number}, r1")
    return f"x{number}"


def _load_b(f: Function, tile: _Tile, column: int, step: int) -> str:
    number = 6 + 3 * column + step % 3
    if tile.weights == "i4":
        f.add(f"vldb.unpack x{number}, [{_B[column]}], #{tile.b_bytes}, unpackSign1", "", "b")
    else:
        tile.vectors.load_tile(f, "b", number, _B[column], tile.b_bytes, "b")
    if tile.turns_b:
        f.add(f"vshuffle x{number}, x{number}, x{number}, r1")
    return f"x{number}"


def _ternary(f: Function, tile: _Tile, step: int) -> list[str]:
    """Two fields of the same bytes as 4^j w: the code is masked in place, and its 0 taken off."""
    packed = f"x{4 + step % 2}"
    f.add(f"vldb {packed}, [{_B[0]}], #{tile.b_bytes}", "", "b")
    if tile.turns_b:
        f.add(f"vshuffle {packed}, {packed}, {packed}, r1")
    for i in range(2):
        f.add(f"vband x{6 + i}, {packed}, x{8 + 2 * i}")
        f.add(f"vsub.8 x{6 + i}, x{6 + i}, x{9 + 2 * i}")
    return ["x6", "x7"]
