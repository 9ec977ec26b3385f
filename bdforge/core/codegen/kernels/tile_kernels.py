"""Kernels that pass once over a tile: `zero_*`, `unscale_i32`, `finish_i32_i*`, `finish_f32_bf16`, `elementwise_i8`.

A pass is a block of instructions for a few vectors, which starts anew as soon as slots and the bank of C allow.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels.block_float_streams import BLOCK_TILE_BYTES, TILE
from bdforge.core.codegen.kernels.kernel_options import ROUNDINGS, SIZES, Maker, Options, to_part
from bdforge.core.codegen.pipeline.dataflow import DataflowOp
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, function, repeated, set_control, set_register
from bdforge.core.codegen.pipeline.product import FIELDS, FLOAT_VECTORS, VECTORS, Vectors

_GROUP = 4  # micro-tiles of a block, or vectors
_C = "C"  # the bank of it
_WIDE = {
    "aie2p": (("cml", "cmh"), "vlda.ups.2x {}, s0, {}, upsSign1", "vst.srs.2x {}, {}, {}, srsSign{}", (0, 1)),
    "aie2": (("bml", "bmh"), "vlda.ups.s64.s32 {}, s0, {}", "vst.srs.{3}32.s64 {0}, {1}, {2}", ("d", "s")),
}
"""Halves of accumulators as lanes of 64 bits, int32 into them and back, and words for unsigned and signed results."""


def zero(name: str, generation: str, options: Options) -> Maker:
    """What writes the kernel that clears a tile; CodegenError for elements that are no whole bytes."""
    code, access = name.partition("_")[2], VECTORS[generation].access
    if code == "bfp16" and generation == "aie2p":
        return partial(_cleared, name, generation, _block_bytes(name, options), options)
    if code not in SIZES:
        raise CodegenError(f"{name} is not assembled: elements are {', '.join(SIZES)}")
    size = options.number("DIM_M") // options.parts * options.number("DIM_N") * SIZES[code]
    if size % access:
        raise CodegenError(f"{name}: {size} bytes are no multiple of {access}")
    return partial(_cleared, name, generation, size, options)


def _block_bytes(name: str, options: Options) -> int:
    """Of a tile of block floats, or of a part, which begins at a whole vector."""
    elements, access = options.number("DIM_M") // options.parts * options.number("DIM_N"), VECTORS["aie2p"].access
    if elements % (TILE * TILE):
        raise CodegenError(f"{name}: {elements} elements are no multiple of {TILE * TILE}")
    size = elements // (TILE * TILE) * BLOCK_TILE_BYTES
    if options.parts > 1 and size % access:
        raise CodegenError(f"{name}: {size} bytes are no multiple of {access}")
    return size


def _cleared(name: str, generation: str, size: int, options: Options) -> AssemblyKernel:
    parts, hardware = options.parts, options.hardware_loops
    access, register = VECTORS[generation].access, "x0" if generation == "aie2p" else "wl0"
    setup = [*to_part(size, parts), set_register("r8", 0), AssemblyOp("vbcst.32 x0, r8")]
    stores = (f"vst {register}, [p0], #{access}", size // access), ("st r8, [p0], #4", size % access // 4)
    passes = [
        repeated(generation, [], [DataflowOp("store", (text,), bank=_C)], times) for text, times in stores if times
    ]  # fmt: skip
    passes[0] = replace(passes[0], setup=setup)
    about = f"{name}: {size} bytes at p0 become 0{', r0 = part' if parts > 1 else ''}"
    return function(name, generation, passes, f"{about}: {{cycles}} cycles (exact).", hardware=hardware)


@dataclass(frozen=True, slots=True)
class _Finish:
    """What is done to sums: `shifts` of column blocks in turn, results of `size` bytes, with `relu` none below 0.

    Floats are only rounded.
    """

    shifts: tuple[int, ...]
    size: int
    relu: bool
    rounding: int
    tiles: int
    parts: int
    vectors: Vectors
    hardware: bool

    @property
    def tile_bytes(self) -> int:
        """Of a micro-tile of sums."""
        return 4 * self.vectors.rows * self.vectors.columns

    @property
    def floats(self) -> bool:
        """Whether float32 becomes bfloat16."""
        return self.vectors is not VECTORS[self.vectors.generation]


def finish(name: str, generation: str, options: Options) -> Maker:
    """What writes a kernel that shifts, rounds, saturates, rectifies in place; CodegenError for options without one."""
    return partial(_finished, name, generation, _wanted(name, generation, options))


def _finished(name: str, generation: str, wanted: "_Finish") -> AssemblyKernel:
    setup = [
        *set_control("crRnd", wanted.rounding, "rounding"), *set_control("crSat", 1, "saturate"),
        set_register("r8", 0), AssemblyOp("mov s0, r8", "no shift up"),
        *to_part(wanted.tile_bytes * wanted.tiles, wanted.parts),
    ]  # fmt: skip
    if wanted.size == 4:
        parts = _pass(generation, wanted, wide=True)
    elif wanted.relu:  # an unsigned result of 8 bits would reach 255: what is below 0 goes before, in 32 bits
        setup.append(AssemblyOp("mov p2, p0", "the tile"))
        again = replace(wanted, shifts=(0,) * len(wanted.shifts))
        parts = [*_pass(generation, wanted, wide=True), *_pass(generation, again, wide=False, back=True)]
    else:
        parts = _pass(generation, wanted, wide=False)
    parts[0] = replace(parts[0], setup=[*setup, *parts[0].setup])
    shifts = ", ".join(map(str, wanted.shifts))
    done = "made bfloat16" if wanted.floats else f"shifted right by {shifts} in turn"
    about = f"{name}: {wanted.tiles} micro-tiles at p0, {done}: {{cycles}} cycles (exact)."
    return function(name, generation, parts, about, hardware=wanted.hardware)


def _pass(generation: str, wanted: "_Finish", wide: bool, back: bool = False) -> list[FunctionPart]:
    """Once over the tile at p0, or `back` to p2."""
    modes = ("crSRSMode", "crUPSMode") if generation == "aie2p" else ()
    setup = [
        *([AssemblyOp("mov p0, p2")] if back else []), AssemblyOp("mov p1, p2" if back else "mov p1, p0", "results"),
        *(op for register in modes for op in set_control(register, int(wide), "lanes of 64 bits" if wide else "")),
        *(set_register(f"r{10 + i}", shift) for i, shift in enumerate(wanted.shifts)),
    ]  # fmt: skip
    parts = _blocks(generation, partial(_wide if wide else _narrow, wanted), wanted.tiles)
    return [replace(parts[0], setup=setup), *parts[1:]]


def _wanted(name: str, generation: str, options: Options) -> _Finish:
    result, floats = name.rpartition("_")[2], name == "finish_f32_bf16"
    if not floats and (result not in ("i8", "i16", "i32") or name.startswith(("finish_f", "finish_b"))):
        known = "results of int8, int16 and int32, and of float32 as bfloat16"
        raise CodegenError(f"{name} is not assembled for {generation}: there are {known}")
    if told := [option for option in ("BIAS", "SCALE", *["RELU"] * floats) if options.has(option)]:
        raise CodegenError(f"{name} is not assembled with {told[0]}")
    unscale = name.startswith("unscale")
    shift = 0 if unscale else options.number("SHIFT", 0)
    fields = FIELDS if unscale or options.has("FIELD_SCALED") else 1
    parts = options.parts
    elements = options.number("DIM_M") // parts * options.number("DIM_N")
    if parts > 1 and result != "i32":
        raise CodegenError(f"{name} is not assembled with C_IN_PARTS")
    vectors = (FLOAT_VECTORS if floats else VECTORS)[generation]
    tile = vectors.rows * vectors.columns
    if elements % (tile * fields):
        raise CodegenError(f"{name}: {elements} elements are no multiple of {tile * fields}")
    rounding = ROUNDINGS["floor" if unscale else "conv_even"] if unscale or floats else options.rounding
    shifts = tuple(shift + 2 * field for field in range(fields))
    return _Finish(
        shifts, SIZES[result], options.has("RELU"), rounding, elements // tile, parts, vectors, options.hardware_loops
    )


def _shift(wanted: _Finish, tile: int) -> tuple[DataflowOp, str]:
    """A micro-tile's shift, brought into a register of three in turn."""
    register, source = f"s{1 + tile % 3}", f"r{10 + tile % len(wanted.shifts)}"
    return DataflowOp(f"shift {tile}", (f"mov {register}, {source}",)), register


