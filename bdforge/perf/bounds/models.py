"""Whole models as sequences of GEMMs on the array and of operators on the CPU, of which designs can do some too.

Sources: BitNet-b1.58-2B-4T (hidden 2560, 30 layers, 5 key-value heads of 128, feed-forward 6912) from its published
configuration; GPT-2 (124M) with llm.c's training step, B = 4 and T = 64, after Roesti and Franz.
`data/cpu_operators.csv` holds measured times of CPU operators with their sources.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from bdforge.common.files import read_csv
from bdforge.perf.bounds.array_operators import ArrayOperator
from bdforge.perf.errors import PerfError

_CPU_TOKENS = 1024  # at which the CPU's rate is taken
_CPU_FILE = Path(__file__).parents[1] / "data" / "cpu_operators.csv"


@dataclass(frozen=True, slots=True)
class Linear:
    """A GEMM of a model, `count` times in all: K and N, and M where the model fixes it (0: the tokens).

    `held`: the orders in which the program holds A, B and C as floats, from which and to which the host copies (none:
    the GEMM takes them as they are). `added`: C is added to what is there. `joined`: submitted with the GEMM before it.
    """

    name: str
    K: int
    N: int
    count: int
    M: int = 0
    held: tuple[str, ...] = ()
    added: bool = False
    joined: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of a layer: the work since the products before, then the products of `linears`.

    `shares`: parts of each CPU operator's time in a layer that fall here. `operators`: designs that can do some of that
    work on the array instead, in the order in which they would follow one another; those that replace a product of the
    stage before come first.
    """

    linears: tuple[str, ...]
    shares: Mapping[str, float]
    operators: tuple[ArrayOperator, ...] = ()


@dataclass(frozen=True, slots=True)
class Model:
    """GEMMs in order, which of them may be one by putting their weights side by side, and what the CPU does.

    `stages` are a layer's; CPU operators without a share in them come once, behind all layers.
    """

    name: str
    linears: tuple[Linear, ...]
    fusions: Mapping[str, tuple[str, ...]]
    cpu: tuple[str, ...] = ()
    linears_on_cpu: str = ""
    stages: tuple[Stage, ...] = ()

    def fused(self, names: tuple[str, ...]) -> tuple[Linear, ...]:
        """The GEMMs with these fusions made; PerfError lists those there are."""
        if unknown := [name for name in names if name not in self.fusions]:
            known = ", ".join(self.fusions) or "none"
            raise PerfError(f"{self.name} has no fusion {', '.join(unknown)}; there is {known}")
        joined = {part: name for name in names for part in self.fusions[name]}
        found: dict[str, Linear] = {}
        for linear in self.linears:
            name = joined.get(linear.name, linear.name)
            before = found.get(name)
            N = linear.N + (before.N if before else 0)
            found[name] = replace(linear, name=name, N=N)
        return tuple(found.values())

    def cpu_ms(self, operator: str, tokens: int) -> float:
        """Milliseconds of an operator on the CPU for so many tokens, between measured points (`_measured`)."""
        points = _measured().get((self.name, operator))
        if points is None:
            raise PerfError(f"nobody measured {operator!r} of {self.name} on a CPU")
        return _between(points, tokens)


def _training(tokens: int, *layers: tuple[str, int, int, int]) -> Iterator[Linear]:
    """Forward Y = X W^T, then dX += dY W and dW += dY^T X of layers (name, inputs, outputs, how many); W is stored with
    a row for each output, as llm.c does, and everything row-major."""
    for name, inputs, outputs, count in layers:
        yield Linear(name, inputs, outputs, count, tokens, ("row", "column", "row"))
    for name, inputs, outputs, count in layers:
        yield Linear(f"dX {name}", outputs, inputs, count, tokens, ("row", "row", "row"), added=True)
        yield Linear(f"dW {name}", tokens, inputs, count, outputs, ("column", "row", "row"), added=True, joined=True)


SCALING, SYNCHRONISING, ATTENTION = "scale results", "synchronise results", "attention"
"""CPU operators that depend on C's type: float results are scaled by the array, narrow ones come back faster. And the
one that takes longer for later tokens."""


_CODES = "quantise activations"


def _rows(width: int, *, residual: bool = False, **changes: int) -> tuple[ArrayOperator, ...]:
    """Norms of rows, with their int8 codes too, and of a residual sum that is written as well."""

    def one(name: str, design: str, *replaces: str) -> ArrayOperator:
        return ArrayOperator(f"{name} of {width}", design, replaces, {"rows": 1}, changes={"width": width, **changes})

    plain = one("norm", "rmsnorm_bf16", "norms"), one("norm and codes", "rmsnorm_codes_bf16", "norms", _CODES)
    whole = one("sum, norm, codes", "residual_rmsnorm_codes_bf16", "residual", "norms", _CODES)
    return (*plain, whole) if residual else plain


