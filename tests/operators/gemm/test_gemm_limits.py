"""Every check of a GEMM's spec from both sides, and the table of kernels as its page and `kernels/` have it."""

from typing import Any

import pytest

from bdforge.devices import device_named
from bdforge.operators.gemm import spec_from
from bdforge.operators.gemm.finish import finish_for
from bdforge.operators.gemm.kernels import KERNELS, kernel_for
from bdforge.operators.gemm.spec_check import fits, spec_problems
from bdforge.operators.specs import array_reasons
from support.built_designs import spec_content
from support.differences import same

INT8, ROWS, COLUMNS = ("int8", "int8", "int32"), "row row row", "column column column"
NARROW, BF16, BLOCKS = ("int8", "int8", "int8", "int8"), ("bf16", "bf16", "f32"), ("bfp16", "bfp16", "bfp16")
FED = {"types": ("int8", "int8", "bf16"), "epilogue": {"scale": True}}
PHOENIX = {"device": "phoenix"}

CHECKS: dict[str, tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]] = {
    "array.columns = 5, but phoenix has 4": (PHOENIX, [{"columns": 4}], [{"columns": 5}]),
    "buffers.a_shims = 2 needs 4 columns for 2 rows; use 1": (
        {"rows": 2}, [{"a_shims": 2, "columns": 4}, {"a_shims": 1, "columns": 2}], [{"a_shims": 2, "columns": 3}],
    ),
    "layouts.a = column needs a column of the array for each of 2 rows, there are 1": (
        {"types": INT8, "rows": 2},
        [{"layouts": COLUMNS, "columns": 2}, {"layouts": ROWS, "columns": 1}], [{"layouts": COLUMNS, "columns": 1}],
    ),
    "is not a multiple of tile.k = 32; use one": (
        {"k": 32}, [{"k_mt": 32}, {"k_mt": 64}], [{"k_mt": 48}, {"k_mt": 16}, {"k_mt": 33}],
    ),
    "is not a multiple of 64; the buffers behind it": (
        {}, [{"stack_bytes": 64}, {"stack_bytes": 1024}], [{"stack_bytes": 32}, {"stack_bytes": 1040}],
    ),
    "is not a multiple of 32; the buffers behind it": (
        PHOENIX, [{"stack_bytes": 32}, {"stack_bytes": 1056}], [{"stack_bytes": 16}, {"stack_bytes": 1040}],
    ),
    "wants tile.m = 8, the rows of one micro-tile": (
        {}, [{"m": 8, "m_used": 1}, {"m": 8, "m_used": 7}, {"m": 8, "m_used": 8}, {"m": 16, "m_used": 16}],
        [{"m": 8, "m_used": 9}, {"m": 16, "m_used": 8}, {"m": 16, "m_used": 15}],
    ),
    "pads rows, so A and C must be row-major and of plain elements; use m_used = 0": (
        {"m": 8, "types": INT8}, [{"m_used": 4}, {"m_used": 4, "layouts": "row column row"}, {"m_used": 8}],
        [
            {"m_used": 4, "layouts": "column packed row"}, {"m_used": 4, "layouts": "row packed column"},
            {"m_used": 4, "types": ("bfp16", "bfp16", "f32"), "k": 16},
            {"m_used": 4, "types": ("bf16", "bfp16", "bfp16", "f32")},
        ],
    ),
    "a step's sums, C << shift plus A B, can reach 2147483648, above 2147483647": (
        {"types": NARROW, "n": 8},  # 2^(7 + shift) + 2^14 k; of int4 2^10 k
        [
            {"epilogue": {"shift": 23}, "k": 65536 - 8}, {"epilogue": {"shift": 22}, "k": 65536},
            {"types": ("int8", "int4", "int16", "int16"), "epilogue": {"shift": 15}, "k": (1 << 20) - 8},
            {"types": INT8, "k": 1 << 20},
        ],
        [
            {"epilogue": {"shift": 23}, "k": 65536},
            {"types": ("int8", "int4", "int16", "int16"), "epilogue": {"shift": 15}, "k": 1 << 20},
        ],
    ),
    "DMAs move 32 bit at a time and cannot reorder": (
        {"n": 32, "k": 16}, [{"types": INT8, "layouts": ROWS}, {"types": BF16, "layouts": "row column row"}, {}],
        [
            {"layouts": ROWS}, {"types": ("int8", "int4", "int32"), "layouts": ROWS},
            {"types": BLOCKS, "layouts": "row column row"}, {"types": ("bf16", "bfp16", "f32"), "layouts": ROWS},
        ],
    ),
    "blocks of bfp16 lie along rows; use row": (
        {"types": BLOCKS}, [{}, {"types": BF16, "layouts": COLUMNS}],
        [{"layouts": "column packed row"}, {"layouts": "row packed column"}],
    ),
    "scales and biases come behind packed B; use packed": (
        FED | {"k": 64}, [{}], [{"layouts": ROWS}, {"layouts": ROWS, "epilogue": {"bias": True}}],
    ),
    "scales and biases come in the order of row-major C; use row": (
        FED | {"k": 64}, [{}, {"layouts": "column packed row"}],
        [{"layouts": "row packed column"}, {"layouts": "row packed column", "epilogue": {"bias": True}}],
    ),
    # 4 B for each of 2 x 8 rows, 8 B for each of 16 columns.
    "16 columns take 192 bytes, a tile of B has 128; use a larger tile.k": (
        FED | {"m": 8, "n": 16}, [{"k": 16}, {"k": 16, "epilogue": {"bias": True}}], [{"k": 8}],
    ),
    "8 columns take 128 bytes, a tile of B has 64; use a larger tile.k": (
        FED | {"m": 8, "n": 8}, [{"k": 16}], [{"k": 8}, {"k": 8, "epilogue": {"bias": True}}],
    ),
    "only packed B stays in memtiles; use packed, or buffers.residency = none": (
        {"types": INT8}, [{"residency": "b"}, {"layouts": ROWS}],
        [{"residency": "b", "layouts": ROWS}, {"residency": "b", "layouts": "row column row"}],
    ),
    "a tile of C leaves in blocks of whole micro-tiles' rows, 8 each": (
        {"m": 32}, [{"c_pieces": 1}, {"c_pieces": 2}, {"c_pieces": 4}],
        [
            {"c_pieces": 3}, {"c_pieces": 8}, {"c_pieces": 2, "layouts": "row packed column"},
            {"c_pieces": 2, "m": 8, "m_used": 4}, {"m": 16, "c_pieces": 4},
        ],
    ),
    "buffers.c_in_parts takes parts, rho above 1, of plain elements; leave it out": (
        {"c_in_parts": True, "m": 32, "k_mt": 32}, [{"rho": 2}, {"rho": 4}, {"c_in_parts": False}],
        [
            {"rho": 1}, {"rho": 2, "types": BLOCKS}, {"rho": 2, "types": ("bf16", "bfp16", "bfp16", "f32")},
            {"rho": 2, "types": ("bfp16", "bfp16", "bf16", "bfp16")},
        ],
    ),
    "must be a multiple of 2 * tile.k = 32; use one": (
        {"c_in_parts": True, "rho": 2}, [{"k_mt": 32}, {"k_mt": 64}, {"c_in_parts": False}],
        [{"k_mt": 16}, {"k_mt": 48}, {}],
    ),
    "= 4 rows are no whole vectors of 8; use a tile.m": (
        FED | PHOENIX | {"k": 64, "m": 4},
        [{"rows": 2}, {"rows": 4}, {"m": 8, "rows": 1}, {"types": INT8, "epilogue": {}, "rows": 1}], [{"rows": 1}],
    ),
    "divides narrow integers; C is": (
        {"epilogue": {"shift": 1}, "types": NARROW},
        [{}, {"types": ("int8", "int8", "int16", "int32")}, {"types": ("int8", "int8", "int8", "int32")},
         {"types": ("int8", "int8", "int16", "int16")}, {"types": INT8, "epilogue": {}}],
        [{"types": INT8}, {"types": BF16}, FED | {"epilogue": {"shift": 1, "scale": True}}],
    ),
    "epilogue.relu needs a kernel that finishes int8 as int8": (
        {"types": NARROW}, [{}, {"types": INT8, "epilogue": {"relu": True}}], [{"epilogue": {"relu": True}}],
    ),
}  # fmt: skip
"""By what is said: what the cases have in common, those that are taken, those that are refused."""


