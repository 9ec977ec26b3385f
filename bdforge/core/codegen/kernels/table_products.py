"""Products of int8 by ternary weights by tables of sums on AIE2P, as T-MAC has them on CPUs: `lut_i8_i2_i32`.

C += A B in int32. Three weights of a column make a code of 27. Of three columns of A, 32 rows at a time, the sums of
all codes are stored as a table, and a column of C adds what its code names instead of multiplying. AIE2P has no shuffle
whose lanes data choose, and its gathers bring four elements in a cycle: vectors are looked up, a code's for all rows.

p0 = A, int8: for each chunk of 24 columns two halves of 32 rows, in it 8 groups of 3 columns; at 4 r + d in half h
stands row 8 r + 4 h + d. p1 = B, bytes: for each chunk and each column of C 8 codes, of group g and weights w0 to w2
32 g + (w0 + 1) + 3 (w1 + 1) + 9 (w2 + 1). p2 = C, column by column. p3 = tables, 32 KiB, each half in a bank of its own
in the best case. All at multiples of 64 bytes. Nothing overflows: sums of 12 products are added as int16.
"""

from collections.abc import Generator, Iterator
from functools import partial

from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels.kernel_options import Maker, Options
from bdforge.core.codegen.pipeline.dataflow import DataflowOp, named_op
from bdforge.core.codegen.pipeline.pipelined_function import (
    FunctionPart,
    LoopOfParts,
    function,
    repeated,
    set_control,
    set_register,
)
from bdforge.core.codegen.pipeline.product import AIE2P

NAME = "lut_i8_i2_i32"
_ROWS, _GROUPS, _DEPTH = 64, 8, 3
"""Rows of C, tables of a half, and weights of a code: with 2 a load would bring less, with 4 three times as much be
stored."""
_ENTRIES, _SPACED = 27, 32  # of a table, and so far apart, so that a byte names an entry of any of a half's tables
_VECTOR = 64
_HALF_BYTES = _GROUPS * _SPACED * _VECTOR
_WEIGHTS = (-1, 0, 1)
_ADDED = 4  # vectors that are added as int16 before a product widens their sum
_CONF = 0x310  # 8 x 4 of int16 by 4 x 8 of int8, both signed
_CODES = tuple(f"r{8 + g}" for g in range(_GROUPS))
_SHIFT, _MODE, _CHUNKS = "r4", "r6", "r3"
_ZERO = "x11"
_ONES = ("x10", "x11")
_BY_UNIT_A = 2  # of a column's 16 vectors: with its codes and C unit A has as many loads as unit B


