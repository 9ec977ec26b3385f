"""Comparisons whose failure names what differs: the field, key or place, both values, and the pattern of an array."""

import inspect
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass
from itertools import islice
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from support.failing_source import argument_of, short
from support.wrong_places import described

_MOST = 6  # places told, before the rest is only counted
_COUNTED = 1000
_LONG = 12  # numbers from which on a list is told as an array
_BYTES = (bytes, bytearray, memoryview)


@dataclass(frozen=True, slots=True)
class _Arrays:
    """How arrays are compared and told."""

    tile: Sequence[int] | None = None
    names: Sequence[str] = ()
    strict: bool = False
    rtol: float = 0
    atol: ArrayLike = 0

    @property
    def close(self) -> bool:
        """Whether there are tolerances."""
        return bool(self.rtol or np.any(self.atol))


def same(got: Any, want: Any, what: Any = "", **how: Any) -> None:
    """Raises AssertionError that tells the `difference` of two values, if there is one, in the way `how`.

    It starts with `what` is compared, or else with the source of `got`.
    """
    __tracebackhide__ = True
    if told := difference(got, want, **how):
        frame = inspect.currentframe()
        raise AssertionError(f"{what or argument_of(frame.f_back if frame else None)}: {told}")


def as_reviewed(got: Path, reviewed: Path) -> None:
    """For `file_regression`: raises AssertionError with the lines of a text that are not as they were reviewed."""
    lines, wanted = (path.read_text(encoding="utf-8").splitlines() for path in (got, reviewed))
    same(lines, wanted, reviewed.name)


def difference(
    got: Any, want: Any, *, tile: Sequence[int] | None = None, names: Sequence[str] = (), strict: bool = False,
    rtol: float = 0, atol: ArrayLike = 0,
) -> str:  # fmt: skip
    """Where two values differ, empty where they do not: arrays (one number may stand for all that is expected), bytes,
    texts, objects with fields, and containers of them.

    `tile` (its size) and `names` (of the axes, in the singular) say how to tell places of an array. NaN is like NaN;
    `strict` compares dtypes too, `atol` may be an array of bounds.
    """
    found = list(islice(_walk(got, want, "", _Arrays(tile, names, strict, rtol, atol)), _COUNTED))
    more = [f"and {len(found) - _MOST} more differences"] if len(found) > _MOST else []
    return "\n".join(found[:_MOST] + more)


def has_parts(value: Any) -> bool:
    """Whether a value is told by its parts."""
    return isinstance(value, (list, tuple, Mapping, Set, *_BYTES)) or bool(_fields(value))


def _walk(got: Any, want: Any, at: str, how: _Arrays) -> Iterator[str]:
    """A line for each place that differs."""
    both = (got, want)
    numeric = how.close and all(isinstance(x, (Real, np.generic)) for x in both)
    if numeric or any(isinstance(x, np.ndarray) for x in both):
        yield from _arrays(np.asarray(got), np.asarray(want), at, how)
    elif all(isinstance(x, _BYTES) for x in both):
        one, other = (np.frombuffer(x, np.uint8) for x in both)
        yield from _arrays(one, other, at, _Arrays(how.tile, how.names or ("byte",)))
    elif all(isinstance(x, str) and "\n" in x for x in both):
        yield from _sequences(got.splitlines(), want.splitlines(), at, "line", how)
    elif all(isinstance(x, Mapping) for x in both):
        yield from _mappings(got, want, at, "[{!r}]", how)
    elif all(isinstance(x, Set) for x in both):
        yield from _sets(got, want, at)
    elif type(got) is type(want) and (names := _fields(got)):
        mine, theirs = ({name: getattr(x, name) for name in names} for x in both)
        yield from _mappings(mine, theirs, at, ".{}", how) if got != want else ()
    elif all(isinstance(x, Sequence) and not isinstance(x, str) for x in both):
        yield from _sequences(got, want, at, "", how)
    elif got is not want and got != want and not (got != got and want != want):
        yield _of(at) + _one(got, want)


def _one(got: Any, want: Any) -> str:
    return f"is {short(got)}, expected {short(want)}{_change(got, want)}"


def _of(at: str) -> str:
    return f"{at} " if at else ""


def _fields(value: Any) -> Sequence[str]:
    """Names of what an object's equality looks at."""
    if is_dataclass(value):
        return [field.name for field in fields(value) if field.compare]
    return getattr(type(value), "_fields", ()) or list(getattr(type(value), "model_fields", ()))