def reasons(changes: dict[str, Any]) -> list[str]:
    facts: dict[str, Any] = {"m": 16, "k": 16, "n": 32, **changes}
    device = device_named(facts.pop("device", "strix_halo"))
    return spec_problems(spec_from(spec_content(**facts), "small"), device)


@pytest.mark.parametrize("said", CHECKS)
def test_a_check_takes_the_last_and_refuses_the_next(said: str):
    common, taken, refused = CHECKS[said]
    for case in taken:
        assert reasons(common | case) == [], f"{case} is taken"
    for case in refused:
        assert said in "\n".join(reasons(common | case)), f"{case} is refused"


@pytest.mark.parametrize(("rows", "columns", "array", "said"), [
    (4, 8, "npu2", ""), (4, 8, None, ""), (5, 8, None, "array.rows = 5, but strix_halo has 4 rows of cores"),
    (4, 9, None, "array.columns = 9, but strix_halo has 8; use fewer"),
    (4, 4, "npu1", "array.device = npu1, but strix_halo is an npu2; build for phoenix, hawk_point"),
])  # fmt: skip
def test_an_array_is_one_that_the_product_has(rows: int, columns: int, array: str | None, said: str):
    assert "\n".join(array_reasons(array, rows, columns, device_named("strix_halo"))) == said


