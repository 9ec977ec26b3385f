"""int32 sums as float32 on AIE2P, and rounded to bfloat16 without scales: `finish_i32_bf16` of sums as they are.

The core has no conversion of integers. Sums are taken apart into digits of 7 bits, which products of block floats with
the identity add up from the uppermost on: exactly below 2^24, rounded once above. Only the first digit has a sign, so
no sum of some digits is zero but of zeros, whose sign is known.

Digits are cut towards minus infinity, results rounded to even, and a core has one rounding mode at a time: it changes
twice for each micro-tile, between 5 cuts and 2 stores, which leave no cycle of their slot. A sum takes longer than the
time until the second stores after its cuts, so the first two digits are cut one window ahead of the others.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels.kernel_options import ROUNDINGS, Maker, Options, to_part
from bdforge.core.codegen.pipeline.dataflow import DataflowOp
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, function, repeated, set_control, set_register
from bdforge.core.codegen.pipeline.product import AIE2P, FIELDS

SIDE = 8  # of a micro-tile
PARTS = AIE2P.parts
SHIFTS = (28, 21, 14, 7, 0)
"""Of a sum's digits."""
MASK, BLOCKS, IDENTITIES = "x5", "r3", 8
"""Registers: ones where a digit has bits, the conf of 8 x 8 x 8 of block floats, the first of identities by field."""
BYTES = 0x01010101
_UNIT, _DIGIT_UNIT = 127, 133  # exponents of blocks whose mantissas 64, or 1, are worth 1
_AHEAD, _LATER = (0, 1), (2, 3, 4)  # digits by the window in which they are cut
_OTHERS = {0: 6, 1: 7}  # registers of digits that are cut ahead, of micro-tiles with odd numbers
_CHAIN = 3  # cycles from an addition to the next
_KEPT = "el6"  # where r16 of the caller waits, which comparisons write
_MOST = 1 << 19  # steps of an address that are never taken
_C = "C"  # the bank of it


def cut(i: int, sums: str, into: int, by_way_of: int) -> Iterator[str]:
    """Digit i of the sums in an accumulator, into a vector register `by_way_of` one."""
    if i >= 3:
        yield f"mov s3, r{8 + i}"
    yield f"vsrs.4x x{by_way_of}, dm{sums}, s{min(i, 3)}, srsSign1"
    if i:
        yield f"vband x{into}, x{by_way_of}, {MASK}"


def digits_setup(fields: int) -> Iterator[AssemblyOp]:
    """What `cut` and products with identities need, but the rounding mode; sums of field j are divided by 4^j."""
    for register in ("crSat", "crSRSMode", "crUPSMode"):
        yield from set_control(register, 0)
    yield AssemblyOp("movx srsSign1, #1", "sign")
    yield set_register(BLOCKS, 0x30C)
    yield from (set_register("r10", 0x7F * BYTES), AssemblyOp(f"vbcst.32 {MASK}, r10", "7 bits"))
    for i, shift in enumerate(SHIFTS[:3]):
        yield from (set_register("r10", shift), AssemblyOp(f"mov s{i}, r10"))
    yield from (set_register(f"r{11 + i}", shift) for i, shift in enumerate(SHIFTS[3:]))
    yield from _exponents(range(len(SHIFTS)), _DIGIT_UNIT + SHIFTS[0], SHIFTS[0] - SHIFTS[1])
    for register, value in {"r10": 0, "r13": 0x40 * BYTES, "r14": 0x08040201, "r15": 0x80402010}.items():
        yield set_register(register, value)
    yield from (AssemblyOp("vbcst.32 x0, r10"), AssemblyOp("vbcst.32 x1, r13"))
    yield AssemblyOp(f"vsel.8 x{IDENTITIES}, x0, x1, l7", "the identity, by bytes")
    yield from (AssemblyOp(f"vmov x{IDENTITIES + field}, x{IDENTITIES}") for field in range(1, fields))
    yield from _exponents(range(IDENTITIES, IDENTITIES + fields), _UNIT, 2)


def _exponents(registers: Iterable[int], first: int, step: int) -> Iterator[AssemblyOp]:
    """The same exponent for all blocks of a register, and less by a step for the next."""
    yield from (set_register("r10", first * BYTES), set_register("r13", step * BYTES))
    for register in registers:
        yield from (AssemblyOp(f"mov e{half}{register}, r10") for half in "lh")
        yield AssemblyOp("sub r10, r10, r13")