def _wide(wanted: _Finish, tiles: int) -> Iterator[DataflowOp]:
    """int32 by way of lanes of 64 bits, an access at a time; what changes nothing is left out."""
    vectors = wanted.vectors
    halves, up, down, signs = _WIDE[vectors.generation]
    sign, access = signs[not wanted.relu], vectors.access  # unsigned saturation makes 0 of what is negative
    for tile in range(tiles):
        if wanted.shifts[tile % len(wanted.shifts)] == 0 and not wanted.relu:
            yield from (DataflowOp(f"skip {tile} {i}", (f"padda [p{i}], #{4 * access}",)) for i in range(2))
            continue
        move, register = _shift(wanted, tile)
        yield move
        for part in range(4):
            lanes = f"{halves[part % 2]}{(2 * tile + part // 2) % vectors.accumulators}"
            yield DataflowOp(f"load {tile}.{part}", (up.format(lanes, f"[p0], #{access}"),), bank=_C)
            text = down.format(lanes, register, f"[p1], #{access}", sign)
            yield DataflowOp(f"store {tile}.{part}", (text,), bank=_C)


def _narrow(wanted: _Finish, tiles: int) -> Iterator[DataflowOp]:
    """Dense from the tile's first byte: results never reach what is still to be read. Floats are not shifted."""
    vectors = wanted.vectors
    for tile in range(tiles):
        for part in vectors.parts:
            text = f"vlda {vectors.named(part, tile)}, [p0], #{vectors.access}"
            yield DataflowOp(f"load {tile} {part}", (text,), bank=_C)
    (suffix, parts), down = vectors.narrowed[wanted.size], vectors.converts[1]
    step = vectors.rows * vectors.columns * wanted.size // len(parts)
    for tile in range(tiles):
        by = ""
        if not wanted.floats:
            move, register = _shift(wanted, tile)
            by = f"{register}, "
            yield move
        for part in parts:
            source = vectors.named(part, tile)
            text = f"vst.{down}{suffix} {source}, {by}[p1], #{step}{vectors.signs[1]}"
            yield DataflowOp(f"store {tile} {part}", (text,), bank=_C)