MULTIPLES = {
    ("AIE2P", "int8", "int8"): "8 8 8", ("AIE2P", "int8", "int4"): "8 8 8", ("AIE2P", "int8", "int2"): "8 8 32",
    ("AIE2P", "bf16", "bf16"): "8 8 8", ("AIE2P", "bfp16", "bfp16"): "8 8 8", ("AIE2P", "bf16", "bfp16"): "8 8 8",
    ("AIE2", "int8", "int8"): "4 8 8", ("AIE2", "int8", "int4"): "4 16 8", ("AIE2", "int8", "int2"): "4 8 32",
    ("AIE2", "bf16", "bf16"): "4 8 4",
}  # fmt: skip
"""Of m, k and n; the MAC shape but for ternary weights, of which four blocks of columns share a byte."""
MILLION = 1 << 20
DEPTHS = {
    ("int8", "int8"): {"int8": MILLION, "int16": MILLION, "int32": 2**17 - 1},
    ("int8", "int4"): {"int16": MILLION, "int32": MILLION}, ("int8", "int2"): {"int32": 2**18 - 1},
    ("bf16", "bf16"): {"bf16": MILLION, "f32": MILLION},
    ("bfp16", "bfp16"): {"bf16": MILLION, "f32": MILLION, "bfp16": MILLION},
    ("bf16", "bfp16"): {"bf16": MILLION, "f32": MILLION, "bfp16": MILLION},
}  # fmt: skip
"""Largest K by accumulator: 2^7 2^7 K and, of ternary weights in a byte's highest field, 64 2^7 K stay below 2^31."""


@pytest.mark.parametrize(("generation", "a", "b"), MULTIPLES)
def test_kernels_are_those_of_the_table(generation: str, a: str, b: str):
    found = {key[3]: kernel for key, kernel in KERNELS.items() if key[:3] == (generation, a, b)}
    same({name: kernel.depth_limit for name, kernel in found.items()}, DEPTHS[a, b], "accumulators and their depths")
    codes = {"int8": "i8", "int16": "i16", "int32": "i32", "int4": "i4", "int2": "i2"}
    for name, kernel in found.items():
        m, k, n = map(int, MULTIPLES[generation, a, b].split())
        assert kernel.multiples == (m, k, n)
        assert (kernel.r, kernel.s, kernel.t) == (m, k, 8 if b == "int2" else n)
        code = codes.get(name, name)
        assert (kernel.multiply, kernel.zero) == (f"mm_{codes.get(a, a)}_{codes.get(b, b)}_{code}", f"zero_{code}")
        blocks = generation == "AIE2P" and "b" in a
        assert (kernel.field_scaled, kernel.block_products) == (b == "int2", blocks)


def test_no_kernel_is_beside_the_table():
    assert {key[:3] for key in KERNELS} == set(MULTIPLES)


