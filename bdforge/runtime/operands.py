"""Host buffers of a GEMM: operands in the order, type and shape in which the array reads and writes them."""

import numpy as np

from bdforge.devices.types import TYPES
from bdforge.emulator import ArgumentError
from bdforge.formats import BLOCK, TILE_BYTES, pack_bfp16, pack_bfp16_b, unpack_bfp16
from bdforge.operators.gemm import GemmSequence, Plan, Problem, Staged
from bdforge.operators.gemm.sequence import natural_leading
from bdforge.operators.gemm.staging import stage, walked_sizes
from bdforge.weights import pack, pack_int4, pack_tiles

DTYPES = {name: element.dtype for name, element in TYPES.items()}
"""What numpy holds for each element type; block floats are converted on their way."""


def check_matrix(name: str, array: np.ndarray, type_name: str = "int8", order: str = "row") -> None:
    """ArgumentError unless `array` is a matrix of a type, in memory row by row (or column by column)."""
    dtype = DTYPES[type_name]
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 2 or not array.size:
        got = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        article = "an" if dtype.name.startswith("i") else "a"
        raise ArgumentError(f"{name} must be {article} {dtype.name} matrix, got {got}")
    if order == "column" and not array.flags.f_contiguous:
        raise ArgumentError(f"{name} is not column-major; pass np.asfortranarray({name})")
    if order != "column" and not array.flags.c_contiguous:
        raise ArgumentError(f"{name} is not C-contiguous; pass np.ascontiguousarray({name})")


def b_operand(plan: Plan, weights: np.ndarray) -> np.ndarray:
    """B (K x N) as every sequence of `plan` for these K and N reads it; make it once, use it for every M.

    Packed B is uint8 (n-tiles, K/k, ...): the last slab of K and the last n-tile move back until they end with the
    matrix; rows of the last slab that the one before it holds are 0, so that nothing counts twice. Other B is `weights`
    itself, or a copy in a larger buffer where `staging` asks for one. WeightError for values that the type lacks.
    """
    if plan.tiling.b.order == "packed":
        return packed_weights(plan, weights)
    problem = Problem(1, *weights.shape)
    staged = stage(plan, problem, natural_leading(plan, problem))[0].b
    return _in_memory(weights if staged is None else _cornered(weights, staged), plan.tiling.b.order)


def packed_weights(plan: Plan, weights: np.ndarray) -> np.ndarray:
    """B packed for `plan`, see `b_operand`."""
    tiles = plan.tiling
    if weights.ndim != 2:
        return _packed(plan, weights)
    _, K, N = walked_sizes(tiles, 1, *weights.shape)
    grown = _cornered(weights, Staged(K, N, "")) if weights.shape != (K, N) else weights
    rows = moved_back(K, tiles.k_mt)
    whole = len(rows) - tiles.k_mt
    arranged = grown[np.ix_(rows, moved_back(N, tiles.n))] if K % tiles.k_mt or N % tiles.n else grown
    if covered := len(rows) - K:
        arranged[whole : whole + covered] = 0
    return _packed(plan, arranged)


def _packed(plan: Plan, b: np.ndarray) -> np.ndarray:
    kernel, size = plan.kernel, plan.spec.tile
    if plan.kernel.b.blocked:
        return pack_bfp16_b(b, k=size.k, n=size.n)
    how = {"int2": pack, "int4": pack_int4}.get(plan.spec.b, pack_tiles)
    return how(b, k=size.k, n=size.n, s=kernel.s, t=kernel.t).view(np.uint8)


def moved_back(size: int, tile: int) -> np.ndarray:
    """The positions 0 to size - 1 in tiles; the last tile moves back until it ends at `size`."""
    starts = np.minimum(np.arange(0, size, tile), size - tile)
    return (starts[:, None] + np.arange(tile)).ravel()


def staged_a(planned: GemmSequence, a: np.ndarray) -> np.ndarray:
    """What the array reads as A: `a` itself, or a copy in a larger buffer of zeros, or in blocks."""
    staged = planned.staging.a
    if staged is not None:
        a = _in_slabs(planned, a, staged) if planned.staging.a_in_slabs else _cornered(a, staged)
    if planned.plan.kernel.a.blocked:
        return pack_bfp16(a)
    return _in_memory(a, planned.plan.tiling.a.order)


def _in_slabs(planned: GemmSequence, a: np.ndarray, staged: Staged) -> np.ndarray:
    """A in whole slabs: zeros stand in the last one for what the slab before it holds."""
    k_mt, K = planned.plan.tiling.k_mt, planned.sizes.K
    whole = K // k_mt * k_mt
    buffer = np.zeros((staged.rows, staged.columns), a.dtype)
    buffer[: a.shape[0], :whole] = a[:, :whole]
    fresh = a[:, whole:]
    first = staged.columns - (K - whole)
    buffer[: a.shape[0], first : first + fresh.shape[1]] = fresh
    return buffer


def c_buffer(planned: GemmSequence) -> np.ndarray:
    """What the array writes as C: zeros of (M, N), or of the staged shape, lines as they lie in memory."""
    staged, problem, spec = planned.staging.c, planned.problem, planned.plan.spec
    rows, columns = (problem.M, problem.N) if staged is None else (staged.rows, staged.columns)
    if TYPES[spec.c].blocked:
        return np.zeros((rows // BLOCK, columns // BLOCK, TILE_BYTES), np.uint8)
    return np.zeros((columns, rows) if spec.layouts.c == "column" else (rows, columns), DTYPES[spec.c])


def c_matrix(planned: GemmSequence, buffer: np.ndarray) -> np.ndarray:
    """C (M x N) of what the array wrote; block floats as float32."""
    problem, spec = planned.problem, planned.plan.spec
    if TYPES[spec.c].blocked:
        buffer = unpack_bfp16(buffer)
    elif spec.layouts.c == "column":
        buffer = buffer.T
    return buffer[: problem.M, : problem.N]


def _cornered(matrix: np.ndarray, staged: Staged) -> np.ndarray:
    """`matrix` in the upper left corner of zeros."""
    buffer = np.zeros((staged.rows, staged.columns), matrix.dtype)
    buffer[: matrix.shape[0], : matrix.shape[1]] = matrix
    return buffer


def _in_memory(matrix: np.ndarray, order: str) -> np.ndarray:
    """Lines of a matrix as they lie in memory."""
    return np.ascontiguousarray(matrix.T if order == "column" else matrix)
