"""BitNet b1.58, token ids in, logits out: ternary products by `Products`, all else by `ArrayParts` or in numpy."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from os import PathLike
from types import MappingProxyType
from typing import Any

import numpy as np

from bdforge.common.messages import listed
from bdforge.models.bitnet.cache import Cache
from bdforge.models.bitnet.carried import Carried
from bdforge.models.bitnet.checkpoint import Checkpoint
from bdforge.models.bitnet.composed_head import ComposedHead
from bdforge.models.bitnet.composed_layers import ComposedLayers
from bdforge.models.bitnet.model_config import BitNetConfig
from bdforge.models.errors import ModelError
from bdforge.models.functions import GATES, attention, quantised, rms_norm, rotated
from bdforge.models.linear import Products, TernaryLinear
from bdforge.models.parts import ArrayParts, PartDesign
from bdforge.models.weights import QuantisedRows
from bdforge.operators.rope import rope_table

_WHY = {
    "embedding": "rows of a table",
    "norms": "no design for it",
    "quantise": "no design for it",
    "rotary embedding": "no design for it",
    "attention": "no design for it",
    "gate": "no design for it",
    "residual": "added to float32 that stays on the host",
    "head": "floats, for one token",
}
"""Why parts are the CPU's."""
Request = tuple[TernaryLinear, np.ndarray, np.ndarray]
Steps = Generator[Request, np.ndarray, np.ndarray]
"""A micro-batch under way: yields products that it needs, takes their results, returns its last hidden states."""


@dataclass(frozen=True, slots=True)
class Layer:
    """Four matrices, query, key and value side by side as gate and up are, and four norms."""

    qkv: TernaryLinear
    out: TernaryLinear
    gate_up: TernaryLinear
    down: TernaryLinear
    attn_norm: np.ndarray
    attn_sub_norm: np.ndarray
    ffn_norm: np.ndarray
    ffn_sub_norm: np.ndarray

    @property
    def linears(self) -> tuple[TernaryLinear, ...]:
        """The matrices, in order."""
        return self.qkv, self.out, self.gate_up, self.down


