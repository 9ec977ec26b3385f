"""A GEMM's operands in host memory, as its sequence program says them: staged, packed, or what feeds an epilogue."""

from typing import Any

from bdforge.design.sequences import Axis, Dim, Expr, select
from bdforge.devices.limits import BYTE_BITS
from bdforge.devices.types import BFP16EBS8, TYPES
from bdforge.operators.gemm.finish import fed_operands
from bdforge.operators.gemm.grid import Storage
from bdforge.operators.gemm.mapping import MappedGemm
from bdforge.operators.gemm.stages import Stages

A, B, C, R, S = range(5)
"""Arguments; R and S hold the numbers that feed an epilogue, by row panel and by n-tile."""
MATRICES = {1: ("B",), 2: ("gate", "up")}
COLUMN_SCALES = {1: ("column_scales",), 2: ("gate_scales", "up_scales")}
"""Operands in B, and scales of their columns, by how many matrices there are."""
BLOCK = BFP16EBS8.values
_FLOAT_BITS = 32
_BIAS = {"int2": 1}  # what is added to a weight: codes begin at 0


class Operands:
    """Adds a design's operands to its program."""

    def __init__(self, stages: Stages, plan: MappedGemm):
        self.build, self.stages, self.plan = stages.build, stages, plan
        self.tiling, self.types = plan.tiling, plan.types

    def add(self, panels: Expr, depth: Expr, n_tiles: Expr) -> None:
        """All of them; `panels` row panels, B `depth` deep in `n_tiles` tiles."""
        self.matrix("a", A, "in")
        self.packed(depth, n_tiles) if self.tiling.b.order == "packed" else self.matrix("b", B, "in")
        for i, name in enumerate(self.plan.outputs):
            self.matrix(name, C + i, "out")
        if any(self.tiling.fed_bytes):
            self.fed(panels, n_tiles)

    def matrix(self, name: str, argument: int, direction: str) -> None:
        """An operand line after line: the user's own memory, or a staged copy."""
        stages, store = self.stages, self.stages.storage(name)
        (rows, columns), axes = stages.shape(name), stages.axes(name)
        side = store.block
        rows, columns = rows // side, columns // side
        lines = [Dim(0, rows, 1, columns), Dim(1, columns)]
        if store.order == "column":
            lines = [Dim(1, columns, 1, rows), Dim(0, rows)]
        self.build.operand(
            operand_name(name), argument, direction, self.types[min(argument, C)], _element_bits(store), axes, lines,
            staged=stages.staged[name], order=store.order, leading=f"ld{name}",
            blocked="across" if side > 1 else None, parallel=name == "a",
        )  # fmt: skip

    def packed(self, depth: Expr, n_tiles: Expr) -> None:
        """B tile by tile: `[n-tile][K/k][n/t][k/s][s][t]`; with four codes of a byte from four micro-tiles."""
        tiling, (K, N) = self.tiling, (self.stages.walked[axis] for axis in "KN")
        axes = [
            Axis(self.stages.given["K"], K, tiling.k_mt, once=True),
            Axis(self.stages.given["N"], N, tiling.n),
        ]
        blocked = TYPES[self.types[B]].blocked
        for matrix, name in enumerate(MATRICES[tiling.matrices]):
            dims, offset = (self.blocks(depth, n_tiles), 0) if blocked else self.micro_tiles(depth, n_tiles, matrix)
            self.build.operand(
                name, B, "in", self.types[B], BLOCK * BFP16EBS8.bits if blocked else tiling.b.bits, axes, dims,
                blocked="down" if blocked else None, offset=offset, **packed_values(self.types[B]),
            )  # fmt: skip

    def micro_tiles(self, depth: Expr, n_tiles: Expr, matrix: int) -> tuple[list[Dim], int]:
        """Loops over one of the matrices, and the element where it begins."""
        tiling, kernel = self.tiling, self.plan.kernel
        k, n, columns = tiling.k, tiling.n, tiling.n * tiling.matrices
        tile = micro_tiles(k, columns, kernel.t, tiling.b.bits, kernel.field_scaled, tiling.matrices)
        offset = matrix if kernel.field_scaled else matrix * k * kernel.t
        return [Dim(1, n_tiles, n, depth * columns), Dim(0, depth // k, k, k * columns), *tile], offset

    def blocks(self, depth: Expr, n_tiles: Expr) -> list[Dim]:
        """`[n-tile][K/k][n/8][k/8]` tiles of 8 x 8 values."""
        k, n = self.tiling.k // BLOCK, self.tiling.n // BLOCK
        blocks_deep = depth // BLOCK
        return [Dim(1, n_tiles, n, blocks_deep * n), Dim(0, blocks_deep // k, k, k * n), Dim(1, n, 1, k), Dim(0, k)]

    def fed(self, panels: Expr, n_tiles: Expr) -> None:
        """Scales of rows by panel and core row; scales and biases of columns by n-tile."""
        tiling, stages = self.tiling, self.stages
        M, N = stages.walked["M"], stages.walked["N"]
        scaled, biased = fed_operands(self.plan.spec)
        rows = Axis(stages.given["M"], M, select(tiling.panel_rows > M, tiling.m, tiling.panel_rows))
        tiles = [Dim(0, panels * tiling.rows, tiling.m, self.plan.spec.tile.m), Dim(0, tiling.m)]
        if scaled:
            self.build.operand("row_scales", R, "in", "f32", _FLOAT_BITS, [rows], tiles, missing=1.0)
        columns = Axis(stages.given["N"], N, tiling.n)
        apart, t = tiling.fed_bytes[1] * BYTE_BITS // _FLOAT_BITS, self.plan.kernel.t
        lines = [Dim(0, n_tiles, tiling.n, apart), Dim(0, tiling.n)]
        if tiling.matrices > 1:
            lines = [lines[0], Dim(0, tiling.n // t, t, tiling.matrices * t), Dim(0, t)]
        for matrix, name in enumerate(COLUMN_SCALES[tiling.matrices] if scaled else ()):
            start = matrix * t
            self.build.operand(name, S, "in", "f32", _FLOAT_BITS, [columns], lines, offset=start, missing=1.0)
        if biased:
            self.build.operand("bias", S, "in", "f32", _FLOAT_BITS, [columns], lines, offset=tiling.n, missing=0.0)


def operand_name(name: str) -> str:
    """What the user's array is called."""
    return name.upper() if name in ("a", "b", "c") else name


def micro_tiles(k: int, n: int, t: int, bits: int, scaled: bool, matrices: int = 1) -> list[Dim]:
    """Loops over a packed tile k x n, `[n/t][k][t]`: micro-tiles, column block outer.

    `scaled`: `[n/4t][k][t]` bytes of four codes each, which belong to four blocks of t columns. Of several `matrices`,
    whose column blocks take turns, these are the loops over one.
    """
    codes = max(BYTE_BITS // bits, 1)
    if scaled:
        group, columns = codes * t, codes * t // matrices
        inner = [Dim(1, t, 1, codes), Dim(1, codes // matrices, t, matrices)]
    else:
        group, columns = matrices * t, t
        inner = [Dim(1, t // codes, codes, codes), *([Dim(1, codes)] if codes > 1 else [])]
    line = group if scaled else t
    return [Dim(1, n // group, columns, k * group), Dim(0, k, 1, line), *inner]


def packed_values(type_name: str) -> dict[str, Any]:
    """How an operand's element of a packed type is stored: its range where numpy's type holds more, and its bias."""
    type_ = TYPES[type_name]
    narrow = type_.values and type_.bits < BYTE_BITS
    return {"values": list(type_.values) if narrow else None, "bias": _BIAS.get(type_name, 0)}  # type: ignore[arg-type]


def _element_bits(store: Storage) -> int:
    """Bits of what stands side by side: an element, or a tile of 8 x 8 values of block floats."""
    return store.bits * store.run * store.block if store.block > 1 else store.bits
