"""Ternary linear layers of PyTorch models on the array: `swap` puts them into a model of `transformers`.

    model = AutoModelForCausalLM.from_pretrained("microsoft/bitnet-b1.58-2B-4T")
    swap(model, Products.of("build/strix_halo/gemm_i8_i2_bf16"))
    model.generate(...)

Each calls the operator `bdforge::bit_linear`, which traces and exports with fake tensors; it has no gradient. Needs
PyTorch 2.6 or newer (the extra `torch`).
"""

from importlib import import_module
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from bdforge.models import ModelError, Products
from bdforge.models.functions import quantised
from bdforge.models.weights import TernaryMatrix
from bdforge.models.weights.huggingface import unpacked

try:
    torch: Any = import_module("torch")
except ImportError as error:
    raise ImportError(f"bdforge.models.torch needs PyTorch ({error}); install the extra bdforge[torch]") from error

_layers: WeakValueDictionary[int, "BitLinear"] = WeakValueDictionary()
_numbers = count()
_LEAST = np.float32(1e-5)  # of a mean that weights are divided by


class BitLinear(torch.nn.Module):
    """x times a ternary matrix K x N and its scales, int8 codes of each row of x: (..., K) to (..., N), of x's type.

    The weights stay packed in memory of the array's device, so they are no part of the module's state.
    """

    def __init__(self, products: Products, matrix: TernaryMatrix, bias: Any = None, norm: Any = None):
        super().__init__()
        self.products, self.linear = products, products.resident(matrix.name, matrix)
        self.in_features, self.out_features = matrix.shape
        self.bias, self.norm = bias, norm
        self.number = next(_numbers)
        _layers[self.number] = self

    def extra_repr(self) -> str:
        """What stands in the model's print."""
        return f"{self.linear.name}, {self.in_features} x {self.out_features}, on {self.products.loaded.design.name}"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise ModelError(f"{self.linear.name}: packed weights are this process's; save or copy the model before swap")

    def forward(self, x: Any) -> Any:
        """The product."""
        x = x if self.norm is None else self.norm(x)
        y = torch.ops.bdforge.bit_linear(x, self.number, self.out_features)
        return y if self.bias is None else y + self.bias


@torch.library.custom_op(
    "bdforge::bit_linear", mutates_args=(), schema="(Tensor x, int layer, int out_features) -> Tensor"
)
def bit_linear(x: Any, layer: int, out_features: int) -> Any:
    """The operator: `layer` is the number of a BitLinear that lives."""
    if (module := _layers.get(layer)) is None:
        raise ModelError(f"bdforge::bit_linear: layer {layer} is gone; keep the BitLinear that called it")
    _check(x, module.linear.name)
    if x.shape[-1] != module.in_features:
        raise ModelError(f"{module.linear.name}: rows of {x.shape[-1]} were given, it takes {module.in_features}")
    rows = x.detach().to("cpu", torch.float32).reshape(-1, module.in_features).numpy()
    y = module.products(module.linear, *quantised(rows)) if len(rows) else np.zeros((0, out_features), np.float32)
    return torch.from_numpy(np.ascontiguousarray(y)).to(x).reshape(*x.shape[:-1], out_features)


def _check(x: Any, name: str) -> None:
    """ModelError for what no linear layer of PyTorch takes either."""
    if not x.is_floating_point():
        raise ModelError(f"{name}: {x.dtype} was given, it takes floats")
    if not x.shape:
        raise ModelError(f"{name}: a tensor of no dimension was given, it takes rows")


@bit_linear.register_fake
def _(x: Any, layer: int, out_features: int) -> Any:
    _check(x, "bdforge::bit_linear")
    return x.new_empty((*x.shape[:-1], out_features))


def swap(model: Any, products: Products) -> tuple[str, ...]:
    """Put a BitLinear in the place of each of `transformers`' BitLinear and AutoBitLinear layers; returns their names.

    ModelError when a model has none, or when weights are not ternary; the model then stays as it was.
    """
    kinds = ("BitLinear", "AutoBitLinear")
    found = {name: module for name, module in model.named_modules() if type(module).__name__ in kinds}
    if not found or any(isinstance(module, BitLinear) for module in found.values()):
        raise ModelError(f"{type(model).__name__} has no BitLinear or AutoBitLinear of transformers, or ours already")
    for name, ours in {name: _made(name, module, products) for name, module in found.items()}.items():
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, ours)
    return tuple(found)


def _made(name: str, module: Any, products: Products) -> BitLinear:
    """Ours for one of theirs, by the formulas of `transformers` (`integrations/bitnet.py`)."""
    stored, bias = module.weight.detach().cpu(), module.bias
    if stored.dtype == torch.uint8:
        weights, scale = unpacked(stored.numpy(), name), 1 / float(module.weight_scale)
    elif module.online_quant:
        values = stored.float().numpy().T
        scale = np.maximum(np.abs(values).mean(), _LEAST)
        weights = np.rint(values * (1 / scale)).clip(-1, 1)
    else:
        weights, scale = stored.float().numpy().T, float(module.weight_scale)
        bias = None if bias is None else bias.detach() * scale
    if not np.isin(weights, (-1, 0, 1)).all():
        raise ModelError(f"{name}: its weights are not all -1, 0 or 1; load a ternary checkpoint")
    codes = np.ascontiguousarray(weights, np.int8)
    matrix = TernaryMatrix(codes, (name,), codes.shape[1:], (float(scale),))
    return BitLinear(products, matrix, bias, module.rms_norm)
