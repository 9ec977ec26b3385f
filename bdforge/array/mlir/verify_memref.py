"""Rules of memrefs: nothing that this package, or mlir-aie, makes of a text honours a layout of memory where it begins.

Views have layouts, which have to be what the view makes of its source. Source: MLIR, `MemRefOps.cpp`.
"""

from collections.abc import Sequence

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, AffineMapAttr, MemRefType
from xdsl.ir import Operation

from bdforge.array.mlir.allocate import element_bits, is_row_major, memref_bytes
from bdforge.array.mlir.control_ops import RunOp
from bdforge.array.mlir.memory_ops import BufferOp, ExternalBufferOp
from bdforge.array.mlir.operation import constant_of
from bdforge.array.mlir.sequence_ops import RuntimeSequenceOp
from bdforge.array.mlir.upstream import GlobalOp
from bdforge.array.mlir.verify_array import Faults, rule

Strides = Sequence[int | None]
"""Elements from one to the next of each dimension, outermost first; None where only the running program knows."""


@rule
def begins(
    op: BufferOp | ExternalBufferOp | GlobalOp | memref.AllocaOp | memref.AllocOp | RuntimeSequenceOp,
) -> Faults:
    """Where memory begins its elements follow one another in row-major order; what is handed on may be a view."""
    types = [op.type] if isinstance(op, GlobalOp) else list(op.result_types)
    types += [arg.type for arg in op.arguments] if isinstance(op, RuntimeSequenceOp) else []
    for kind in types:
        if isinstance(kind, MemRefType) and not _is_plain(kind) and not _is_called(op):
            problem = (
                f"the layout of {kind} would be ignored: memory holds elements in row-major order from its start; "
                "leave the layout out, and give transfers their offset, sizes and strides"
            )
            yield op, problem


def _is_plain(kind: MemRefType) -> bool:
    return is_row_major(kind) and (isinstance(kind.layout, AffineMapAttr) or kind.get_offset() == 0)


def _is_called(op: Operation) -> bool:
    """Whether an aiex.run may hand its views to this sequence."""
    top = op
    while (parent := top.parent_op()) is not None:
        top = parent
    return isinstance(op, RuntimeSequenceOp) and any(
        isinstance(run, RunOp) and run.symbol == op.symbol for run in top.walk()
    )


@rule
def subview(op: memref.SubviewOp) -> Faults:
    """Strides of the source times those of the view."""
    source, target = op.source.type, op.result.type
    if not isinstance(source, MemRefType) or not isinstance(target, MemRefType):
        return
    strides, start = source.get_strides(), source.get_offset()
    if strides is None:
        yield op, f"the strides of {source} are not known"
        return
    sizes, steps, offsets = (
        [None if n == DYNAMIC_INDEX else int(n) for n in values.get_values()]
        for values in (op.static_sizes, op.static_strides, op.static_offsets)
    )
    made, moved = _products(strides, steps), [start, *_products(strides, offsets)]
    first = None if None in moved else sum(n for n in moved if n is not None)
    kept = _kept(sizes, target.get_shape())
    if kept is not None:
        yield from _as_made(op, target, [made[axis] for axis in kept], first)


def _products(a: Strides, b: Strides) -> list[int | None]:
    return [None if m is None or n is None else m * n for m, n in zip(a, b, strict=True)]


def _kept(sizes: Sequence[int | None], shape: Sequence[int]) -> list[int] | None:
    """Dimensions that the result has too: others are of size 1; None where the shapes do not fit."""
    kept: list[int] = []
    for axis, size in enumerate(sizes):
        if len(kept) < len(shape) and shape[len(kept)] == (DYNAMIC_INDEX if size is None else size):
            kept.append(axis)
        elif size != 1:
            return None
    return kept if len(kept) == len(shape) else None


@rule
def reinterpret_cast(op: memref.ReinterpretCastOp) -> Faults:
    """As its offset and strides say."""
    if isinstance(target := op.results[0].type, MemRefType):
        strides = [None if n == DYNAMIC_INDEX else int(n) for n in op.static_strides.get_values()]
        (first,) = op.static_offsets.get_values()
        yield from _as_made(op, target, strides, None if first == DYNAMIC_INDEX else int(first))


@rule
def view(op: memref.ViewOp) -> Faults:
    """Whole elements inside of its source, where the text says where it begins and ends."""
    source, target, shift = op.source.type, op.result.type, constant_of(op.byte_shift)
    if shift is None or not isinstance(source, MemRefType) or not isinstance(target, MemRefType):
        return
    each, held = element_bits(target.element_type) // 8, memref_bytes(source)
    if each and shift % each:
        yield op, f"it begins at byte {shift}, inside an element of {each} bytes; move it"
    if not op.sizes and not 0 <= shift <= held - memref_bytes(target):
        yield op, f"{memref_bytes(target)} bytes from byte {shift} on leave {source}, which has {held}; move it"


@rule
def cast(op: memref.CastOp) -> Faults:
    """As its source, as far as both know."""
    source, target = op.operands[0].type, op.results[0].type
    if isinstance(source, MemRefType) and isinstance(target, MemRefType):
        yield from _as_made(op, target, source.get_strides() or (), source.get_offset())


def _as_made(op: Operation, target: MemRefType, strides: Strides, first: int | None) -> Faults:
    """A layout that says something else than what is made, of what both know."""
    said = target.get_strides()
    if said is None or len(said) != len(strides):
        yield op, f"the layout of {target} is not of {len(strides)} strides and an offset"
        return
    pairs = [(a, b) for a, b, size in zip(said, strides, target.get_shape(), strict=True) if size != 1]
    if any(None not in pair and pair[0] != pair[1] for pair in [*pairs, (target.get_offset(), first)]):
        made = ", ".join("?" if n is None else str(n) for n in strides)
        at = "?" if first is None else first
        yield op, f"its result of type {target} has strides [{made}] and offset {at} as it is made here"
