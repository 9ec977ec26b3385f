"""How runtime sequences wait: a matter of the host's, not of the array's configuration."""

from dataclasses import dataclass

from bdforge.common.messages import InputError
from bdforge.devices.limits import TASK_QUEUE_ENTRIES

WAITS = {"column": TASK_QUEUE_ENTRIES, "wide": 1}
"""Forms of waiting, and how many steps may be in flight with each."""


class SequenceOptionError(InputError):
    """A form of waiting that there is not."""


@dataclass(frozen=True, slots=True)
class SequenceOptions:
    """How runtime sequences wait; no matter of the array's configuration, so that hosts may choose others.

    `wait`: "column" waits for each column's token by an operation of its own, "wide" for those of all columns by one.
    `in_flight`: steps that run at a time, at most as many as a task queue holds; so many tokens of a column may be on
    their way at once. With wide waits that is one: nobody has shown whether the controller counts a wide wait's tokens
    column by column or takes any of them (several are what one wait would then confuse). 0: as many as are allowed.
    SequenceOptionError for anything else.
    """

    wait: str = "column"
    in_flight: int = 0

    def __post_init__(self) -> None:
        if self.wait not in WAITS:
            raise SequenceOptionError(f"sequence.wait = {self.wait!r} is unknown; choose {' or '.join(WAITS)}")
        most = WAITS[self.wait]
        if not 0 <= self.in_flight <= most:
            raise SequenceOptionError(
                f"sequence.in_flight = {self.in_flight} is outside 0 to {most}, the steps that sequence.wait = "
                f"{self.wait} allows at a time; 0 takes the most"
            )

    @classmethod
    def given(cls, wait: str | None, in_flight: int | None) -> "SequenceOptions | None":
        """Options of which some may be left out; None when all are."""
        if wait is None and in_flight is None:
            return None
        return cls("column" if wait is None else wait, in_flight or 0)

    @property
    def wide(self) -> bool:
        """Whether one wait is for the tokens of several columns."""
        return self.wait == "wide"

    @property
    def steps(self) -> int:
        """Steps that run at a time."""
        return self.in_flight or WAITS[self.wait]


DEFAULT_OPTIONS = SequenceOptions()
