"""Numbers of the command line: each has a range, and is refused by its option's name outside of it."""

import math
import re
from typing import Any

import typer

from bdforge.common.messages import clip

LARGE = (1 << 63) - 1
"""Of counts and seeds that nothing else bounds."""
SIZE_MAX = 10**9
"""Of sizes and counts that something is made or repeated of."""
_WHOLE = re.compile(r"-?\d{1,19}", re.ASCII)


def number(meaning: str, *names: str, least: float = 0, most: float = SIZE_MAX) -> Any:
    """An option for a number from `least` to `most`; named as its parameter is, without `names`."""
    return typer.Option(*names, min=least, max=most, help=meaning, callback=_finite)


def _finite(value: float | None) -> float | None:
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is no number")
    return value


def whole_numbers(text: str, option: str, least: int, most: int = SIZE_MAX) -> list[int]:
    """Numbers of a list with commas; a usage error for others, and for those outside of `least` to `most`."""
    parts = [part.strip() for part in text.split(",")]
    if not all(_WHOLE.fullmatch(part) and least <= int(part) <= most for part in parts):
        raise typer.BadParameter(
            f"{clip(repr(text))}: give whole numbers from {least} to {most}, with commas", param_hint=option
        )
    return [int(part) for part in parts]
