"""A prompt in one list of commands, a layer each: a built composition of a layer, with other weights each time.

Its tensors have the names of examples/layer/bitnet.toml: x and y, hidden states; sums and scales, a product's that is
to be added to x, and down_sums and f_scales, those that the next layer adds to y; angles; w_... and c_..., norms,
matrices and the matrices' scales; k and v, which the cache keeps. The buffers of these are each layer's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from bdforge.common.messages import InputError, listed
from bdforge.devices.timing import timing_of
from bdforge.devices.types import TYPES
from bdforge.models.bitnet.checkpoint import Checkpoint
from bdforge.models.bitnet.model_config import BitNetConfig
from bdforge.models.errors import ModelError
from bdforge.models.functions import GATES
from bdforge.models.parts import ArrayParts
from bdforge.models.split import PLACES, Ledger
from bdforge.operators import ComposedPlan
from bdforge.operators.attention import AttentionPlan
from bdforge.operators.gemm import GemmSpec
from bdforge.operators.rope import rope_table
from bdforge.perf.bounds.composition_time import list_us, step_times
from bdforge.runtime import Loaded, PackedOperands

_BF16 = TYPES["bf16"].dtype
_NORMS = {"w_norm": "attn_norm", "w_sub": "attn_sub_norm", "w_ffn": "ffn_norm", "w_ffn_sub": "ffn_sub_norm"}
_MATRICES = {"w_qkv": ("q", "k", "v"), "w_o": ("o",), "w_gate": ("gate",), "w_up": ("up",), "w_down": ("down",)}
_STATE = {"x": "y", "sums": "down_sums", "scales": "f_scales"}
"""What a layer takes of the one before, and makes for the next."""


@dataclass(frozen=True, slots=True)
class PackedLayer:
    """The norms and matrices of a layer as the array reads them, and its down projection's scale."""

    operands: PackedOperands
    down_scale: np.ndarray