def _arrays(got: np.ndarray, want: np.ndarray, at: str, how: _Arrays) -> Iterator[str]:
    if how.strict and got.dtype != want.dtype:
        yield f"{_of(at)}has dtype {got.dtype}, expected {want.dtype}"
    if got.shape != want.shape and (want.ndim or how.strict):
        told = _inserted(got.tolist(), want.tolist()) if got.ndim == want.ndim == 1 else ""
        yield f"{_of(at)}has shape {got.shape}, expected {want.shape}{told}"
        got, want = (x.ravel()[: min(got.size, want.size)] for x in (got, want))
        how = _Arrays()
    want = np.broadcast_to(want, got.shape)
    if (wrong := _wrong(got, want, how)).any():
        one = not got.ndim
        yield _of(at) + (_one(got.item(), want.item()) if one else described(wrong, got, want, how.tile, how.names))


def _wrong(got: np.ndarray, want: np.ndarray, how: _Arrays) -> np.ndarray:
    with np.errstate(all="ignore"):
        wrong = np.asarray(got != want)
        if wrong.any() and how.close:
            a, b = got.astype(np.float64), want.astype(np.float64)
            wrong &= ~(np.abs(a - b) <= np.asarray(how.atol, np.float64) + how.rtol * np.abs(b))
        return wrong & ~np.asarray((got != got) & (want != want)) if wrong.any() else wrong


def _mappings(got: Mapping, want: Mapping, at: str, form: str, how: _Arrays) -> Iterator[str]:
    for key in want:
        if key not in got:
            yield f"{at}{form.format(key)} is missing, expected {short(want[key])}"
        else:
            yield from _walk(got[key], want[key], at + form.format(key), how)
    yield from (f"{at}{form.format(key)} is {short(got[key])}, expected none" for key in got if key not in want)


def _sets(got: Set, want: Set, at: str) -> Iterator[str]:
    for words, found in (("lacks", want - got), ("has unexpected", got - want)):
        if found:
            listed = ", ".join(sorted(map(short, found))[:_MOST])
            yield f"{_of(at)}{words} {len(found)} of {len(want)}: {listed}"


def _sequences(got: Sequence, want: Sequence, at: str, unit: str, how: _Arrays) -> Iterator[str]:
    if len(got) == len(want) >= _LONG and all(isinstance(x, int | float) for x in (*got, *want)):
        yield from _arrays(np.array(got), np.array(want), at, how)
        return
    if len(got) != len(want):
        told = _inserted(got, want)
        yield f"{_of(at)}has {len(got)} {unit or 'entrie'}s, expected {len(want)}{told}"
        if told.startswith(":"):
            return
    for i, (mine, theirs) in enumerate(zip(got, want, strict=False)):
        yield from _walk(mine, theirs, f"{unit} {i + 1}" if unit else f"{at}[{i}]", how)


def _inserted(got: Sequence, want: Sequence) -> str:
    """The entries that are missing or too many, where all others are right; else how much is right at the ends."""
    longer, shorter = (got, want) if len(got) > len(want) else (want, got)
    start, end = _alike(got, want), _alike(got[::-1], want[::-1])
    if start + end < len(shorter):
        return f"; the first {start} and the last {end} are right"
    found = longer[start : start + len(longer) - len(shorter)]
    word = "too many" if longer is got else "missing"
    return f": {word} from [{start}] on: {', '.join(map(short, found[:_MOST]))}"


def _alike(got: Sequence, want: Sequence) -> int:
    """How many entries from the first on are the same."""
    differ = (next(_walk(a, b, "", _Arrays()), None) is not None for a, b in zip(got, want, strict=False))
    return next((i for i, wrong in enumerate(differ) if wrong), min(len(got), len(want)))


def _change(got: Any, want: Any) -> str:
    """How a wrong number is off, where that is said shortly."""
    if not all(isinstance(x, Real) and not isinstance(x, bool) for x in (got, want)) or not want:
        return ""
    got, want = (x.item() if isinstance(x, np.generic) else x for x in (got, want))  # bytes have no sign
    factor = got / want
    return f" ({factor:g} times)" if factor in (-1, 2, 4, 8, 0.5, 0.25, 0.125) else f" ({got - want:+g})"
