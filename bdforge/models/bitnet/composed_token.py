"""One token in one list of commands, a layer each, over a cache in the array's memory that grows as tokens come."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bdforge.common.messages import listed
from bdforge.models.bitnet.cache import Cache
from bdforge.models.bitnet.composed_layer import ComposedLayer, PromptLayers
from bdforge.models.bitnet.layer_roles import CACHES
from bdforge.models.errors import ModelError
from bdforge.models.parts import ArrayParts
from bdforge.models.split import Decision
from bdforge.operators import ComposedPlan
from bdforge.runtime import Prepared

_FIRST = 1024  # positions of a cache in the array's memory; capacity doubles from there


@dataclass
class _Resident:
    """What the array's memory holds of a cache: a problem of each layer, as large as it may become, and its rows."""

    states: list[Prepared]
    rows: int = 0


class TokenLayers(ComposedLayer):
    """A token behind those that a cache holds."""

    CACHES: ClassVar = CACHES
    decision: Decision | None = None
    """Whether it is faster than the model's other designs and the CPU; None: nobody has compared yet."""

    def takes(self, tokens: int, cache: Cache) -> bool:
        """Whether so many tokens behind a cache may run by it."""
        return tokens == 1 and cache.length + 1 >= self.least

    def compare(self, cache: Cache, other_us: float) -> None:
        """Decide by what another way took for the last token of a cache."""
        what = f"of {cache.length} tokens the last"
        self.decision = Decision.faster(what, self.us(keys=cache.length), other_us, "one token timed")

    def __call__(self, x: np.ndarray, cache: Cache, theta: float) -> np.ndarray:
        """State of the token behind the last layer, float32, of `x` (1 x hidden); the cache has its keys and values."""
        first = cache.length
        held = self._resident(cache, first)
        states = [self.loaded.resized(one, keys=first + 1) for one in held.states]
        self.begin(states[0], x, np.arange(first, first + 1), theta)
        self.run(states, "" if self.decision is None else f"; {self.decision.why}")
        for number, one in enumerate(states):
            cache.appended(number, *self.kept(one, 1))
        held.rows = first + 1
        return self.end(states[0], 1)

    def _resident(self, cache: Cache, rows: int) -> _Resident:
        """The cache in the array's memory, with room for one more and all rows so far."""
        held = cache.resident
        if not isinstance(held, _Resident) or len(self.given(held.states[0], CACHES[0])) <= rows:
            capacity = _FIRST
            while capacity <= rows:
                capacity *= 2
            state = self.loaded.prepared(keys=capacity)
            own = [self.roles.given[role] for role in CACHES]
            held = cache.resident = _Resident([state, *(state.beside(*own) for _ in self.packed[1:])])
        held.states[0].take()  # of whichever thread used the cache before
        for number, one in enumerate(held.states):
            for role, kept in zip(CACHES, cache.kept(number), strict=True):
                self.given(one, role)[held.rows : rows] = kept[held.rows : rows]
        held.rows = rows
        return held


@dataclass(frozen=True, slots=True)
class ComposedLayers:
    """The compositions that a model runs by: of prompts, and of tokens behind them."""

    prompt: PromptLayers | None = None
    token: TokenLayers | None = None

    @classmethod
    def among(cls, parts: ArrayParts) -> "ComposedLayers":
        """Those that are a model's designs. ModelError for two of a kind."""
        found: dict[type[ComposedLayer], list[ComposedLayer]] = {PromptLayers: [], TokenLayers: []}
        for one in parts.designs if parts.rule != "cpu" else ():
            if isinstance(one.plan, ComposedPlan):
                roles = one.plan.spec.content.get("roles", {}).values()
                kind = TokenLayers if set(roles).issuperset(CACHES) else PromptLayers
                found[kind].append(kind(one.loaded, one.plan, parts.ledger))
        for several in found.values():
            if len(several) > 1:
                raise ModelError(f"{listed(o.plan.spec.name for o in several)} are compositions of a layer; give one")
        prompt, token = (next(iter(some), None) for some in found.values())
        return cls(prompt, token)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[ComposedLayer]:
        return iter([one for one in (self.prompt, self.token) if one is not None])
