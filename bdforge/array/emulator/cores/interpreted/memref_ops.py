"""The memref dialect: memory is a numpy view, and every access is checked against the view's bounds."""

import math
from collections.abc import Sequence

import numpy as np
from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    IntAttr,
    MemRefType,
    StridedLayoutAttr,
    UnrankedMemRefType,
)
from xdsl.ir import Operation, SSAValue

from bdforge.array.emulator.cores.interpreted.emit import Where, emits, literal, tuple_of, unsupported
from bdforge.array.emulator.cores.interpreted.number_formats import bf16_of_bits, bits_of_bf16, dtype_of_memory
from bdforge.array.emulator.cores.interpreted.translation import Translation
from bdforge.array.emulator.errors import CoreError
from bdforge.array.emulator.poison import PoisonedView, checked_load
from bdforge.array.mlir.dense import numpy_of
from bdforge.array.mlir.locations import value_name
from bdforge.array.mlir.upstream import GlobalOp
from bdforge.devices.limits import CORE


def outside(array: np.ndarray, index: tuple[int, ...], where: Where) -> None:
    """CoreError for an index that leaves its memref."""
    raise CoreError(f"index {list(index)} is outside a memref of shape {list(array.shape)}{where()}")


def check_index(t: Translation, op: Operation, array: SSAValue, indices: Sequence[str]) -> None:
    """Refuse an index outside of the memref: Python's negative indices would hide an overrun."""
    name = t.value(array)
    checks = []
    for axis, index in enumerate(indices):
        size = _static_size(array, axis)
        known = literal(index)
        if size is None or known is None or not 0 <= known < size:
            checks.append(f"0 <= {index} < {name}.shape[{axis}]" if size is None else f"0 <= {index} < {size}")
    if checks:
        t.line(f"if not ({' and '.join(checks)}): {t.helper(outside)}({name}, {tuple_of(indices)}, {t.where(op)})")


def _static_size(value: SSAValue, axis: int) -> int | None:
    assert isinstance(value.type, MemRefType)
    size = value.type.get_shape()[axis]
    return None if size == DYNAMIC_INDEX else size


def emit_load(t: Translation, op: Operation, array: SSAValue, indices: Sequence[str]) -> None:
    check_index(t, op, array, indices)
    name = t.value(array)
    checked = t.core.array.poison  # whose views watch what is indexed
    element = f"{name}.item({', '.join(indices)})"
    if checked:
        element = f"{t.helper(checked_load)}({name}, {tuple_of(indices)}, {t.where(op)})"
    assert isinstance(array.type, MemRefType)
    narrow = isinstance(array.type.element_type, BFloat16Type)
    t.assign(op, f"{t.helper(bf16_of_bits)}({element})" if narrow else element)


def emit_store(t: Translation, op: Operation, value: SSAValue, array: SSAValue, indices: Sequence[str]) -> None:
    check_index(t, op, array, indices)
    text = t.value(value)
    if isinstance(value.type, BFloat16Type):
        text = f"{t.helper(bits_of_bf16)}({text})"
    t.line(f"{t.value(array)}[{tuple_of(indices)}] = {text}")


@emits("memref.load")
def load(t: Translation, op: memref.LoadOp) -> None:
    emit_load(t, op, op.memref, t.values(op.indices))


@emits("memref.store")
def store(t: Translation, op: memref.StoreOp) -> None:
    emit_store(t, op, op.value, op.memref, t.values(op.indices))


@emits("memref.copy")
def copy(t: Translation, op: memref.CopyOp) -> None:
    source, target = t.values(op.operands)
    shapes = f"copies shape {{{source}.shape}} to shape {{{target}.shape}}"
    t.require(f"{source}.shape == {target}.shape", shapes, op)
    t.line(f"{target}[...] = {source}")


@emits("memref.memory_space_cast", "memref.assume_alignment")
def same(t: Translation, op: Operation) -> None:
    t.assign(op, t.value(op.operands[0]))


@emits("memref.cast")
def cast(t: Translation, op: memref.CastOp) -> None:
    kind = op.results[0].type
    t.assign(op, t.value(op.operands[0]))
    if isinstance(kind, UnrankedMemRefType):
        return
    assert isinstance(kind, MemRefType)
    name = t.value(op.results[0])
    checks = [f"{name}.ndim == {len(kind.get_shape())}"]
    checks += [f"{name}.shape[{i}] == {n}" for i, n in enumerate(kind.get_shape()) if n != DYNAMIC_INDEX]
    t.require(" and ".join(checks), f"a memref of shape {{{name}.shape}} is no {kind}", op)


