"""Layers of a model in one list of commands: a built composition of a layer, with other weights each time.

Its tensors have the names of examples/layer/bitnet.toml: x and y, hidden states; sums and scales, a product's that is
to be added to x, and down_sums and f_scales, those that the next layer adds to y; angles; w_... and c_..., norms,
matrices and the matrices' scales; k and v, which a cache keeps, and where one token at a time runs (bitnet_token.toml)
k_cache and v_cache, of which they are rows. The buffers of these are each layer's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from bdforge.common.messages import InputError, listed
from bdforge.devices.timing import timing_of
from bdforge.devices.types import TYPES
from bdforge.models.bitnet.checkpoint import Checkpoint
from bdforge.models.bitnet.model_config import BitNetConfig
from bdforge.models.errors import ModelError
from bdforge.models.functions import GATES
from bdforge.models.split import PLACES, Ledger
from bdforge.operators import ComposedPlan
from bdforge.operators.attention import AttentionPlan
from bdforge.operators.gemm import GemmSpec
from bdforge.operators.rope import rope_table
from bdforge.perf.bounds.composition_time import list_us, step_times
from bdforge.runtime import Loaded, PackedOperands, Prepared

_BF16 = TYPES["bf16"].dtype
_NORMS = {"w_norm": "attn_norm", "w_sub": "attn_sub_norm", "w_ffn": "ffn_norm", "w_ffn_sub": "ffn_sub_norm"}
_Matrices = dict[str, tuple[str, ...]]
_MATRICES: _Matrices = {"w_qkv": ("q", "k", "v"), "w_o": ("o",), "w_down": ("down",)}
_GATE_AND_UP: tuple[_Matrices, _Matrices] = {"w_gate": ("gate",), "w_up": ("up",)}, {"w_gate_up": ("gate", "up")}
"""Apart, and as one product."""
_STATE = {"x": "y", "sums": "down_sums", "scales": "f_scales"}
"""What a layer takes of the one before, and makes for the next."""


@dataclass(frozen=True, slots=True)
class PackedLayer:
    """The norms and matrices of a layer as the array reads them, and its down projection's scale."""

    operands: PackedOperands
    down_scale: np.ndarray