@dataclass(frozen=True, slots=True)
class Rounded:
    """A pass over micro-tiles of sums in so many fields."""

    tiles: int
    fields: int
    parts: int
    relu: bool
    hardware: bool


def rounded(name: str, generation: str, options: Options) -> Maker:
    """What writes the kernel for sums as they are; CodegenError for a generation or a tile without an assembled one."""
    return partial(_written, name, rounded_pass(name, generation, options))


def rounded_pass(name: str, generation: str, options: Options) -> Rounded:
    """The pass that a kernel's options mean; CodegenError as of `rounded`."""
    rows, columns, fields = whole_tiles(name, generation, options)
    if options.has("ARRAY_ROWS"):
        raise CodegenError(f"{name}: ARRAY_ROWS is for scales and biases; give SCALE or BIAS too, or leave it out")
    tiles, relu = rows * columns // SIDE**2, options.has("RELU")
    return Rounded(tiles, fields, options.parts, relu, options.hardware_loops)


def whole_tiles(name: str, generation: str, options: Options) -> tuple[int, int, int]:
    """Rows of a call, columns and fields of a tile; CodegenError where they are no whole micro-tiles of AIE2P."""
    if generation != "aie2p":
        raise CodegenError(f"{name} is not assembled for {generation}, only for aie2p")
    fields = FIELDS if options.has("FIELD_SCALED") else 1
    rows, columns = options.number("DIM_M") // options.parts, options.number("DIM_N")
    if rows % SIDE or columns % (SIDE * fields):
        raise CodegenError(f"{name}: rows of a pass, n = {rows}, {columns} are no multiples of {SIDE}, {SIDE * fields}")
    return rows, columns, fields


def _written(name: str, wanted: Rounded) -> AssemblyKernel:
    parts = rounded_parts(wanted)
    if wanted.relu:
        parts += [_rectified(wanted), repeated("aie2p", [], [DataflowOp("restore", (f"mov r16, {_KEPT}",))], 1)]
    about = f"{name}: {wanted.tiles} micro-tiles of int32 at p0 become bfloat16: {{cycles}} cycles (exact)."
    return function(name, "aie2p", parts, about, hardware=wanted.hardware)


def rounded_parts(wanted: Rounded) -> list[FunctionPart]:
    """The pass, as a function with arguments p0 = C and, of several parts, r0 = part; p0 points at the results then."""
    block = max(2, wanted.fields)
    blocks, rest = divmod(wanted.tiles, block)
    parts = [_windows(wanted, tiles, times) for tiles, times in ((block, blocks), (rest, 1)) if tiles and times]
    parts[0] = replace(parts[0], setup=list(_setup(wanted)))
    last = [op for tile in (wanted.tiles - 2, wanted.tiles - 1) for op in _stores(tile)]
    return [*parts, repeated("aie2p", _rounding("conv_even"), last, 1)]


def _setup(wanted: Rounded) -> Iterator[AssemblyOp]:
    loads, cuts = (_texts(_load(0)), _texts(_cuts(0, _AHEAD)))
    yield from to_part(4 * SIDE**2 * wanted.tiles, wanted.parts)
    yield AssemblyOp("mov p1, p0")
    # What comes last is loaded and cut as well, but added to nothing: it is what there was in the beginning.
    count = len(PARTS) * wanted.tiles
    yield from (*_walk(1, 64 - 64 * count, count - 1, 0), *loads)
    yield from (AssemblyOp("mov p2, p0", "results"), *digits_setup(wanted.fields), *_rounding("floor"))
    yield from (AssemblyOp(f"vmov ex{other}, ex{i}") for i, other in _OTHERS.items())
    yield from (AssemblyOp(f"vmul.f dm{3 + odd}, ex0, ex{IDENTITIES}, {BLOCKS}", "no results yet") for odd in (0, 1))
    # As many zeros are stored before the first results, at the same place.
    yield from (*_walk(0, -3 * 64, _MOST, _MOST - 3), *cuts)


def _texts(ops: Iterable[DataflowOp]) -> list[AssemblyOp]:
    return [AssemblyOp(op.texts[0]) for op in ops]


