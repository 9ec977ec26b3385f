"""What plans of GEMVs and element-wise designs refuse, from both sides, and what their cores call; sizes of any."""

from typing import Any

import pytest

from bdforge.devices import device_named
from bdforge.operators import OPERATORS, Plan, SpecError, operator_of, plan, spec_from
from support.built_designs import small_gemm

ONE_CORE = {"array": {"rows": 1, "columns": 1}}
TERNARY, FLOATS = {"a": "int8", "w": "int2", "c": "int32"}, {"a": "bf16", "w": "bf16", "c": "f32"}
CODES = TERNARY | {"w": "int8"}
LEAST: dict[str, dict[str, Any]] = {
    "gemv": ONE_CORE | {"types": TERNARY, "tile": {"k": 64, "n": 32}},
    "elementwise": ONE_CORE | {"function": "mul", "type": "int8", "tile": 64},
}


def planned(kind: str, product: str = "strix_halo", **changes: Any) -> Plan:
    return plan(spec_from({"kind": kind} | LEAST[kind] | changes, "small"), device_named(product))


def refusal(kind: str, product: str, changes: dict[str, Any]) -> str:
    try:
        planned(kind, product, **changes)
    except SpecError as error:
        return str(error)
    return ""


Cases = list[dict[str, Any]]
ANY: dict[str, tuple[str, Cases, Cases]] = {
    # by what is said of either kind: the product, what is taken, what is refused.
    "array.columns = 5, but phoenix has 4": ("phoenix", [{"array": {"columns": 4}}], [{"array": {"columns": 5}}]),
    "but strix_halo is an npu2": ("strix_halo", [{"array": {"device": "npu2"}}, {}], [{"array": {"device": "npu1"}}]),
    "is not a multiple of 64; the buffers": (
        "strix_halo", [{"stack_bytes": 1088}], [{"stack_bytes": 1056}, {"stack_bytes": 1028}],
    ),
    "is not a multiple of 32; the buffers": (
        "phoenix", [{"stack_bytes": 1056}], [{"stack_bytes": 1040}, {"stack_bytes": 1028}],
    ),
}  # fmt: skip
CHECKS: dict[tuple[str, str], tuple[str, Cases, Cases]] = {
    **{(kind, said): cases for kind in LEAST for said, cases in ANY.items()},
    ("gemv", "array.channels = 2 halves the cores of a column"): (
        "phoenix",
        [{"array": {"rows": 2, "channels": 2}}, {"array": {"rows": 3, "channels": 1}}, {"array": {"rows": 3}}],
        [{"array": {"rows": 3, "channels": 2}}, {"array": {"rows": 1, "channels": 2, "columns": 2}}],
    ),
    ("gemv", "int8 x int2 are int32; use it, or bf16"): (
        "strix_halo", [{}, {"types": TERNARY | {"c": "bf16"}}], [{"types": TERNARY | {"c": "f32"}}],
    ),
    ("gemv", "array.first_row = 2 leaves 2 of strix_halo's 4 rows, not the 3 of this design"): (
        "strix_halo", [{"array": {"rows": 2, "first_row": 2}}], [{"array": {"rows": 3, "first_row": 2}}],
    ),
    ("gemv", "array.first_column = 7 leaves 1 of strix_halo's 8 columns, not the 2 of this design"): (
        "strix_halo",
        [{"array": {"columns": 2, "first_column": 6}}], [{"array": {"columns": 2, "first_column": 7}}],
    ),
    ("gemv", "int8 x int8 are int32; use it, or bf16"): (
        "phoenix",
        [{"types": CODES, "tile": {"k": 64, "n": 8}}, {"types": CODES | {"c": "bf16"}}],
        [{"types": CODES | {"c": "f32"}}],
    ),
    ("gemv", "bf16 x bf16 are f32; use it, or bf16"): (
        "strix_halo", [{"types": FLOATS}, {"types": FLOATS | {"c": "bf16"}}], [{"types": FLOATS | {"c": "int32"}}],
    ),
    ("gemv", "on AIE2P; use int8 x int8, int8 x int2 or bf16 x bf16"): (
        "strix_halo", [{"types": FLOATS}],
        [{"types": {"a": "bf16", "w": "int2", "c": "int32"}}, {"types": {"a": "int8", "w": "bf16", "c": "f32"}}],
    ),
    ("gemv", "tile.n = 48 is not a multiple of 32, which mm_i8_i2_i32 needs; use 64"): (
        "phoenix", [{"tile": {"k": 8, "n": 32}}], [{"tile": {"k": 8, "n": 48}}],
    ),
    ("gemv", "tile.k = 12 is not a multiple of 8, which mm_i8_i2_i32 needs; use 16"): (
        "strix_halo", [{"tile": {"k": 8, "n": 64}}], [{"tile": {"k": 12, "n": 64}}],
    ),
    ("gemv", "is not a multiple of 4, which mm_bf16_bf16_f32 needs; use 20"): (
        "phoenix", [{"types": FLOATS, "tile": {"k": 16, "n": 20, "m": 8}}],
        [{"types": FLOATS, "tile": {"k": 16, "n": 18}}],
    ),
    ("gemv", "smaller tile.k, tile.n, buffers.w or stack_bytes"): (
        "strix_halo", [{}, {"buffers": {"w": 12}}], [{"tile": {"k": 4096, "n": 64}}],
    ),
    ("elementwise", "bytes are not a multiple of 64; use a larger tile"): (
        "strix_halo", [{"tile": 128}, {"tile": 32, "type": "bf16"}], [{"tile": 96}, {"tile": 48, "type": "bf16"}],
    ),
    ("elementwise", "bytes are not a multiple of 32; use a larger tile"): (
        "phoenix", [{"tile": 96}, {"tile": 16, "type": "bf16"}], [{"tile": 112}, {"tile": 24, "type": "bf16"}],
    ),
    ("elementwise", "narrowing is of integers; leave it out"): (
        "phoenix",
        [{"narrowing": {"shift": 1}}, {"narrowing": {"rounding": "ceil"}}, {"type": "bf16", "narrowing": {"shift": 0}}],
        [{"type": "bf16", "narrowing": {"shift": 1}}, {"type": "bf16", "narrowing": {"rounding": "floor"}}],
    ),
    # 6 tiles, 4096 bytes of stack and 64 of parameters in 65536.
    ("elementwise", "a smaller tile or stack_bytes"): ("strix_halo", [{"tile": 10176}], [{"tile": 10240}]),
}  # fmt: skip