def table_product(name: str, generation: str, options: Options) -> Maker:
    """What writes the kernel; CodegenError for a generation or a tile without one."""
    m, k, n = (options.number(f"DIM_{axis}") for axis in "MKN")
    if generation != "aie2p":
        raise CodegenError(f"{name} is not assembled for {generation}, only for aie2p")
    if m != _ROWS or k < 1 or k % (_GROUPS * _DEPTH) or n < 1:
        raise CodegenError(f"{name}: m, k, n = {m}, {k}, {n}: m is to be {_ROWS}, k a multiple of {_GROUPS * _DEPTH}")
    return partial(_written, name, k // (_GROUPS * _DEPTH), n, options.hardware_loops)


def _written(name: str, chunks: int, columns: int, hardware: bool) -> AssemblyKernel:
    both = [_tables(), _columns(columns)]
    before = [LoopOfParts(both, chunks - 1, _CHUNKS)] if chunks > 1 else []
    about = f"{name}: {chunks} chunks of {_GROUPS} tables, {columns} columns; p0 = A, p1 = B, p2 = C, p3 = tables"
    return function(name, "aie2p", [*before, *both], f"{about}: {{cycles}} cycles (exact).", hardware=hardware)


def _tables() -> FunctionPart:
    """Two tables are a block, since A's vectors live longer than the 27 stores of one, which are the bound."""
    setup = [
        set_register("r14", 0), AssemblyOp(f"vbcst.32 {_ZERO}, r14"), AssemblyOp("mov p4, p3"),
        *set_control("crUnpackSize", 1, "8 bits"),
    ]  # fmt: skip
    return repeated("aie2p", setup, [*_table("even"), *_table("odd")], _GROUPS, {"x": range(11)})


def _table(name: str) -> Iterator[DataflowOp]:
    """Sums in the order of codes."""
    vectors = [f"{name}{i}" for i in range(_DEPTH)]
    for vector in vectors:
        yield named_op(f"vldb.unpack x{{{vector}}}, [p0], #{_VECTOR // 2}, unpackSign1", "A", vector)
    entry = 0
    for w2 in _WEIGHTS:
        third = yield from _sum(_ZERO, w2, vectors[2], f"{name}third{entry}")
        for w1 in _WEIGHTS:
            second = yield from _sum(third, w1, vectors[1], f"{name}second{entry}")
            for w0 in _WEIGHTS:
                first = yield from _sum(second, w0, vectors[0], f"{name}first{entry}")
                entry += 1
                step = _VECTOR * (1 if entry < _ENTRIES else 1 + _SPACED - _ENTRIES)
                yield named_op(f"vst {first}, [p4], #{step}", "T", f"store {name}{entry}")


def _sum(value: str, weight: int, vector: str, name: str) -> Generator[DataflowOp, None, str]:
    """The register of `value` and a vector times its weight; one of this name where none has it."""
    if not weight:
        return value
    if weight > 0 and value == _ZERO:
        return f"x{{{vector}}}"
    yield named_op(f"{'vadd' if weight > 0 else 'vsub'}.16 x{{{name}}}, {value}, x{{{vector}}}", key=name)
    return f"x{{{name}}}"


def _columns(columns: int) -> FunctionPart:
    """Loads are the bound: 8 codes, 16 vectors and 4 of C take two units 14 cycles."""
    setup = [
        AssemblyOp("mov p4, p2"), AssemblyOp("mov p5, p2"), AssemblyOp("mov p6, p3"), AssemblyOp("mov p7, p3"),
        set_register("m0", _HALF_BYTES), AssemblyOp("padda [p7], m0"),
        set_register(_SHIFT, _VECTOR.bit_length() - 1), set_register(_MODE, _CONF), *_ones(),
    ]  # fmt: skip
    return repeated("aie2p", setup, list(_column()), columns, {"x": range(10), "dm": range(5)})


def _ones() -> Iterator[AssemblyOp]:
    """Two of 4 x 8: with ones where row and column are equal, and the same four columns behind."""
    yield from (set_register("r14", 0), AssemblyOp(f"vbcst.32 {_ONES[0]}, r14"))
    for row in reversed(range(4)):
        yield set_register("r15", 1 << 8 * row)
        yield from (AssemblyOp(f"vpush.lo.32 {_ONES[0]}, {word}, {_ONES[0]}") for word in ("r14", "r15"))
    yield AssemblyOp(f"vpush.lo.32 {_ONES[1]}, r14, {_ONES[0]}")


def _column() -> Iterator[DataflowOp]:
    """What C was comes to the sums at the end, so that no accumulator lives longer than a column takes."""
    for g, code in enumerate(_CODES):
        yield from map(named_op, (f"lda.u8 {code}, [p1], #1", f"lshl {code}, {code}, {_SHIFT}", f"movs dj{g}, {code}"))
        for half, (pointer, bank) in enumerate((("p6", "low"), ("p7", "high"))):
            unit = "a" if half * _GROUPS + g < _BY_UNIT_A else "b"
            yield named_op(f"vld{unit} x{{v{half}{g}}}, [{pointer}, dj{g}]", bank)
            yield from _added(half, g)
    yield from (named_op(f"vlda {part}{{before}}, [p4], #{_VECTOR}", "C") for part in AIE2P.parts)
    yield named_op(f"vadd dm{{c}}, dm{{sum}}, dm{{before}}, {_MODE}")
    yield from (named_op(f"vst {part}{{c}}, [p5], #{_VECTOR}", "C") for part in AIE2P.parts)


def _added(half: int, g: int) -> Iterator[DataflowOp]:
    """A vector to the sum of int16, and that to the sum of int32 where it is whole."""
    at = g % _ADDED
    if at:
        yield named_op(f"vadd.16 x{{s{half}{g}}}, x{{{'s' if at > 1 else 'v'}{half}{g - 1}}}, x{{v{half}{g}}}")
    if at == _ADDED - 1:
        product = "vmac dm{sum}, dm{sum}" if half or g >= _ADDED else "vmul dm{sum}"
        yield named_op(f"{product}, x{{s{half}{g}}}, {_ONES[half]}, {_MODE}")
