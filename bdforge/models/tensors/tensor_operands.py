"""Operands of a contraction: the user's arrays as the array walks them, and the buffers of a run."""

from collections.abc import Mapping, Sequence

import numpy as np

from bdforge.common.arrays import host_array
from bdforge.common.messages import warn_once
from bdforge.design.sequences import place
from bdforge.design.sequences.buffers import empty
from bdforge.devices.types import TYPES
from bdforge.models.tensors.plans import Planned
from bdforge.operators.contraction.sides import Side
from bdforge.runtime import OperandError


def typed(array: np.ndarray, name: str, number: int) -> np.ndarray:
    """The array in a type of the design's; OperandError for another one."""
    dtype = TYPES[name].dtype
    given = np.asarray(array) if isinstance(array, np.generic) else array
    array = host_array(given, f"operand {number}", OperandError)
    if array.dtype != dtype:
        raise OperandError(
            f"operand {number} must be an array of {dtype.name}, which the design takes, got {array.dtype}"
        )
    return array


def walkable(array: np.ndarray, number: int) -> np.ndarray:
    """The array, copied where its strides go backwards, nowhere, or through parts of elements."""
    strides = [step if size > 1 else array.itemsize for size, step in zip(array.shape, array.strides, strict=True)]
    if all(step > 0 and step % array.itemsize == 0 for step in strides):
        return np.lib.stride_tricks.as_strided(array, strides=strides)  # a step that nobody takes is any
    warn_once(f"operand {number} of einsum is copied with each call: its strides {array.strides} are no steps forward")
    return np.ascontiguousarray(array)


def view_of(side: Side, array: np.ndarray) -> np.ndarray:
    """The user's memory with an axis for each member of the operand's dimensions."""
    members = [member for part in side.axes for member in part.dim.parts]
    strides = [(member.strides[side.tensor] or 0) * array.itemsize for member in members]
    return np.lib.stride_tricks.as_strided(array, [member.size for member in members], strides)


def buffer_of(found: Planned, side: Side, array: np.ndarray) -> np.ndarray:
    """The host buffer of an operand: the user's memory, or what is staged."""
    if not side.staged:
        return np.lib.stride_tricks.as_strided(array, (side.elements,), (array.itemsize,))
    buffer = empty(found.sequence, side.tensor)
    if side.tensor != 2:
        operand = found.sequence.program.operands[side.tensor]
        view = view_of(side, array).reshape([part.dim.size for part in side.axes])
        place(operand, found.sequence.values, view, buffer.view(np.uint8))
    return buffer


def repeated(labels: str, array: np.ndarray, more: str, sizes: Mapping[str, int]) -> tuple[str, np.ndarray]:
    """The tensor again and again along `more` labels."""
    shape = [sizes[label] for label in more]
    return more + labels, np.ascontiguousarray(np.broadcast_to(array, (*shape, *array.shape))) if more else array


def summed_over(labels: str, array: np.ndarray, over: str) -> tuple[str, np.ndarray]:
    """The tensor summed over labels, and rounded to its type."""
    axes = tuple(labels.index(label) for label in over)
    left = "".join(label for label in labels if label not in over)
    return left, array.sum(axes, np.float32).astype(array.dtype) if axes else array


def result_in(out: object, shape: Sequence[int], dtype: np.dtype) -> np.ndarray | None:
    """Where the result goes; OperandError for an array that does not hold it."""
    if out is None:
        return None
    array = host_array(out, "out", OperandError, in_place=True)
    if list(array.shape) != [*shape] or array.dtype != dtype or not array.flags.writeable:
        raise OperandError(
            f"out is {array.dtype} of shape {array.shape}{'' if array.flags.writeable else ', read-only'}; "
            f"the result is {dtype} of shape {tuple(shape)}"
        )
    return array
