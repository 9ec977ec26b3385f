"""Element types of operands: one name, and under it all that MLIR, numpy, kernels and the cores' MAC units need.

Specs, manifests and code say `int8` and `column`. Other spellings (`i8`, `bfloat16`, `col`) are read where users give
names, by `type_named` and `order_named`, and go no further.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from bdforge.common.messages import InputError, clip
from bdforge.devices.limits import BYTE_BITS

Order = Literal["row", "column", "packed"]
"""Row-major, column-major, or in the order in which the cores eat it."""
ORDERS: tuple[Order, ...] = ("row", "column", "packed")
"""Orders by the number that stands for them in a manifest."""


class TypeNameError(InputError):
    """A name of no element type or order; the message lists those there are."""


@dataclass(frozen=True, slots=True)
class BlockFormat:
    """`values` numbers that share an exponent, in `bytes` bytes; `mlir` is its name in `!aiex.bfp<"...">` (MA)."""

    mlir: str
    values: int
    bytes: int

    @property
    def bits(self) -> int:
        return BYTE_BITS * self.bytes


BFP16EBS8 = BlockFormat("v8bfp16ebs8", 8, 9)
BLOCK_FORMATS = {f.mlir: f for f in (BFP16EBS8, BlockFormat("v16bfp16ebs16", 16, 17))}
"""Block floats by MLIR's name: a byte of exponent and one of mantissa for each value (API)."""


@dataclass(frozen=True, slots=True)
class ElementType:
    """A type by the name that specs use.

    `code` is its part of kernel names. `memory` is the MLIR type of buffers that hold it, `dtype_name` what numpy calls
    what it holds on the host. Integers take the values `lowest` to `highest`.
    """

    name: str
    code: str
    bits: int
    """Width of one element in tile memory, shared exponents included."""
    memory: str
    dtype_name: str
    format: BlockFormat | None = None
    values: tuple[int, int] | None = None

    @property
    def dtype(self) -> np.dtype:
        """What numpy holds on the host: values of narrow and block types in a wider type, converted on their way."""
        return _dtype(self.dtype_name)

    @property
    def integer(self) -> bool:
        return self.values is not None

    @property
    def blocked(self) -> bool:
        """Whether elements share exponents."""
        return self.format is not None

    @property
    def block(self) -> int:
        """Elements that share an exponent; 1 for other types."""
        return self.format.values if self.format else 1

    @property
    def bytes(self) -> float:
        """Size of one element, a fraction of a byte where several share one."""
        return self.bits / BYTE_BITS

    @property
    def memory_bits(self) -> int:
        """Width of one element of `memory`."""
        return int(self.memory.lstrip("iubf"))

    @property
    def packed_only(self) -> bool:
        """Whether elements are no whole bytes, so that only the host can bring them into the order of a kernel."""
        return self.blocked or self.bits < self.memory_bits

    def memory_elements(self, count: int) -> int:
        """Elements of `memory` that hold `count` elements."""
        return count * self.bits // self.memory_bits


@cache
def _dtype(name: str) -> np.dtype:
    """A type of numpy's, or of ml_dtypes: only who asks for bfloat16 needs that package, which browsers lack."""
    if name != "bfloat16":
        return np.dtype(name)
    from ml_dtypes import bfloat16

    return np.dtype(bfloat16)


def _integer(bits: int, values: tuple[int, int] | None = None) -> ElementType:
    held = max(bits, BYTE_BITS)
    whole = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    return ElementType(f"int{bits}", f"i{bits}", bits, f"i{held}", f"int{held}", values=values or whole)


_TYPES = (
    _integer(2, (-1, 1)),  # ternary weights
    _integer(4),
    _integer(8),
    _integer(16),
    _integer(32),
    ElementType("bf16", "bf16", 16, "bf16", "bfloat16"),
    ElementType("f32", "f32", 32, "f32", "float32"),
    ElementType("bfp16", "bfp16", BFP16EBS8.bits // BFP16EBS8.values, "i8", "float32", format=BFP16EBS8),
)
TYPES: Mapping[str, ElementType] = {t.name: t for t in _TYPES}
"""Types by name."""

_OTHER_NAMES = {
    **{t.code: t.name for t in TYPES.values()},
    "ternary": "int2", "uint8": "int8", "u8": "int8", "bfloat16": "bf16", "float32": "f32", "fp32": "f32",
    "bfp16ebs8": "bfp16", "v8bfp16ebs8": "bfp16",
}  # fmt: skip
_OTHER_ORDERS = {"col": "column", "col-major": "column", "column-major": "column", "row-major": "row"}


def type_named(name: str) -> ElementType:
    """The type that a user's `name` means; TypeNameError lists the known ones."""
    text = name.strip().lower()
    known = TYPES.get(_OTHER_NAMES.get(text, text))
    if known is None:
        also = ", ".join(other for other in _OTHER_NAMES if other not in TYPES)
        raise TypeNameError(f"unknown element type {clip(name)!r}; known: {', '.join(TYPES)} (also as {also})")
    return known


def order_named(name: str) -> Order:
    """The order in memory that a user's `name` means; TypeNameError lists the known ones."""
    text = name.strip().lower()
    text = _OTHER_ORDERS.get(text, text)
    for order in ORDERS:
        if text == order:
            return order
    raise TypeNameError(f"unknown order {clip(name)!r}; known: {', '.join(ORDERS)}")


@dataclass(frozen=True, slots=True)
class MacProduct:
    """What a MAC unit multiplies: types of A and B, the accumulators it adds in, MACs per cycle and core."""

    a: str
    b: str
    accumulators: tuple[str, ...]
    macs: Mapping[str, int]


PRODUCTS = (
    MacProduct("int8", "int8", ("int32",), {"AIE2": 256, "AIE2P": 512}),
    MacProduct("int8", "int4", ("int32",), {"AIE2": 512, "AIE2P": 512}),
    MacProduct("int8", "int2", ("int32",), {"AIE2P": 512}),
    MacProduct("int16", "int8", ("int32", "int64"), {"AIE2": 128, "AIE2P": 256}),
    MacProduct("int16", "int16", ("int32", "int64"), {"AIE2": 64, "AIE2P": 128}),
    MacProduct("bf16", "bf16", ("f32",), {"AIE2": 128, "AIE2P": 256}),
    MacProduct("bf16", "bfp16", ("f32",), {"AIE2P": 512}),
    MacProduct("bfp16", "bfp16", ("f32",), {"AIE2P": 512}),
)
"""Products by generation (API headers and rate tables; M).

bf16 on AIE2P goes by way of bfp16. Ternary and 4-bit weights there are unpacked to int8 in other slots than the MACs'.
"""

PEAK_MACS: Mapping[str, Mapping[tuple[str, str], int]] = {
    generation: {(p.a, p.b): p.macs[generation] for p in PRODUCTS if generation in p.macs}
    for generation in ("AIE2", "AIE2P")
}
"""MACs per cycle and core by generation and types of A and B."""


def peak_macs(generation: str, a: str, b: str) -> int:
    """MACs per cycle and core of types; narrower B that no product takes is unpacked to A's type."""
    peaks = PEAK_MACS[generation]
    return peaks.get((a, b)) or peaks[a, a]
