"""Stand-ins that have just the facts that are looked at."""

from types import SimpleNamespace
from typing import Any


def fake(**facts: Any) -> Any:
    return SimpleNamespace(**facts)