@emits("memref.subview")
def subview(t: Translation, op: memref.SubviewOp) -> None:
    assert isinstance(op.result.type, MemRefType)
    offsets = t.mixed(op.static_offsets.get_values(), op.offsets)
    sizes = t.mixed(op.static_sizes.get_values(), op.sizes)
    strides = t.mixed(op.static_strides.get_values(), op.strides)
    dropped = _dropped(op.static_sizes.get_values(), op.result.type.get_shape())
    if dropped is None:
        raise unsupported(op, f"the result type {op.result.type} cannot come from sizes {', '.join(sizes)}")
    arguments = ", ".join(map(tuple_of, (offsets, sizes, strides)))
    t.assign(op, f"{t.helper(_subview)}({t.value(op.source)}, {arguments}, {dropped}, {t.where(op)})")


def _dropped(sizes: Sequence[int], shape: Sequence[int]) -> tuple[int, ...] | None:
    """Axes of size 1 that the result type leaves out; None when it does not fit."""
    left, dropped = list(shape), []
    for axis, size in enumerate(sizes):
        if left and left[0] == size:
            left.pop(0)
        elif size == 1:
            dropped.append(axis)
        else:
            return None
    return None if left else tuple(dropped)


def _subview(array, offsets, sizes, strides, dropped: tuple[int, ...], where: Where) -> np.ndarray:
    for axis, (offset, size, stride) in enumerate(zip(offsets, sizes, strides, strict=True)):
        last = offset + (size - 1) * stride if size else offset
        if size < 0 or stride < 1 or offset < 0 or last >= array.shape[axis] + (not size):
            raise CoreError(
                f"offset {offset}, size {size}, stride {stride} in dimension {axis} leave a memref of shape "
                f"{list(array.shape)}{where()}"
            )
    ranges = zip(offsets, sizes, strides, strict=True)
    view = array[tuple(slice(o, o + (n - 1) * s + 1 if n else o, s) for o, n, s in ranges)]
    return view.squeeze(dropped) if dropped else view


@emits("memref.reinterpret_cast")
def reinterpret_cast(t: Translation, op: memref.ReinterpretCastOp) -> None:
    root, start = _aligned_base(op)
    offset = t.mixed(op.static_offsets.get_values(), op.offsets)[0]
    sizes = tuple_of(t.mixed(op.static_sizes.get_values(), op.sizes))
    strides = tuple_of(t.mixed(op.static_strides.get_values(), op.strides))
    t.assign(op, f"{t.helper(_strided)}({t.value(root)}, {offset} - {start}, {sizes}, {strides}, {t.where(op)})")


@emits("memref.view")
def view(t: Translation, op: memref.ViewOp) -> None:
    kind = op.result.type
    assert isinstance(kind, MemRefType)
    shape, dtype = tuple_of(t.mixed(kind.get_shape(), op.sizes)), t.object("D", dtype_of_memory(kind.element_type))
    called = f"%{known}" if (known := value_name(op.result)) else ""
    seen = f"({t.value(op.source)}, {t.value(op.byte_shift)}, {shape}, {dtype}, {called!r}, {t.where(op)})"
    t.assign(op, f"{t.helper(_seen)}{seen}")


def _seen(memory: np.ndarray, shift: int, shape: tuple[int, ...], dtype: np.dtype, name: str, where: Where):
    """Bytes of a memref as elements of any type; CoreError where they leave it, or begin inside of an element."""
    size = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or not 0 <= shift <= memory.size - size:
        told = f"a view of {size} bytes from byte {shift} on leaves a memref of {memory.size}"
        raise CoreError(f"{told}; begin earlier or make it smaller{where()}")
    if shift % dtype.itemsize:
        raise CoreError(f"a view begins at byte {shift}, inside an element of {dtype.itemsize} bytes{where()}")
    part = memory[shift : shift + size]
    seen = part.view(np.ndarray).view(dtype).reshape(shape)
    if isinstance(part, PoisonedView) and part.written is not None:
        return PoisonedView.of(seen, part.written, name or part.name)
    return seen


_VIEWS = (memref.SubviewOp, memref.CastOp, memref.MemorySpaceCastOp, memref.ReinterpretCastOp,
          memref.CollapseShapeOp, memref.ExpandShapeOp, memref.AssumeAlignmentOp)  # fmt: skip


def _aligned_base(op: memref.ReinterpretCastOp) -> tuple[SSAValue, int]:
    """The memref whose memory the result may use, and the element number of its first element.

    A reinterpret_cast counts from the base of the memory under its source and ignores the source's own offset.
    """
    value = op.operands[0]
    while isinstance(value.owner, _VIEWS):
        value = value.owner.operands[0]
    layout = value.type.layout if isinstance(value.type, MemRefType) else None
    if not isinstance(layout, StridedLayoutAttr):
        return value, 0
    if not isinstance(layout.offset, IntAttr):
        raise unsupported(op, f"where {value.type} starts in its memory is not known; pass the whole buffer")
    return value, layout.offset.data