@dataclass(frozen=True, eq=False)
class BitNet:
    """A model in memory: embedding and head as in the file, float32 norms, packed matrices."""

    config: BitNetConfig
    products: Products
    embedding: np.ndarray | QuantisedRows
    head: np.ndarray | QuantisedRows
    final_norm: np.ndarray
    layers: tuple[Layer, ...]
    parts: ArrayParts = field(default_factory=ArrayParts)
    composed: ComposedLayers = field(default_factory=ComposedLayers)

    @classmethod
    def load(
        cls, path: str | PathLike[str], products: Products, loaded: Callable[[int, int], None] = lambda layer, of: None,
        override: Mapping[str, Any] = MappingProxyType({}), parts: ArrayParts | None = None,
        composed: ComposedLayers | None = None,
    ) -> "BitNet":  # fmt: skip
        """Read a folder of Hugging Face's or a .gguf file, layer by layer, straight into the array's layout.

        `loaded` is told of each layer that is there; `override` and errors as of `Checkpoint.open`. Functions for which
        `parts` has no design are numpy's. Tokens go through `composed` as far as it has layers for them.
        """
        source = Checkpoint.open(path, override)
        config, parts, composed = source.config, parts or ArrayParts(), composed or ComposedLayers()
        for one in (*composed, *([composed.head] if composed.head else [])):
            one.check(config)
        embedding = source.table("embedding", (config.vocab_size, config.hidden_size))
        head = embedding if (own := source.head()) is None else own
        layers, special = [], _special(config, products, parts)
        for number in range(config.num_hidden_layers):
            layers.append(_layer(source, number, products, special))
            for one in composed:
                one.pack(source, number)
            loaded(number + 1, config.num_hidden_layers)
        if composed.head is not None:
            composed.head.pack(source, head, next((one.packed[-1].scales["down"] for one in composed), 0.0))
        norm = source.floats("final_norm", (config.hidden_size,)).astype(np.float32)
        return cls(config, products, embedding, head, norm, tuple(layers), parts, composed)

    def cache(self) -> Cache:
        """An empty one."""
        return Cache(len(self.layers), self.config.num_key_value_heads, self.config.head_dim)

    def check(self, ids: Sequence[int]) -> None:
        """ModelError for no tokens, or one that is none of the vocabulary."""
        if not len(ids):
            raise ModelError("a prompt needs a token at least")
        if odd := [id_ for id_ in ids if not 0 <= id_ < self.config.vocab_size]:
            raise ModelError(
                f"the vocabulary has tokens 0 to {self.config.vocab_size - 1}, not {listed(map(str, odd), ', ')}"
            )

    def check_length(self, tokens: int) -> None:
        """ModelError for more tokens than the model was made for."""
        if tokens > (most := self.config.max_position_embeddings):
            raise ModelError(f"{tokens} tokens are more than the {most} positions of this model")

    def hidden(self, ids: Sequence[int], cache: Cache, micro_batch: int = 0) -> np.ndarray:
        """States of the next tokens behind the last layer: float32, tokens x hidden; `cache` holds them afterwards.

        With `micro_batch` so many tokens at a time: while the array multiplies for one of them, the CPU works for
        another. ModelError as of `check`, for more positions than the model was made for, for damaged floats, and for
        a cache that another thread uses.
        """
        return self._behind_layers(ids, cache, micro_batch).summed()

    def next_logits(self, ids: Sequence[int], cache: Cache, micro_batch: int = 0) -> np.ndarray:
        """Logits behind the last of the next tokens, float32 of the vocabulary: of `hidden`, or by a composition of the
        model's end, which adds the last product, too. Errors as of `hidden`."""
        head, ledger = self.composed.head, self.products.ledger
        decided = head is None or head.decision is not None or self.parts.rule != "estimate"
        if head is not None and decided and (head.decision is None or head.decision.array):
            carried = self._behind_layers(ids, cache, micro_batch, head)
            logits = head(carried.last) if carried.logits is None else carried.logits
            _check_finite(logits, "logits")
            return logits
        states = self._behind_layers(ids, cache, micro_batch).last.summed()
        before = ledger.us
        logits = self.logits(states)[0]
        if head is not None and not decided:
            head.compare(ledger.us - before)
        return logits

    def _behind_layers(
        self, ids: Sequence[int], cache: Cache, micro_batch: int, head: ComposedHead | None = None
    ) -> Carried:
        """With `head` logits behind the last token, too, where the list of its layers can have that."""
        self.check(ids)
        with cache.held():
            return self._hidden(ids, cache, micro_batch, head)

    def _hidden(self, ids: Sequence[int], cache: Cache, micro_batch: int, head: ComposedHead | None) -> Carried:
        first, size = cache.length, min(micro_batch or len(ids), len(ids))
        self.check_length(first + len(ids))
        found = self.composed.fastest(size, first)
        if found is None:
            return self._by_parts(ids, cache, micro_batch)
        if len(ids) > 1 or self.parts.rule != "estimate":
            parts = [ids[i : i + size] for i in range(0, len(ids), size)]
            ends = [None] * (len(parts) - 1) + [head]
            return Carried.joined([self._layers(part, cache, end) for part, end in zip(parts, ends, strict=True)])
        layer, _ = found
        if layer.decision is None:
            before = self.products.ledger.us
            y = self._by_parts(ids, cache)
            layer.compare(first, self.products.ledger.us - before)
            return y
        return self._layers(ids, cache, head) if layer.decision.array else self._by_parts(ids, cache)

    def _by_parts(self, ids: Sequence[int], cache: Cache, micro_batch: int = 0) -> Carried:
        """Product by product."""
        first = cache.length
        size = micro_batch or len(ids)
        batches = [self._steps(ids[i : i + size], first + i, cache) for i in range(0, len(ids), size)]
        made = self._alone(batches[0]) if len(batches) == 1 else self._in_turn(batches)
        return Carried.whole(np.concatenate(list(made)))

    def _embedded(self, ids: Sequence[int]) -> np.ndarray:
        with self._cpu("embedding"):
            return self.embedding[np.asarray(ids)].astype(np.float32)

    def _layers(self, ids: Sequence[int], cache: Cache, head: ComposedHead | None) -> Carried:
        """By compositions, a command a layer."""
        made = self.composed(self._embedded(ids), cache, self.config.rope_theta, head)
        for array in made:
            _check_finite(array, "what the last layer gives")
        return made

    def logits(self, hidden: np.ndarray) -> np.ndarray:
        """Of each state: float32, tokens x vocabulary."""
        with self._cpu("head"), np.errstate(all="ignore"):
            x = rms_norm(hidden, self.final_norm, self.config.rms_norm_eps)
            out = self.products.split.processor.floats(x, self.head)
        _check_finite(out, "logits")
        return out

    def _alone(self, steps: Steps) -> Iterator[np.ndarray]:
        request = next(steps)
        while True:
            try:
                request = steps.send(self.products(*request))
            except StopIteration as end:
                yield end.value
                return

    def _in_turn(self, batches: Sequence[Steps]) -> Iterator[np.ndarray]:
        """Products are made one after the other, so a micro-batch is never ahead of those before it, whose keys and
        values it needs."""
        with ThreadPoolExecutor(1) as array:
            waiting = deque((steps, array.submit(self.products, *next(steps))) for steps in batches)
            while waiting:
                steps, product = waiting.popleft()
                try:
                    request = steps.send(product.result())
                except StopIteration as end:
                    yield end.value
                else:
                    waiting.append((steps, array.submit(self.products, *request)))

    def _steps(self, ids: Sequence[int], first: int, cache: Cache) -> Steps:
        x = self._embedded(ids)
        y: np.ndarray | None = None
        for number, layer in enumerate(self.layers):
            x, request = self._request(layer.qkv, x, layer.attn_norm, y)
            qkv = yield request
            _, request = self._request(layer.out, self._attended(qkv, first, number, cache), layer.attn_sub_norm)
            y = yield request
            x, request = self._request(layer.gate_up, x, layer.ffn_norm, y)
            made = yield request
            narrow = made.shape[1] == self.config.intermediate_size  # the array gated it
            z = made if narrow else self._gated(*np.split(made, 2, axis=1))
            _, request = self._request(layer.down, z, layer.ffn_sub_norm)
            y = yield request
        with self._cpu("residual"):
            return x if y is None else x + y

    def _request(
        self, linear: TernaryLinear, x: np.ndarray, norm: np.ndarray, added: np.ndarray | None = None
    ) -> tuple[np.ndarray, Request]:
        """x, with what is added to it, and the product of it, normalised and quantised."""
        sizes, facts = (len(x),), self._rows(x, codes=True)
        if added is not None:
            if design := self.parts.design(**facts, residual=True):
                inputs = {"X": x, "R": added, "W": norm}
                total, codes, scales = self.parts(
                    "residual, norm, codes", design, sizes, inputs, lambda: self._coded(linear, x + added, norm)
                )
                return total, (linear, codes, scales)
            with self._cpu("residual"):
                x = x + added
        if design := self.parts.design(**facts, residual=False):
            codes, scales = self.parts(
                "norm and codes", design, sizes, {"X": x, "W": norm}, lambda: self._coded(linear, x, norm)[1:]
            )
            return x, (linear, codes, scales)
        h = self._normed(x, norm)
        _check_finite(h, f"what {linear.name} gets")
        with self._cpu("quantise"):
            return x, (linear, *quantised(h))

    def _rows(self, x: np.ndarray, **facts: bool) -> dict[str, Any]:
        """What a design for norms of x says."""
        epsilon = self.config.rms_norm_eps
        return {"kind": "rows", "function": "rmsnorm", "width": x.shape[1], "epsilon": epsilon, **facts}

    def _coded(self, linear: TernaryLinear, x: np.ndarray, norm: np.ndarray) -> list[np.ndarray]:
        """x, the codes of its norm and their scales, on the CPU."""
        with np.errstate(all="ignore"):
            h = rms_norm(x, norm, self.config.rms_norm_eps)
        _check_finite(h, f"what {linear.name} gets")
        return [x, *quantised(h)]

    def _normed(self, x: np.ndarray, norm: np.ndarray) -> np.ndarray:
        epsilon = self.config.rms_norm_eps

        def on_cpu() -> np.ndarray:
            with np.errstate(all="ignore"):
                return rms_norm(x, norm, epsilon)

        design = self.parts.design(**self._rows(x, codes=False), residual=False)
        return self._part("norms", design, (len(x),), {"X": x, "W": norm}, on_cpu)

    def _gated(self, gate: np.ndarray, up: np.ndarray) -> np.ndarray:
        function = GATES[self.config.hidden_act]
        design = self.parts.design(kind="elementwise", function=function.__name__, type="bf16")
        inputs = {"A": gate.ravel(), "B": up.ravel()}
        return self._part("gate", design, (gate.size,), inputs, lambda: function(gate, up)).reshape(gate.shape)

    def _part(
        self, part: str, design: PartDesign | None, sizes: tuple[int, ...], inputs: Mapping[str, np.ndarray],
        on_cpu: Callable[[], np.ndarray],
    ) -> np.ndarray:  # fmt: skip
        """By a design, where there is one and it is faster."""
        if design is None:
            with self._cpu(part):
                return on_cpu()
        return self.parts(part, design, sizes, inputs, lambda: [on_cpu()])[0]

    def _attended(self, qkv: np.ndarray, first: int, number: int, cache: Cache) -> np.ndarray:
        config = self.config
        ends = np.cumsum([config.query_size, config.key_size])
        q, k, v = (part.reshape(len(qkv), -1, config.head_dim) for part in np.split(qkv, ends, axis=1))
        q, k = self._turned(q, k, first)
        k, v = cache.appended(number, k, v)
        heads = {"heads": config.num_attention_heads, "kv_heads": config.num_key_value_heads}
        design = self.parts.design(kind="attention", causal=True, window=0, head_dim=config.head_dim, **heads)
        sizes, inputs = (len(q), len(k)), {"Q": q, "K": k, "V": v}
        return self._part("attention", design, sizes, inputs, lambda: attention(q, k, v)).reshape(len(q), -1)

    def _turned(self, q: np.ndarray, k: np.ndarray, first: int) -> Iterable[np.ndarray]:
        """Queries and keys of positions from `first` on; a design turns the heads of both."""
        theta, size = self.config.rope_theta, self.config.head_dim
        heads = {"heads": q.shape[1] + k.shape[1], "head_dim": size}
        design = self.parts.design(kind="rope", pairs="halves", **heads)
        if design is None:
            with self._cpu("rotary embedding"):
                return rotated(q, first, theta), rotated(k, first, theta)
        both = np.concatenate([q, k], axis=1)
        inputs = {"X": both, "T": rope_table(np.arange(first, first + len(q)), size, theta).astype(np.float32)}
        turned = self._part("rotary embedding", design, (len(q),), inputs, lambda: rotated(both, first, theta))
        return np.split(turned, [q.shape[1]], axis=1)

    def _cpu(self, part: str) -> AbstractContextManager[None]:
        return self.products.ledger.timed(part, "CPU", _WHY[part])


