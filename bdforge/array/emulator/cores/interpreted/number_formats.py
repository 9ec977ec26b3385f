"""Numbers of core programs: how they are kept, rounded, and laid out as bits.

Integers are signed Python ints of their type's range (i1: 0 or 1; ui types: unsigned), `index` has 64 bits. Floats are
Python floats that their type can hold. Vectors are numpy arrays: signed integers of their width, bool for i1, and for
bf16, which numpy lacks, float32 values that bf16 can hold. Memory holds bf16 as its 16 bits.
"""

import math
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from ctypes import c_float

import numpy as np
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    MemRefType,
    Signedness,
    VectorType,
)
from xdsl.ir import Attribute

from bdforge.array.emulator.errors import CoreError
from bdforge.array.mlir.attributes import BlockFloatType
from bdforge.array.mlir.dense import dtype_of

INDEX_BITS = 64
_FLOAT_BITS = {Float16Type: 16, BFloat16Type: 16, Float32Type: 32, Float64Type: 64}
# bfloat16: 8 significant bits, the exponents of float32 (IEEE 754 binary32)
_BF16_FRACTION_BITS, _BF16_LOWEST_EXPONENT, _BF16_OVERFLOW = 7, -126, 2.0**128
_BF16_LARGEST = 2.0**128 - 2.0**120
_F64_DIGITS = 53
RESULT_NAN_BITS = 0x7F81
_RESULT_NAN_BYTES = struct.pack("<Q", 0x7FF8_0000_0000_7F81)  # a double that stands for it: no bf16 in memory reads so
_RESULT_NAN: float = struct.unpack("<d", _RESULT_NAN_BYTES)[0]
_START_MODES: ContextVar[bool] = ContextVar("start_modes", default=False)


def is_float(type_: Attribute) -> bool:
    """Whether a scalar type is a float that core programs compute with."""
    return type(type_) in _FLOAT_BITS


def is_integer(type_: Attribute) -> bool:
    return isinstance(type_, IntegerType | IndexType)


def element_of(type_: Attribute) -> Attribute:
    """The element type of a vector or memref; a scalar's own type."""
    return type_.element_type if isinstance(type_, VectorType | MemRefType) else type_


def width(type_: Attribute) -> int:
    """Bits of a scalar or of a vector's elements; CoreError for other types."""
    element = element_of(type_)
    if isinstance(element, IntegerType):
        return element.width.data
    if isinstance(element, IndexType):
        return INDEX_BITS
    if is_float(element):
        return _FLOAT_BITS[type(element)]  # pyrefly: ignore[bad-index]
    raise CoreError(f"values of type {type_} are not supported in a core program")


def is_unsigned(type_: Attribute) -> bool:
    return isinstance(type_, IntegerType) and type_.signedness.data is Signedness.UNSIGNED


def range_of(type_: Attribute) -> tuple[int, int]:
    """Lowest and highest integer that is kept for a type."""
    bits = width(type_)
    if bits == 1 or is_unsigned(type_):
        return 0, (1 << bits) - 1
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def wrap(value: int, type_: Attribute) -> int:
    """`value` reduced to the type's range, two's complement."""
    low, _ = range_of(type_)
    return ((value - low) & ((1 << width(type_)) - 1)) + low


def round_f32(value: float) -> float:
    return c_float(value).value