@pytest.mark.parametrize(("generation", "a", "b"), MULTIPLES)
def test_a_tile_is_a_multiple_of_what_its_kernel_takes(generation: str, a: str, b: str):
    """A whole one is taken, half of one is refused with the number."""
    device = {"AIE2P": "strix_halo", "AIE2": "phoenix"}[generation]
    types = (a, b, *[next(iter(DEPTHS[a, b]))] * 2)
    sizes = dict(zip("mkn", map(int, MULTIPLES[generation, a, b].split()), strict=True))
    assert reasons({"device": device, "types": types, **sizes}) == []
    for axis, whole in sizes.items():
        for size in (whole // 2, whole + whole // 2):
            (told, *more) = reasons(
                {"device": device, "types": types, **sizes, axis: size, "k_mt": sizes["k"] * 3 // 2 * 2}
            )
            assert f"tile.{axis} = {size} is not a multiple of {whole}, which mm_" in told
            assert all("k_mt" in reason for reason in more)


FINISHED = {
    # accumulator, C, epilogue: symbol and macros of what makes C, None where nothing has to, "" where nothing can.
    ("int32", "int32", ""): None, ("int32", "int32", "relu"): "finish_i32_i32 RELU",
    ("int32", "int8", ""): "finish_i32_i8", ("int32", "int16", "relu"): "finish_i32_i16 RELU",
    ("int32", "bf16", ""): "finish_i32_bf16", ("int32", "bf16", "relu"): "finish_i32_bf16 RELU",
    ("int32", "bf16", "scale"): "finish_i32_bf16 ARRAY_ROWS=2 SCALE",
    ("int32", "bf16", "bias relu"): "finish_i32_bf16 ARRAY_ROWS=2 BIAS RELU",
    ("int16", "int16", ""): None, ("int16", "int8", ""): "", ("int8", "int8", ""): None, ("int8", "int16", ""): "",
    ("f32", "f32", ""): None, ("f32", "bf16", ""): "finish_f32_bf16", ("f32", "bf16", "relu"): "finish_f32_bf16 RELU",
    ("f32", "bf16", "scale bias"): "finish_f32_bf16 ARRAY_ROWS=2 SCALE BIAS", ("bf16", "bf16", ""): None,
    ("bf16", "bf16", "bias"): "", ("bf16", "f32", ""): "", ("f32", "f32", "scale"): "", ("f32", "f32", "relu"): "",
    ("f32", "bfp16", ""): "finish_f32_bfp16", ("bf16", "bfp16", ""): "finish_bf16_bfp16",
}  # fmt: skip


@pytest.mark.parametrize(("accumulator", "c", "epilogue"), FINISHED)
def test_sums_become_c_where_there_is_a_kernel(accumulator: str, c: str, epilogue: str):
    types = ("int8", "int8") if accumulator.startswith("int") else ("bf16", "bf16")
    content = spec_content(
        16, 64, 32, types=(*types, c, accumulator), epilogue=dict.fromkeys(epilogue.split(), True)
    )  # fmt: skip
    spec, device = spec_from(content, "small"), device_named("strix_halo")
    told, wanted = spec_problems(spec, device), FINISHED[accumulator, c, epilogue]
    assert bool(told) == (wanted == ""), told
    if told:
        assert all(name in told[0] for name in (accumulator, c))
        return
    kernel = kernel_for(device.generation, spec)
    assert kernel is not None
    found = finish_for(kernel, spec)
    assert (found and " ".join((found.symbol, *found.defines))) == wanted


@pytest.mark.parametrize(("c", "wanted"), [
    ("int32", "unscale_i32"), ("int8", "finish_i32_i8 FIELD_SCALED"),
    ("bf16", "finish_i32_bf16 FIELD_SCALED ARRAY_ROWS=2 SCALE"),
])  # fmt: skip
def test_sums_of_scaled_fields_are_always_finished(c: str, wanted: str):
    epilogue = {"scale": True} if c == "bf16" else {}
    spec = spec_from(spec_content(16, 64, 32, types=("int8", "int2", c), epilogue=epilogue), "small")
    kernel = kernel_for(device_named("strix_halo").generation, spec)
    assert kernel is not None
    found = finish_for(kernel, spec)
    assert found is not None
    assert " ".join((found.symbol, *found.defines)) == wanted


def test_block_floats_are_finished_only_where_they_are_multiplied():
    (told,) = reasons({"types": ("bf16", "bf16", "bfp16", "f32"), "device": "phoenix"})
    assert told.startswith("types.c = bfp16 needs a kernel that finishes f32 as bfp16; there are")


DEFAULTS = {
    ("int8", "int8", "int8"): "int8", ("int8", "int8", "int16"): "int16", ("int8", "int8", "bf16"): "int32",
    ("int8", "int4", "int16"): "int16", ("int8", "int4", "bf16"): "int32", ("int8", "int2", "int8"): "int32",
    ("int8", "int2", "bf16"): "int32", ("bf16", "bf16", "bf16"): "bf16", ("bf16", "bf16", "f32"): "f32",
    ("bf16", "bfp16", "bfp16"): "bfp16", ("bfp16", "bfp16", "bf16"): "bf16",
}  # fmt: skip


@pytest.mark.parametrize("types", DEFAULTS, ids=" ".join)
def test_sums_are_kept_in_c_s_type_unless_they_would_not_survive_it(types: tuple[str, str, str]):
    assert spec_from(spec_content(16, 16, 32, types=types), "small").accumulator == DEFAULTS[types]


@pytest.mark.parametrize(("changes", "products"), [
    ({"columns": 4}, "phoenix strix_halo"), ({"columns": 5}, "strix_halo"), ({"columns": 8}, "strix_halo"),
    ({"types": BLOCKS}, "strix_halo"), ({"types": ("int8", "bf16", "f32")}, "phoenix strix_halo"),
    ({"array": "npu1"}, "phoenix"), ({"array": "npu2"}, "strix_halo"), ({"array": "npu1", "columns": 8}, "phoenix"),
])  # fmt: skip
def test_a_design_is_for_products_that_have_its_kernel_and_columns(changes: dict[str, Any], products: str):
    """One that no product can compute is for all, so that each says why not; a named array is all that counts."""
    facts: dict[str, Any] = {"m": 16, "k": 16, "n": 32, **changes}
    array = facts.pop("array", None)
    content = spec_content(**facts)
    content["array"] |= {"device": array} if array else {}
    spec = spec_from(content, "small")
    assert [name for name in ("phoenix", "strix_halo") if fits(spec, device_named(name))] == products.split()
