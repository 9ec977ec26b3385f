"""The vector dialect: vectors are numpy arrays that nobody changes in place."""

from collections.abc import Callable, Sequence
from functools import partial, reduce

import numpy as np
from xdsl.dialects import vector
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, VectorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from bdforge.array.emulator.cores.interpreted.emit import Where, emits, is_vector, tuple_of, unsupported
from bdforge.array.emulator.cores.interpreted.float_ops import EXTREMES
from bdforge.array.emulator.cores.interpreted.number_formats import (
    dtype_of_vector,
    element_of,
    from_memory,
    is_float,
    rounder,
    to_memory,
    width,
    wrap,
)
from bdforge.array.emulator.cores.interpreted.translation import Translation
from bdforge.array.emulator.errors import CoreError


def _vector_type(value: SSAValue) -> VectorType:
    assert isinstance(value.type, VectorType)
    return value.type


def _window(array: np.ndarray, index: Sequence[int], shape: tuple[int, ...], where: Where) -> tuple:
    """Index of the block of `shape` at `index`, whose dimensions are the memref's last; CoreError if it leaves it."""
    sizes = (1,) * (array.ndim - len(shape)) + shape
    if any(not 0 <= i <= n - size for i, size, n in zip(index, sizes, array.shape, strict=True)):
        place = f"a vector of shape {list(shape)} at index {list(index)}"
        raise CoreError(f"{place} leaves a memref of shape {list(array.shape)}{where()}")
    lead = array.ndim - len(shape)
    return (*index[:lead], *(slice(i, i + n) for i, n in zip(index[lead:], shape, strict=True)))


def _load(element: Attribute, shape: tuple[int, ...], array: np.ndarray, index, where: Where) -> np.ndarray:
    return from_memory(array[_window(array, index, shape, where)], element)


def _store(element: Attribute, values: np.ndarray, array: np.ndarray, index, where: Where) -> None:
    array[_window(array, index, values.shape, where)] = to_memory(values, element)


def _fits(op: Operation, type_: VectorType, array: SSAValue) -> None:
    kind = array.type
    if not isinstance(kind, MemRefType) or kind.element_type != type_.element_type:
        raise unsupported(op, f"{type_} in a {kind} is not supported; both must have the same elements")
    dtype_of_vector(type_.element_type)


def _fits_block(op: Operation, type_: VectorType, array: SSAValue) -> None:
    _fits(op, type_, array)
    assert isinstance(array.type, MemRefType)
    if len(type_.get_shape()) > len(array.type.get_shape()):
        raise unsupported(op, f"{type_} has more dimensions than {array.type}")


@emits("vector.load")
def load(t: Translation, op: vector.LoadOp) -> None:
    type_ = _vector_type(op.result)
    _fits_block(op, type_, op.base)
    function = t.object("F", partial(_load, type_.element_type, type_.get_shape()))
    t.assign(op, f"{function}({t.value(op.base)}, {tuple_of(t.values(op.indices))}, {t.where(op)})")


@emits("vector.store")
def store(t: Translation, op: vector.StoreOp) -> None:
    type_ = _vector_type(op.vector)
    _fits_block(op, type_, op.base)
    function = t.object("F", partial(_store, type_.element_type))
    place = tuple_of(t.values(op.indices))
    t.line(f"{function}({t.value(op.vector)}, {t.value(op.base)}, {place}, {t.where(op)})")


def _moved(t: Translation, op, function: Callable, array: SSAValue, value: SSAValue) -> str:
    """A call of `function` with a memref, indices of it, a value (padding or what is written), and the place."""
    if op.mask is not None:
        raise unsupported(op, "masks are not supported")
    arguments = [t.value(array), tuple_of(t.values(op.indices)), t.value(value), t.where(op)]
    return f"{t.object('F', function)}({', '.join(arguments)})"


class _Transfer:
    """Where the lanes of a vector lie in a memref, by a permutation map.

    Lanes outside of the memref in a dimension that is not in bounds are padding when read and dropped when written.
    """

    def __init__(self, op: Operation, map_: AffineMap, array: SSAValue, vector_: SSAValue):
        type_ = _vector_type(vector_)
        _fits(op, type_, array)
        self.element, self.shape = type_.element_type, type_.get_shape()
        bounds = op.properties.get("in_bounds")
        self.in_bounds = [False] * len(self.shape) if bounds is None else [bool(b.value.data) for b in bounds]  # pyrefly: ignore
        self.axes: dict[int, int] = {}  # dimension of the memref: that of the vector
        for axis, result in enumerate(map_.results):
            if isinstance(result, AffineDimExpr):
                self.axes[result.position] = axis
            elif not (isinstance(result, AffineConstantExpr) and result.value == 0):
                raise unsupported(op, f"the permutation map {map_} is not supported")

    def lanes(self, array: np.ndarray, index, where: Where):
        """For every lane its index in the memref (0 where it is not there), and whether it is there."""
        places, valid = [], np.ones(self.shape, np.bool_)
        for dimension, start in enumerate(index):
            axis = self.axes.get(dimension)
            place = start + self._along(axis)
            inside = (place >= 0) & (place < array.shape[dimension])
            if not np.all(inside) and (axis is None or self.in_bounds[axis]):
                raise CoreError(
                    f"a transfer of a vector of shape {list(self.shape)} at index {list(index)} leaves a memref of "
                    f"shape {list(array.shape)} in dimension {dimension}{where()}"
                )
            valid &= inside
            places.append(np.broadcast_to(np.where(inside, place, 0), self.shape))
        return tuple(places), valid

    def _along(self, axis: int | None) -> np.ndarray:
        if axis is None:
            return np.zeros((), np.int64)
        return np.arange(self.shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(self.shape))])

    def read(self, array: np.ndarray, index, padding, where: Where) -> np.ndarray:
        """The vector in memory; `padding` where a lane is not there."""
        places, valid = self.lanes(array, index, where)
        if not valid.any():
            return np.full(self.shape, padding, dtype_of_vector(self.element))
        places = tuple(np.where(valid, place, place[valid][0]) for place in places)
        found = from_memory(np.asarray(array[places]), self.element)
        return np.where(valid, found, np.asarray(padding).astype(found.dtype))

    def write(self, array: np.ndarray, index, values: np.ndarray, where: Where) -> None:
        places, valid = self.lanes(array, index, where)
        array[tuple(place[valid] for place in places)] = to_memory(values[valid], self.element)