def _walk(unit: int, back: int, count: int, begun: int) -> Iterator[AssemblyOp]:
    """Steps of an address by a vector, one of them back after `count`, of which so many count as taken."""
    steps = {"m": back, "dj": 64, "dn": count, "dc": begun}
    return (set_register(f"{register}{unit}", value) for register, value in steps.items())


def _rounding(mode: str) -> list[AssemblyOp]:
    return [AssemblyOp(f"movx crRnd, #{ROUNDINGS[mode]}", "rounding")]


def _windows(wanted: Rounded, tiles: int, times: int) -> FunctionPart:
    """Windows of micro-tiles, one after the other: what cuts, stores and adds has its cycle."""
    ops = [op for tile in range(tiles) for op in _window(tile, IDENTITIES + tile % wanted.fields)]
    fixed: dict[str, int] = {}
    for tile in range(tiles):
        start = tile * (len(SHIFTS) + 2)
        fixed |= {f"floor {tile}": start - 1, f"even {tile}": start + 4}
        turns = [(tile, i) for i in _LATER] + [(tile + 1, i) for i in _AHEAD]
        fixed |= {f"cut {of} {i}": start + at for at, (of, i) in enumerate(turns)}
        fixed |= {f"store {tile - 2} {half}": start + 5 + i for i, half in enumerate("lh")}
        fixed |= {f"add {tile} {i}": start + 1 + _CHAIN * i for i in range(len(SHIFTS))}
    return repeated("aie2p", [], ops, times, fixed=fixed)


def _window(tile: int, identity: int) -> Iterator[DataflowOp]:
    """The digits of a micro-tile that are left, the first of the next, results of the second before, and the sum."""
    yield DataflowOp(f"floor {tile}", (_rounding("floor")[0].text,))
    yield from (*_cuts(tile, _LATER), *_load(tile + 1), *_cuts(tile + 1, _AHEAD))
    yield DataflowOp(f"even {tile}", (_rounding("conv_even")[0].text,))
    yield from _stores(tile - 2)
    for i in range(len(SHIFTS)):
        result = f"dm{3 + tile % 2}"
        start = f"vmac.f {result}, {result}" if i else f"vmul.f {result}"
        yield DataflowOp(f"add {tile} {i}", (f"{start}, ex{_digit(tile, i)}, ex{identity}, {BLOCKS}",))


def _digit(tile: int, i: int) -> int:
    return _OTHERS.get(i, i) if tile % 2 else i


def _load(tile: int) -> Iterator[DataflowOp]:
    for part in PARTS:
        yield DataflowOp(f"load {tile} {part}", (f"vlda.2d {part}{tile % 2}, [p1], d1",), bank=_C, late=True)


def _cuts(tile: int, digits: Sequence[int]) -> Iterator[DataflowOp]:
    for i in digits:
        into = _digit(tile, i)
        # The last digit is added so late that the next one is cut already, so it waits where the other second one was.
        for text in cut(i, f"{tile % 2}", into, _digit(tile + 1, 1) if i == len(SHIFTS) - 1 else into):
            word, _, _ = text.partition(" ")
            yield DataflowOp(f"{'cut' if word == 'vsrs.4x' else word} {tile} {i}", (text,))


def _stores(tile: int) -> Iterator[DataflowOp]:
    for half in "lh":
        text = f"vst.2d.conv.bf16.fp32 cm{half}{3 + tile % 2}, [p2], d0"
        yield DataflowOp(f"store {tile} {half}", (text,), bank=_C)


def _rectified(wanted: Rounded) -> FunctionPart:
    """Results below 0 become 0: bfloat16 is negative where its bits are."""
    setup = [
        AssemblyOp(f"mov {_KEPT}, r16", "kept for the caller"), AssemblyOp("mov p1, p0"), AssemblyOp("mov p2, p0"),
        set_register("r10", 0), AssemblyOp("vbcst.32 x7, r10"),
    ]  # fmt: skip
    ops = [
        DataflowOp("load", ("vlda x0, [p1], #64",), bank=_C),
        DataflowOp("most", ("vmax_lt.16 x1, r16, x0, x7, vaddSign1",)),
        DataflowOp("store", ("vst x1, [p2], #64",), bank=_C),
    ]
    return repeated("aie2p", setup, ops, 2 * wanted.tiles)