@dataclass
class ComposedLayer:
    """A loaded composition; each prompt is an entry of the ledger."""

    loaded: Loaded
    plan: ComposedPlan
    ledger: Ledger = field(default_factory=Ledger)

    def __post_init__(self) -> None:
        operands = {operand.name: operand.direction for operand in self.plan.program.operands}
        inputs = {name for name, direction in operands.items() if direction == "in"}
        made = {name for name, direction in operands.items() if direction == "out"}
        needed = {*_STATE, "angles", "c_before", *_NORMS, *_MATRICES}
        known = {*needed, *(name.replace("w_", "c_") for name in _MATRICES)}
        if odd := sorted((inputs - known) | (needed - inputs) | {*_STATE.values(), "k", "v"} - made):
            raise ModelError(
                f"design {self.plan.spec.name} is no layer of BitNet: {listed(odd)}; examples/layer/bitnet.toml has "
                "the names of its tensors"
            )
        places = {operand.name: operand.argument for operand in self.plan.program.operands}
        shared = (*_STATE, "angles", *_STATE.values())
        if beside := [name for name in shared if places[name] in (places["k"], places["v"])]:
            raise ModelError(
                f"design {self.plan.spec.name}: k and v lie in one buffer with {beside[0]}, which all layers share; "
                f"give {beside[0]} another one below [buffers], and compose it again"
            )
        self._us = lru_cache(64)(self._modelled)

    @classmethod
    def among(cls, parts: ArrayParts) -> "ComposedLayer | None":
        """The composition that is one of a model's designs, if one is. ModelError for two."""
        found = [(one.loaded, one.plan) for one in parts.designs if isinstance(one.plan, ComposedPlan)]
        if len(found) > 1:
            raise ModelError(f"{listed(plan.spec.name for _, plan in found)} are compositions of a layer; give one")
        return cls(*found[0], parts.ledger) if found and parts.rule != "cpu" else None

    def check(self, config: BitNetConfig) -> None:
        """ModelError where its designs are of another model: other norms, heads or gate."""
        heads = {"heads": config.num_attention_heads, "kv_heads": config.num_key_value_heads}
        wanted: dict[str, dict[str, Any]] = {
            "rows": {"epsilon": config.rms_norm_eps},
            "attention": {"head_dim": config.head_dim, "causal": True, "window": 0, **heads},
        }  # fmt: skip
        gates = {plan.spec.epilogue.gate for plan in self.plan.parts.values() if isinstance(plan.spec, GemmSpec)}
        if (gate := GATES[config.hidden_act].__name__.removesuffix("_gate")) not in gates:
            raise ModelError(f"design {self.plan.spec.name}: none of its products has the gate {gate} of this model")
        for name, plan in self.plan.parts.items():
            facts = plan.spec.facts
            for key, value in wanted.get(plan.spec.kind, {}).items():
                if facts.get(key, value) != value:
                    raise ModelError(f"design {name} has {key} = {facts[key]}, this model {value}")

    def pack(self, source: Checkpoint, layer: int, before: PackedLayer | None) -> PackedLayer:
        """The norms and matrices of a layer behind another one, or the first."""
        given: dict[str, np.ndarray] = {"c_before": np.zeros(1, np.float32) if before is None else before.down_scale}
        shapes = {operand.name for operand in self.plan.program.operands}
        scales: dict[str, np.ndarray] = {}
        for name, roles in _MATRICES.items():
            matrix = source.matrix(layer, roles)
            given[name], scales[name.replace("w_", "c_")] = matrix.weights, np.asarray(matrix.scales, np.float32)
        given |= {name: scale for name, scale in scales.items() if name in shapes}
        for (name, role), matrix in zip(_NORMS.items(), ("w_qkv", "w_o", "w_gate", "w_down"), strict=True):
            given[name] = source.floats(role, (len(given[matrix]),), layer).astype(_BF16)
        try:
            return PackedLayer(self.loaded.pack(**given), scales["c_down"])
        except InputError as error:
            raise ModelError(f"layer {layer}: {error}") from None

    def __call__(
        self, x: np.ndarray, layers: Sequence[PackedLayer], theta: float, head_dim: int
    ) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
        """States behind the last layer, float32, and the keys, turned, and values (tokens x heads x d) of each layer.

        The first token has position 0.
        """
        tokens = max(len(x), self._least)  # rows behind the last one, which no other looks at: attention is causal
        place, us = PLACES[self.loaded.device], self._us(tokens, len(layers))
        with self.loaded.prepared(tokens=tokens) as state:
            state.arrays["x"][: len(x)] = x
            state.arrays["sums"][...], state.arrays["scales"][...] = 0, 0  # nothing is to be added to the first one's
            state.arrays["angles"][...] = rope_table(np.arange(tokens), head_dim, theta)
            states = [state, *(state.beside("k", "v") for _ in layers[1:])]
            with self.ledger.timed("layers", place, f"{len(layers)} in one list", us):
                runs = [(one, {"weights": packed.operands}) for one, packed in zip(states, layers, strict=True)]
                self.loaded.run_batch(runs)
            shape = len(x), -1, head_dim
            kept = [[one.arrays[name][: len(x)].astype(np.float32).reshape(shape) for name in "kv"] for one in states]
            y, sums, scales = (state.arrays[name][: len(x)].astype(np.float32) for name in _STATE.values())
            return y + sums * (scales.reshape(-1, 1) * layers[-1].down_scale), [(k, v) for k, v in kept]

    @cached_property
    def _least(self) -> int:
        """Tokens of the shortest run: attention takes no fewer keys than a tile has."""
        return max(
            (plan.tiling.keys for plan in self.plan.parts.values() if isinstance(plan, AttentionPlan)), default=1
        )

    def _modelled(self, tokens: int, layers: int) -> float:
        problem, timing = self.plan.spec.operator.problem([tokens]), timing_of(self.plan.device)
        sequence = self.loaded.design.sequence(problem.sizes)
        steps = step_times(self.plan, problem, sequence, timing)
        return layers * sum(step.us + step.change_us for step in steps) + list_us(layers, timing)
