"""Layers of a model in one list of commands: a built composition of a layer, with other weights each time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from bdforge.common.messages import InputError
from bdforge.devices.timing import timing_of
from bdforge.devices.types import TYPES
from bdforge.models.bitnet.cache import Cache
from bdforge.models.bitnet.carried import Carried
from bdforge.models.bitnet.checkpoint import Checkpoint
from bdforge.models.bitnet.composed_head import ComposedHead, HeadBeside
from bdforge.models.bitnet.layer_roles import CACHES, CARRIED, MATRICES, NORMS, LayerRoles, check_model
from bdforge.models.bitnet.model_config import BitNetConfig
from bdforge.models.errors import ModelError
from bdforge.models.split import PLACES, Decision, Ledger
from bdforge.operators import ComposedPlan
from bdforge.operators.attention import AttentionPlan
from bdforge.operators.rope import rope_table
from bdforge.perf.bounds.composition_time import list_us, run_us
from bdforge.runtime import BatchedRun, Loaded, PackedOperands, Prepared

_BF16 = TYPES["bf16"].dtype
_FIRST = 1024  # positions of a cache in the array's memory; capacity doubles from there


@dataclass(frozen=True, slots=True)
class PackedLayer:
    """The norms and matrices of a layer as the array reads them, and the matrices' scales by role."""

    operands: PackedOperands
    scales: dict[str, float]


