"""Products of codes and ternary weights: on which designs, where they run, what the host rounds, what is counted."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from bdforge.models import ModelError, Products, Split
from bdforge.models.processor import processor
from bdforge.models.split import Decision
from bdforge.models.weights import TernaryMatrix
from bdforge.operators.gemm.spec import Epilogue
from support.built_designs import small_gemm
from support.differences import same

NONE, OTHERS = "is no GEMM of int8 with int2 to bf16 or int32; designs/", "its epilogue may scale bf16, and do no more"
SPECS: dict[str, tuple[dict[str, Any], str | None]] = {
    "sums": ({}, None),
    "sums as bf16": ({"c": "bf16"}, None),
    "scaled": ({"c": "bf16", "epilogue": Epilogue(scale=True)}, None),
    "other A": ({"a": "bf16"}, NONE),
    "other B": ({"b": "int4"}, NONE),
    "narrow C": ({"c": "int16"}, NONE),
    "floats": ({"c": "f32", "epilogue": Epilogue(scale=True)}, NONE),
    "scaled sums": ({"epilogue": Epilogue(scale=True)}, OTHERS),
    "a bias": ({"c": "bf16", "epilogue": Epilogue(scale=True, bias=True)}, OTHERS),
    "relu": ({"c": "bf16", "epilogue": Epilogue(scale=True, relu=True)}, OTHERS),
    "relu of sums": ({"epilogue": Epilogue(relu=True)}, OTHERS),
    "a bias of sums": ({"epilogue": Epilogue(bias=True)}, OTHERS),
}


class Array:
    """In a loaded design's place: keeps what is packed and given, and multiplies."""

    def __init__(self, device: str, dtype: Any):
        self.device, self.dtype, self.design, self.made = device, dtype, SimpleNamespace(name="mine"), []

    def pack(self, **named: np.ndarray) -> Any:
        return SimpleNamespace(sizes=dict(zip("KN", named["B"].shape, strict=True)), arrays=named)

    def unpack(self, packed: Any) -> dict[str, np.ndarray]:
        return packed.arrays

    def prepared(self, M: int, K: int, N: int) -> Any:
        self.made.append((M, K, N))
        arrays = {"A": np.zeros((M, K), np.int8), "row_scales": np.ones(M, np.float32)}

        def run(B: Any) -> np.ndarray:
            c = arrays["A"].astype(np.float32) @ B.arrays["B"]
            return (c * arrays["row_scales"][:, None] * B.arrays.get("column_scales", 1)).astype(self.dtype)

        problem = type("Problem", (), {"arrays": arrays, "__call__": staticmethod(run), "take": lambda self: self})
        return problem()


def products(spec: Any, *, array: bool = True, device: str = "xrt", rule: str = "estimate") -> Products:
    decisions: Any = lambda M, K, N: Decision(array, f"{M} {K} {N}", 7.5)  # noqa: E731
    plan = SimpleNamespace(spec=spec)
    here = {"plan": plan, "rule": rule, "processor": processor(), "__call__": staticmethod(decisions)}
    split = type("Split", (), here)()
    made = Array(device, ml_dtypes.bfloat16 if spec.c == "bf16" else np.int32)
    return Products(made, split)  # type: ignore[arg-type]


def test_the_cpu_s_time_of_a_gated_product_is_that_of_both_matrices():
    asked: list[tuple[int, int, int]] = []
    timed: Any = SimpleNamespace(name="mine", us=lambda *sizes: asked.append(sizes) or 1e9)
    gated = small_gemm(k=32, types=("int8", "int2", "bf16"), epilogue={"gate": "relu2"})
    decision = Split(gated, processor=timed)(4, 64, 32)
    assert decision.array
    assert asked == [(4, 64, 64)]


@pytest.mark.parametrize("case", SPECS)
def test_designs_of_products_scale_bf16_or_sum_int32_and_do_no_more(summing, case: str):
    changes, said = SPECS[case]
    spec = replace(summing.plan.spec, **changes)
    if said is None:
        assert products(spec).ledger.entries == {}
        return
    with pytest.raises(ModelError, match=said):
        pytest.fail(f"{case} is taken: {products(spec)}")


