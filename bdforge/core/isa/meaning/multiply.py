"""The multiplier: products of small matrices or of lanes, accumulated.

`conf`, a scalar register, says what is done: zero_acc (bit 0), amode (1-2), bmode (3-4), variant (5-7), sign of s2 (8)
and s1 (9), shift16 (10), negations of the product, acc1 and acc2 (11 to 13), sub_mask (16-31). Shapes by modes are the
table `data/products.csv`. AIE2's has the same layout; its accumulators have half the lanes, so its matrices half the
rows (4 x 8 x 8 for int8, aie_api). That bmode 0 means int4 (4 x 16 x 8, aie_api) is recollected from llvm-aie's headers
of AIE2, not recorded. Its products of four columns are named there too; with 4 x 4 x 4 of int16 public GEMMs equal
numpy.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bdforge.core.isa.isa_tables import rows
from bdforge.core.isa.meaning.semantics import Meaning, joined, lanes, open_if, operation

ZERO_ACC, SHIFT16, SUB_PRODUCT, SUB_ACC1, SUB_ACC2 = 1 << 0, 1 << 10, 1 << 11, 1 << 12, 1 << 13


_BLOCK_MACS = 8 * 8 * 8  # of block floats
_MATRIX_MACS = 4 * 8 * 4  # of AIE2's bf16


@dataclass(frozen=True, slots=True)
class Shape:
    """C (rows x columns) = A (rows x depth) x B (depth x columns), row-major; lane-wise where depth is 0.

    `bits1`, `bits2` are those of the elements of s1 and s2, `lane` those of the accumulator's lanes.
    """

    rows: int
    depth: int
    columns: int
    bits1: int
    bits2: int
    lane: int


def _shapes(generation: str) -> dict[tuple[int, int, int], Shape]:
    """Shapes by (amode, bmode, variant), that of int8 matrices first."""
    found = [[int(n) for n in list(row.values())[1:]] for row in rows("products") if row["generation"] == generation]
    return {(amode, bmode, variant): Shape(*sizes) for amode, bmode, variant, *sizes in found}


SHAPES, AIE2_SHAPES = _shapes("aie2p"), _shapes("aie2")


def modes(conf: int) -> tuple[int, int, int]:
    """(amode, bmode, variant)."""
    return conf >> 1 & 3, conf >> 3 & 3, conf >> 5 & 7


def shape_of(options: tuple[int, ...], conf: int) -> Shape:
    """The shape that `conf` chooses; OpenError for those that are not known, and for sub_mask."""
    aie2 = bool(options[0])
    shape = (AIE2_SHAPES if aie2 else SHAPES).get(modes(conf))
    open_if(shape is None, "amode {}, bmode {}, variant {} of a multiplication are open".format(*modes(conf)))
    open_if(conf >> 16 & 0xFFFF, f"sub_mask {conf >> 16 & 0xFFFF:#x} of a multiplication is open")
    assert shape is not None
    return shape


def macs_of(meaning: Meaning, values: Mapping[str, int]) -> int:
    """Multiplications with accumulation, of lanes, that an instruction makes with these operands; 0 for others."""
    if meaning.operation == "multiply":
        shape = shape_of(meaning.options, values[str(meaning.inputs[-1])])
        return shape.rows * shape.columns * max(shape.depth, 1)
    if meaning.operation == "fmatrix":
        return _MATRIX_MACS
    return (meaning.options[2] or _BLOCK_MACS) if meaning.operation == "fmultiply" else 0


def _product(shape: Shape, s1: int, s2: int, conf: int) -> list[int]:
    sign1, sign2 = conf >> 9 & 1, conf >> 8 & 1
    if not shape.depth:
        pairs = zip(lanes(s1, shape.bits1, shape.rows, sign1), lanes(s2, shape.bits2, shape.rows, sign2), strict=True)
        return [a * b for a, b in pairs]
    a = np.array(lanes(s1, shape.bits1, shape.rows * shape.depth, sign1), np.int64).reshape(shape.rows, shape.depth)
    b = np.array(lanes(s2, shape.bits2, shape.depth * shape.columns, sign2), np.int64).reshape(shape.depth, -1)
    return (a @ b).ravel().tolist()


@operation("multiply")
def multiply(options: tuple[int, ...], *operands: int) -> int:
    """+-P, a1 +- P or a1 +- a2 +- P; operands: accumulators, s1, s2, conf.

    Options: (whether AIE2, accumulators, minus the product, minus the second accumulator).
    """
    *accumulators, s1, s2, conf = operands
    shape = shape_of(options, conf)
    product = _product(shape, s1, s2, conf)
    minus = options[2] != bool(conf & SUB_PRODUCT)
    total = [-value if minus else value for value in product]
    for index, accumulator in enumerate(accumulators):
        added = lanes(_adjusted(index, accumulator, shape, conf), shape.lane, len(total))
        negated = bool(conf & (SUB_ACC1, SUB_ACC2)[index]) != (index == 1 and bool(options[3]))
        total = [t - a if negated else t + a for t, a in zip(total, added, strict=True)]
    return joined(total, shape.lane)


def _adjusted(index: int, accumulator: int, shape: Shape, conf: int) -> int:
    """The first accumulator may be dropped or shifted up by 16 bits."""
    if index:
        return accumulator
    if conf & ZERO_ACC:
        return 0
    if not conf & SHIFT16:
        return accumulator
    count = shape.rows * shape.columns
    return joined([lane << 16 for lane in lanes(accumulator, shape.lane, count)], shape.lane)


@operation("accumulate")
def accumulate(options: tuple[int, ...], *operands: int) -> int:
    """Accumulators added lane by lane; options: (bits, minus acc1, minus acc2), operands: accumulators and conf."""
    bits, *minus = options
    *accumulators, conf = operands
    amode = conf >> 1 & 3
    open_if(amode > 1, f"amode {amode} of an addition of accumulators is open")
    unknown = ZERO_ACC | SHIFT16 | SUB_PRODUCT | SUB_ACC1 | SUB_ACC2
    open_if(conf & unknown or conf >> 16, f"conf {conf:#x} of an addition of accumulators is open")
    lane = 64 if amode else 32
    terms = [lanes(value, lane, bits // lane) for value in accumulators]
    signs = [-1 if m else 1 for m in minus]
    return joined([sum(s * v for s, v in zip(signs, column, strict=True)) for column in zip(*terms, strict=True)], lane)
