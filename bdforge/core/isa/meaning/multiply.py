"""The multiplier: products of small matrices or of lanes, accumulated.

`conf`, a scalar register, says what is done: zero_acc (bit 0), amode (1-2), bmode (3-4), variant (5-7), sign of s2 (8)
and s1 (9), shift16 (10), negations of the product, acc1 and acc2 (11 to 13), sub_mask (16-31). Shapes by modes are the
table `data/products.csv`. AIE2's has the same layout; its accumulators have half the lanes, so its matrices half the
rows (4 x 8 x 8 for int8, aie_api). That bmode 0 means int4 (4 x 16 x 8, aie_api) is recollected from llvm-aie's headers
of AIE2, not recorded. Its products of four columns are named there too; with 4 x 4 x 4 of int16 public GEMMs equal
numpy. Which elements a sparse product chooses is as AIE2's silicon was seen to do (FIM43-Redeye/xdna-emu).
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from bdforge.core.isa.isa_tables import rows
from bdforge.core.isa.meaning.lanes import VECTOR_BITS
from bdforge.core.isa.meaning.semantics import Meaning, joined, lanes, open_if, operation

ZERO_ACC, SHIFT16, SUB_PRODUCT, SUB_ACC1, SUB_ACC2 = 1 << 0, 1 << 10, 1 << 11, 1 << 12, 1 << 13


_BLOCK_MACS = 8 * 8 * 8  # of block floats
_MATRIX_MACS = 4 * 8 * 4  # of AIE2's bf16


@dataclass(frozen=True, slots=True)
class Shape:
    """C (rows x columns) = A (rows x depth) x B (depth x columns), row-major; lane-wise where depth is 0.

    `bits1`, `bits2` are those of the elements of s1 and s2, `lane` those of the accumulator's lanes. Of a `sparse` B
    there are half the rows, and behind them a mask for each four elements of a column (`_dense`).
    """

    rows: int
    depth: int
    columns: int
    bits1: int
    bits2: int
    lane: int
    sparse: int = 0

    @property
    def macs(self) -> int:
        """Multiplications with accumulation, of lanes, that are made."""
        return self.rows * self.columns * max(self.depth, 1) >> self.sparse


def _shapes(generation: str, sparse: int) -> dict[tuple[int, int, int], Shape]:
    """Shapes by (amode, bmode, variant), that of int8 matrices first."""
    found = [row for row in rows("products") if (row["generation"], row["sparse"]) == (generation, str(sparse))]
    names = [field.name for field in fields(Shape)]
    return {
        (int(row["amode"]), int(row["bmode"]), int(row["variant"])): Shape(*(int(row[name]) for name in names))
        for row in found
    }


TABLES = SHAPES, AIE2_SHAPES, *_ = tuple(_shapes(g, sparse) for sparse in (0, 1) for g in ("aie2p", "aie2"))
"""Shapes by number: AIE2P's and AIE2's, then those of sparse products."""


def modes(conf: int) -> tuple[int, int, int]:
    """(amode, bmode, variant)."""
    return conf >> 1 & 3, conf >> 3 & 3, conf >> 5 & 7


def shape_of(options: tuple[int, ...], conf: int) -> Shape:
    """The shape that `conf` chooses; OpenError for those that are not known, and for sub_mask."""
    shape = TABLES[options[0]].get(modes(conf))
    open_if(shape is None, "amode {}, bmode {}, variant {} of a multiplication are open".format(*modes(conf)))
    open_if(conf >> 16 & 0xFFFF, f"sub_mask {conf >> 16 & 0xFFFF:#x} of a multiplication is open")
    assert shape is not None
    return shape


def macs_of(meaning: Meaning, values: Mapping[str, int]) -> int:
    """Multiplications with accumulation, of lanes, that an instruction makes with these operands; 0 for others."""
    if meaning.operation == "multiply":
        return shape_of(meaning.options, values[str(meaning.inputs[-1])]).macs
    if meaning.operation == "fmatrix":
        return _MATRIX_MACS
    return (meaning.options[2] or _BLOCK_MACS) if meaning.operation == "fmultiply" else 0


def product_text(meaning: Meaning, values: Mapping[str, int]) -> str:
    """Which product an instruction makes with these operands; "" for others. OpenError as `shape_of`."""
    if meaning.operation == "multiply":
        shape = shape_of(meaning.options, values[str(meaning.inputs[-1])])
        kind = f"{'sparse ' * bool(shape.sparse)}int{shape.bits1} x int{shape.bits2}"
        return f"{shape.rows}x{shape.depth}x{shape.columns} {kind}" if shape.depth else f"{shape.rows} lanes {kind}"
    if meaning.operation == "fmatrix":
        return "4x8x4 bf16"
    if meaning.operation != "fmultiply":
        return ""
    return f"{meaning.options[2]} lanes bf16" if meaning.options[2] else "8x8x8 bfp16"


def _product(shape: Shape, s1: int, s2: int, conf: int) -> list[int]:
    sign1, sign2 = conf >> 9 & 1, conf >> 8 & 1
    if not shape.depth:
        pairs = zip(lanes(s1, shape.bits1, shape.rows, sign1), lanes(s2, shape.bits2, shape.rows, sign2), strict=True)
        return [a * b for a, b in pairs]
    a = np.array(lanes(s1, shape.bits1, shape.rows * shape.depth, sign1), np.int64).reshape(shape.rows, shape.depth)
    b = np.array(lanes(s2, shape.bits2, shape.depth * shape.columns >> shape.sparse, sign2), np.int64)
    b = b.reshape(-1, shape.columns)
    return (a @ (_dense(shape, b, s2 >> VECTOR_BITS) if shape.sparse else b)).ravel().tolist()


def _dense(shape: Shape, stored: np.ndarray, mask: int) -> np.ndarray:
    """A matrix of which two of each four elements of a column are stored, as bits of the mask say which.

    The four bits of rows 4r to 4r + 3 of column c have the number r + c depth / 4. Of a stored pair the first is for a
    lowest bit of rows 0 and 1, or for the lower of two; the second for the higher of two, or for one of rows 2 and 3.
    Three or four bits choose nothing.
    """
    found, groups = np.zeros((shape.depth, shape.columns), np.int64), shape.depth // 4
    for column in range(shape.columns):
        for r in range(groups):
            for slot, row in chosen_rows(mask >> 4 * (r + groups * column) & 15):
                found[4 * r + row, column] = stored[2 * r + slot, column]
    return found


def chosen_rows(bits: int) -> list[tuple[int, int]]:
    """(number of the stored element, row of four) of each element that four bits of a mask choose."""
    rows_ = [row for row in range(4) if bits >> row & 1]
    return list(enumerate(rows_)) if len(rows_) == 2 else [(row // 2, row) for row in rows_] if len(rows_) == 1 else []


@operation("multiply")
def multiply(options: tuple[int, ...], *operands: int) -> int:
    """+-P, a1 +- P or a1 +- a2 +- P; operands: accumulators, s1, s2, conf.

    Options: (number of the shapes' table, accumulators, minus the product, minus the second accumulator).
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
