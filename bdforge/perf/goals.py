"""What the models are held to, and what they reach: figures that `python -m tools.fit` finds and keeps with them."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bdforge.common.files import read_csv

GOALS_FILE = Path(__file__).parent / "data" / "accuracy.csv"


@dataclass(frozen=True, slots=True)
class Goal:
    """Something that the models are held to, judged by `rows` published measurements."""

    text: str
    limit: float
    reached: float
    rows: int

    @property
    def holds(self) -> bool:
        return self.reached <= self.limit


@cache
def goals() -> tuple[Goal, ...]:
    """All goals; the mean and the median error of rows that were left out of the fit come first."""
    return tuple(
        Goal(row["goal"], float(row["limit"]), float(row["reached"]), int(row["rows"])) for row in read_csv(GOALS_FILE)
    )