@pytest.mark.daily(every=2)
@pytest.mark.parametrize(("kind", "said"), CHECKS)
def test_a_check_takes_the_last_and_refuses_the_next(kind: str, said: str):
    product, taken, refused = CHECKS[kind, said]
    assert [refusal(kind, product, case) for case in taken] == [""] * len(taken)
    assert [case for case in refused if said not in refusal(kind, product, case)] == []


@pytest.mark.parametrize(("array", "products"), [
    ({}, "phoenix strix_halo"), ({"columns": 4}, "phoenix strix_halo"), ({"columns": 5}, "strix_halo"),
    ({"device": "npu1"}, "phoenix"), ({"device": "npu2", "columns": 1}, "strix_halo"),
    ({"device": "npu1", "columns": 5}, ""),
])  # fmt: skip
@pytest.mark.parametrize("kind", LEAST)
def test_a_design_is_for_products_with_its_array_and_columns(kind: str, array: dict[str, Any], products: str):
    spec = spec_from({"kind": kind} | LEAST[kind] | {"array": array}, "mine")
    named = [name for name in ("phoenix", "strix_halo") if OPERATORS[kind].fits(spec, device_named(name))]
    assert " ".join(named) == products


@pytest.mark.parametrize(("kind", "changes", "wanted"), [
    ("gemv", {}, "mm_i8_i2_i32 zero_i32 unscale_i32 DIM_M=8 DIM_K=64 DIM_N=32"),
    ("gemv", {"tile": {"m": 3, "k": 64, "n": 32}}, "mm_i8_i2_i32 zero_i32 unscale_i32 DIM_M=8 DIM_K=64 DIM_N=32"),
    ("gemv", {"types": CODES}, "mm_i8_i8_i32 zero_i32 DIM_M=8 DIM_K=64 DIM_N=32"),
    (
        "gemv", {"types": CODES | {"c": "bf16"}},
        "mm_i8_i8_i32 zero_i32 finish_i32_bf16 DIM_M=8 DIM_K=64 DIM_N=32",
    ),
    ("gemv", {"types": FLOATS}, "mm_bf16_bf16_f32 zero_f32 DIM_M=8 DIM_K=64 DIM_N=32"),
    (
        "gemv", {"types": FLOATS | {"c": "bf16"}},
        "mm_bf16_bf16_f32 zero_f32 finish_f32_bf16 DIM_M=8 DIM_K=64 DIM_N=32",
    ),
    ("elementwise", {}, "elementwise_i8 FUNCTION=mul TILE_ELEMENTS=64 SHIFT=0 ROUNDING=conv_even"),
    (
        "elementwise", {"narrowing": {"shift": 9, "rounding": "floor"}},
        "elementwise_i8 FUNCTION=mul TILE_ELEMENTS=64 SHIFT=9 ROUNDING=floor",
    ),
    (
        "elementwise", {"type": "bf16", "function": "add", "tile": 96},
        "elementwise_bf16 FUNCTION=add TILE_ELEMENTS=96",
    ),
])  # fmt: skip
def test_cores_call_what_the_spec_says(kind: str, changes: dict[str, Any], wanted: str):
    kernels = planned(kind, **changes).kernels
    assert " ".join((*kernels.symbols, *kernels.defines)) == wanted
    assert kernels.sources == tuple(f"kernels/aie2p/{symbol}.cc" for symbol in kernels.symbols)


