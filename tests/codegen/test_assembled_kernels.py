"""Kernels of machine code on the core model, equal to numpy: the contracts of those in `kernels/` of the same names."""

from functools import lru_cache

import ml_dtypes
import numpy as np
import pytest

from bdforge.core import isa
from bdforge.core.codegen.abi import KEPT
from bdforge.core.codegen.kernels import assembled
from bdforge.core.exact.interpreter import Interpreter
from bdforge.core.exact.translated import Translated
from bdforge.core.isa.assembler import assemble
from bdforge.core.isa.core_registers import SIGN, width
from bdforge.core.isa.hazards import check_source
from support import micro_tiles as tiles
from support.differences import same
from support.machine_code import drive, memories

PLACES = (0x40000, 0x50000, 0x70000, 0x48000, 0x58000, 0x78000)
BUDGET = 2_000_000
_COUNTS = {"r": 16, "s": 4, "p": 8, "m": 8, "dn": 8, "dj": 8, "dc": 8, "wl": 12, "wh": 12}
_SUMS = {"aie2p": ("bmll", "bmlh", "bmhl", "bmhh"), "aie2": ("amll", "amlh", "amhl", "amhh")}
LEFT = {
    generation: [
        *(f"{stem}{i}" for stem, count in {**_COUNTS, **dict.fromkeys(sums, many)}.items() for i in range(count)),
        "crRnd", "crSat", *modes,
    ]
    for generation, sums, many, modes in (
        ("aie2p", _SUMS["aie2p"], 5, ("crSRSMode", "crUPSMode", "crUnpackSize")), ("aie2", _SUMS["aie2"], 9, ()),
    )
}  # fmt: skip
"""Registers in which what ran before has left something, by generation."""


@lru_cache(maxsize=8)
def checked(text: str, generation: str):
    """A program without faults; a kernel is called with many operands."""
    program = assemble(text, generation, "call.s")
    assert not check_source(program)
    return program


def call(kernel, generation: str, operands, *numbers: int, executor: type = Translated):
    """Call a kernel with operands in memories of their own, which it may change, and numbers; the cycles."""
    pointers = "".join(f"movxm p{i}, #{place}\n" for i, place in enumerate(PLACES[: max(3, len(operands))]))
    pointers += "".join(f"movxm r{i}, #{number}\n" for i, number in enumerate(numbers))
    start = f"{pointers}jl #{kernel.callee.name}\n" + "nop\n" * 5
    program = checked(f"{start}done\n.p2align 4\n{kernel.text}", generation)
    memory = memories()
    found = [(memory.windows[(place >> 16) - 4], place & 0xFFFF) for place in PLACES]
    windows = [window[start:] for window, start in found if window is not None]
    views = [window[: data.nbytes] for window, data in zip(windows, operands, strict=False)]
    behind = [w[d.nbytes : d.nbytes + 256] for w, d in zip(windows, operands, strict=False)]
    for view, data, rest in zip(views, operands, behind, strict=True):
        view[:], rest[:] = data.view(np.uint8).ravel(), 0x5A
    core = executor(isa.load(generation), program.code[0][1], memory)
    for register in LEFT[generation]:
        core.write(register, 0x5A5A5A5A & ((1 << width(generation, register)) - 1))
    for register in filter(SIGN.search, isa.load(generation).registers):
        core.write(register, not register.endswith("1"))
    for i, register in enumerate(KEPT):
        core.write(register, 1000 + i)
    drive(core, budget=BUDGET)
    assert [core.read(register) for register in KEPT] == [1000 + i for i in range(len(KEPT))]
    assert all((rest == 0x5A).all() for rest in behind)
    for view, data in zip(views, operands, strict=True):
        data.view(np.uint8).ravel()[:] = view
    return core.cycle


