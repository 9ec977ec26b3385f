"""Arrays as a host gives them: numbers, in this machine's byte order, or a sentence that says what they are instead.

Whatever takes an array asks `host_array` first, since memory is handed on as bytes.
"""

import numpy as np

from bdforge.messages import Fault

_OTHERS = {
    "O": "Python objects", "S": "bytes of text", "U": "text", "T": "text", "V": "raw bytes", "M": "dates",
    "m": "durations", "c": "complex numbers",
}  # fmt: skip
"""What elements of these kinds of numpy's are."""


def unlike_numbers(dtype: np.dtype) -> str:
    """What elements are that are neither integers, booleans nor floats (ml_dtypes' included); "" where they are."""
    if dtype.kind == "V" and not issubclass(dtype.type, np.void):  # bfloat16 and other types that were added to numpy
        return ""
    if dtype.fields is not None:
        return "records"
    return _OTHERS.get(dtype.kind, "")


def host_array(given: object, what: str, error: type[Fault], *, in_place: bool = False) -> np.ndarray:
    """The numbers of `given` in this machine's byte order: its own memory, or a copy where its order is the other one.

    An array that is written `in_place` cannot be a copy. Strides stay. `error`, with `what` the array is, for anything
    else: no array, elements that are no numbers, masks.
    """
    if not isinstance(given, np.ndarray):
        raise error(f"{what} must be a numpy array, got {type(given).__name__}")
    if isinstance(given, np.ma.MaskedArray):
        raise error(f"{what} is a masked array; pass its .filled() or its .data")
    if others := unlike_numbers(given.dtype):
        raise error(f"{what} must hold numbers, got {others} ({given.dtype}); convert with astype, or view the bytes")
    array = np.asarray(given)
    if array.dtype.isnative:
        return array
    if in_place:
        raise error(
            f"{what} has the other byte order ({array.dtype}) and would be written in place; "
            "pass array.astype(array.dtype.newbyteorder('='))"
        )
    return array.astype(array.dtype.newbyteorder("="))