def round_f16(value: float) -> float:
    try:
        return struct.unpack("<e", struct.pack("<e", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


@contextmanager
def modes(start: bool) -> Iterator[None]:
    """What bf16 results of core programs are rounded by: the modes that a core starts in, or as IEEE 754 has it.

    A core starts with rounding towards minus infinity, and its every NaN is 0x7F81 (seen on silicon, 1M).
    """
    token = _START_MODES.set(start)
    try:
        yield
    finally:
        _START_MODES.reset(token)


def round_bf16(value: float) -> float:
    """The bfloat16 of a result, in one rounding from the value given and by the core's mode."""
    if not _START_MODES.get():
        return nearest_bf16(value)
    return _RESULT_NAN if math.isnan(value) else _narrowed(value, math.floor)


def nearest_bf16(value: float) -> float:
    """The nearest bfloat16, ties to even, in one rounding from the value given."""
    return _narrowed(value, round)


def _narrowed(value: float, to_whole: Callable[[float], int]) -> float:
    if not math.isfinite(value) or value == 0:
        return value
    exponent = max(math.frexp(value)[1] - 1, _BF16_LOWEST_EXPONENT) - _BF16_FRACTION_BITS
    rounded = math.ldexp(to_whole(math.ldexp(value, -exponent)), exponent)
    if abs(rounded) >= _BF16_OVERFLOW:
        rounded = _BF16_LARGEST if to_whole is math.floor and value > 0 else math.inf
    return math.copysign(rounded, value)


_ROUNDERS: dict[type, Callable[[float], float]] = {
    Float16Type: round_f16, BFloat16Type: round_bf16, Float32Type: round_f32, Float64Type: float,
}  # fmt: skip


def rounder(type_: Attribute) -> Callable[[float], float]:
    return _ROUNDERS[type(type_)]


def bf16_of_bits(bits: int) -> float:
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


def bits_of_bf16(value: float) -> int:
    """A bfloat16 as memory holds it; `value` must be one."""
    if value != value and struct.pack("<d", value) == _RESULT_NAN_BYTES:
        return RESULT_NAN_BITS
    return struct.unpack("<I", struct.pack("<f", value))[0] >> 16


def bits_of(value: float, type_: Attribute) -> int:
    """A scalar's bits as an unsigned number."""
    if isinstance(type_, BFloat16Type):
        return bits_of_bf16(value)
    if is_float(type_):
        return int.from_bytes(np.array(value, dtype_of_vector(type_)).tobytes(), "little")
    return int(value) & ((1 << width(type_)) - 1)


def of_bits(bits: int, type_: Attribute) -> float | int:
    if isinstance(type_, BFloat16Type):
        return bf16_of_bits(bits)
    if is_float(type_):
        return np.frombuffer(bits.to_bytes(width(type_) // 8, "little"), dtype_of_vector(type_)).item()
    return wrap(bits, type_)


def float_of_int(value: int, type_: Attribute) -> float:
    """The float nearest to an integer, in one rounding."""
    if isinstance(type_, Float64Type):
        return float(value)
    surplus = abs(value).bit_length() - _F64_DIGITS
    if surplus > 0:  # keep what is cut off as a sticky bit, so that rounding once more is harmless
        cut = abs(value) >> surplus
        sticky = int(cut << surplus != abs(value))
        value = int(math.copysign(1, value)) * ((cut | sticky) << surplus)
    return rounder(type_)(float(value))


def dtype_of_vector(element: Attribute) -> np.dtype:
    """numpy's type for vectors of an element type; CoreError where there is none."""
    if isinstance(element, BFloat16Type):
        return np.dtype(np.float32)
    if isinstance(element, BlockFloatType) or (dtype := dtype_of(element)) is None:
        raise CoreError(f"vectors of {element} are not supported in a core program")
    return dtype


def dtype_of_memory(element: Attribute) -> np.dtype:
    """numpy's type for memory that holds an element type; CoreError where there is none.

    Cores move whole blocks of floats, opaque elements; kernels see `bytes_of_blocks`.
    """
    if (dtype := dtype_of(element)) is None:
        raise CoreError(f"memory of {element} is not supported in a core program")
    return dtype


def bytes_of_blocks(array: np.ndarray) -> np.ndarray:
    """Block floats (opaque elements) as uint8 with one dimension more, the bytes of a block; other arrays as they are.

    Shares memory. A block of v8bfp16ebs8 is its exponent and 8 mantissas (`bdforge.devices.formats`): (4, 6) becomes
    (4, 6, 9).
    """
    return array[..., None].view(np.uint8) if array.dtype.kind == "V" else array


def round_array(values: np.ndarray, element: Attribute) -> np.ndarray:
    """Floats rounded to an element type, in the array type that its vectors have."""
    if not isinstance(element, BFloat16Type):
        return values.astype(dtype_of_vector(element))
    wide = values.astype(np.float64)
    exponent = np.maximum(np.frexp(wide)[1] - 1, _BF16_LOWEST_EXPONENT) - _BF16_FRACTION_BITS
    start = _START_MODES.get()
    rounded = np.ldexp((np.floor if start else np.rint)(np.ldexp(wide, -exponent)), exponent)
    if start:
        rounded = np.where(rounded >= _BF16_OVERFLOW, _BF16_LARGEST, np.where(wide == 0, wide, rounded))
    narrow = np.where(np.isfinite(wide), rounded, wide).astype(np.float32)  # 2**128 becomes inf
    if start:
        narrow.view(np.uint32)[np.isnan(wide)] = RESULT_NAN_BITS << 16
    return narrow


def from_memory(values: np.ndarray, element: Attribute) -> np.ndarray:
    """A vector from memory; a copy."""
    values = np.asarray(values)
    if isinstance(element, BFloat16Type):
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(dtype_of_vector(element))


def to_memory(values: np.ndarray, element: Attribute) -> np.ndarray:
    """A vector as memory holds it."""
    if isinstance(element, BFloat16Type):
        return (np.ascontiguousarray(values).view(np.uint32) >> 16).astype(np.uint16)
    return values


def bytes_of(value, type_: Attribute) -> bytes:
    """A scalar or vector as bytes, little endian."""
    if isinstance(type_, VectorType):
        return np.ascontiguousarray(to_memory(value, type_.element_type)).tobytes()
    return bits_of(value, type_).to_bytes(width(type_) // 8, "little")


def of_bytes(data: bytes, type_: Attribute):
    if not isinstance(type_, VectorType):
        return of_bits(int.from_bytes(data, "little"), type_)
    element = type_.element_type
    return from_memory(np.frombuffer(data, dtype_of_memory(element)), element).reshape(type_.get_shape())


def size_bits(type_: Attribute) -> int:
    return width(type_) * (math.prod(type_.get_shape()) if isinstance(type_, VectorType) else 1)
