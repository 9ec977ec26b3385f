"""Which tensor of a layer's composition is what to a BitNet: the table [roles] of its file (docs/layer.md).

host/src/layer_roles.cpp reads the same table for C++.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from bdforge.common.messages import listed
from bdforge.models.errors import ModelError
from bdforge.operators import ComposedPlan

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
    def of(cls, plan: ComposedPlan, caches: Iterable[str] = ()) -> Self:
        """Those of a composition; `caches` are inputs beside those of all layers.

        ModelError for a tensor without a role that is known, and for a role that no tensor has.
        """
        roles: Mapping[str, str] = plan.spec.content.get("roles", {})
        told = {way: [o.name for o in plan.program.operands if o.direction == way] for way in ("in", "out")}
        found = cls(*({roles[name]: name for name in names if name in roles} for names in told.values()))
        needed = {*CARRIED, "angles", *NORMS, *caches}
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
        return found

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
