"""Arrays as a host gives them: numbers, in this machine's byte order, or a sentence that says what they are instead.

Whatever takes an array asks `host_array` first, since memory is handed on as bytes. Arrays of other libraries (DLPack,
`__array__`) are taken for their memory where that is the host's.
"""

from importlib import import_module
from typing import Any

import numpy as np

from bdforge.common.messages import Fault

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
    else: no array, memory that is not the host's, elements that are no numbers, masks.
    """
    if not isinstance(given, np.ndarray):
        given = _of_others(given, what, error, in_place)
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


def _of_others(given: Any, what: str, error: type[Fault], in_place: bool) -> np.ndarray:
    """What numpy sees of an array of another library; `error` where that is nothing."""
    dlpack = hasattr(type(given), "__dlpack__") and hasattr(type(given), "__dlpack_device__")
    if isinstance(given, np.generic | type) or not (dlpack or hasattr(given, "__array__")):
        raise error(f"{what} must be a numpy array, got {type(given).__name__}")
    if in_place and not dlpack:
        raise error(f"{what} is a {type(given).__name__}, of which numpy may get a copy, and would be written in place")
    try:
        found = _shared(given) if dlpack else np.asarray(given)
    except Exception as fault:  # what others raise: RuntimeError, BufferError, TypeError, or errors of their own
        reason = str(fault).partition("\n")[0] or type(fault).__name__
        raise error(f"{what}, a {type(given).__name__}, shows numpy no memory of the host: {reason}") from fault
    if in_place and not found.flags.writeable:
        raise error(f"{what} is a {type(given).__name__} that must not be written, and would be written in place")
    return found


def _shared(given: Any) -> np.ndarray:
    """The memory of an array of the host by DLPack."""
    given = given.detach() if hasattr(given, "detach") else given  # of PyTorch, from what has a gradient
    if str(getattr(given, "dtype", "")) == "torch.bfloat16":  # which numpy does not know
        from ml_dtypes import bfloat16  # here, since browsers lack it

        return np.from_dlpack(given.view(import_module("torch").int16)).view(bfloat16)
    try:
        return np.from_dlpack(given)
    except (BufferError, RuntimeError, TypeError):
        if not hasattr(given, "__array__"):
            raise
        return np.asarray(given)
