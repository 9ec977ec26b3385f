"""Every combination of a spec's fields is planned or refused with reasons; what is planned has kernels that compile."""

import re
from itertools import product
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bdforge.devices import DEVICES
from bdforge.devices.formats.narrowing import MODES
from bdforge.operators import render
from bdforge.operators.gemm import GemmPlan, SpecError, plan_gemm, sequence, spec_from
from bdforge.operators.gemm.kernels import KERNELS, Kernel
from bdforge.operators.specs import Rounding
from support.built_designs import ROOT, compiler_says, host_defines
from support.family import PRODUCTS
from support.family_oracle import ROUND

C_TYPES = ("int8", "int16", "int32", "bf16", "f32", "bfp16")
DIMENSIONS = ("DIM_M", "DIM_K", "DIM_N", "__AIE_ARCH__")
MATTERS = {
    "mm": (*DIMENSIONS, "DIM_RHO", "SHIFT", "A_TRANSPOSED", "B_TRANSPOSED", "C_TRANSPOSED"),
    "zero": DIMENSIONS,
    "finish": (*DIMENSIONS, "SHIFT", "C_TRANSPOSED", "ARRAY_ROWS", "SCALE", "BIAS", "RELU", "FIELD_SCALED"),
    "unscale": (*DIMENSIONS, "C_TRANSPOSED", "RELU"),
}
"""Macros that a kind of kernel heeds."""

sizes = st.sampled_from((4, 8, 12, 16, 24, 32, 40, 64, 96, 128))


@st.composite
def contents(draw) -> tuple[dict[str, Any], str]:
    """Any spec, types and multiples more often than not those of a kernel, and a product."""
    kernel = draw(st.sampled_from(list(KERNELS.values())))
    tile = {
        axis: draw(st.one_of(sizes, st.just(4 * multiple)))
        for axis, multiple in zip("mkn", kernel.multiples, strict=True)
    }
    types = {"a": kernel.a.name, "b": kernel.b.name, "accumulator": kernel.accumulator.name}
    types["c"] = draw(st.one_of(st.just(kernel.accumulator.name), st.sampled_from(C_TYPES)))
    orders = st.sampled_from(("row", "column"))
    content = {
        "kind": "gemm",
        "types": types,
        "layouts": {"a": draw(orders), "b": draw(st.sampled_from(("packed", "row", "column"))), "c": draw(orders)},
        "array": {"rows": draw(st.integers(1, 4)), "columns": draw(st.integers(1, 8))},
        "tile": tile,
        "buffers": {
            "k_mt": tile["k"] * draw(st.integers(1, 8)) + draw(st.sampled_from((0, 0, 0, 8))),
            "c_buffers": draw(st.integers(1, 2)),
            "c_memtile_buffers": draw(st.integers(1, 2)),
            "rho": draw(st.sampled_from((1, 1, 2, 3))),
            "a_shims": draw(st.sampled_from((1, 1, 2))),
        },
        "epilogue": {"shift": draw(st.sampled_from((0, 0, 5, 16, 24, 31)))}
        | {name: draw(st.sampled_from((False, False, True))) for name in ("scale", "bias", "relu")},
    }
    return content, draw(st.sampled_from((PRODUCTS[kernel.generation.name], "strix_halo", "phoenix")))


@settings(deadline=None, derandomize=True, max_examples=60)
@given(contents(), st.tuples(*[st.integers(1, 300)] * 3))
def test_any_spec_is_planned_rendered_and_sequenced_or_refused_with_reasons(drawn, shape):
    content, product = drawn
    try:
        plan = plan_gemm(spec_from(content, "any"), DEVICES[product])
    except SpecError as refusal:
        reasons = str(refusal).splitlines()
    else:
        reasons = []
        runs(plan, shape)
    assert all(reason.startswith("any: ") and len(reason) > len("any: ") for reason in reasons)


def runs(plan: GemmPlan, shape: tuple[int, int, int]) -> None:
    """What must be there for a plan to run."""
    assert all((ROOT / source).is_file() for source in plan.kernels.sources)
    assert len(sequence(plan, *shape).words())
    assert plan.spec.name in render(plan, [])