def _bitnet_stages() -> tuple[Stage, ...]:
    """Norms and codes go by widths, results by the outputs of the products before."""
    inputs, outputs = (2560, 2560, 2560, 6912), (2560, 3840, 2560, 13824)
    linears = (("q", "k", "v"), ("o",), ("gate", "up"), ("down",))
    own = ({"residual": 0.5}, {"rotary embedding": 1.0, ATTENTION: 1.0, "cache and embedding": 1.0}, {"residual": 0.5},
           {"activation": 1.0})  # fmt: skip
    total = ArrayOperator("residual sum", "add_bf16", ("residual",), {"length": 2560})
    several = ArrayOperator(
        "q, k and v, an array each", "gemm_i8_i2_qkv", ("q", "k", "v"), {"M": 1}, {"K": 2560, "N": 3840}
    )
    rotary = ArrayOperator(
        "rotary embedding", "rope_bf16", ("rotary embedding",), {"tokens": 1}, changes={"heads": 25}
    )  # of queries and keys
    attention = ArrayOperator(ATTENTION, "attention_bf16_bitnet", (ATTENTION,), {"queries": 1, "keys": 1})
    gated = ArrayOperator(
        "gateup, gated", "gemm_i8_i2_gate", ("gate", "up", "activation"), {"M": 1}, {"K": 2560, "N": 6912}
    )
    gate = ArrayOperator("ReLU² · gate", "relu2_gate_bf16", ("activation",), {"length": 6912})
    operators = (
        (total, *_rows(2560, residual=True)), (several, rotary, attention, *_rows(2560)),
        (total, *_rows(2560, residual=True)), (gated, gate, *_rows(6912, buffers=1)),
    )  # fmt: skip
    return tuple(
        Stage(names, {
            **dict.fromkeys(("norms", _CODES), wide / sum(inputs)),
            **dict.fromkeys((SCALING, SYNCHRONISING), results / sum(outputs)), **more,
        }, designs)
        for names, wide, results, more, designs in zip(linears, inputs, outputs, own, operators, strict=True)
    )  # fmt: skip


BITNET = Model(
    "bitnet-2b",
    tuple(Linear(name, K, N, 30) for name, K, N in (
        ("q", 2560, 2560), ("k", 2560, 640), ("v", 2560, 640), ("o", 2560, 2560), ("gate", 2560, 6912),
        ("up", 2560, 6912), ("down", 6912, 2560),
    )),
    {"qkv": ("q", "k", "v"), "gateup": ("gate", "up")},
    (
        ATTENTION, "norms", "activation", "residual", "rotary embedding", "cache and embedding",
        "head of the last token", _CODES, SCALING, SYNCHRONISING,
    ),
    "linears",
    _bitnet_stages(),
)  # fmt: skip
GPT2_TRAIN = Model(
    "gpt2",
    tuple(_training(
        256, ("qkv", 768, 2304, 12), ("attproj", 768, 768, 12), ("fc", 768, 3072, 12), ("fcproj", 3072, 768, 12),
        ("logits", 768, 50304, 1),
    )),
    {},
)  # fmt: skip
MODELS: Mapping[str, Model] = {model.name: model for model in (BITNET, GPT2_TRAIN)}


def model_named(name: str) -> Model:
    """The model called `name`; PerfError lists them."""
    if name not in MODELS:
        raise PerfError(f"no model is called {name!r}; there is {', '.join(MODELS)}")
    return MODELS[name]


def measured_cpu_tops() -> float:
    """TOPS of BitNet's linear layers on a CPU, from their measured time."""
    return 2 * _CPU_TOKENS * macs_per_token() / BITNET.cpu_ms(BITNET.linears_on_cpu, _CPU_TOKENS) / 1e9


def macs_per_token() -> int:
    """Multiply-accumulates of BitNet's linear layers."""
    return sum(linear.K * linear.N * linear.count for linear in BITNET.linears)


@cache
def _measured() -> dict[tuple[str, str], list[tuple[int, float]]]:
    found: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for row in read_csv(_CPU_FILE):
        found.setdefault((row["model"], row["operator"]), []).append((int(row["tokens"]), float(row["ms"])))
    return found


def _between(points: list[tuple[int, float]], tokens: int) -> float:
    """A straight line in logarithms between the points, and on from the last two on either side."""
    x, y = np.log([point[0] for point in points]), np.log([point[1] for point in points])
    at = np.log(tokens)
    right = int(np.clip(np.searchsorted(x, at), 1, len(x) - 1))
    slope = (y[right] - y[right - 1]) / (x[right] - x[right - 1])
    return float(np.exp(y[right - 1] + slope * (at - x[right - 1])))