_FUNCTIONS = {"aie2p": ("add", "mul"), "aie2": ("add",)}
_PRODUCTS = 0x328  # 64 products, both signed


def elementwise(name: str, generation: str, options: Options) -> Maker:
    """What writes sums of int8, or products; CodegenError for a type, a function or a size without a kernel."""
    function, elements = options.given.get("FUNCTION", ""), options.number("TILE_ELEMENTS", 0)
    lanes = VECTORS[generation].rows * VECTORS[generation].columns
    if name != "elementwise_i8" or function not in _FUNCTIONS[generation]:
        known = " and ".join(_FUNCTIONS[generation])
        raise CodegenError(
            f"{name} is not assembled for {generation} as {function or 'nothing'}: of int8 there is {known}"
        )
    if elements < 1 or elements % lanes:
        raise CodegenError(f"{name}: {elements} elements are no multiple of {lanes}")
    return partial(_element_by_element, generation, function, elements, options)


def _element_by_element(generation: str, wanted: str, elements: int, options: Options) -> AssemblyKernel:
    vectors, shift = VECTORS[generation], options.number("SHIFT", 0)
    controls = {"crRnd": options.rounding, "crSat": 1}
    if generation == "aie2p":
        controls |= {"crSRSMode": 0, "crUPSMode": 0}
    setup = [op for register, value in controls.items() for op in set_control(register, value)]
    setup += [set_register("r0", _PRODUCTS if wanted == "mul" else 0), set_register("r8", 0)]
    setup += [AssemblyOp("mov s0, r8", "no shift up"), set_register("r10", shift), AssemblyOp("mov s1, r10", "SHIFT")]
    body = partial(_sums, vectors) if wanted == "add" else _products
    parts = _blocks(generation, body, elements // (vectors.rows * vectors.columns))
    parts[0] = replace(parts[0], setup=setup)
    about = f"elementwise_i8: y = (a {'+' if wanted == 'add' else '*'} b) >> {shift} of {elements} elements"
    head = f"{about}; p0 = a, p1 = b, p2 = y: {{cycles}} cycles (exact)."
    return function("elementwise_i8", generation, parts, head, hardware=options.hardware_loops)


def _blocks(generation: str, body: Callable[[int], Iterator[DataflowOp]], tiles: int) -> list[FunctionPart]:
    """Blocks of a few micro-tiles, and one of the rest."""
    blocks, rest = divmod(tiles, _GROUP)
    return [
        repeated(generation, [], list(body(count)), times)
        for count, times in ((_GROUP, blocks), (rest, 1)) if count and times
    ]  # fmt: skip


def _sums(vectors: Vectors, count: int) -> Iterator[DataflowOp]:
    up, down, step = vectors.widened[1][0], vectors.narrowed[1][0], vectors.rows * vectors.columns
    for i in range(count):
        a, b = vectors.sums(i % 2), vectors.sums(2 + i % 2)
        for pointer, register in (("p0", a), ("p1", b)):
            text = f"vlda.ups{up} {register}, s0, [{pointer}], #{step}{vectors.signs[0]}"
            yield DataflowOp(f"load {pointer} {i}", (text,), bank=pointer)
        yield DataflowOp(f"sum {i}", (f"vadd {a}, {a}, {b}, r0",))
        yield DataflowOp(f"store {i}", (f"vst.srs{down} {a}, s1, [p2], #{step}{vectors.signs[1]}",), bank="p2")


def _products(count: int) -> Iterator[DataflowOp]:
    for i in range(count):
        yield DataflowOp(f"load a {i}", (f"vlda x{i}, [p0], #64",), bank="p0")
        yield DataflowOp(f"load b {i}", (f"vldb x{_GROUP + i}, [p1], #64",), bank="p1")
        yield DataflowOp(f"product {i}", (f"vmul dm{i}, x{i}, x{_GROUP + i}, r0",))
        yield DataflowOp(f"store {i}", (f"vst.srs.4x dm{i}, s1, [p2], #64, srsSign1",), bank="p2")