@dataclass(slots=True)
class _Resident:
    """What the array's memory holds of a cache: a problem of each layer, as large as it may become, and its rows; and
    the model's end where it reads what the last layer leaves, with the addresses of that."""

    caches: tuple[str, ...]
    states: list[Prepared]
    rows: int = 0
    end: tuple[tuple, HeadBeside] | None = None

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Whether it is large enough for a problem."""
        return all(self.states[0].sizes[name] >= size for name, size in sizes.items())

    def read(self, layer: int, first: int) -> tuple[np.ndarray, np.ndarray]:
        """Keys and values of a layer, float32, from a position on."""
        state = self.states[layer]
        keys, values = (state.current(name)[first : self.rows].astype(np.float32) for name in self.caches)
        return keys, values

    def take(self, cache: Cache, rows: int) -> None:
        """The rows of a cache that it lacks."""
        for number, one in enumerate(self.states if self.rows < rows else ()):
            for name, kept in zip(self.caches, cache.kept(number), strict=True):
                one.current(name, written=True)[self.rows : rows] = kept[self.rows : rows]
        self.rows = rows


@dataclass(eq=False)
class ComposedLayer:
    """A loaded composition and the layers of a model that run by it; each list is an entry of the ledger."""

    loaded: Loaded
    plan: ComposedPlan
    ledger: Ledger = field(default_factory=Ledger)
    packed: list[PackedLayer] = field(default_factory=list)
    decision: Decision | None = None
    """Of one token, whether it is faster than the model's other designs and the CPU; None: nobody has compared yet."""

    def __post_init__(self) -> None:
        self.roles = LayerRoles.of(self.plan)
        self.caches = tuple(self.roles.given[role] for role in CACHES)
        self._us = lru_cache(64)(self._modelled)

    def check(self, config: BitNetConfig) -> None:
        """ModelError where its designs are of another model: other norms, heads or gate."""
        check_model(self.plan, config)

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
        """What a problem takes in a role, to be written."""
        return state.current(self.roles.given[role], written=True)

    def made(self, state: Prepared, role: str) -> np.ndarray:
        """What a problem leaves in a role."""
        return state.current(self.roles.made[role])

    def sizes(self, tokens: int, first: int) -> dict[str, int] | None:
        """Those of a run of tokens behind `first` others; None where it is none of its runs.

        Rows of no token stand behind them where attention has a larger tile: it is causal, so no token sees them.
        Else a tile would reach behind them, where other tensors lay in runs of other sizes: any bits, read as floats.
        """
        queries, keys = self.tile
        if self.takes_several:
            tokens = max(tokens, queries, keys - first)
            return {"tokens": tokens, "keys": first + tokens}
        return {"keys": first + 1} if tokens == 1 and first + 1 >= keys else None

    @property
    def takes_several(self) -> bool:
        """Whether a run is of several tokens, not of one."""
        return "tokens" in self.plan.program.sizes

    def __call__(self, x: np.ndarray, cache: Cache, theta: float, head: ComposedHead | None = None) -> Carried:
        """What the last layer leaves of the tokens of `x` (float32, tokens x hidden), behind those of a cache, which
        has theirs then; the tokens are those of one of its runs. With `head` logits, too, where one list has both."""
        first, sizes = cache.length, self.sizes(len(x), cache.length)
        assert sizes is not None
        held = self._resident(cache, sizes)
        states = [self.loaded.resized(one, **sizes) for one in held.states]
        self._begin(states[0], x, first, theta)
        end = self._end(held, states[0], head)
        runs = [(one, {"weights": packed.operands}) for one, packed in zip(states, self.packed, strict=True)]
        self._run(runs if end is None else [*runs, end.run], self.us(**sizes), end)
        held.rows = first + len(x)
        y, product, scales = (self.made(states[0], role)[: len(x)].astype(np.float32) for role in CARRIED)
        logits = None if end is None else end.logits()
        return Carried(y, product, scales.reshape(-1), self.packed[-1].scales["down"], logits)

    def _end(self, held: _Resident, state: Prepared, head: ComposedHead | None) -> HeadBeside | None:
        """The model's end behind one of these layers; None: it is not to run, or runs elsewhere."""
        if head is None or self.takes_several or not head.loaded.on_array_of(self.loaded):
            return None
        made = {role: self.roles.made[role] for role in CARRIED}
        places = (head, *(state.current(name).ctypes.data for name in made.values()))
        if held.end is None or held.end[0] != places:
            held.end = places, head.beside(state, made)
        return held.end[1]

    def _run(self, runs: Sequence[BatchedRun], us: float, end: HeadBeside | None) -> None:
        """As one list, an entry of the ledger; `us` are those of the layers."""
        part, place = "layers" if end is None else "layers and head", PLACES[self.loaded.device]
        why = f"{len(runs)} in one list" + ("" if self.decision is None else f"; {self.decision.why}")
        if end is not None:
            us += end.head.run_us + self._list_us(len(runs)) - self._list_us(len(runs) - 1)
        with self.ledger.timed(part, place, why, us):
            self.loaded.run_batch(runs)

    def compare(self, first: int, other_us: float) -> None:
        """Decide by what another way took for a token behind `first` others."""
        sizes = self.sizes(1, first)
        assert sizes is not None
        what = f"of {first + 1} tokens the last"
        self.decision = Decision.faster(what, self.us(**sizes), other_us, "one token timed")

    def _begin(self, state: Prepared, x: np.ndarray, first: int, theta: float) -> None:
        """Write states and angles of tokens and of the rows behind them."""
        states, product, scales = (self.given(state, role) for role in CARRIED)
        states[: len(x)], states[len(x) :] = x, 0
        product[...], scales[...] = 0, 0  # nothing is to be added to the first layer's
        angles = self.given(state, "angles")
        angles[...] = rope_table(np.arange(first, first + len(states)), angles.shape[1], theta)

    def _resident(self, cache: Cache, sizes: Mapping[str, int]) -> _Resident:
        """The cache in the array's memory, with all its rows and room for a run of these sizes."""
        held, rows = cache.resident.get(self), cache.length
        if not isinstance(held, _Resident) or not held.holds(sizes):
            before = held.states[0].sizes if isinstance(held, _Resident) else {}
            largest = {name: max(size, before.get(name, 0)) for name, size in sizes.items()}
            capacity = _FIRST
            while capacity < largest["keys"]:
                capacity *= 2
            state = self.loaded.prepared(**largest | {"keys": capacity})
            held = _Resident(self.caches, [state, *(state.beside(*self.caches) for _ in self.packed[1:])])
        held.states[0].take()  # of whichever thread used the cache before
        held.take(cache, rows)
        cache.resident[self] = held  # in place of a smaller one, which has given its rows
        return held

    @cached_property
    def tile(self) -> tuple[int, int]:
        """Queries and keys of attention's tiles."""
        tilings = [plan.tiling for plan in self.plan.parts.values() if isinstance(plan, AttentionPlan)]
        return max(tiling.queries for tiling in tilings), max(tiling.keys for tiling in tilings)

    def us(self, **sizes: int) -> float:
        """Microseconds of all layers, modelled, as one list."""
        return self._us(tuple(sizes.values()))

    def _modelled(self, sizes: tuple[int, ...]) -> float:
        problem, layers = self.plan.spec.operator.problem(sizes), len(self.packed)
        one = run_us(self.plan, problem, self.loaded.design.sequence(problem.sizes))
        return layers * one + self._list_us(layers)

    def _list_us(self, commands: int) -> float:
        return list_us(commands, timing_of(self.plan.device))
