"""The compositions that a model's layers run by: tokens of a prompt at once, and one behind others."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bdforge.common.messages import listed
from bdforge.models.bitnet.cache import Cache
from bdforge.models.bitnet.composed_layer import ComposedLayer
from bdforge.models.errors import ModelError
from bdforge.models.parts import ArrayParts
from bdforge.operators import ComposedPlan


@dataclass(frozen=True, slots=True)
class ComposedLayers:
    """At most one of each kind."""

    several: ComposedLayer | None = None
    single: ComposedLayer | None = None

    @classmethod
    def among(cls, parts: ArrayParts) -> "ComposedLayers":
        """Those that are a model's designs. ModelError for two of a kind."""
        found: dict[bool, list[ComposedLayer]] = {True: [], False: []}
        for one in parts.designs if parts.rule != "cpu" else ():
            if isinstance(one.plan, ComposedPlan):
                found["tokens" in one.plan.program.sizes].append(ComposedLayer(one.loaded, one.plan, parts.ledger))
        for kind in found.values():
            if len(kind) > 1:
                raise ModelError(f"{listed(o.plan.spec.name for o in kind)} are compositions of a layer; give one")
        return cls(*(next(iter(kind), None) for kind in found.values()))

    def __iter__(self) -> Iterator[ComposedLayer]:
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

    def __call__(self, x: np.ndarray, cache: Cache, theta: float) -> np.ndarray:
        """States behind the last layer, float32, of the tokens of `x` (tokens x hidden), of which it has runs."""
        found = self.fastest(len(x), cache.length)
        assert found is not None
        layer, at_once = found
        return np.concatenate([layer(x[i : i + at_once], cache, theta) for i in range(0, len(x), at_once)])
