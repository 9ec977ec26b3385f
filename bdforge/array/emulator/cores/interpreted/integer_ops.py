"""Constants of every type, and integer and index arithmetic.

Integers wrap at their type's width; what MLIR leaves undefined is an error.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, VectorType
from xdsl.ir import Attribute, Operation

from bdforge.array.emulator.cores.interpreted.emit import Where, emits, is_vector, unsigned, unsupported
from bdforge.array.emulator.cores.interpreted.number_formats import (
    dtype_of_vector,
    element_of,
    from_memory,
    is_float,
    is_unsigned,
    nearest_bf16,
    range_of,
    rounder,
    width,
    wrap,
)
from bdforge.array.emulator.cores.interpreted.translation import Translation
from bdforge.array.emulator.errors import CoreError
from bdforge.array.mlir import elementwise_ops as elementwise
from bdforge.array.mlir.dense import numpy_of

# expression, the same for numpy arrays of the type
_BINARY = {
    "addi": ("{a} + {b}", np.add), "subi": ("{a} - {b}", np.subtract), "muli": ("{a} * {b}", np.multiply),
    "andi": ("{a} & {b}", np.bitwise_and), "ori": ("{a} | {b}", np.bitwise_or), "xori": ("{a} ^ {b}", np.bitwise_xor),
    "maxsi": ("{a} if {a} > {b} else {b}", np.maximum), "minsi": ("{a} if {a} < {b} else {b}", np.minimum),
}  # fmt: skip
_WRAPPING = ("addi", "subi", "muli")  # whose results can leave the type's range
_BOOLEAN = {"addi": np.logical_xor, "subi": np.logical_xor, "muli": np.logical_and,
            "maxsi": np.logical_and, "minsi": np.logical_or}  # fmt: skip  # a signed i1 is 0 or -1


@emits(*(f"arith.{name}" for name in _BINARY))
def binary(t: Translation, op: Operation) -> None:
    name = op.name.removeprefix("arith.")
    expression, ufunc = _BINARY[name]
    a, b = t.values(op.operands[:2])
    element = element_of(op.results[0].type)
    bits = width(element)
    if is_vector(op.results[0]):
        dtype_of_vector(element)
        t.assign(op, f"{t.object('F', _BOOLEAN.get(name, ufunc) if bits == 1 else ufunc)}({a}, {b})")
    elif bits == 1 and name in ("maxsi", "minsi"):
        t.assign(op, f"{a} {'&' if name == 'maxsi' else '|'} {b}")
    elif name in _WRAPPING:
        t.wrapped(op.results[0], expression.format(a=a, b=b))
    else:
        t.assign(op, expression.format(a=a, b=b))


def _divisor(b: int, where: Where) -> int:
    if b == 0:
        raise CoreError(f"division by zero{where()}")
    return b


def _quotient(_: int, a: int, b: int, where: Where) -> int:
    """Towards zero."""
    return abs(a) // abs(_divisor(b, where)) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(bits: int, a: int, b: int, where: Where) -> int:
    """With the dividend's sign."""
    return a - b * _quotient(bits, a, b, where)


