"""Which operands the host copies into buffers of its own, because a tile is larger than they are."""

from dataclasses import dataclass

from bd_patterns import GRANULE_BITS, Tiling
from bd_patterns import Problem as Sizes
from bdforge.devices import TileKind
from bdforge.plan.gemm import Plan
from bdforge.plan.spec import LARGEST_SIZE, Problem, SpecError


@dataclass(frozen=True, slots=True)
class Staged:
    """A row-major host buffer of `rows` x `columns` elements that stands for an operand, and why it must."""

    rows: int
    columns: int
    why: str

    def __str__(self) -> str:
        return f"staged as {self.rows} x {self.columns}: {self.why}"


@dataclass(frozen=True, slots=True)
class Staging:
    """What the host copies: `a` before the run, into the buffer's upper left corner; `c` after it, from there.

    None means that the array reads or writes the user's memory. The rest of a staged A may hold anything: what it
    meets in B is 0, or what it makes of C is not copied home.
    """

    a: Staged | None
    c: Staged | None


def tiling(plan: Plan) -> Tiling:
    """The tiles of a plan, as walks know them."""
    spec, kernel, tile = plan.spec, plan.kernel, plan.spec.tile
    return Tiling(tile.m, tile.k, tile.n, spec.k_mt, spec.rows, spec.columns, b_bits=kernel.b_bits)


def packed_sizes(tiles: Tiling, K: int, N: int) -> tuple[int, int]:
    """(K, N) as packed B sees them: at least one slab and one n-tile, K in whole granules of A."""
    return max(_up(K, tiles.a_granule), tiles.k_mt), max(_up(N, tiles.c_granule), tiles.n)


def stage(plan: Plan, problem: Problem, lda: int, ldc: int) -> tuple[Staging, Sizes]:
    """What is staged of `problem`, whose rows are `lda` and `ldc` elements apart, and what the shims then walk.

    SpecError lists every reason why no design of this plan can compute it.
    """
    if reasons := _refusals(plan, problem, lda, ldc):
        raise SpecError("\n".join(f"{plan.spec.name}: {problem}: {reason}" for reason in reasons))
    tiles = tiling(plan)
    M = max(problem.M, tiles.m)
    K, N = packed_sizes(tiles, problem.K, problem.N)
    step_max = plan.device.generation.limits(TileKind.SHIM).step_max
    few_rows = _below("M", problem.M, "m", tiles.m)
    a_reasons = [
        *few_rows,
        *_below("K", problem.K, "k_mt", tiles.k_mt),
        *_row_reasons("K", problem.K, "lda", lda, tiles.a_bits, step_max),
    ]
    c_reasons = [
        *few_rows,
        *_below("N", problem.N, "n", tiles.n),
        *_row_reasons("N", problem.N, "ldc", ldc, tiles.c_bits, step_max),
    ]
    a = Staged(M, K, "; ".join(a_reasons)) if a_reasons else None
    c = Staged(M, N, "; ".join(c_reasons)) if c_reasons else None
    return Staging(a, c), Sizes(M, K, N, lda=K if a else lda, ldc=N if c else ldc)


def _below(name: str, size: int, tile_name: str, tile: int) -> list[str]:
    return [f"{name} = {size} is below {tile_name} = {tile}"] if size < tile else []


def _row_reasons(size_name: str, size: int, leading_name: str, leading: int, bits: int, step_max: int) -> list[str]:
    """Why rows of `leading` elements of `bits` bits cannot be reached where they are."""
    granule = max(GRANULE_BITS // bits, 1)
    odd = [(name, value) for name, value in ((size_name, size), (leading_name, leading)) if value % granule]
    reasons = [
        f"{name} = {value} is no multiple of {granule}, so that rows do not start at whole words"
        for name, value in odd[:1]
    ]
    if leading * bits // GRANULE_BITS > step_max:
        reasons.append(f"{leading_name} = {leading} is more than {step_max} words, a BD's longest step")
    return reasons


def _refusals(plan: Plan, problem: Problem, lda: int, ldc: int) -> list[str]:
    sizes = (("M", problem.M), ("K", problem.K), ("N", problem.N))
    reasons = [
        f"{name} = {size} is outside 1 to {LARGEST_SIZE}" for name, size in sizes if not 1 <= size <= LARGEST_SIZE
    ]
    limit, kernel = plan.kernel.depth_limit, plan.kernel.multiply
    if limit < problem.K:
        reasons.append(f"K = {problem.K} could overflow {kernel}'s sums; at most {limit}")
    for name, leading, size_name, size in (("lda", lda, "K", problem.K), ("ldc", ldc, "N", problem.N)):
        if leading < size:
            reasons.append(f"{name} = {leading} is below {size_name} = {size}; rows would overlap")
    return reasons


def _up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