def smallest(kernel: Kernel, c: str, layouts: tuple[str, ...], epilogue: tuple[bool, ...]) -> GemmPlan | None:
    """A plan with a few of a kernel's least tiles, whole vectors of block floats too, if there is one."""
    m, k, n = kernel.multiples
    fed = epilogue[0] or epilogue[1]
    content = {
        "kind": "gemm",
        "types": {"a": kernel.a.name, "b": kernel.b.name, "c": c, "accumulator": kernel.accumulator.name},
        "layouts": dict(zip("abc", layouts, strict=True)),
        "array": {"rows": 2, "columns": 2},
        "tile": {"m": 4 * m, "k": (32 if fed else 8) * k, "n": 2 * n},
        "epilogue": dict(zip(("scale", "bias", "relu"), epilogue, strict=True)),
    }
    try:
        return plan_gemm(spec_from(content, "least"), DEVICES[PRODUCTS[kernel.generation.name]])
    except SpecError:
        return None


def compiled(kernel: Kernel) -> set[tuple[str, tuple[str, ...]]]:
    """All that is compiled for a kernel's designs: sources, each with the macros that it heeds."""
    found = set()
    layouts = product(("row", "column"), ("packed", "column"), ("row", "column"))
    for c, orders, epilogue in product(C_TYPES, list(layouts), product((False, True), repeat=3)):
        if (plan := smallest(kernel, c, orders, epilogue)) is None:
            continue
        for source, symbol in zip(plan.kernels.sources, plan.kernels.symbols, strict=True):
            heeded = MATTERS[symbol.partition("_")[0]]
            found.add((source, tuple(macro for macro in host_defines(plan) if macro.partition("=")[0] in heeded)))
    return found


def name_of(kernel: Kernel) -> str:
    return f"{kernel.generation.name}-{kernel.multiply}"


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=name_of)
def test_all_that_is_planned_compiles(kernel):
    wanted = sorted(compiled(kernel))
    assert wanted
    assert {item: said for item in wanted if (said := compiler_says(*item))} == {}


NARROW = [kernel for kernel in KERNELS.values() if kernel.accumulator.name in ("int8", "int16")]


@pytest.mark.daily(every=3)
@pytest.mark.parametrize("kernel", NARROW, ids=name_of)
def test_the_largest_shift_that_is_planned_is_the_largest_that_compiles(kernel):
    def planned(shift: int) -> GemmPlan:
        m, k, n = kernel.multiples
        types = {"a": "int8", "b": kernel.b.name, "c": kernel.accumulator.name, "accumulator": kernel.accumulator.name}
        content = {"kind": "gemm", "types": types, "array": {"rows": 1, "columns": 1}}
        content |= {"tile": {"m": 2 * m, "k": k, "n": 4 * n}, "epilogue": {"shift": shift}}
        return plan_gemm(spec_from(content, "shifted"), DEVICES[PRODUCTS[kernel.generation.name]])

    largest = {"int8": 23, "int16": 15}[kernel.accumulator.name]
    plan = planned(largest)
    assert compiler_says(plan.kernels.sources[0], host_defines(plan)) == ""
    with pytest.raises(SpecError, match=r"a step's sums, C << shift plus A B, can reach \d+, above 2147483647"):
        planned(largest + 1)
    more = tuple(re.sub(r"^SHIFT=\d+", f"SHIFT={largest + 1}", macro) for macro in host_defines(plan))
    assert "make SHIFT or k smaller" in compiler_says(plan.kernels.sources[0], more)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"array": {"device": "npu2", "rows": 2, "columns": 2}},
            r"array.device = npu2, but phoenix is an npu1; build ",
        ),
        (
            {"array": {"rows": 1, "columns": 1}},
            r"the scales of 1 x 4 = 4 rows are no whole vectors of 8; use a tile.m of which array.rows make a multiple",
        ),
    ],
)
def test_what_kernels_could_not_do_is_refused_before(changes, message):
    content = {"kind": "gemm", "types": {"a": "int8", "b": "int8", "c": "bf16"}, "array": {"rows": 2, "columns": 2}}
    content |= {"tile": {"m": 4, "k": 64, "n": 16}, "epilogue": {"scale": True}}
    phoenix = DEVICES["phoenix"]
    assert plan_gemm(spec_from(content, "scaled"), phoenix)
    with pytest.raises(SpecError, match=message):
        plan_gemm(spec_from(content | changes, "scaled"), phoenix)


def test_rounding_modes_are_those_of_the_kernels():
    """One list for specs, kernels, checks and tests."""
    header = (ROOT / "kernels" / "hostapi" / "aie_api" / "modes.hpp").read_text()
    body = re.search(r"enum class rounding_mode : unsigned \{(.*?)\}", header, re.DOTALL)
    assert body is not None
    named = set(re.findall(r"(\w+) = \d+", body[1]))
    assert named == set(get_args(Rounding)) == set(MODES) == set(ROUND)
