"""The end of a model in one command: the last product's sum, the final norm and a head of int8 rows, by a built
composition, so that nothing is left to the host between embedding and logits."""

from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock

import numpy as np

from bdforge.common.messages import InputError
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
from bdforge.perf.bounds.composition_time import runs_us
from bdforge.runtime import Loaded, PackedOperands, Prepared

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
                "head scales": scales.reshape(self.state.arrays[self.roles.made[LOGITS]].shape),
                "down scales before": np.array([down], np.float32),
            }  # fmt: skip
            self.packed = self.loaded.pack(**{self.roles.given[role]: array for role, array in given.items()})
        except InputError as error:
            raise ModelError(f"head: {error}") from None

    def __call__(self, carried: Carried) -> np.ndarray:
        """Logits of one token, float32, of what the last layer left of it."""
        state, packed = self.state, self.packed
        assert state is not None
        assert packed is not None
        why = "its rows as int8" if self.decision is None else self.decision.why
        with self._used, self.ledger.timed("head", PLACES[self.loaded.device], why, self.us):
            state.take()
            for role, array in zip(CARRIED, carried, strict=True):
                given = state.arrays[self.roles.given[role]]
                given[...] = array.reshape(given.shape)
            self.loaded.run_batch([(state, {"weights": packed})])
            return state.arrays[self.roles.made[LOGITS]].reshape(-1).copy()

    def compare(self, other_us: float) -> None:
        """Decide by what the CPU took for a token's."""
        self.decision = Decision.faster("of a token", self.us, other_us, "one timed")

    @cached_property
    def us(self) -> float:
        """Microseconds of a token, modelled."""
        assert self.state is not None
        problem = self.plan.spec.operator.problem(tuple(self.state.sizes.values()))
        return runs_us(self.plan, problem, self.loaded.design.sequence(problem.sizes), 1)
