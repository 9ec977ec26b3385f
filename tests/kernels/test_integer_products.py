"""The integer products and their zero kernels against numpy, for every layout, part and edge."""

import numpy as np
import pytest
from kernel_library import KERNELS, PLAIN, Build, KernelError, aligned, aligned_copy, gxx, tile_options

from support.differences import same
from support.micro_tiles import MICRO, field_scale, micro_tiled, narrowed, weight_bytes

AS_BUILT, AS_BUILT_TILES = ("-O3", "-march=native"), [(24, 40, 56), (24, 72, 96)]
DTYPES = {"i8": np.int8, "i16": np.int16, "i32": np.int32}
RANGE = {"i8": (-128, 127), "i4": (-8, 7), "i2": (-1, 1)}

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
    ("aie2p", "mm_i8_i2_i32", (8, 8, 32), 1, ()),
    ("aie2p", "mm_i8_i2_i32", (40, 24, 64), 1, ()),
    ("aie2p", "mm_i8_i2_i32", (40, 24, 64), 1, (PLAIN[2:],)),
    ("aie2p", "mm_i8_i2_i32", (24, 72, 96), 1, ()),
    ("aie2p", "mm_i8_i2_i32", (24, 16, 32), 3, ("C_TRANSPOSED",)),
    ("aie2", "mm_i8_i2_i32", (24, 24, 64), 2, ("A_TRANSPOSED",)),
]
DENSE, TERNARY = CASES[0], CASES[14]  # of one micro-tile, and of one for each field


ROUNDED_UP = ("aie2p", "mm_i8_i8_i16", (8, 8, 8), 1, ("SHIFT=1", "ROUNDING=positive_inf"))
REFERRED = [CASES[i] for i in (2, 3, 13, 14, 15, 18, 19)]  # have references beside them


def build_of(generation, kernel, tile, rho, macros):
    shape = [
        f"-DMICRO_{name}={size}" for name, size in zip("RST", MICRO[generation, kernel.split("_")[2]], strict=True)
    ]
    speed = AS_BUILT if tile in AS_BUILT_TILES else ()
    options = (*speed, f"-DDIM_RHO={rho}", *shape, *(f"-D{macro}" for macro in macros))
    names = (kernel, "reference") if (generation, kernel, tile, rho, macros) in REFERRED else (kernel,)
    return Build(generation, names, tile, options)


BUILDS = [build_of(*case) for case in [*CASES, ROUNDED_UP] if case[2] not in AS_BUILT_TILES]


def extremes(rng, tile, type_b):
    """A and B: random values, twice, all lowest or highest, with each other."""
    m, k, n = tile
    (low_a, high_a), (low_b, high_b) = RANGE["i8"], RANGE[type_b]
    for _ in range(2):
        yield rng.integers(low_a, high_a + 1, (m, k)), rng.integers(low_b, high_b + 1, (k, n))
    for a, b in ((low_a, low_b), (high_a, high_b), (low_a, high_b), (high_a, 0)):
        yield np.full((m, k), a), np.full((k, n), b)


class Case:
    """One kernel for one tile: its library, its layouts, its recurrence."""

    def __init__(self, build, generation, kernel, tile, rho, macros):
        self.kernel, self.tile, self.rho = kernel, tile, rho
        _, _, self.type_b, self.type_c = kernel.split("_")
        self.dtype = DTYPES[self.type_c]
        self.scale = field_scale(tile[2]) if self.type_b == "i2" else np.ones(tile[2], int)
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
            weights = aligned_copy(weight_bytes(b, self.type_b, self.s, self.t, self.turned[1]), np.uint8)
            self.library.call(name, tiles, weights, c, *([part] if self.rho > 1 else []))

    def in_memory(self, matrix):
        return aligned_copy(micro_tiled(matrix, self.r, self.t, self.turned[2]), self.dtype)

    def step(self, c, a, b):
        """The contract's recurrence on whole matrices."""
        if self.type_c == "i32":
            return c + (a @ b) * self.scale
        return narrowed((c << self.shift) + a @ b, self.shift, self.dtype)


def kept(case):
    """One kernel that is compiled for speed, which takes seconds, is enough for a day."""
    return pytest.param(case, marks=pytest.mark.slow if case[2] == AS_BUILT_TILES[1] else ())


@pytest.mark.parametrize("case", [*map(kept, CASES)], ids=lambda case: "-".join(map(str, case)))
def test_steps_of_k_follow_the_recurrence(kernel_library, case):
    case = Case(kernel_library, *case)
    (m, _, n), rng = case.tile, np.random.default_rng(3)
    c = case.in_memory(np.zeros((m, n)))
    case.library.call("set_modes", 1, 3)  # ceil, symmetric: left by another kernel
    expected = np.zeros((m, n), np.int64)
    for a, b in extremes(rng, case.tile, case.type_b):
        case.call(case.kernel, a, b, c)
        expected = case.step(expected, a, b)
        same(c, case.in_memory(expected))


