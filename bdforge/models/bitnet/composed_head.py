"""The end of a model in one command: the last product's sum, the final norm and a head of int8 rows, by a built
composition, so that nothing is left to the host between embedding and logits."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock

import numpy as np

from bdforge.common.messages import InputError
from bdforge.devices.timing import timing_of
from bdforge.devices.types import TYPES
from bdforge.models.bitnet.carried import Carried
from bdforge.models.bitnet.checkpoint import Checkpoint
from bdforge.models.bitnet.layer_roles import CARRIED, LOGITS, LayerRoles, check_parts
from bdforge.models.bitnet.model_config import BitNetConfig
from bdforge.models.errors import ModelError
from bdforge.models.functions import quantised
from bdforge.models.split import PLACES, Decision, Ledger
from bdforge.models.weights import QuantisedRows
from bdforge.operators import ComposedPlan
from bdforge.perf.bounds.composition_time import list_us, run_us
from bdforge.runtime import BatchedRun, Loaded, PackedOperands, Prepared

_ROWS = 4096  # that are floats at a time


def quantised_rows(matrix: np.ndarray | QuantisedRows) -> tuple[np.ndarray, np.ndarray]:
    """int8 codes of a matrix's rows and a scale for each, as `functions.quantised` makes them.

    ModelError where not all are finite.
    """
    blocks = (matrix[first : first + _ROWS].astype(np.float32) for first in range(0, len(matrix), _ROWS))
    with np.errstate(all="ignore"):
        codes, scales = map(np.concatenate, zip(*map(quantised, blocks), strict=True))
    if not np.isfinite(scales).all():
        raise ModelError("head: not all are finite numbers; the file's floats are damaged, get it again")
    return codes, scales


@dataclass(eq=False)
class ComposedHead:
    """A loaded composition, the head packed for it, and a token's problem; each run is an entry of the ledger."""

    loaded: Loaded
    plan: ComposedPlan
    ledger: Ledger = field(default_factory=Ledger)
    decision: Decision | None = None
    """Whether it is faster than the CPU; None: nobody has compared yet."""
    packed: PackedOperands | None = None
    state: Prepared | None = None
    _used: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.roles = LayerRoles.of_head(self.plan)

    def check(self, config: BitNetConfig) -> None:
        """ModelError where its norm is another model's."""
        check_parts(self.plan, config)

    def pack(self, source: Checkpoint, head: np.ndarray | QuantisedRows, down: float) -> None:
        """The final norm and the head (vocabulary x hidden), quantised row by row; `down` is the scale of the last
        layer's product. ModelError for a model of other sizes."""
        norm = source.floats("final_norm", (source.config.hidden_size,))
        codes, scales = quantised_rows(head)
        try:
            self.state = self.loaded.prepared(tokens=1, vocabulary=len(codes))
            given = {
                "final_norm": norm.astype(TYPES["bf16"].dtype), "head": codes.T,
                "head scales": scales.reshape(self.state.current(self.roles.made[LOGITS]).shape),
                "down scales before": np.array([down], np.float32),
            }  # fmt: skip
            self.packed = self.loaded.pack(**{self.roles.given[role]: array for role, array in given.items()})
        except InputError as error:
            raise ModelError(f"head: {error}") from None

    def beside(self, layer: Prepared, made: Mapping[str, str]) -> "HeadBeside":
        """It, where a problem of a layer on its array leaves what is carried, `made` by role. OperandError where it
        looks elsewhere than the layer leaves that."""
        assert self.state is not None
        operands = {self.roles.given[role]: name for role, name in made.items()}
        return HeadBeside(self, self.loaded.beside(layer, operands, **self.state.sizes))

    def __call__(self, carried: Carried) -> np.ndarray:
        """Logits of one token, float32, of what the last layer left of it."""
        state = self.state
        assert state is not None
        end = HeadBeside(self, state)
        with self._used, self.ledger.timed("head", PLACES[self.loaded.device], self.why, self.us):
            state.take()
            for role, array in zip(CARRIED, carried, strict=True):
                given = state.current(self.roles.given[role], written=True)
                given[...] = array.reshape(given.shape)
            self.loaded.run_batch([end.run])
            return end.logits()

    @property
    def why(self) -> str:
        """Why it makes logits."""
        return "its rows as int8" if self.decision is None else self.decision.why

    def compare(self, other_us: float) -> None:
        """Decide by what the CPU took for a token's."""
        self.decision = Decision.faster("of a token", self.us, other_us, "one timed")

    @cached_property
    def run_us(self) -> float:
        """Microseconds of a token in a list, modelled."""
        assert self.state is not None
        problem = self.plan.spec.operator.problem(tuple(self.state.sizes.values()))
        return run_us(self.plan, problem, self.loaded.design.sequence(problem.sizes))

    @property
    def us(self) -> float:
        """Microseconds of a token by a list of its own, modelled."""
        return self.run_us + list_us(1, timing_of(self.plan.device))


@dataclass(frozen=True, slots=True)
class HeadBeside:
    """A head, and a problem of it for lists."""

    head: ComposedHead
    state: Prepared

    @property
    def run(self) -> BatchedRun:
        """A run of a token."""
        assert self.head.packed is not None
        return self.state, {"weights": self.head.packed}

    def logits(self) -> np.ndarray:
        """What the last run has made, float32."""
        return self.state.current(self.head.roles.made[LOGITS]).reshape(-1).copy()
