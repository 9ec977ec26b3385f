"""What `emulate` was given, before anything is done with it: each thing of its kind, or one sentence."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from bdforge.array.emulator.errors import ArgumentError
from bdforge.array.emulator.timed import TimingOptions
from bdforge.common.messages import clip

_TEXT, _MAPPING, _LIST = (str, "a text"), (Mapping, "a mapping"), (Sequence, "a list")
_KINDS: Mapping[str, tuple[Any, str]] = {
    "mlir": _TEXT, "file": _TEXT, "schedule": _TEXT, "sequence": _TEXT, "device": _TEXT,
    "args": (Sequence, "a list of arrays"),
    "kernels": _MAPPING, "elfs": _MAPPING, "permissive": (Collection, "a collection of names"), "observers": _LIST,
    "objects": (Sequence, "a list of paths"),
    "instructions": ((np.ndarray, bytes, bytearray, memoryview, Sequence), "words or bytes"),
    "seed": (Integral, "a whole number"), "image": (bytes, "bytes"),
    "timing": (TimingOptions, "TimingOptions"),
}  # fmt: skip
_OPTIONAL = ("kernels", "sequence", "device", "instructions", "timing", "elfs", "image", "breakpoints")
_ELEMENTS: Mapping[str, tuple[Any, str]] = {"permissive": _TEXT, "objects": ((str, Path), "a path")}


def check_given(given: Mapping[str, object]) -> None:
    """ArgumentError for the first of `emulate`'s arguments, by name, that is of another kind than it takes."""
    for name, (kinds, what) in _KINDS.items():
        value = given[name]
        if value is None and name in _OPTIONAL:
            continue
        _check(name, value, kinds, what)
    for name, (kinds, what) in _ELEMENTS.items():
        found = given[name]
        assert isinstance(found, Iterable)
        for each in found:
            _check(f"each of {name}", each, kinds, what)


def _check(name: str, value: object, kinds: Any, what: str) -> None:
    if not isinstance(value, kinds) or (isinstance(value, str) and kinds not in (str, (str, Path))):
        raise ArgumentError(f"{name} must be {what}, got {clip(type(value).__name__)}")