@pytest.mark.parametrize("case", REFERRED, ids=lambda case: "-".join(map(str, case)))
def test_kernels_agree_with_their_references_from_any_c(kernel_library, case):
    case = Case(kernel_library, *case)
    (m, _, n), rng = case.tile, np.random.default_rng(4)
    info = np.iinfo(case.dtype)
    c = aligned_copy(rng.integers(info.min, info.max + 1, m * n), case.dtype)
    plain = aligned_copy(c, case.dtype)
    operands = next(extremes(rng, case.tile, case.type_b))
    case.call(case.kernel, *operands, c)
    case.call(f"{case.kernel}_ref", *operands, plain)
    same(c, plain)


@pytest.mark.parametrize(("case", "depth"), [(DENSE, 131072), (TERNARY, 262144)])
def test_sums_stay_in_int32_up_to_the_stated_depth(kernel_library, case, depth):
    case = Case(kernel_library, *case)
    (m, k, n), (low, _) = case.tile, RANGE[case.type_b]
    each = np.tile(-128 * low * case.scale, (m, 1))
    c = case.in_memory(each * (depth - 2 * k))
    case.call(case.kernel, np.full((m, k), -128), np.full((k, n), low), c)
    same(c, case.in_memory(each * (depth - k)))


def test_another_rounding_can_be_chosen(kernel_library):
    case = Case(kernel_library, *ROUNDED_UP)
    a, b, c = np.eye(8, dtype=int), np.arange(-32, 32).reshape(8, 8), case.in_memory(np.zeros((8, 8)))
    case.call(case.kernel, a, b, c)
    same(c, np.floor(b / 2 + 0.5).ravel())


@pytest.mark.parametrize("case", [DENSE, TERNARY], ids=lambda case: case[1])
@pytest.mark.parametrize("place", range(3))
def test_misaligned_operands_are_refused(kernel_library, case, place):
    case = Case(kernel_library, *case)
    operands = [aligned(1024, np.int8, 16 * (i == place)) for i in range(3)]
    with pytest.raises(KernelError, match=r"aie::load_v: \d+ lanes at .*, which is 16 bytes past a 64-byte"):
        case.library.call(case.kernel, *operands)


@pytest.mark.daily(every=4)
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
        ("mm_i8_i2_i32", [*tile_options(8, 8, 32), "-DB_TRANSPOSED"], "packed weights come in the kernel's own order"),
        ("mm_i8_i2_i32", tile_options(16, 8, 32)[:2], "define the tile with -DDIM_M=m -DDIM_K=k -DDIM_N=n"),
        ("mm_i8_i2_i32", [*tile_options(24, 8, 32), "-DDIM_RHO=2"], "m must be a multiple of rho * r"),
        ("mm_i8_i2_i32", [*tile_options(25, 8, 32), "-DDIM_RHO=3"], 'm must be a multiple of rho"'),
        ("mm_i8_i2_i32", tile_options(16, 12, 32), "k must be a multiple of s"),
        ("mm_i8_i2_i32", tile_options(16, 8, 48), "n must be a multiple of 4 t"),
        ("mm_i8_i2_i32", tile_options(0, 8, 32), "m, k and n must be positive"),
    ],
)
def test_what_a_kernel_cannot_do_does_not_compile(refusal, name, options, sentence):
    assert sentence in refusal("aie2p", name, *options)


@pytest.mark.parametrize(("name", "k", "shift"), [("mm_i8_i8_i8", 1 << 16, 23), ("mm_i8_i4_i16", 1 << 20, 15)])
def test_narrow_sums_may_fill_32_bits(refusal, name, k, shift):
    assert refusal("aie2p", name, *tile_options(8, k - 8, 8), f"-DSHIFT={shift}") == ""


@pytest.mark.slow
def test_block_floats_demand_their_generation(refusal):
    for source in sorted((KERNELS / "aie2p").glob("*_bfp16*.cc")):
        assert "block floats are AIE2P's" in refusal("aie2", source.stem, *tile_options(8, 32, 32)), source.name


def preprocessed(name: str, *options: str) -> str:
    result = gxx("-E", "-P", *options, *tile_options(16, 40, 32), KERNELS / "aie2p" / name)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_loop_promises_follow_the_tile_for_peano_and_vanish_on_hosts():
    assert "#pragma clang loop min_iteration_count(40 / (Tile::K * B::run))" in preprocessed(
        "mm_i8_i2_i32.cc", "-D__AIECC__"
    )
    assert "#pragma clang" not in preprocessed("mm_i8_i2_i32.cc")
