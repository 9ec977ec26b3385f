"""Layers of a model in one list of commands: a built composition of a layer, with other weights each time."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from bdforge.common.messages import InputError
from bdforge.devices.timing import timing_of
from bdforge.devices.types import TYPES
from bdforge.models.bitnet.checkpoint import Checkpoint
from bdforge.models.bitnet.layer_roles import CARRIED, KEPT, MATRICES, NORMS, LayerRoles
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


@dataclass(frozen=True, slots=True)
class PackedLayer:
    """The norms and matrices of a layer as the array reads them, and the matrices' scales by role."""

    operands: PackedOperands
    scales: dict[str, float]


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
        self.roles = LayerRoles.of(self.plan, self.CACHES)
        places = {operand.name: operand.argument for operand in self.plan.program.operands}
        given, made = self.roles.given, self.roles.made
        shared = *(given[role] for role in (*CARRIED, "angles")), *(made[role] for role in CARRIED)
        kept = [made[role] for role in KEPT]
        if beside := [name for name in shared if places[name] in [places[one] for one in kept]]:
            raise ModelError(
                f"design {self.plan.spec.name}: {kept[0]} and {kept[1]} lie in one buffer with {beside[0]}, which all "
                f"layers share; give {beside[0]} another one below [buffers], and compose it again"
            )
        self._us = lru_cache(64)(self._modelled)

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
        config, given = source.config, {}
        scales: dict[str, float] = {}
        for tensor, parts in self.roles.matrices.items():
            matrix = source.matrix(layer, parts)
            given[tensor] = matrix.weights
            scales |= dict(zip(parts, matrix.scales, strict=True))
        before = self.packed[-1].scales if self.packed else dict.fromkeys(MATRICES, 0.0)
        for tensor, (parts, earlier) in self.roles.scales.items():
            given[tensor] = np.array([(before if earlier else scales)[part] for part in parts], np.float32)
        sizes = (config.hidden_size, config.query_size, config.hidden_size, config.intermediate_size)
        for role, size in zip(NORMS, sizes, strict=True):
            given[self.roles.given[role]] = source.floats(role, (size,), layer).astype(_BF16)
        try:
            self.packed.append(PackedLayer(self.loaded.pack(**given), scales))
        except InputError as error:
            raise ModelError(f"layer {layer}: {error}") from None

    def given(self, state: Prepared, role: str) -> np.ndarray:
        """What a problem takes in a role."""
        return state.arrays[self.roles.given[role]]

    def made(self, state: Prepared, role: str) -> np.ndarray:
        """What a problem leaves in a role."""
        return state.arrays[self.roles.made[role]]

    def begin(self, state: Prepared, x: np.ndarray, positions: np.ndarray, theta: float) -> None:
        """Write states and angles of tokens at these positions; what lies behind them keeps what it is."""
        states, product, scales = (self.given(state, role) for role in CARRIED)
        states[: len(x)] = x
        product[...], scales[...] = 0, 0  # nothing is to be added to the first layer's
        angles = self.given(state, "angles")
        angles[...] = rope_table(positions, angles.shape[1], theta)

    def run(self, states: Sequence[Prepared], why: str = "") -> None:
        """All layers as one list, each on its state."""
        place, us = PLACES[self.loaded.device], self.us(**states[0].sizes)
        with self.ledger.timed("layers", place, f"{len(states)} in one list{why}", us):
            self.loaded.run_batch(
                [(one, {"weights": packed.operands}) for one, packed in zip(states, self.packed, strict=True)]
            )

    def end(self, state: Prepared, tokens: int) -> np.ndarray:
        """States of the first tokens behind the last layer, float32."""
        y, product, scales = (self.made(state, role)[:tokens].astype(np.float32) for role in CARRIED)
        return y + product * (scales.reshape(-1, 1) * np.float32(self.packed[-1].scales["down"]))

    def kept(self, state: Prepared, tokens: int) -> tuple[np.ndarray, ...]:
        """A copy of the first tokens' keys and values, float32."""
        return tuple(self.made(state, role)[:tokens].astype(np.float32) for role in KEPT)

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

    def __call__(self, x: np.ndarray, theta: float) -> tuple[np.ndarray, list[tuple[np.ndarray, ...]]]:
        """States behind the last layer, and of each layer keys, turned, and values (tokens x heads x d), float32."""
        tokens = max(len(x), self.least)  # rows behind the last one, which no other looks at: attention is causal
        with self.loaded.prepared(tokens=tokens) as state:
            own = [self.roles.made[role] for role in KEPT]
            states = [state, *(state.beside(*own) for _ in self.packed[1:])]
            self.begin(state, x, np.arange(tokens), theta)
            self.run(states)
            return self.end(state, len(x)), [self.kept(one, len(x)) for one in states]