def _check_finite(x: np.ndarray, what: str) -> None:
    if not np.isfinite(x).all():
        raise ModelError(f"{what}: not all are finite numbers; the file's floats are damaged, get it again")


def _special(config: BitNetConfig, products: Products, parts: ArrayParts) -> dict[str, Products]:
    """Products of designs for some of a layer's matrices, by what these are called."""
    function = GATES[config.hidden_act].__name__.removesuffix("_gate")
    columns = (config.query_size, config.key_size, config.key_size)
    found = {"gate_up": parts.product(gate=function), "qkv": parts.product(outputs=columns)}
    return {name: products.beside(one.loaded, one.plan) for name, one in found.items() if one is not None}


def _layer(source: Checkpoint, number: int, products: Products, special: Mapping[str, Products]) -> Layer:
    config = source.config
    sizes = {
        "attn_norm": config.hidden_size, "attn_sub_norm": config.query_size, "ffn_norm": config.hidden_size,
        "ffn_sub_norm": config.intermediate_size,
    }  # fmt: skip
    norms = {role: source.floats(role, (size,), number).astype(np.float32) for role, size in sizes.items()}

    def packed(name: str, *roles: str) -> TernaryLinear:
        return special.get(name, products).resident(name, source.matrix(number, roles))

    return Layer(
        packed("qkv", "q", "k", "v"), packed("out", "o"), packed("gate_up", "gate", "up"), packed("down", "down"),
        **norms,
    )  # fmt: skip
