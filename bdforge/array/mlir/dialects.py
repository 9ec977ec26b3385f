"""The dialects that a design may use."""

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.affine import Affine
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.cf import Cf
from xdsl.dialects.func import Func
from xdsl.dialects.math import Math
from xdsl.dialects.memref import MemRef
from xdsl.dialects.scf import Scf
from xdsl.dialects.ub import UB
from xdsl.dialects.vector import Vector
from xdsl.ir import Attribute, Dialect, Operation

from bdforge.array.mlir import (
    array_ops,
    bd_ops,
    control_ops,
    device_ops,
    dma_ops,
    memcpy_ops,
    memory_ops,
    register_ops,
    sequence_ops,
    stream_ops,
    switch_ops,
    task_ops,
)
from bdforge.array.mlir.attributes import (
    BlockFloatType,
    DimensionAttr,
    DimensionsAttr,
    IterationAttr,
    PacketInfoAttr,
    PaddingAttr,
    PaddingsAttr,
)
from bdforge.array.mlir.operation import AieOperation
from bdforge.array.mlir.trace_ops import is_trace, trace_operation
from bdforge.array.mlir.upstream import LAYOUTS, with_replacements

_MODULES = (
    device_ops, array_ops, memory_ops, bd_ops, dma_ops, stream_ops, task_ops, memcpy_ops, sequence_ops, control_ops,
    register_ops, switch_ops,
)  # fmt: skip


def _operations(dialect: str) -> list[type[Operation]]:
    found = [item for module in _MODULES for item in vars(module).values() if isinstance(item, type)]
    named: list[type[Operation]] = [
        op for op in found if issubclass(op, AieOperation) and getattr(op, "name", "").startswith(f"{dialect}.")
    ]
    return list(dict.fromkeys(named))


_ATTRIBUTES = (PacketInfoAttr, DimensionAttr, DimensionsAttr, PaddingAttr, PaddingsAttr, IterationAttr)
AIE = Dialect("aie", _operations("aie"), list[type[Attribute]](_ATTRIBUTES))
AIEX = Dialect("aiex", _operations("aiex"), [BlockFloatType])


class DesignContext(Context):
    """xDSL's context; operations of the `aie.trace` family are made as their names are met."""

    def get_optional_op(self, name: str, *, dialect_stack: Sequence[str] = ()) -> type[Operation] | None:
        """The operation of a name."""
        return trace_operation(name) if is_trace(name) else super().get_optional_op(name, dialect_stack=dialect_stack)


def context() -> Context:
    """A new xDSL context with every dialect that a design may use."""
    made = DesignContext()
    for dialect in (Builtin, Arith, Scf, Cf, MemRef, Func, Affine, Vector, Math, UB):
        made.load_dialect(with_replacements(dialect))
    for layout in LAYOUTS:
        made.load_attr_or_type(layout)
    made.load_dialect(AIE)
    made.load_dialect(AIEX)
    return made
