"""Constants of core programs."""

from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, VectorType

from bdforge.emulator.cores.mlir.emit import emits, unsupported
from bdforge.emulator.cores.mlir.values import dtype_of_vector, from_memory, is_float, nearest_bf16, rounder, wrap
from bdforge.mlir.dense import numpy_of

if TYPE_CHECKING:
    from bdforge.emulator.cores.mlir.translation import Translation


@emits("arith.constant")
def constant(t: "Translation", op: arith.ConstantOp) -> None:
    type_ = op.result.type
    match op.value:
        case IntegerAttr() as number:
            value = wrap(number.value.data, type_)
            t.constants[op.result] = value
            t.define(op.result, f"({value})")
        case FloatAttr() as number if is_float(type_):
            narrow = isinstance(type_, BFloat16Type)  # which the compiler rounds, not the core
            value = (nearest_bf16 if narrow else rounder(type_))(number.value.data)
            finite = np.isfinite(value)
            t.define(op.result, f"({value!r})" if finite else t.object("C", value))
        case DenseIntOrFPElementsAttr() as elements if isinstance(type_, VectorType):
            dtype_of_vector(type_.element_type)
            t.define(op.result, t.object("C", from_memory(numpy_of(elements), type_.element_type)))
        case other:
            raise unsupported(op, f"constants of type {other} are not supported")