def _ceil_quotient(_: int, a: int, b: int, where: Where) -> int:
    return -(-a // _divisor(b, where))


def _shift(bits: int, by: int, where: Where) -> int:
    if not 0 <= by < bits:
        raise CoreError(f"a shift of {bits} bits by {by} has no defined result{where()}")
    return by


# Of the operands' bits, the operands and the place. Results are wrapped.
_OF_SIGNED: dict[str, Callable[..., int]] = {
    "arith.divsi": _quotient, "arith.remsi": _remainder, "arith.ceildivsi": _ceil_quotient,
    "arith.floordivsi": lambda _, a, b, where: a // _divisor(b, where),
    "arith.shli": lambda bits, a, b, where: a << _shift(bits, b, where),
    "arith.shrsi": lambda bits, a, b, where: a >> _shift(bits, b, where),
    "math.absi": lambda _, a, where: abs(a),
}  # fmt: skip
_OF_UNSIGNED: dict[str, Callable[..., int]] = {
    "arith.divui": _quotient, "arith.remui": _remainder, "arith.ceildivui": _ceil_quotient,
    "arith.maxui": lambda _, a, b, where: max(a, b), "arith.minui": lambda _, a, b, where: min(a, b),
    "arith.shrui": _OF_SIGNED["arith.shrsi"],
}  # fmt: skip


def by_lane(function: Callable, dtype: np.dtype) -> Callable[..., np.ndarray]:
    """`function` of Python numbers for vectors: slow and exact. The last argument of a call is passed on as it is."""

    def run(*arrays):
        *vectors, where = arrays
        lanes = zip(*(vector.ravel().tolist() for vector in vectors), strict=True)
        return np.array([function(*lane, where) for lane in lanes], dtype).reshape(vectors[0].shape)

    return run


def _lanes(function: Callable[..., int], element: Attribute, reads_unsigned: bool) -> Callable[..., np.ndarray]:
    """`by_lane` of bits and integers, wrapped."""
    bits = width(element)
    mask = (1 << bits) - 1 if reads_unsigned else -1
    return by_lane(
        lambda *lane: wrap(function(bits, *(int(value) & mask for value in lane[:-1]), lane[-1]), element),
        dtype_of_vector(element),
    )


@emits(*_OF_SIGNED, *_OF_UNSIGNED)
def function(t: Translation, op: Operation) -> None:
    result, reads_unsigned = op.results[0], op.name in _OF_UNSIGNED
    arguments = t.values(op.operands)
    wanted = (_OF_UNSIGNED if reads_unsigned else _OF_SIGNED)[op.name]
    if is_vector(result):
        name = t.object("F", _lanes(wanted, element_of(result.type), reads_unsigned))
        t.assign(op, f"{name}({', '.join(arguments)}, {t.where(op)})")
        return
    if reads_unsigned:
        arguments = [unsigned(argument, result.type) for argument in arguments]
    name = t.object("F", partial(wanted, width(result.type)))
    t.wrapped(result, f"{name}({', '.join(arguments)}, {t.where(op)})")


@emits("arith.shli", "arith.shrsi", "arith.shrui")  # of scalars without a call
def shift(t: Translation, op: Operation) -> None:
    result = op.results[0]
    bits = width(result.type)
    logical = op.name == "arith.shrui"
    if is_vector(result):
        function(t, op)
        return
    a, b = t.values(op.operands)
    by = t.constant(op.operands[1])
    if by is None or not 0 <= by < bits:
        t.require(f"0 <= {b} < {bits}", f"a shift of {bits} bits by {{{b}}} has no defined result", op)
    if op.name == "arith.shrsi" and bits > 1:
        t.assign(op, f"{a} >> {b}")
    else:
        t.wrapped(result, f"{unsigned(a, result.type)} >> {b}" if logical else f"{a} << {b}")


_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
_FIRST_SIGNED, _FIRST_UNSIGNED = 2, 6


@emits("arith.cmpi")
def compare(t: Translation, op: elementwise.CmpiOp) -> None:
    code = op.predicate.value.data
    a, b = t.value(op.lhs), t.value(op.rhs)
    element = element_of(op.lhs.type)
    bits = width(element)
    if is_vector(op.lhs):
        if code >= _FIRST_UNSIGNED and bits > 1:
            a, b = (f"{v}.view('u{bits // 8}')" for v in (a, b))
        elif code >= _FIRST_SIGNED and bits == 1:
            a, b = (f"{v}.view('i1') * {1 if code >= _FIRST_UNSIGNED else -1}" for v in (a, b))
        t.assign(op, f"{a} {_COMPARISONS[code]} {b}")
        return
    if code >= _FIRST_UNSIGNED:
        a, b = unsigned(a, element), unsigned(b, element)
    elif bits == 1 and code >= _FIRST_SIGNED:
        a, b = f"-{a}", f"-{b}"  # a signed i1 is 0 or -1
    t.assign(op, f"int({a} {_COMPARISONS[code]} {b})")


@emits("arith.index_cast", "arith.extsi", "arith.trunci", "arith.index_castui", "arith.extui")
def cast(t: Translation, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    value = t.value(source)
    bits, signed = width(source.type), not op.name.endswith("ui")
    if is_vector(result):
        dtype = dtype_of_vector(element_of(result.type))
        t.assign(op, f"{t.helper(_cast_array)}({value}, {t.object('D', dtype)}, {signed})")
        return
    if not signed:
        value = unsigned(value, source.type)
    elif bits == 1:
        value = f"-{value}"
    low, high = range_of(source.type)
    fits = range_of(result.type)[0] <= low and high <= range_of(result.type)[1] and bits > 1 and signed
    if fits:
        t.assign(op, value)
    else:
        t.wrapped(result, value)


def _cast_array(values: np.ndarray, dtype: np.dtype, signed: bool) -> np.ndarray:
    if dtype == np.bool_:
        return (values & 1).astype(dtype)
    if values.dtype == np.bool_:
        return values.astype(dtype) * (-1 if signed else 1)
    return (values if signed else values.view(f"u{values.itemsize}")).astype(dtype)


@emits("builtin.unrealized_conversion_cast")
def conversion(t: Translation, op: Operation) -> None:
    for source, result in zip(op.operands, op.results, strict=True):
        if source.type == result.type:
            t.define(result, t.value(source))
        elif is_unsigned(source.type) or is_unsigned(result.type):
            t.wrapped(result, t.value(source))
        else:
            raise CoreError(f"{op.name} from {source.type} to {result.type} is not supported in a core program")


@emits("arith.constant")
def constant(t: Translation, op: arith.ConstantOp) -> None:
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
