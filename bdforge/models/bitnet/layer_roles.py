"""Which tensor of a layer's composition is what to a BitNet: the table [roles] of its file (docs/layer.md).

host/src/layer_roles.cpp reads the same table for C++.
"""

from collections.abc import Mapping
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
        """Those of a composition.

        ModelError for a tensor without a role that is known, for a role that no tensor has, for other parameters than a
        layer's, and where a cache lies with what all layers share.
        """
        roles: Mapping[str, str] = plan.spec.content.get("roles", {})
        told = {way: [o.name for o in plan.program.operands if o.direction == way] for way in ("in", "out")}
        found = cls(*({roles[name]: name for name in names if name in roles} for names in told.values()))
        needed = {*CARRIED, "angles", *NORMS, *CACHES}
        known = {role for role in found.given if role in needed or found._is_weight(role)}
        odd = [name for name in told["in"] if name not in {found.given[role] for role in known}]
        parts = [part for role in found.given for part in _matrices(role)]
        odd += [part for part in MATRICES if parts.count(part) != 1]
        odd += sorted((needed - found.given.keys()) | ({*CARRIED, *KEPT} - found.made.keys()))
        if odd:
            raise ModelError(
                f"design {plan.spec.name} is no layer of BitNet: {listed(odd)}; examples/layer/bitnet.toml has the "
                "roles of its tensors"
            )
        found._check_places(plan)
        return found

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


def check_model(plan: ComposedPlan, config: BitNetConfig) -> None:
    """ModelError where a composition's designs are of another model: other norms, heads or gate."""
    heads = {"heads": config.num_attention_heads, "kv_heads": config.num_key_value_heads}
    wanted: dict[str, dict[str, Any]] = {
        "rows": {"epsilon": config.rms_norm_eps},
        "attention": {"head_dim": config.head_dim, "causal": True, "window": 0, **heads},
    }  # fmt: skip
    specs = [part.spec for part in plan.parts.values()]
    gates = {spec.epilogue.gate for spec in specs if isinstance(spec, GemmSpec)}
    gates |= {str(spec.facts["function"]).removesuffix("_gate") for spec in specs if spec.kind == "elementwise"}
    if (gate := GATES[config.hidden_act].__name__.removesuffix("_gate")) not in gates:
        raise ModelError(f"design {plan.spec.name}: none of its products has the gate {gate} of this model")
    for name, part in plan.parts.items():
        facts = part.spec.facts
        for key, value in wanted.get(part.spec.kind, {}).items():
            if facts.get(key, value) != value:
                raise ModelError(f"design {name} has {key} = {facts[key]}, this model {value}")
