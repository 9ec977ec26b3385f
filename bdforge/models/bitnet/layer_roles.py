"""Which tensor of a composition of a layer, or of the model's end, is what to a BitNet: the table [roles] of its file
(docs/layer.md).

host/src/layer_roles.cpp reads the same table for C++.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from bdforge.common.messages import listed
from bdforge.models.bitnet.model_config import BitNetConfig
from bdforge.models.errors import ModelError
from bdforge.models.functions import GATES
from bdforge.operators import ComposedPlan
from bdforge.operators.gemm import GemmSpec

NORMS = ("attn_norm", "attn_sub_norm", "ffn_norm", "ffn_sub_norm")
MATRICES = ("q", "k", "v", "o", "gate", "up", "down")
CARRIED = ("states", "product", "product_scales")
"""What a layer takes of the one before, and makes for the next: states, and a product with a scale for each row that is
still to be added to them."""
KEPT = ("keys", "values")
CACHES = ("key_cache", "value_cache")
_SCALES, _BEFORE = " scales", " scales before"
LOGITS = "logits"
"""What a composition of the model's end makes, and no layer."""
HEAD = ("final_norm", "head", "head scales", "down scales before")
"""What it is given, beside what the last layer leaves."""


def _matrices(role: str) -> tuple[str, ...]:
    """The matrices that a role names side by side; none where it names something else."""
    names = tuple(role.split("+"))
    return names if set(names) <= set(MATRICES) else ()


@dataclass(frozen=True, slots=True)
class LayerRoles:
    """Tensors by role: those that a layer is `given`, and those that it has `made`."""

    given: Mapping[str, str]
    made: Mapping[str, str]

    @classmethod
    def of(cls, plan: ComposedPlan) -> Self:
        """Those of a layer.

        ModelError for a tensor without a role that is known, for a role that no tensor has, for other parameters than a
        layer's, and where a cache lies with what all layers share.
        """
        found = cls._told(plan)
        parts = [part for role in found.given for part in _matrices(role)]
        wrong = [part for part in MATRICES if parts.count(part) != 1]
        needed = {*CARRIED, "angles", *NORMS, *CACHES}
        found._check(plan, "layer", needed, {role for role in found.given if cls._is_weight(role)}, wrong)
        found._check_places(plan)
        return found

    @classmethod
    def of_head(cls, plan: ComposedPlan) -> Self:
        """Those of a model's end; ModelError as of a layer's."""
        found = cls._told(plan)
        found._check(plan, "head", {*CARRIED, *HEAD})
        return found

    @classmethod
    def _told(cls, plan: ComposedPlan) -> Self:
        roles: Mapping[str, str] = plan.spec.content.get("roles", {})
        told = ((o.name for o in plan.program.operands if o.direction == way) for way in ("in", "out"))
        return cls(*({roles[name]: name for name in names if name in roles} for names in told))

    def _check(
        self, plan: ComposedPlan, what: str, needed: Collection[str], weights: Collection[str] = (),
        wrong: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """ModelError for tensors without a role that is known, for roles that are `wrong`, and for those missing."""
        known = {name for role, name in self.given.items() if role in needed or role in weights}
        odd = [o.name for o in plan.program.operands if o.direction == "in" and o.name not in known]
        made = {LOGITS} if what == "head" else {*CARRIED, *KEPT}
        odd += [*wrong, *sorted((set(needed) - self.given.keys()) | (made - self.made.keys()))]
        if odd:
            file = {"layer": "bitnet", "head": "bitnet_head"}[what]
            raise ModelError(
                f"design {plan.spec.name} is no {what} of BitNet: {listed(odd)}; examples/layer/{file}.toml has the "
                "roles of its tensors"
            )

    def _check_places(self, plan: ComposedPlan) -> None:
        """ModelError for other parameters than a layer's, and where a cache lies with what all layers share."""
        if (sizes := {*plan.program.sizes}) not in ({"keys"}, {"tokens", "keys"}):
            raise ModelError(
                f"design {plan.spec.name} has parameters {listed(sorted(sizes))}; a layer of BitNet has tokens and "
                "keys, or keys alone"
            )
        places = {operand.name: operand.argument for operand in plan.program.operands}
        caches = [places[self.given[role]] for role in CACHES]
        shared = *(self.given[role] for role in (*CARRIED, "angles")), *(self.made[role] for role in CARRIED)
        if beside := [one for one in shared if places[one] in caches]:
            raise ModelError(
                f"design {plan.spec.name}: a cache lies in one buffer with {beside[0]}, which all layers share; give "
                f"{beside[0]} another one below [buffers], and compose it again"
            )

    @staticmethod
    def _is_weight(role: str) -> bool:
        return bool(_matrices(role.removesuffix(_BEFORE).removesuffix(_SCALES)))

    @property
    def matrices(self) -> dict[str, tuple[str, ...]]:
        """What stands side by side in each tensor of matrices."""
        return {tensor: _matrices(role) for role, tensor in self.given.items() if _matrices(role)}

    @property
    def scales(self) -> dict[str, tuple[tuple[str, ...], bool]]:
        """The matrices whose scales a tensor holds, and whether they are those of the layer before."""
        return {
            tensor: (_matrices(role.removesuffix(_BEFORE).removesuffix(_SCALES)), role.endswith(_BEFORE))
            for role, tensor in self.given.items()
            if role.endswith((_SCALES, _BEFORE))
        }


def is_head(plan: ComposedPlan) -> bool:
    """Whether a composition is of a model's end."""
    return LOGITS in plan.spec.content.get("roles", {}).values()


def check_model(plan: ComposedPlan, config: BitNetConfig) -> None:
    """ModelError where a layer's designs are of another model: other norms, heads or gate."""
    specs = [part.spec for part in plan.parts.values()]
    gates = {spec.epilogue.gate for spec in specs if isinstance(spec, GemmSpec)}
    gates |= {str(spec.facts["function"]).removesuffix("_gate") for spec in specs if spec.kind == "elementwise"}
    if (gate := GATES[config.hidden_act].__name__.removesuffix("_gate")) not in gates:
        raise ModelError(f"design {plan.spec.name}: none of its products has the gate {gate} of this model")
    check_parts(plan, config)


def check_parts(plan: ComposedPlan, config: BitNetConfig) -> None:
    """ModelError for norms or heads of another model."""
    heads = {"heads": config.num_attention_heads, "kv_heads": config.num_key_value_heads}
    wanted: dict[str, dict[str, Any]] = {
        "rows": {"epsilon": config.rms_norm_eps},
        "attention": {"head_dim": config.head_dim, "causal": True, "window": 0, **heads},
    }  # fmt: skip
    for name, part in plan.parts.items():
        facts = part.spec.facts
        for key, value in wanted.get(part.spec.kind, {}).items():
            if facts.get(key, value) != value:
                raise ModelError(f"design {name} has {key} = {facts[key]}, this model {value}")
