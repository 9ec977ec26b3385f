"""The rules of `bdforge.models.torch` without PyTorch: shapes, types, what becomes of layers, what is refused."""

import copy
import gc
import importlib
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bdforge.models import ModelError
from bdforge.models.weights import TernaryMatrix
from support.differences import same
from support.plain_torch import Module, Tensor, plain_torch

WEIGHTS = np.random.default_rng(1).integers(-1, 2, (70, 52), np.int8)


@pytest.fixture
def ours(monkeypatch) -> Any:
    monkeypatch.setitem(sys.modules, "torch", plain_torch())
    monkeypatch.delitem(sys.modules, "bdforge.models.torch", raising=False)
    yield importlib.import_module("bdforge.models.torch")
    sys.modules.pop("bdforge.models.torch")


class PlainProducts:
    """Codes times weights, a scale to each row and column, in float32."""

    loaded = SimpleNamespace(design=SimpleNamespace(name="plain"))

    def resident(self, name: str, matrix: TernaryMatrix) -> SimpleNamespace:
        return SimpleNamespace(name=name, matrix=matrix)

    def __call__(self, linear: SimpleNamespace, codes: np.ndarray, scales: np.ndarray) -> np.ndarray:
        sums = codes.astype(np.float32) @ linear.matrix.weights.astype(np.float32)
        return sums * scales[:, None] * linear.matrix.column_scales()


def layer(ours: Any, **more: Any) -> Any:
    return ours.BitLinear(PlainProducts(), TernaryMatrix(WEIGHTS, ("w",), (52,), (0.25,)), **more)


def expected(x: np.ndarray, weights: np.ndarray, scale: float) -> np.ndarray:
    """In float64, codes of each row by the formula of `transformers`."""
    x = x.astype(np.float64)
    steps = 127 / np.maximum(np.abs(x).max(-1, keepdims=True), 1e-5)
    return np.rint(x * steps) @ weights.astype(np.float64) / steps * scale


def values(*shape: int) -> np.ndarray:
    return np.random.default_rng(2).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(70,), (3, 70), (2, 5, 70), (0, 70), (2, 0, 70)])
def test_leading_sizes_stay_and_the_last_becomes_the_outputs(ours, shape):
    x, one = values(*shape), layer(ours)
    y = one(Tensor(x))
    assert (y.shape, y.dtype) == ((*shape[:-1], 52), np.float32)
    same(y.numpy(), expected(x, WEIGHTS, 0.25), rtol=1e-5, atol=1e-5)
    fake = ours.bit_linear.fake(Tensor(x), one.number, 52)
    assert (fake.shape, fake.dtype) == (y.shape, y.dtype)


def test_the_norm_comes_first_and_the_bias_last_in_the_type_of_x(ours):
    x, bias = values(4, 70).astype(np.float16), np.arange(52, dtype=np.float16)
    one = layer(ours, bias=Tensor(bias), norm=lambda x: Tensor(x.array * np.float16(2)))
    y = one(Tensor(x))
    assert y.dtype == np.float16
    right = expected((x * np.float16(2)).astype(np.float32), WEIGHTS, 0.25).astype(np.float16) + bias
    same(y.numpy(), right, rtol=2e-3, atol=2e-2)
    assert one.extra_repr() == "w, 70 x 52, on plain"


def theirs(name: str, weight: np.ndarray, **more: Any) -> Module:
    """A layer of `transformers`, by its class's name."""
    made = type(name, (Module,), {})()
    scale = Tensor(np.array(1.75, np.float32))
    facts = {"weight": Tensor(weight), "bias": None, "weight_scale": scale, "rms_norm": None}
    for key, value in (facts | more).items():
        setattr(made, key, value)
    return made


