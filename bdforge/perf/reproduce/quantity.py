"""What a producer is: rows read as subjects, and quantities of a subject."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bdforge.perf.reproduce.entries import Fields
from bdforge.perf.reproduce.figures import Kind


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity of a subject in `unit`: ours is `of`, modelled or counted; `emulated` runs the array, for minutes."""

    unit: str
    kind: Kind
    of: Callable[[Any], float]
    emulated: Callable[[Any], float] | None = None


def _nothing(_: Any) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Producer:
    """`subject` reads a row, InputError where it cannot be expressed here; `label` names it where its table does not;
    `note` tells what was assumed."""

    subject: Callable[[Fields], Any]
    quantities: Mapping[str, Quantity]
    label: Callable[[Any], str] = _nothing
    note: Callable[[Any], str] = _nothing