@emits("vector.transfer_read")
def transfer_read(t: Translation, op: vector.TransferReadOp) -> None:
    transfer = _Transfer(op, op.permutation_map.data, op.source, op.result)
    t.assign(op, _moved(t, op, transfer.read, op.source, op.padding))


@emits("vector.transfer_write")
def transfer_write(t: Translation, op: vector.TransferWriteOp) -> None:
    if op.result is not None:
        raise unsupported(op, "tensors are not supported; write to a memref")
    transfer = _Transfer(op, op.permutation_map.data, op.source, op.vector)
    if len(transfer.axes) < len(transfer.shape):
        raise unsupported(op, "a write cannot broadcast")
    t.line(_moved(t, op, transfer.write, op.source, op.vector))


@emits("vector.broadcast", "vector.splat")
def broadcast(t: Translation, op: Operation) -> None:
    type_ = _vector_type(op.results[0])
    dtype = t.object("D", dtype_of_vector(type_.element_type))
    t.assign(op, f"np.broadcast_to(np.asarray({t.value(op.operands[0])}, {dtype}), {tuple(type_.get_shape())})")


@emits("vector.extract")
def extract(t: Translation, op: vector.ExtractOp) -> None:
    place = _position(t, op, op.vector, op.static_position.get_values(), op.dynamic_position)
    element = f"{t.value(op.vector)}[{place}]"
    t.assign(op, element if is_vector(op.result) else _number(element, op.result.type))


@emits("vector.insert")
def insert(t: Translation, op: vector.InsertOp) -> None:
    place = _position(t, op, op.dest, op.static_position.get_values(), op.dynamic_position)
    name = t.value(op.result)
    t.line(f"{name} = {t.value(op.dest)}.copy()")
    t.line(f"{name}[{place}] = {t.value(op.source)}")


def _number(expression: str, type_: Attribute) -> str:
    return f"int({expression})" if width(type_) == 1 else f"{expression}.item()"


def _position(t: Translation, op: Operation, whole: SSAValue, static: Sequence[int], dynamic) -> str:
    place = t.mixed(static, dynamic)
    shape = _vector_type(whole).get_shape()
    for index, size in zip(static, shape, strict=False):
        if index != DYNAMIC_INDEX and not 0 <= index < size:
            raise unsupported(op, f"position {list(static)} is outside {whole.type}")
    if not dynamic:
        return tuple_of(place)
    return f"{t.helper(_inside)}({tuple_of(place)}, {tuple(shape)}, {t.where(op)})"


def _inside(place: tuple[int, ...], shape: tuple[int, ...], where: Where) -> tuple[int, ...]:
    if all(0 <= i < n for i, n in zip(place, shape, strict=False)):
        return place
    raise CoreError(f"position {list(place)} is outside a vector of shape {list(shape)}{where()}")


@emits("vector.shuffle")
def shuffle(t: Translation, op: vector.ShuffleOp) -> None:
    first, second = (f"np.atleast_1d({text})" for text in t.values((op.v1, op.v2)))
    order = t.object("C", np.array(op.mask.get_values(), np.int64))
    t.assign(op, f"np.concatenate(({first}, {second}))[{order}]")


@emits("vector.shape_cast")
def shape_cast(t: Translation, op: Operation) -> None:
    t.assign(op, f"{t.value(op.operands[0])}.reshape({tuple(_vector_type(op.results[0]).get_shape())})")


_COMBINERS: dict[str, Callable] = {
    "add": lambda a, b: a + b, "mul": lambda a, b: a * b, "and": lambda a, b: a & b, "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b, "minsi": min, "maxsi": max, "minui": min, "maxui": max,
    **{name: scalar for name, (scalar, _) in EXTREMES.items()},
}  # fmt: skip


@emits("vector.reduction")
def reduction(t: Translation, op: vector.ReductionOp) -> None:
    if width(op.dest.type) == 1 and op.kind.data in ("minsi", "maxsi"):
        raise unsupported(op, "signed extremes of i1 are not supported; use and, or")
    function = t.object("F", partial(_reduced, op.kind.data, element_of(op.dest.type)))
    start = "" if op.acc is None else f", {t.value(op.acc)}"
    t.assign(op, f"{function}({t.value(op.vector)}{start})")


def _reduced(kind: str, type_: Attribute, values: np.ndarray, *start):
    """Lanes in order, each partial result rounded or wrapped to the type."""
    lanes = [*start, *values.ravel().tolist()]
    combine = _COMBINERS[kind]
    if is_float(type_):
        keep = rounder(type_)
        return reduce(lambda a, b: keep(combine(a, b)), lanes)
    mask = (1 << width(type_)) - 1 if kind.endswith("ui") or width(type_) == 1 else -1
    return wrap(reduce(lambda a, b: wrap(combine(a & mask, b & mask), type_), map(int, lanes)), type_)
