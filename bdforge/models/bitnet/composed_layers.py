"""The compositions that a model runs by: of its layers, for a prompt and for a token behind others, and of its end."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bdforge.common.messages import listed
from bdforge.models.bitnet.cache import Cache
from bdforge.models.bitnet.carried import Carried
from bdforge.models.bitnet.composed_head import ComposedHead
from bdforge.models.bitnet.composed_layer import ComposedLayer
from bdforge.models.bitnet.layer_roles import is_head
from bdforge.models.errors import ModelError
from bdforge.models.parts import ArrayParts
from bdforge.operators import ComposedPlan


@dataclass(frozen=True, slots=True)
class ComposedLayers:
    """At most one of each kind."""

    several: ComposedLayer | None = None
    single: ComposedLayer | None = None
    head: ComposedHead | None = None

    @classmethod
    def among(cls, parts: ArrayParts) -> "ComposedLayers":
        """Those that are a model's designs. ModelError for two of a kind."""
        found: dict[str, list[Any]] = {"several": [], "single": [], "head": []}
        for one in parts.designs if parts.rule != "cpu" else ():
            if isinstance(one.plan, ComposedPlan):
                layer = "several" if "tokens" in one.plan.program.sizes else "single"
                kind, made = ("head", ComposedHead) if is_head(one.plan) else (layer, ComposedLayer)
                found[kind].append(made(one.loaded, one.plan, parts.ledger))
        for kind, some in found.items():
            if len(some) > 1:
                what = "a head" if kind == "head" else "a layer"
                raise ModelError(f"{listed(o.plan.spec.name for o in some)} are compositions of {what}; give one")
        return cls(**{kind: next(iter(some), None) for kind, some in found.items()})

    def __iter__(self) -> Iterator[ComposedLayer]:
        """Those of layers."""
        return iter([one for one in (self.several, self.single) if one is not None])

    def fastest(self, tokens: int, first: int) -> tuple[ComposedLayer, int] | None:
        """The one that takes least, modelled, for tokens behind `first` others, and how many of them it takes at once;
        None where none has such runs."""
        several, single = self.several, self.single
        if several is None or single is None or not single.sizes(1, first):
            alone = several or (single if tokens == 1 else None)
            return (alone, tokens) if alone is not None and alone.sizes(tokens, first) else None
        at_once, one_by_one = several.sizes(tokens, first), single.sizes(1, first + tokens - 1)
        assert at_once is not None
        assert one_by_one is not None
        return (single, 1) if tokens * single.us(**one_by_one) < several.us(**at_once) else (several, tokens)

    def __call__(self, x: np.ndarray, cache: Cache, theta: float, head: ComposedHead | None = None) -> Carried:
        """What the last layer leaves of the tokens of `x` (float32, tokens x hidden), of which it has runs; with `head`
        also logits behind the last of them, where one list can have both."""
        found = self.fastest(len(x), cache.length)
        assert found is not None
        layer, at_once = found
        last = len(x) - at_once
        made = (layer(x[i : i + at_once], cache, theta, head if i >= last else None) for i in range(0, len(x), at_once))
        return Carried.joined([*made])