def _strided(array: np.ndarray, offset: int, sizes, strides, where: Where) -> np.ndarray:
    if not array.flags.c_contiguous:
        raise CoreError(f"memref.reinterpret_cast of a memref that is not contiguous{where()}")
    low = offset + sum(min(0, (n - 1) * s) for n, s in zip(sizes, strides, strict=True))
    high = offset + sum(max(0, (n - 1) * s) for n, s in zip(sizes, strides, strict=True))
    if min(sizes, default=1) < 0 or (min(sizes, default=1) > 0 and (low < 0 or high >= array.size)):
        raise CoreError(
            f"offset {offset}, sizes {list(sizes)} and strides {list(strides)} reach elements {low} to {high} of a "
            f"memref of {array.size}{where()}"
        )
    step = array.itemsize
    flat = array.reshape(-1)[min(offset, array.size) :]
    return np.lib.stride_tricks.as_strided(flat, sizes, [s * step for s in strides])


@emits("memref.collapse_shape", "memref.expand_shape")
def reshape(t: Translation, op: memref.CollapseShapeOp | memref.ExpandShapeOp) -> None:
    assert isinstance(op.result.type, MemRefType)
    source = t.value(op.operands[0])
    if isinstance(op, memref.ExpandShapeOp):
        shape = t.mixed(op.static_output_shape.get_values(), op.output_shape)
    else:
        groups = [[int(axis.value.data) for axis in group] for group in op.reassociation]
        shape = [" * ".join(f"{source}.shape[{axis}]" for axis in group) for group in groups]
    t.assign(op, f"{t.helper(_reshaped)}({source}, {tuple_of(shape)}, {t.where(op)})")


def _reshaped(array: np.ndarray, shape: tuple[int, ...], where: Where) -> np.ndarray:
    try:
        return array.reshape(shape, copy=False)
    except ValueError:
        shapes = f"shape {list(array.shape)} with byte strides {list(array.strides)} cannot be seen as {list(shape)}"
        raise CoreError(f"{shapes}{where()}") from None


@emits("memref.alloca")
def alloca(t: Translation, op: memref.AllocaOp) -> None:
    kind = op.memref.type
    assert isinstance(kind, MemRefType)
    if op.dynamic_sizes:
        raise unsupported(op, "sizes that only running tells are not supported; write them into its type")
    dtype = dtype_of_memory(kind.element_type)
    t.use_stack(math.prod(kind.get_shape()) * dtype.itemsize)
    t.assign(op, f"np.zeros({tuple(kind.get_shape())}, {t.object('D', dtype)})")


@emits("memref.alloc", "memref.dealloc")
def heap(t: Translation, op: Operation) -> None:
    raise unsupported(op, "a core has no heap; use aie.buffer, or memref.alloca on the stack")


@emits("memref.get_global")
def get_global(t: Translation, op: memref.GetGlobalOp) -> None:
    symbol = op.name_.string_value()
    found = _global(op, symbol)
    if found is None:
        raise unsupported(op, f"no memref.global is called @{symbol}")
    if found.type != op.memref.type:
        raise unsupported(op, f"@{symbol} is of type {found.type}, not {op.memref.type}")
    t.define(op.memref, t.shared(found, lambda: _contents(found)))


def _global(op: Operation, symbol: str) -> GlobalOp | None:
    """The memref.global of that name in the nearest operation around `op` that has one."""
    holder = op.parent_op()
    while holder is not None:
        for block in (block for region in holder.regions for block in region.blocks):
            for candidate in block.ops:
                if isinstance(candidate, GlobalOp) and candidate.sym_name.data == symbol:
                    return candidate
        holder = holder.parent_op()
    return None


def _contents(op: GlobalOp) -> np.ndarray:
    """A core's copy of a global: zeros where no value is given, read-only where it is constant."""
    dtype = dtype_of_memory(op.type.element_type)
    if not 0 <= math.prod(op.type.get_shape()) * dtype.itemsize <= CORE.memory_bytes:
        limit = f"a core's memory of {CORE.memory_bytes} bytes"
        raise CoreError(f"@{op.sym_name.data} of type {op.type} is larger than {limit}")
    array = np.zeros(op.type.get_shape(), dtype)
    if isinstance(op.initial_value, DenseIntOrFPElementsAttr):
        array[...] = numpy_of(op.initial_value).astype(array.dtype)
    array.flags.writeable = op.constant is None
    return array
