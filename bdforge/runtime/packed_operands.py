"""Operands that are packed once, and stay from call to call."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bdforge.design.sequences import OperandError, PlannedSequence
from bdforge.design.sequences.buffers import layout_of, operands_in


@dataclass(frozen=True, slots=True, eq=False)
class PackedOperands:
    """Operands as one design's array reads them, buffers by argument; pack once, use for every call.

    `design` made it; any takes it that reads its arguments by the same `layouts`. `names` are the operands' names,
    `sizes` those that they tell.
    """

    design: str
    names: tuple[str, ...]
    sizes: Mapping[str, int]
    buffers: Mapping[int, np.ndarray]
    layouts: Mapping[int, tuple]

    @property
    def data(self) -> np.ndarray:
        """The first operand's buffer; a file of it is what `Loaded.packed` takes."""
        return next(iter(self.buffers.values()))

    def __repr__(self) -> str:
        size = sum(buffer.nbytes for buffer in self.buffers.values())
        return f"<Packed {', '.join(self.names)}, {'x'.join(map(str, self.sizes.values()))}, {size} bytes>"


def check_packed(packed: Sequence[PackedOperands], planned: PlannedSequence, plain: Collection[str] = ()) -> None:
    """OperandError unless each argument comes from one place, laid out as the array will read it.

    `plain` are the names of operands that come as arrays.
    """
    holders: dict[int, PackedOperands] = {}
    for one in packed:
        for index, layout in one.layouts.items():
            if layout != (needed := layout_of(planned, index)):
                sizes = ", ".join(f"{name} = {size}" for name, size in one.sizes.items())
                raise OperandError(
                    f"packed {one.names[0]} of {sizes} ({layout[0]} bytes, by {one.design}) is not laid out as a "
                    f"problem of {planned.shape} reads it ({needed[0]} bytes); pack it by the design and for the sizes "
                    "that take it"
                )
            beside = [operand.name for operand in operands_in(planned.program, index) if operand.name in plain]
            if other := [holders[index].names[0]] if index in holders else beside:
                raise OperandError(f"{other[0]} stands in one buffer with packed {one.names[0]}; pack them together")
            holders[index] = one