@pytest.mark.parametrize("kind", ["sums", "sums as bf16", "scaled"])
@pytest.mark.parametrize(
    ("array", "device", "place"), [(True, "xrt", "NPU"), (True, "emulated", "emulated array"), (False, "xrt", "CPU")]
)
def test_a_product_is_the_same_wherever_it_runs(summing, kind: str, array: bool, device: str, place: str):
    """Sums times a scale to each row and column, in bf16 where the design scales; the NPU's time only where it runs."""
    spec, scaled = replace(summing.plan.spec, **SPECS[kind][0]), kind == "scaled"
    made = products(spec, array=array, device=device)
    weights = np.array([[1, 0, -1], [1, 1, 1], [1, 1, 0]], np.int8)
    linear = made.resident("qkv", TernaryMatrix(weights, ("q", "v"), (2, 1), (0.3, 3.0)))
    assert sorted(linear.packed.arrays) == (["B", "column_scales"] if scaled else ["B"])  # type: ignore[attr-defined]
    same(linear.scales, np.array([0.3, 0.3, 3], np.float32), "column scales")
    for codes in (np.array([[3, -4, 9], [5, 127, 127]], np.int8), np.array([[-128, 127, 1], [1, 0, -2]], np.int8)):
        rows, sums = np.array([0.7, 1.1], np.float32), codes.astype(np.float32) @ weights  # 259 has nine bits
        sums = sums.astype(ml_dtypes.bfloat16).astype(np.float32) if kind == "sums as bf16" else sums
        exact = sums * rows[:, None] * np.array([0.3, 0.3, 3], np.float32)
        wanted = exact.astype(ml_dtypes.bfloat16).astype(np.float32) if scaled else exact
        got = made(linear, codes, rows)
        assert got.dtype == np.float32
        same(got, wanted, "products")
    (entry,) = made.ledger
    assert (entry.part, entry.where, entry.why, entry.calls) == ("qkv", place, "2 3 3", 2)
    assert entry.npu_us == (15.0 if array else None)
    assert made.loaded.made == ([(2, 3, 3)] if array else [])  # type: ignore[attr-defined]


@pytest.mark.parametrize(("rule", "packed", "codes"), [("estimate", 1, 1), ("array", 1, 0), ("cpu", 0, 1)])
def test_a_layer_is_packed_for_where_it_may_run(summing, rule: str, packed: int, codes: int):
    """One for the array alone is packed for the CPU when it is asked for there; one for the CPU alone is refused."""
    made, elsewhere = (products(summing.plan.spec, array=array, rule=rule) for array in (not packed, not codes))
    matrix = TernaryMatrix(np.array([[1], [-1]], np.int8), ("w",), (1,), (0.5,))
    linear = made.resident("w", matrix)
    assert (linear.packed is not None, linear.codes is not None) == (packed, codes)
    assert linear.shape == (2, 1)
    given = np.array([[3, 5]], np.int8), np.ones(1, np.float32)
    if packed:
        same(elsewhere(linear, *given), [[-1]], "w")
        return
    with pytest.raises(ModelError, match="w: was packed for the CPU alone"):
        made(linear, *given)


@pytest.mark.parametrize("array", [False, True])
@pytest.mark.parametrize(("codes", "scales"), [((2, 3), 2), ((2,), 2), ((2, 2), 1), ((1, 2, 2), 1)])
def test_rows_have_the_sizes_of_the_layer(summing, array: bool, codes: tuple[int, ...], scales: int):
    made = products(summing.plan.spec, array=array)
    linear = made.resident("w", TernaryMatrix(np.ones((2, 1), np.int8), ("w",), (1,), (0.5,)))
    with pytest.raises(ModelError, match="w: "):
        made(linear, np.zeros(codes, np.int8), np.ones(scales, np.float32))


def test_memory_of_the_eight_sizes_used_last_is_kept(summing):
    """8 takes the place of 1, which was used before all others; then 1 that of 3."""
    made = products(summing.plan.spec)
    for size in (*range(8), 0, 8, 0, 2, 1):
        made._problem(size, 2, 3)
    assert [M for M, _, _ in made.loaded.made] == [*range(8), 8, 1]  # type: ignore[attr-defined]