def product(name, generation, tile, seed=0, defines=(), part=0, rho=1, extreme=False):
    """Expected and found C of a call on random operands, and its cycles."""
    m, k, n = tile
    _, _, weights, result = name.split("_")
    r, s, t = tiles.MICRO[generation, weights]
    rng = np.random.default_rng(seed)
    low, high = {"i8": (-128, 127), "i4": (-8, 7), "i2": (-1, 1)}[weights]
    a = np.full((m // rho, k), -128) if extreme else rng.integers(-128, 128, (m // rho, k))
    b = np.full((k, n), low) if extreme else rng.integers(low, high + 1, (k, n))
    dtype = {"i8": np.int8, "i16": np.int16, "i32": np.int32}[result]
    info = np.iinfo(dtype)
    before = rng.integers(max(info.min, -(1 << 20)), min(info.max, 1 << 20), (m, n))
    given = [
        tiles.micro_tiled(a, r, s, "A_TRANSPOSED" in defines).astype(np.int8),
        tiles.weight_bytes(b, weights, s, t, "B_TRANSPOSED" in defines) + (0xC0 if "B_TOP_SIGNED" in defines else 0),
        tiles.micro_tiled(before, r, t, "C_TRANSPOSED" in defines).astype(dtype),
    ]
    options = (f"DIM_M={m}", f"DIM_K={k}", f"DIM_N={n}", f"DIM_RHO={rho}", *defines)
    cycles = call(assembled(name, generation, options), generation, given, part)
    shift = next((int(d.split("=")[1]) for d in defines if d.startswith("SHIFT")), 0)
    rows = slice(part * m // rho, (part + 1) * m // rho)
    sums = (before[rows] << shift) + (a @ b) * (tiles.field_scale(n) if weights == "i2" else 1)
    expected = before.copy()
    expected[rows] = sums if dtype == np.int32 else tiles.narrowed(sums, shift, dtype)
    return expected, tiles.from_micro_tiles(given[2], m, n, r, t, "C_TRANSPOSED" in defines), cycles


CASES = [
    ("mm_i8_i8_i32", "aie2p", (24, 40, 40), ("A_TRANSPOSED", "B_TRANSPOSED"), 184),
    ("mm_i8_i8_i32", "aie2p", (8, 8, 8), (), 45),
    ("mm_i8_i8_i16", "aie2p", (24, 24, 24), ("SHIFT=3",), 88),
    ("mm_i8_i8_i8", "aie2p", (16, 72, 24), ("B_TRANSPOSED", "SHIFT=7"), 107),
    ("mm_i8_i4_i32", "aie2p", (24, 40, 24), (), 129),
    ("mm_i8_i4_i16", "aie2p", (16, 16, 16), ("A_TRANSPOSED", "SHIFT=1"), 69),
    ("mm_i8_i2_i32", "aie2p", (16, 128, 32), (), 200),
    ("mm_i8_i2_i32", "aie2p", (8, 200, 32), (), 263),
    ("mm_i8_i2_i32", "aie2p", (24, 88, 32), ("A_TRANSPOSED",), 295),
    ("mm_i8_i8_i8", "aie2p", (16, 16, 24), ("A_TRANSPOSED", "C_TRANSPOSED", "SHIFT=6"), 68),
    ("mm_i8_i4_i32", "aie2p", (24, 16, 16), ("C_TRANSPOSED",), 78),
    ("mm_i8_i2_i32", "aie2p", (16, 24, 32), ("C_TRANSPOSED",), 134),
    ("mm_i8_i8_i32", "aie2", (12, 24, 24), ("B_TRANSPOSED",), 129),
    ("mm_i8_i8_i16", "aie2", (8, 272, 16), ("SHIFT=2",), 189),
    ("mm_i8_i8_i8", "aie2", (16, 16, 24), ("SHIFT=5",), 123),
    ("mm_i8_i8_i16", "aie2", (12, 16, 8), ("A_TRANSPOSED", "B_TRANSPOSED", "SHIFT=3"), 70),
    ("mm_i8_i2_i32", "aie2", (20, 24, 32), ("A_TRANSPOSED", "BLOCKS=2x2"), 263),
    ("mm_i8_i4_i32", "aie2", (20, 48, 24), (), 182),
    ("mm_i8_i4_i16", "aie2", (16, 32, 8), ("A_TRANSPOSED", "SHIFT=2"), 79),
]


@pytest.mark.daily(
    "mm_i8_i4_i32-aie2p-tile4-defines4-129",
    "mm_i8_i2_i32-aie2p-tile11-defines11-134",
    "mm_i8_i8_i32-aie2-tile12-defines12-129",
    "mm_i8_i2_i32-aie2-tile16-defines16-263",
)
@pytest.mark.parametrize(("name", "generation", "tile", "defines", "taken"), CASES)
def test_products_equal_numpy(name, generation, tile, defines, taken):
    """In the cycles of the schedules that are found, the set-up and the call with them, and in no more."""
    expected, found, cycles = product(name, generation, tile, 3, defines)
    same(found, expected)
    assert cycles <= taken, f"{cycles} cycles, {cycles - taken} more than its schedule took"


@pytest.mark.daily("mm_i8_i4_i32-aie2p")
@pytest.mark.parametrize(
    ("name", "generation"),
    [
        ("mm_i8_i8_i8", "aie2p"),
        ("mm_i8_i4_i32", "aie2p"),
        ("mm_i8_i2_i32", "aie2p"),
        ("mm_i8_i2_i32", "aie2"),
        ("mm_i8_i4_i32", "aie2"),
    ],
)
def test_products_of_the_largest_operands_equal_numpy(name, generation):
    expected, found, _ = product(name, generation, (8, 32, 32), 3, extreme=True)
    same(found, expected)


@pytest.mark.daily("tile1-defines1-2 x 2-False")
@pytest.mark.parametrize("extreme", [False, True])
@pytest.mark.parametrize(
    ("tile", "defines", "shape"),
    [
        ((32, 24, 32), ("BLOCKS=4x1",), "4 x 1"), ((32, 40, 32), ("BLOCKS=2x2",), "2 x 2"),
        ((16, 24, 64), ("B_TOP_SIGNED", "BLOCKS=2x1"), "2 x 1"),
        ((24, 16, 32), ("B_TOP_SIGNED", "BLOCKS=2x2"), "2 x 2"),
    ],
)  # fmt: skip
def test_ternary_weights_are_unpacked_in_each_way(tile, defines, shape, extreme):
    expected, found, _ = product("mm_i8_i2_i32", "aie2p", tile, 6, defines, extreme=extreme)
    options = [f"DIM_{letter}={size}" for letter, size in zip("MKN", tile, strict=True)]
    text = assembled("mm_i8_i2_i32", "aie2p", (*options, "DIM_RHO=1", *defines)).text
    same(found, expected)
    assert f"blocks of {shape} micro-tiles" in text
    assert ("two's complement" in text) == ("B_TOP_SIGNED" in defines)


@pytest.mark.parametrize("part", [0, 3])
def test_a_part_of_the_rows_leaves_the_others_alone(part):
    expected, found, _ = product("mm_i8_i2_i32", "aie2p", (64, 64, 32), 5, (), part, 4)
    same(found, expected)


@pytest.mark.parametrize(("generation", "elements"), [("aie2p", (24, 40)), ("aie2", (12, 8))])
@pytest.mark.parametrize("code", ["i8", "i16", "i32"])
def test_zero_clears_a_tile_and_nothing_behind_it(generation, elements, code):
    size = elements[0] * elements[1] * {"i8": 1, "i16": 2, "i32": 4}[code]
    data = np.full(size + 64, 0x5A, np.uint8)
    call(assembled(f"zero_{code}", generation, (f"DIM_M={elements[0]}", f"DIM_N={elements[1]}")), generation, [data])
    same(data[:size], 0)
    same(data[size:], 0x5A)


def finished(name, generation, sums, defines):
    """What a finish kernel leaves of sums in the order of micro-tiles."""
    (m, n), (r, _, t) = sums.shape, tiles.MICRO[generation, "i8"]
    memory = tiles.micro_tiled(sums, r, t).astype(np.int32)
    call(assembled(name, generation, (f"DIM_M={m}", f"DIM_N={n}", *defines)), generation, [memory])
    dtype = {"i8": np.int8, "i16": np.int16, "i32": np.int32}[name.rpartition("_")[2]]
    return tiles.from_micro_tiles(memory.view(dtype)[: m * n], m, n, r, t)


@pytest.mark.parametrize("generation", ["aie2p", "aie2"])
@pytest.mark.parametrize("relu", [False, True])
def test_unscale_divides_column_blocks(relu, generation):
    rng = np.random.default_rng(4)
    results = rng.integers(-(1 << 24), 1 << 24, (24, 64))
    sums = results * tiles.field_scale(64)
    found = finished("unscale_i32", generation, sums, ("RELU",) if relu else ())
    same(found, results.clip(0) if relu else results)


@pytest.mark.parametrize("part", [0, 1])
def test_passes_over_a_part_leave_the_other_alone(part):
    options = ("DIM_M=16", "DIM_N=32", "DIM_RHO=2", "C_IN_PARTS")
    results = np.random.default_rng(4).integers(-(1 << 24), 1 << 24, (16, 32))
    scaled = results * tiles.field_scale(32)
    rows = slice(8 * part, 8 * part + 8)
    for name, made in (("unscale_i32", results), ("zero_i32", np.zeros_like(results))):
        memory = tiles.micro_tiled(scaled, 8, 8).astype(np.int32)
        call(assembled(name, "aie2p", options), "aie2p", [memory], part)
        expected = scaled.copy()
        expected[rows] = made[rows]
        same(tiles.from_micro_tiles(memory, 16, 32, 8, 8), expected)


@pytest.mark.daily(every=4)
@pytest.mark.parametrize(("code", "shift"), [("i8", 9), ("i8", 0), ("i16", 5), ("i32", 4)])
@pytest.mark.parametrize(
    ("generation", "scaled", "relu"),
    [("aie2p", False, True), ("aie2p", True, False), ("aie2", True, True), ("aie2", False, False)],
)
def test_finish_rounds_and_saturates(code, shift, scaled, relu, generation):
    sums = np.random.default_rng(7).integers(-(1 << 17), 1 << 17, (16, 64))
    sums[:, :3] = [[1 << shift >> 1, (3 << shift) >> 1, -(1 << shift) >> 1]]  # ties
    factor = tiles.field_scale(64) if scaled else 1
    defines = (f"SHIFT={shift}", *(("FIELD_SCALED",) if scaled else ()), *(("RELU",) if relu else ()))
    found = finished(f"finish_i32_{code}", generation, sums * factor, defines)
    expected = tiles.narrowed(sums, shift, {"i8": np.int8, "i16": np.int16, "i32": np.int32}[code])
    same(found, expected.clip(0) if relu else expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tile", "core_row", "part", "defines"),
    [
        ((16, 8), 3, 0, ()),
        ((8, 64), 0, 0, ("FIELD_SCALED", "BIAS", "RELU")),
        ((8, 24), 1, 0, ("C_TRANSPOSED", "BIAS")),
        ((24, 32), 2, 1, ("FIELD_SCALED", "C_IN_PARTS", "DIM_RHO=3")),
    ],
)
def test_scaled_results_stay_within_the_stated_error(tile, core_row, part, defines):
    (m, n), rng, turned = tile, np.random.default_rng(8), "C_TRANSPOSED" in defines
    c = np.where(rng.random((m, n)) < 0.3, rng.integers(-(2**24), 2**24, (m, n)), rng.integers(-9, 9, (m, n)))
    field = tiles.field_scale(n) if "FIELD_SCALED" in defines else np.ones(n, int)
    c[0, :3], c[1, 0] = (-(2**31) // field[0], (2**31 - 1) // field[0], 0), 0
    rows, columns = rng.uniform(-0.1, 0.1, 4 * m), rng.uniform(1e-4, 3, n)
    rows[core_row * m + 1], columns[2] = 0, 0  # as of rows and columns that are no part of a problem
    rows[core_row * m + 2 : (core_row + 1) * m : 8], columns[3:8] = 0.5, [2, 0.25, -4, 2**-20, 1]
    c[2::8, 3:8] = [257, 259, -257, 2**24 - 1, 3 << 15 | 1]  # ties and what is nearly one, scaled exactly
    bias = rng.uniform(-50, 50, n) if "BIAS" in defines else np.zeros(n)
    epilogue = np.concatenate([rows, columns, bias]).astype(np.float32)
    memory = tiles.micro_tiled(c * field, 8, 8, turned).astype(np.int32)
    options = (f"DIM_M={m}", f"DIM_N={n}", "ARRAY_ROWS=4", "SCALE", *defines)
    call(assembled("finish_i32_bf16", "aie2p", options), "aie2p", [epilogue, memory], core_row, part)

    rho = 3 if part else 1
    mine = slice(part * m // rho, (part + 1) * m // rho)
    product = c[mine] * rows.astype(np.float32)[core_row * m :][:m, None][mine].astype(float)
    product = product * columns.astype(np.float32)
    exact = product + bias.astype(np.float32)
    exact = np.maximum(exact, 0) if "RELU" in defines else exact
    bits = memory.view(np.uint16)[2 * mine.start * n :][: exact.size].astype(np.uint32) << 16
    found = tiles.from_micro_tiles(bits.view(np.float32), m // rho, n, 8, 8, turned)
    half = np.exp2(np.frexp(exact)[1] - 9.0)  # of the last of a bfloat16's 8 bits
    allowed = half + 2.0**-21 * (np.abs(product) + np.abs(bias))
    assert (np.abs(found - exact) <= allowed).all()
    if "BIAS" not in defines:
        same(found[2::8, 3:8], exact[2::8, 3:8].astype(ml_dtypes.bfloat16).astype(float))
    untouched = [*range(mine.start), *range(mine.stop, m)]
    same(tiles.from_micro_tiles(memory, m, n, 8, 8)[untouched], (c * field)[untouched])


EXACT = 1 << 24  # sums that float32 holds


@pytest.mark.daily(every=4)
@pytest.mark.parametrize("executor", [Translated, Interpreter])
@pytest.mark.parametrize(
    ("tile", "part", "defines"),
    [
        ((8, 8), 0, ()),
        ((24, 24), 0, ("RELU",)),
        ((16, 32), 0, ("FIELD_SCALED",)),
        ((16, 64), 0, ("FIELD_SCALED", "RELU", "C_TRANSPOSED")),
        ((24, 40), 1, ("C_IN_PARTS", "DIM_RHO=3")),
        ((24, 32), 2, ("FIELD_SCALED", "C_IN_PARTS", "DIM_RHO=3")),
    ],
)
def test_sums_as_they_are_become_the_nearest_bfloat16(tile, part, defines, executor):
    (m, n), rng, turned = tile, np.random.default_rng(9), "C_TRANSPOSED" in defines
    rho, field = (3 if "DIM_RHO=3" in defines else 1), tiles.field_scale(n) if "FIELD_SCALED" in defines else 1
    c = rng.integers(-EXACT, EXACT, (m, n)) >> rng.integers(0, 24, (m, n))
    c[::8, :8] = [0, -1, 257, 259, -257, 3 << 15 | 1, EXACT, -EXACT]  # ties, what is nearly one, the ends
    memory = tiles.micro_tiled(c * field, 8, 8, turned).astype(np.int32)
    kernel = assembled("finish_i32_bf16", "aie2p", (f"DIM_M={m}", f"DIM_N={n}", *defines))
    call(kernel, "aie2p", [memory], part, executor=executor)

    mine = slice(part * m // rho, (part + 1) * m // rho)
    words = memory.view(np.uint16)[2 * mine.start * n :][: c[mine].size]
    expected = np.maximum(c[mine], 0) if "RELU" in defines else c[mine]
    expected = tiles.micro_tiled(expected, 8, 8, turned).ravel().astype(np.float32).astype(ml_dtypes.bfloat16)
    same(words, expected.view(np.uint16))
    untouched = [*range(mine.start), *range(mine.stop, m)]
    same(tiles.from_micro_tiles(memory, m, n, 8, 8, turned)[untouched], (c * field)[untouched])


@pytest.mark.parametrize(("defines", "cycles"), [((), 1200), (("FIELD_SCALED",), 1200)])
def test_sums_as_they_are_take_seven_cycles_a_micro_tile(defines, cycles):
    assert assembled("finish_i32_bf16", "aie2p", ("DIM_M=64", "DIM_N=160", *defines)).cycles <= cycles


@pytest.mark.parametrize(
    ("function", "shift", "generation"),
    [("add", 0, "aie2p"), ("add", 1, "aie2p"), ("mul", 6, "aie2p"), ("add", 1, "aie2")],
)
def test_elements_are_added_and_multiplied(function, shift, generation):
    a, b = np.random.default_rng(2).integers(-128, 128, (2, 64 * 7))
    y = np.full(64 * 8, 90, np.int8)
    options = (f"FUNCTION={function}", f"TILE_ELEMENTS={64 * 7}", f"SHIFT={shift}")
    call(assembled("elementwise_i8", generation, options), generation, [a.astype(np.int8), b.astype(np.int8), y])
    same(y[: 64 * 7], tiles.narrowed(a + b if function == "add" else a * b, shift, np.int8))
    same(y[64 * 7 :], 90)


def test_both_executors_agree_on_a_kernel():
    kernel = assembled("mm_i8_i4_i16", "aie2p", ("DIM_M=16", "DIM_K=16", "DIM_N=16"))
    rng = np.random.default_rng(1)
    given = [rng.integers(0, 256, size, np.uint8) for size in (16 * 16, 16 * 8, 2 * 16 * 16)]
    runs = []
    for executor in (Translated, Interpreter):
        operands = [data.copy() for data in given]
        runs.append((call(kernel, "aie2p", operands, executor=executor), operands[2].tobytes()))
    assert runs[0] == runs[1]