DRAWN = np.random.default_rng(3).standard_normal((52, 70)).astype(np.float32)
BIAS = np.arange(52, dtype=np.float32) / 8
MEAN = float(np.abs(DRAWN).mean())
TERNARY = np.clip(np.rint(DRAWN), -1, 1)
CODES = (TERNARY + 1).astype(np.uint8).reshape(4, 13, 70)  # a byte's fields are a quarter of the outputs apart
PACKED = CODES[0] | CODES[1] << 2 | CODES[2] << 4 | CODES[3] << 6
KINDS = {  # class, stored weights, whether they are quantised at each call; weights and scale used, scale of the bias
    "packed": ("BitLinear", PACKED, False, TERNARY, 1 / 1.75, 1),
    "ternary": ("AutoBitLinear", TERNARY, False, TERNARY, 1.75, 1.75),
    "online": ("AutoBitLinear", DRAWN, True, np.clip(np.rint(DRAWN / MEAN), -1, 1), MEAN, 1),
    "zeros": ("AutoBitLinear", 0 * DRAWN, True, 0 * DRAWN, 1e-5, 1),
}


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_layer_is_taken_by_the_formula_of_transformers(ours, kind, biased):
    name, stored, online, weights, scale, bias_scale = KINDS[kind]
    facts = {"online_quant": online, "bias": Tensor(BIAS) if biased else None}
    model = Module()
    model.inner = Module()  # type: ignore[attr-defined]
    model.inner.proj = theirs(name, stored, **facts)  # type: ignore[attr-defined]
    assert ours.swap(model, PlainProducts()) == ("inner.proj",)
    one: Any = model.inner.proj  # type: ignore[attr-defined]
    assert type(one) is ours.BitLinear
    same(one.linear.matrix.weights, weights.T.astype(np.int8), "weights")
    same(one.linear.matrix.scales, (scale,), rtol=1e-6)
    assert one.linear.name == "inner.proj"
    if biased:
        same(one.bias.numpy(), BIAS * np.float32(bias_scale), "bias")
    assert (one.bias is None) is not biased


def test_only_their_layers_are_swapped_and_each_once(ours):
    model = Module()
    model.first, model.other = theirs("AutoBitLinear", TERNARY, online_quant=False), Module()  # type: ignore[attr-defined]
    other = model.other  # type: ignore[attr-defined]
    model.second = theirs("BitLinear", PACKED)  # type: ignore[attr-defined]
    assert ours.swap(model, PlainProducts()) == ("first", "second")
    assert model.other is other  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match="Module has no BitLinear or AutoBitLinear of transformers, or ours already"):
        ours.swap(model, PlainProducts())
    with pytest.raises(ModelError, match="Module has no BitLinear"):
        ours.swap(Module(), PlainProducts())


def test_a_model_with_a_layer_that_is_not_ternary_stays_as_it_was(ours):
    model = Module()
    first, second = (theirs("AutoBitLinear", stored, online_quant=False) for stored in (TERNARY, DRAWN))
    model.first, model.second = first, second  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match="second: its weights are not all -1, 0 or 1; load a ternary checkpoint"):
        ours.swap(model, PlainProducts())
    assert (model.first, model.second) == (first, second)  # type: ignore[attr-defined]


def test_what_does_not_fit_a_layer_is_refused(ours):
    one = layer(ours)
    for width in (69, 71):
        with pytest.raises(ModelError, match=f"w: rows of {width} were given, it takes 70"):
            one(Tensor(values(2, width)))
    with pytest.raises(ModelError, match="w: packed weights are this process's; save or copy the model before swap"):
        copy.deepcopy(one)
    number, later = one.number, layer(ours)
    assert later.number == number + 1
    del one
    gc.collect()
    with pytest.raises(ModelError, match=f"layer {number} is gone; keep the BitLinear that called it"):
        ours.bit_linear(Tensor(values(2, 70)), number, 52)
    assert later(Tensor(values(2, 70))).shape == (2, 52)


@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.uint8, bool, np.complex64])
def test_only_floats_are_rows(ours, dtype):
    """As of PyTorch's linear layers, and already when fake tensors are traced."""
    one, x = layer(ours), Tensor(np.ones((2, 70), dtype))
    with pytest.raises(ModelError, match=r"w: .* was given, it takes floats"):
        one(x)
    with pytest.raises(ModelError, match=r"bit_linear: .* was given, it takes floats"):
        ours.bit_linear.fake(x, one.number, 52)


def test_a_number_is_no_row(ours):
    one, x = layer(ours), Tensor(np.array(1.0, np.float32))
    with pytest.raises(ModelError, match="w: a tensor of no dimension was given, it takes rows"):
        one(x)
    with pytest.raises(ModelError, match="of no dimension was given"):
        ours.bit_linear.fake(x, one.number, 52)


def test_without_pytorch_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "bdforge.models.torch", raising=False)
    with pytest.raises(
        ImportError, match=r"bdforge.models.torch needs PyTorch \(.*\); install the extra bdforge\[torch\]"
    ):
        importlib.import_module("bdforge.models.torch")
