"""The dense integer products and their zero kernels against numpy, for every layout, part and edge."""

import numpy as np
import pytest
from kernel_library import KERNELS, Build, KernelError, aligned_copy, tile_options

from support.differences import same
from support.micro_tiles import MICRO, int4_bytes, micro_tiled, narrowed, packed_b

AS_BUILT, AS_BUILT_TILE = ("-O3", "-march=native"), (24, 40, 56)
DTYPES = {"i8": np.int8, "i16": np.int16, "i32": np.int32}
LOWEST = {"i8": -128, "i4": -8}

# generation, kernel, (m, k, n), rho, macros: odd numbers of micro-tiles both ways, one micro-tile, every transpose
CASES = [
    ("aie2p", "mm_i8_i8_i32", (8, 8, 8), 1, ()),
    ("aie2p", "mm_i8_i8_i32", (24, 40, 56), 1, ()),
    ("aie2p", "mm_i8_i8_i32", (48, 16, 16), 3, ("A_TRANSPOSED", "B_TRANSPOSED", "C_TRANSPOSED")),
    ("aie2p", "mm_i8_i8_i16", (24, 16, 40), 1, ("SHIFT=3",)),
    ("aie2p", "mm_i8_i8_i16", (16, 40, 24), 2, ("B_TRANSPOSED", "C_TRANSPOSED", "SHIFT=0")),
    ("aie2p", "mm_i8_i8_i8", (40, 24, 24), 1, ("SHIFT=9",)),
    ("aie2p", "mm_i8_i4_i32", (24, 24, 40), 1, ()),
    ("aie2p", "mm_i8_i4_i32", (32, 16, 16), 2, ("A_TRANSPOSED", "C_TRANSPOSED")),
    ("aie2p", "mm_i8_i4_i16", (24, 40, 8), 3, ("SHIFT=4",)),
    ("aie2", "mm_i8_i8_i32", (12, 40, 24), 1, ("A_TRANSPOSED", "B_TRANSPOSED")),
    ("aie2", "mm_i8_i8_i32", (24, 16, 16), 2, ("C_TRANSPOSED",)),
    ("aie2", "mm_i8_i8_i16", (20, 24, 40), 1, ("SHIFT=5", "B_TRANSPOSED")),
    ("aie2", "mm_i8_i8_i8", (12, 24, 8), 3, ("SHIFT=7", "C_TRANSPOSED")),
    ("aie2", "mm_i8_i4_i32", (24, 48, 24), 2, ("A_TRANSPOSED",)),
]


# generation, tile
ZEROS = [("aie2p", (24, 8, 8)), ("aie2", (4, 8, 8))]
ROUNDED_UP = ("aie2p", "mm_i8_i8_i16", (8, 8, 8), 1, ("SHIFT=1", "ROUNDING=positive_inf"))
REFERRED = (2, 3, -1)  # of the cases, have references beside them


def build_of(generation, kernel, tile, rho, macros):
    shape = [
        f"-DMICRO_{name}={size}" for name, size in zip("RST", MICRO[generation, kernel.split("_")[2]], strict=True)
    ]
    speed = AS_BUILT if tile == AS_BUILT_TILE else ()
    options = (*speed, f"-DDIM_RHO={rho}", *shape, *(f"-D{macro}" for macro in macros))
    names = (
        (kernel, "reference") if (generation, kernel, tile, rho, macros) in [CASES[i] for i in REFERRED] else (kernel,)
    )
    return Build(generation, names, tile, options)


def zeros_of(generation, tile):
    return Build(generation, ("zero_i8", "zero_i16", "zero_i32"), tile)


BUILDS = [build_of(*case) for case in [*CASES, ROUNDED_UP] if case[2] != AS_BUILT_TILE]
BUILDS += [zeros_of(*case) for case in ZEROS]


def extremes(rng, shape, type_name):
    """Random values, all lowest, all highest."""
    low = LOWEST[type_name]
    return [rng.integers(low, -low, shape), np.full(shape, low), np.full(shape, -low - 1)]