@dataclass
class ComposedLayer:
    """A loaded composition and the layers of a model that run by it; each list is an entry of the ledger."""

    loaded: Loaded
    plan: ComposedPlan
    ledger: Ledger = field(default_factory=Ledger)
    packed: list[PackedLayer] = field(default_factory=list)
    CACHES: ClassVar[tuple[str, ...]] = ()
    """Inputs that hold what came before."""

    def __post_init__(self) -> None:
        operands = {operand.name: operand.direction for operand in self.plan.program.operands}
        inputs = {name for name, direction in operands.items() if direction == "in"}
        made = {name for name, direction in operands.items() if direction == "out"}
        needed = {*_STATE, "angles", "c_before", *_NORMS, *self.matrices, *self.CACHES}
        known = {*needed, *(name.replace("w_", "c_") for name in self.matrices)}
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

    @property
    def matrices(self) -> _Matrices:
        """What each of its matrices is made of."""
        together = any(operand.name in _GATE_AND_UP[1] for operand in self.plan.program.operands)
        return _MATRICES | _GATE_AND_UP[together]

    def check(self, config: BitNetConfig) -> None:
        """ModelError where its designs are of another model: other norms, heads or gate."""
        heads = {"heads": config.num_attention_heads, "kv_heads": config.num_key_value_heads}
        wanted: dict[str, dict[str, Any]] = {
            "rows": {"epsilon": config.rms_norm_eps},
            "attention": {"head_dim": config.head_dim, "causal": True, "window": 0, **heads},
        }  # fmt: skip
        specs = [plan.spec for plan in self.plan.parts.values()]
        gates = {spec.epilogue.gate for spec in specs if isinstance(spec, GemmSpec)}
        gates |= {str(spec.facts["function"]).removesuffix("_gate") for spec in specs if spec.kind == "elementwise"}
        if (gate := GATES[config.hidden_act].__name__.removesuffix("_gate")) not in gates:
            raise ModelError(f"design {self.plan.spec.name}: none of its products has the gate {gate} of this model")
        for name, plan in self.plan.parts.items():
            facts = plan.spec.facts
            for key, value in wanted.get(plan.spec.kind, {}).items():
                if facts.get(key, value) != value:
                    raise ModelError(f"design {name} has {key} = {facts[key]}, this model {value}")

    def pack(self, source: Checkpoint, layer: int) -> None:
        """The norms and matrices of the next layer."""
        before = self.packed[-1].down_scale if self.packed else np.zeros(1, np.float32)
        given: dict[str, np.ndarray] = {"c_before": before}
        shapes = {operand.name for operand in self.plan.program.operands}
        scales: dict[str, np.ndarray] = {}
        for name, roles in self.matrices.items():
            matrix = source.matrix(layer, roles)
            given[name], scales[name.replace("w_", "c_")] = matrix.weights, np.asarray(matrix.scales, np.float32)
        given |= {name: scale for name, scale in scales.items() if name in shapes}
        for (name, role), matrix in zip(_NORMS.items(), ("w_qkv", "w_o", "w_qkv", "w_down"), strict=True):
            given[name] = source.floats(role, (len(given[matrix]),), layer).astype(_BF16)
        try:
            self.packed.append(PackedLayer(self.loaded.pack(**given), scales["c_down"]))
        except InputError as error:
            raise ModelError(f"layer {layer}: {error}") from None

    def begin(self, state: Prepared, x: np.ndarray, positions: np.ndarray, theta: float) -> None:
        """Write states and angles of tokens at these positions; what lies behind them keeps what it is."""
        arrays = state.arrays
        arrays["x"][: len(x)] = x
        arrays["sums"][...], arrays["scales"][...] = 0, 0  # nothing is to be added to the first layer's
        arrays["angles"][...] = rope_table(positions, arrays["angles"].shape[1], theta)

    def run(self, states: Sequence[Prepared], why: str = "") -> None:
        """All layers as one list, each on its state."""
        place, us = PLACES[self.loaded.device], self.us(**states[0].sizes)
        with self.ledger.timed("layers", place, f"{len(states)} in one list{why}", us):
            self.loaded.run_batch(
                [(one, {"weights": packed.operands}) for one, packed in zip(states, self.packed, strict=True)]
            )

    def end(self, state: Prepared, tokens: int) -> np.ndarray:
        """States of the first tokens behind the last layer, float32."""
        y, sums, scales = (state.arrays[name][:tokens].astype(np.float32) for name in _STATE.values())
        return y + sums * (scales.reshape(-1, 1) * self.packed[-1].down_scale)

    @cached_property
    def least(self) -> int:
        """Keys of the shortest run: attention takes no fewer than a tile has."""
        return max(
            (plan.tiling.keys for plan in self.plan.parts.values() if isinstance(plan, AttentionPlan)), default=1
        )

    def us(self, **sizes: int) -> float:
        """Microseconds of all layers, modelled, as one list."""
        return self._us(tuple(sizes.values()))

    def _modelled(self, sizes: tuple[int, ...]) -> float:
        problem, timing = self.plan.spec.operator.problem(sizes), timing_of(self.plan.device)
        sequence = self.loaded.design.sequence(problem.sizes)
        steps = step_times(self.plan, problem, sequence, timing)
        layers = len(self.packed)
        return layers * sum(step.us + step.change_us for step in steps) + list_us(layers, timing)


class PromptLayers(ComposedLayer):
    """A prompt, all tokens at once, the first of which has position 0."""

    def __call__(self, x: np.ndarray, theta: float) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
        """States behind the last layer, and of each layer keys, turned, and values (tokens x heads x d), float32."""
        tokens = max(len(x), self.least)  # rows behind the last one, which no other looks at: attention is causal
        with self.loaded.prepared(tokens=tokens) as state:
            states = [state, *(state.beside("k", "v") for _ in self.packed[1:])]
            self.begin(state, x, np.arange(tokens), theta)
            self.run(states)
            kept = [(rows_of(one, "k", len(x)), rows_of(one, "v", len(x))) for one in states]
            return self.end(state, len(x)), kept


def rows_of(state: Prepared, name: str, tokens: int) -> np.ndarray:
    """A copy of the first tokens' keys or values, float32."""
    return state.arrays[name][:tokens].astype(np.float32)