MILLION, BILLION = 1 << 20, 1 << 30
GEMM: dict[str, dict[str, Any]] = {
    "gemm": {"types": ("int8", "int8", "int32")},
    "floats": {"types": ("bf16", "bf16", "f32")},
    "ternary": {},
}
SIZES = {
    # by design: sizes that are taken; by size, what is said of those that are refused.
    "gemm": ([(1, 1, 1), (MILLION, (1 << 17) - 1, MILLION)], {
        (0, 1, 1): "M = 0 is outside 1 to 1048576", (MILLION + 1, 1, 1): "M = 1048577 is outside",
        (1, 0, 1): "K = 0 is outside 1 to 1048576", (1, 1, 0): "N = 0 is outside",
        (1, 1, MILLION + 1): "N = 1048577 is outside 1 to 1048576",
        (1, 1 << 17, 1): "K = 131072 could overflow the sums; at most 131071",
    }),
    "floats": ([(1, MILLION, 1)], {(1, MILLION + 1, 1): "K = 1048577 is outside 1 to 1048576"}),
    "ternary": ([(1, (1 << 18) - 1, 1)], {(1, 1 << 18, 1): "K = 262144 could overflow the sums; at most 262143"}),
    "gemv": ([(8, 1, 1), (1, (1 << 18) - 1, 1), (1, 1, MILLION)], {
        (9, 1, 1): "M = 9 is above tile.m = 8", (0, 1, 1): "M = 0 is outside 1 to 1048576",
        (1, 1 << 18, 1): "K = 262144 could overflow mm_i8_i2_i32's sums; at most 262143",
        (1, 0, 1): "K = 0 is outside 1 to 1048576", (1, 1, 0): "N = 0 is outside 1 to 1048576",
        (1, 1, MILLION + 1): "N = 1048577 is outside 1 to 1048576",
        (9, 1 << 18, 0): "N = 0 is outside .*\n.*M = 9 is above .*\n.*K = 262144 could overflow",
    }),
    "elementwise": ([(1,), (BILLION,)], {
        (0,): "length = 0 is outside 1 to 1073741824", (BILLION + 1,): "length = 1073741825 is outside",
    }),
}  # fmt: skip


@pytest.mark.parametrize("name", SIZES)
def test_a_size_is_taken_at_its_limit_and_refused_beyond(name: str):
    made = planned(name) if name in LEAST else small_gemm(**GEMM[name])
    operator = operator_of(made.spec)
    taken, refused = SIZES[name]
    for sizes in taken:
        made.check(operator.problem(sizes))
    for sizes, said in refused.items():
        with pytest.raises(SpecError, match=said):
            pytest.fail(f"{sizes}: {made.check(operator.problem(sizes))}")
