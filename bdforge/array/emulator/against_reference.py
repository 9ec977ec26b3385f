"""A design of one size beside a reference in numpy: what it made of random numbers, and what is right."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bdforge.array.emulator.api import emulate
from bdforge.array.emulator.module_choice import choose, zero_arrays
from bdforge.array.mlir import parsed
from bdforge.common.messages import InputError, listed
from bdforge.common.mismatch import first_mismatch
from bdforge.common.watched import foreign

Reference = Callable[..., np.ndarray]
"""What the last host buffer of a design must hold, of all others."""
_SEED, _MOST = 1, 99  # of random elements, which every type holds


class ReferenceArraysError(InputError):
    """A design whose host buffers its reference does not take."""


def random_arrays(text: str, name: str) -> list[np.ndarray]:
    """Host buffers for a run of a design's sequence: random numbers, and zeros in the last, which the run fills."""
    _, sequence = choose(parsed(text, name), None, None, name)
    arrays, random = zero_arrays(sequence), np.random.default_rng(_SEED)
    for array in arrays[:-1]:
        array[:] = random.integers(-_MOST, _MOST, array.shape, endpoint=True)
    return arrays


def wrong_element(
    text: str,
    name: str,
    arrays: Sequence[np.ndarray],
    reference: Reference,
    kernels: Mapping[str, Callable[..., Any]],
    **options: Any,
) -> str | None:
    """Run a design on arrays, with `emulate`'s options: the first element of the last that is not the reference's.

    None where all are right; else the run's warnings are told, too. Memory that nobody wrote may not be read. Faults
    as `emulate`'s, ReferenceArraysError for buffers of other sizes than the reference's.
    """  # fmt: skip
    with foreign(f"{name}: arrays that its reference does not take", ReferenceArraysError, "making the reference"):
        expected = reference(*arrays[:-1])
        last = arrays[-1].reshape(expected.shape)
    warnings = emulate(text, arrays, kernels, file=name, poison=True, **options).warnings
    wrong = first_mismatch(last, expected, name="C" if len(arrays) > 2 else "b")
    return None if wrong is None else listed([str(wrong), *warnings], "\n")
