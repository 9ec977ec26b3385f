"""Kernels that pass once over a tile of C: `zero_*`, `unscale_i32` and `finish_i32_*` of integers."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from bdforge.codegen.errors import CodegenError
from bdforge.codegen.kernels.function import ROUNDINGS, Function, Options
from bdforge.codegen.pipeline.product import COLUMNS
from bdforge.codegen.pipeline.vectors import VECTORS, Vectors

_SIZES = {"i8": 1, "i16": 2, "i32": 4, "f32": 4, "bf16": 2}
_STORES = 32  # of a pass
_GROUPS = 4  # of column blocks in a pass
_FIELDS = 4
_WIDE = {
    "aie2p": (("cml", "cmh"), "vlda.ups.2x {}, s0, {}, upsSign1", "vst.srs.2x {}, {}, {}, srsSign{}", (0, 1)),
    "aie2": (("bml", "bmh"), "vlda.ups.s64.s32 {}, s0, {}", "vst.srs.{3}32.s64 {0}, {1}, {2}", ("d", "s")),
}
"""Halves of accumulators as lanes of 64 bits, int32 into them and back, and words for unsigned and signed results."""


def zero(name: str, generation: str, options: Options) -> Callable[[], str]:
    """What writes the kernel that clears a tile; CodegenError for elements that are no whole bytes."""
    code, access = name.partition("_")[2], VECTORS[generation].access
    if code not in _SIZES:
        raise CodegenError(f"{name} is not assembled: elements are {', '.join(_SIZES)}")
    size = options.number("DIM_M") // options.parts * options.number("DIM_N") * _SIZES[code]
    if size % access:
        raise CodegenError(f"{name}: {size} bytes are no multiple of {access}")
    return partial(_cleared, name, generation, size, options.parts)


def _to_part(f: Function, size: int, parts: int) -> None:
    """Let p0 point at the part of C that r0 names."""
    if parts > 1:
        f.set("r1", size)
        f.add("mul r0, r0, r1", "the part")
        f.add("mov m0, r0")
        f.add("padda [p0], m0")


def _cleared(name: str, generation: str, size: int, parts: int) -> str:
    access = VECTORS[generation].access
    f = Function(name, generation, f"{name}: {size} bytes at p0 become 0{', r0 = part' if parts > 1 else ''}.")
    _to_part(f, size, parts)
    f.set("r8", 0)
    f.add("vbcst.32 x0, r8")
    register = "x0" if generation == "aie2p" else "wl0"
    passes, rest = divmod(size // access, _STORES)

    def store(count: int) -> None:
        for _ in range(count):
            f.add(f"vst {register}, [p0], #{access}")

    f.loop("r9", passes, lambda: store(_STORES), "stores")
    store(rest)
    return f.text()


@dataclass(frozen=True, slots=True)
class _Finish:
    """What is done to sums: `shifts` of column blocks in turn, results of `size` bytes, with `relu` none below 0."""

    shifts: tuple[int, ...]
    size: int
    relu: bool
    rounding: int
    tiles: int
    parts: int
    vectors: Vectors


def finish(name: str, generation: str, options: Options) -> Callable[[], str]:
    """What writes a kernel that shifts, rounds, saturates, rectifies in place; CodegenError for options without one."""
    return partial(_finished, name, generation, _wanted(name, generation, options))


def _finished(name: str, generation: str, wanted: "_Finish") -> str:
    shifts = ", ".join(map(str, wanted.shifts))
    f = Function(name, generation, f"{name}: {wanted.tiles} micro-tiles at p0, shifted right by {shifts} in turn.")
    f.control("crRnd", wanted.rounding, "rounding")
    f.control("crSat", 1, "saturate")
    f.set("r8", 0)
    f.add("mov s0, r8", "no shift up")
    _to_part(f, 4 * wanted.vectors.access * wanted.tiles, wanted.parts)
    if wanted.size == 4:
        _pass(f, wanted, _wide)
    elif wanted.relu:  # an unsigned result of 8 bits would reach 255: what is below 0 goes before, in 32 bits
        f.add("mov p2, p0", "the tile")
        _pass(f, wanted, _wide)
        f.add("mov p0, p2")
        _pass(f, replace(wanted, shifts=(0,) * len(wanted.shifts)), _narrow)
    else:
        _pass(f, wanted, _narrow)
    return f.text()


def _pass(f: Function, wanted: "_Finish", body: Callable[[Function, "_Finish", int], None]) -> None:
    """Once over the tile at p0."""
    wide = int(body is _wide)
    if wanted.vectors.generation == "aie2p":
        f.control("crSRSMode", wide, "lanes of 64 bits" if wide else "lanes of 32 bits")
        f.control("crUPSMode", wide)
    f.add("mov p1, p0", "results")
    passes, rest = divmod(wanted.tiles // len(wanted.shifts), _GROUPS)

    def groups(count: int) -> None:
        for group in range(count):
            body(f, wanted, group)

    f.loop("r9", passes, lambda: groups(_GROUPS), "blocks")
    groups(rest)


def _wanted(name: str, generation: str, options: Options) -> _Finish:
    result = name.rpartition("_")[2]
    if result not in ("i8", "i16", "i32") or name.startswith(("finish_f", "finish_b")):
        raise CodegenError(f"{name} is not assembled for {generation}: there are results of int8, int16 and int32")
    if told := [option for option in ("BIAS", "SCALE") if options.has(option)]:
        raise CodegenError(f"{name} is not assembled with {told[0]}")
    unscale = name.startswith("unscale")
    shift = 0 if unscale else options.number("SHIFT", 0)
    fields = _FIELDS if unscale or options.has("FIELD_SCALED") else 1
    parts = options.parts
    elements = options.number("DIM_M") // parts * options.number("DIM_N")
    if parts > 1 and result != "i32":
        raise CodegenError(f"{name} is not assembled with C_IN_PARTS")
    vectors = VECTORS[generation]
    tile = vectors.rows * COLUMNS
    if elements % (tile * fields):
        raise CodegenError(f"{name}: {elements} elements are no multiple of {tile * fields}")
    rounding = ROUNDINGS["floor"] if unscale else options.rounding
    shifts = tuple(shift + 2 * field for field in range(fields))
    return _Finish(shifts, _SIZES[result], options.has("RELU"), rounding, elements // tile, parts, vectors)


def _shift(f: Function, number: int, shift: int) -> str:
    """A shift register that holds a shift."""
    register = f"s{1 + number % 3}"
    f.set(f"r{10 + number % 3}", shift)
    f.add(f"mov {register}, r{10 + number % 3}")
    return register


def _wide(f: Function, wanted: _Finish, group: int) -> None:
    """int32 by way of lanes of 64 bits, an access at a time; what changes nothing is left out."""
    vectors = wanted.vectors
    halves, up, down, signs = _WIDE[vectors.generation]
    sign, access = signs[not wanted.relu], vectors.access  # unsigned saturation makes 0 of what is negative
    for number, shift in enumerate(wanted.shifts):
        if shift == 0 and not wanted.relu:
            f.add(f"padda [p0], #{4 * access}")
            f.add(f"padda [p1], #{4 * access}")
            continue
        register = _shift(f, number, shift)
        tile = group * len(wanted.shifts) + number
        for part in range(4):
            lanes, place = f"{halves[part % 2]}{(2 * tile + part // 2) % vectors.accumulators}", f"{tile} {part}"
            f.add(up.format(lanes, f"[p0], #{access}"), f"field {number}", place)
            f.add(down.format(lanes, register, f"[p1], #{access}", sign), "", place)


def _narrow(f: Function, wanted: _Finish, group: int) -> None:
    """int8 and int16, dense from the tile's first byte: results never reach what other groups have still to read."""
    place, first, vectors = f"group {group}", group * len(wanted.shifts), wanted.vectors
    for number in range(len(wanted.shifts)):
        for part in vectors.parts:
            text = f"vlda {part}{(first + number) % vectors.accumulators}, [p0], #{vectors.access}"
            f.add(text, f"field {number}", place)
    suffix, parts = vectors.narrowed[wanted.size]
    step = vectors.access * wanted.size // len(parts)
    for number, shift in enumerate(wanted.shifts):
        register, sums = _shift(f, number, shift), (first + number) % vectors.accumulators
        for part in parts:
            f.add(f"vst.srs{suffix} {part}{sums}, {register}, [p1], #{step}{vectors.signs[1]}", "", place)
