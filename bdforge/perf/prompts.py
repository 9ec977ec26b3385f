"""Prompts of others' whole models: their operators, and a part for each layer that no operator tells.

`ms = layers·(layer_ms + weight_ms·weights + operators(tokens) + token_us·tokens + pair_ns·heads·head_dim·tokens²)`.
FastFlowLM's products are those of its shipped overlay (Krackan); its other operators, which nobody measured alone, are
`token_us` of a layer and `pair_ns` of a pair of tokens. mlir-air's (Strix) are all operators of
`compiled_operators.csv`, so that `layer_ms` alone is fitted. `python -m tools.fit` fits `data/prompt_parts.csv` to
`data/published_prompts.csv`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from bdforge.common.files import read_csv
from bdforge.common.messages import clip
from bdforge.perf.bounds.case import GemmCase
from bdforge.perf.bounds.estimate import estimate
from bdforge.perf.errors import PerfError
from bdforge.perf.operator_rows import OperatorRow, operator_row
from bdforge.perf.rows import DATA

MODELS_FILE, PROMPTS_FILE, PARTS_FILE = (
    DATA / f"{name}.csv" for name in ("published_models", "published_prompts", "prompt_parts")
)
_CHUNK = 2048  # tokens that a product takes at once
_CAST = ("drain herd 8x4 tile 32/256/32/128", "fused-cast herd 8x4 tile 64/256/32/128")  # mlir-air takes the faster one


@dataclass(frozen=True, slots=True)
class ModelSizes:
    """A decoder with gated feed-forward layers."""

    layers: int
    hidden: int
    inner: int
    heads: int
    kv_heads: int
    head_dim: int

    @property
    def products(self) -> tuple[tuple[int, int, int], ...]:
        """K, N and how often in a layer: q, k and v, o, gate and up, down."""
        width, kv_width = self.heads * self.head_dim, self.kv_heads * self.head_dim
        hidden, inner = self.hidden, self.inner
        return (hidden, width, 1), (hidden, kv_width, 2), (width, hidden, 1), (hidden, inner, 2), (inner, hidden, 1)

    @property
    def weights(self) -> float:
        """Millions in a layer."""
        return sum(k * n * count for k, n, count in self.products) / 1e6


@dataclass(frozen=True, slots=True)
class PromptParts:
    """What a source's layers take beside the operators that are modelled alone: by layer, weights, tokens, pairs."""

    layer_ms: float
    weight_ms: float = 0.0
    token_us: float = 0.0
    pair_ns: float = 0.0

    def ms(self, sizes: ModelSizes, tokens: int) -> float:
        """Of one layer."""
        pairs = sizes.heads * sizes.head_dim * tokens**2
        return (
            self.layer_ms + self.weight_ms * sizes.weights + self.token_us * tokens / 1e3 + self.pair_ns * pairs / 1e6
        )


@dataclass(frozen=True, slots=True)
class Prompt:
    """A published prompt: whose, of which model, tokens, milliseconds."""

    source: str
    model: str
    tokens: int
    ms: float

    @property
    def sizes(self) -> ModelSizes:
        return model_sizes(self.model)

    @property
    def operators_ms(self) -> float:
        """Of all layers."""
        return self.sizes.layers * OPERATORS[self.source](self.sizes, self.tokens)

    def modelled_ms(self, parts: Mapping[str, PromptParts] | None = None) -> float:
        """Operators and the rest."""
        rest = (prompt_parts() if parts is None else parts)[self.source]
        return self.operators_ms + self.sizes.layers * rest.ms(self.sizes, self.tokens)


def prompt_of(fields: Mapping[str, str]) -> Prompt:
    """A row of the table."""
    return Prompt(fields["source"], fields["model"], int(fields["tokens"]), float(fields["ms"]))


@cache
def published_prompts() -> tuple[Prompt, ...]:
    """All rows of the table."""
    return tuple(map(prompt_of, read_csv(PROMPTS_FILE)))


@cache
def prompt_parts() -> Mapping[str, PromptParts]:
    """The fitted parts by source."""
    names = ("layer_ms", "weight_ms", "token_us", "pair_ns")
    return {row["source"]: PromptParts(*(float(row[name]) for name in names)) for row in read_csv(PARTS_FILE)}


@cache
def model_sizes(name: str) -> ModelSizes:
    """Of a published model; PerfError lists the known ones."""
    rows = {row["model"]: row for row in read_csv(MODELS_FILE)}
    if name not in rows:
        raise PerfError(f"sizes of model {clip(repr(name))} are not known; known: {', '.join(rows)}")
    return ModelSizes(*(int(value) for key, value in rows[name].items() if key != "model"))


@cache
def _flm_ms(sizes: ModelSizes, tokens: int) -> float:
    rows = min(tokens, _CHUNK)
    cases = (
        (GemmCase(device="krackan", a="bf16", b="bf16", c="bf16", m=64, k=32, n=128, k_mt=256, rows=4, columns=8,
                  M=rows, K=k, N=n, b_layout="packed", compiler="peano", c_buffers=2), count)
        for k, n, count in sizes.products
    )  # fmt: skip
    return sum(count * estimate(case).time_us for case, count in cases) * tokens / rows / 1e3


@cache
def _air_ms(sizes: ModelSizes, tokens: int) -> float:
    """Products, two norms and sums, the gate, both rotations and causal attention, one command each."""
    head_dim, heads = sizes.head_dim, f"{sizes.heads}/{sizes.kv_heads}"
    runs = [
        *2 * [("RMSNorm", f"{tokens}x{sizes.hidden}", "8")], *2 * [("EltwiseAdd", f"{tokens * sizes.hidden}", "8/1")],
        ("SiLU_Mul", f"{tokens * sizes.inner}", "8/1"),
        *(("RoPE", f"{tokens * count}x{head_dim}", "8/1") for count in (sizes.heads, sizes.kv_heads)),
        ("FlashAttention", f"{tokens}x{tokens} d{head_dim} heads {heads}", "causal"),
    ]  # fmt: skip
    products = (
        count * min(_air_us("GEMM", f"{tokens}x{k}x{n}", way) for way in _CAST) for k, n, count in sizes.products
    )
    return (sum(_air_us(*run) for run in runs) + sum(products)) / 1e3


@cache
def _air_us(operator: str, shape: str, config: str) -> float:
    names = ("operator", "shape", "config", "device", "types", "source")
    row = operator_row(dict(zip(names, (operator, shape, config, "strix", "bf16", "mlir-air"), strict=True)))
    return row.case.time_us() if isinstance(row, OperatorRow) else estimate(row.case).time_us


OPERATORS: Mapping[str, Callable[[ModelSizes, int], float]] = {"flm": _flm_ms, "mlir-air": _air_ms}
"""Milliseconds of a layer's operators by source."""