class Case:
    """One kernel for one tile: its library, its layouts, its recurrence."""

    def __init__(self, build, generation, kernel, tile, rho, macros):
        self.kernel, self.tile, self.rho = kernel, tile, rho
        _, _, self.type_b, self.type_c = kernel.split("_")
        self.dtype = DTYPES[self.type_c]
        self.r, self.s, self.t = MICRO[generation, self.type_b]
        self.turned = [f"{name}_TRANSPOSED" in macros for name in "ABC"]
        self.shift = next((int(macro[6:]) for macro in macros if macro.startswith("SHIFT=")), 0)
        self.library = build(build_of(generation, kernel, tile, rho, macros))

    def call(self, name, a, b, c):
        """All parts of one step of K."""
        m = self.tile[0]
        for part in range(self.rho):
            rows = a[part * m // self.rho : (part + 1) * m // self.rho]
            tiles = aligned_copy(micro_tiled(rows, self.r, self.s, self.turned[0]), np.int8)
            weights = packed_b(b, self.s, self.t, self.turned[1])
            packed = int4_bytes(weights) if self.type_b == "i4" else weights
            dtype = np.uint8 if self.type_b == "i4" else np.int8
            self.library.call(name, tiles, aligned_copy(packed, dtype), c, *([part] if self.rho > 1 else []))

    def in_memory(self, matrix):
        return aligned_copy(micro_tiled(matrix, self.r, self.t, self.turned[2]), self.dtype)

    def step(self, c, a, b):
        """The contract's recurrence on whole matrices."""
        if self.type_c == "i32":
            return c + a @ b
        return narrowed((c << self.shift) + a @ b, self.shift, self.dtype)


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_steps_of_k_follow_the_recurrence(kernel_library, case):
    case = Case(kernel_library, *case)
    (m, k, n), rng = case.tile, np.random.default_rng(3)
    c = case.in_memory(np.zeros((m, n)))
    case.library.call("set_modes", 1, 3)  # ceil, symmetric: left by another kernel
    expected = np.zeros((m, n), np.int64)
    for a, b in zip(extremes(rng, (m, k), "i8"), extremes(rng, (k, n), case.type_b), strict=True):
        case.call(case.kernel, a, b, c)
        expected = case.step(expected, a, b)
        same(c, case.in_memory(expected))


@pytest.mark.parametrize("case", [CASES[i] for i in REFERRED], ids=lambda case: "-".join(map(str, case)))
def test_kernels_agree_with_their_references_from_any_c(kernel_library, case):
    case = Case(kernel_library, *case)
    (m, k, n), rng = case.tile, np.random.default_rng(4)
    info = np.iinfo(case.dtype)
    c = aligned_copy(rng.integers(info.min, info.max + 1, m * n), case.dtype)
    plain = aligned_copy(c, case.dtype)
    operands = extremes(rng, (m, k), "i8")[0], extremes(rng, (k, n), case.type_b)[0]
    case.call(case.kernel, *operands, c)
    case.call(f"{case.kernel}_ref", *operands, plain)
    same(c, plain)


def test_sums_stay_in_int32_up_to_the_stated_depth(kernel_library):
    case = Case(kernel_library, *CASES[0])
    c = case.in_memory(np.full((8, 8), 128 * 128 * (131072 - 8 - 8)))
    lowest = np.full((8, 8), -128)
    case.call(case.kernel, lowest, lowest, c)
    same(c, 128 * 128 * (131072 - 8))


def test_another_rounding_can_be_chosen(kernel_library):
    case = Case(kernel_library, *ROUNDED_UP)
    a, b, c = np.eye(8, dtype=int), np.arange(-32, 32).reshape(8, 8), case.in_memory(np.zeros((8, 8)))
    case.call(case.kernel, a, b, c)
    same(c, np.floor(b / 2 + 0.5).ravel())


@pytest.mark.parametrize("name", ["zero_i8", "zero_i16", "zero_i32"])
@pytest.mark.parametrize(("generation", "tile"), ZEROS)
def test_zero_clears_the_tile_and_nothing_else(kernel_library, generation, tile, name):
    library = kernel_library(zeros_of(generation, tile))
    elements = tile[0] * tile[2]
    c = aligned_copy(np.full(2 * elements, 77), DTYPES[name[5:]])
    library.call(name, c)
    same(c[:elements], 0)
    same(c[elements:], 77)


def test_misaligned_operands_are_refused(kernel_library):
    case = Case(kernel_library, *CASES[0])
    a, c = aligned_copy(np.zeros(128), np.int8), aligned_copy(np.zeros(64), np.int32)
    with pytest.raises(KernelError, match=r"64 lanes at .*, which is 32 bytes past a 64-byte"):
        case.library.call(case.kernel, a[32:], a, c)


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("mm_i8_i8_i32", tile_options(12, 8, 8), "m must be a multiple of rho * r"),
        ("mm_i8_i8_i32", tile_options(8, 8, 12), "n must be a multiple of t"),
        ("mm_i8_i8_i8", [*tile_options(8, 8, 8), "-DSHIFT=24"], "make SHIFT or k smaller"),
        ("mm_i8_i8_i16", tile_options(8, 131072, 8), "make SHIFT or k smaller"),
        ("mm_i8_i8_i8", [*tile_options(8, 1 << 16, 8), "-DSHIFT=23"], "make SHIFT or k smaller"),  # 2^30 + 2^14 k
        ("mm_i8_i4_i16", [*tile_options(8, 1 << 20, 8), "-DSHIFT=15"], "make SHIFT or k smaller"),  # 2^30 + 2^10 k
        ("mm_i8_i8_i16", [*tile_options(8, 8, 8), "-DSHIFT=-1"], "SHIFT must be 0 to 31"),
        ("mm_i8_i4_i32", [*tile_options(8, 8, 8), "-DB_TRANSPOSED"], "packed weights come in the kernel's own order"),
    ],
)
def test_what_a_kernel_cannot_do_does_not_compile(refusal, name, options, sentence):
    assert sentence in refusal("aie2p", name, *options)


@pytest.mark.parametrize(("name", "k", "shift"), [("mm_i8_i8_i8", 1 << 16, 23), ("mm_i8_i4_i16", 1 << 20, 15)])
def test_narrow_sums_may_fill_32_bits(refusal, name, k, shift):
    assert refusal("aie2p", name, *tile_options(8, k - 8, 8), f"-DSHIFT={shift}") == ""


def test_block_floats_demand_their_generation(refusal):
    for source in sorted((KERNELS / "aie2p").glob("*_bfp16*.cc")):
        assert "block floats are AIE2P's" in refusal("aie2", source.stem, *tile_options(8, 32, 32)), source.name
