"""Values of `dense<...>`: bytes from text, numpy arrays from attributes."""

import json
import math
import re
import struct
from typing import TypeGuard

import numpy as np
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyDenseElement,
    AnyFloat,
    BFloat16Type,
    BytesAttr,
    ComplexType,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    RankedStructure,
    Signedness,
)
from xdsl.ir import Attribute

from bdforge.array.mlir.attributes import BlockFloatType
from bdforge.devices.types import BLOCK_FORMATS

DENSE_BYTES_MAX = 1 << 28
"""Largest constant that is read; a guard against `dense<0>` of absurd types, far above any tile's memory."""

_LITERAL = re.compile(r"[-+0-9.a-fA-Fx,\[\]\s]*+(?=>)")
_NO_FLOAT = re.compile(r"(?<![\w.+-])[-+]?[0-9]+(?:[eE][-+]?[0-9]+)?(?![\w.])|-0x|\b(?:true|false)\b", re.ASCII)
_BARE_POINT = re.compile(r"(?<=[0-9])\.(?![0-9])", re.ASCII)
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_FLOATS = {Float16Type: np.float16, Float32Type: np.float32, Float64Type: np.float64, BFloat16Type: np.uint16}


def dtype_of(element: Attribute) -> np.dtype | None:
    """numpy's type for memory that holds elements of a type; None where numpy has none.

    bf16 is its bits in uint16, index int64, a block of floats one opaque element of all its bytes.
    """
    if isinstance(element, IndexType):
        return np.dtype(np.int64)
    if isinstance(element, IntegerType):
        width = element.width.data
        if width == 1:
            return np.dtype(np.bool_)
        kind = "u" if element.signedness.data is Signedness.UNSIGNED else "i"
        return np.dtype(f"{kind}{width // 8}") if width in (8, 16, 32, 64) else None
    if isinstance(element, BlockFloatType):
        block = BLOCK_FORMATS.get(element.block_type.data)
        return None if block is None else np.dtype((np.void, block.bytes))
    kind = _FLOATS.get(type(element))  # pyrefly: ignore[bad-argument-type]
    return None if kind is None else np.dtype(kind)


def numpy_of(attribute: DenseIntOrFPElementsAttr) -> np.ndarray:
    """The constant in its shape; bf16 comes as its bits (uint16), as memory holds them."""
    shape, data = attribute.get_shape(), attribute.data.data
    dtype = dtype_of(attribute.get_element_type())
    if dtype is None:
        return np.array(attribute.get_values(), dtype=object).reshape(shape)
    return np.frombuffer(data, dtype=dtype).reshape(shape).copy()


def is_dense(structure: RankedStructure) -> TypeGuard[RankedStructure[AnyDenseElement]]:
    """Whether there are constants of this type."""
    return isinstance(structure.element_type, IntegerType | IndexType | AnyFloat)


def has_constants(structure: RankedStructure) -> bool:
    """Whether xDSL reads constants of this type, complex ones included: their sizes are known."""
    known = DYNAMIC_INDEX not in structure.get_shape()
    return known and isinstance(structure.element_type, IntegerType | IndexType | AnyFloat | ComplexType)


def dense_bytes(structure: RankedStructure[AnyDenseElement]) -> int:
    """Bytes that a constant of this type takes."""
    return math.prod(structure.get_shape()) * structure.element_type.compile_time_size


def literal_end(text: str, start: int) -> int | None:
    """Where the plain numbers of a literal that starts at `start` end (at its `>`), or None if it is not plain."""
    match = _LITERAL.match(text, start)
    return match.end() if match else None


def plain_dense(literal: str, structure: RankedStructure[AnyDenseElement]) -> DenseIntOrFPElementsAttr | None:
    """The constant whose literal is plain numbers in brackets, or None to read it the slow way."""
    element = structure.element_type
    dtype = dtype_of(element)
    if dtype is None or dtype == np.bool_:
        return None
    literal = _BARE_POINT.sub(".0", literal)
    try:
        values = np.array(json.loads(_HEXADECIMAL.sub(lambda match: _decimal(match[0], element), literal)))
        if values.dtype.kind not in "iuf" or (values.ndim and values.shape != tuple(structure.get_shape())):
            return None
        packed = _pack(values, element, dtype)
    except (ValueError, OverflowError, struct.error):
        return None
    count = 1 if values.ndim else math.prod(structure.get_shape())
    return None if packed is None else DenseIntOrFPElementsAttr(structure, BytesAttr(packed * count))


def misspelled(literal: str, dense: DenseIntOrFPElementsAttr) -> tuple[int, str] | None:
    """Where the text of a constant is none of its type, though xDSL reads it, and what is wrong; None for most.

    As in MLIR floats have a point or are their bits in hexadecimal, and data as a string has the type's size.
    """
    element = dense.get_element_type()
    if literal.lstrip().startswith('"'):
        found, wanted = len(dense.data.data), dense_bytes(dense.type)
        return None if found == wanted else (0, f"{found} bytes of data; {dense.type} has {wanted}")
    if not isinstance(element, AnyFloat):
        return None
    wide = (bits for bits in _HEXADECIMAL.finditer(literal) if int(bits[0], 16) >> 8 * element.compile_time_size)
    found = _NO_FLOAT.search(literal) or next(wide, None)
    problem = "is no {}: write 1.0, or its bits as 0x..."
    return None if found is None else (found.start(), f"{found[0]} {problem.format(element)}")


def _decimal(hexadecimal: str, element: Attribute) -> str:
    """A hexadecimal number in decimal: for floats it gives the bits, as in MLIR."""
    value = int(hexadecimal, 16)
    if not isinstance(element, AnyFloat):
        return str(value)
    (number,) = element.unpack(value.to_bytes(element.compile_time_size, "little"), 1)
    return json.dumps(number)


def _pack(values: np.ndarray, element: Attribute, dtype: np.dtype) -> bytes | None:
    if isinstance(element, AnyFloat):
        return element.pack(values.astype(np.float64).ravel().tolist())
    if values.dtype.kind == "f":
        return None
    bits = 8 * dtype.itemsize
    low = 0 if dtype.kind == "u" else -(1 << (bits - 1))
    if values.size and (int(values.min()) < low or int(values.max()) >= 1 << bits):
        return None
    return values.astype(np.int64 if values.dtype.kind == "i" else np.uint64).astype(dtype).tobytes()
