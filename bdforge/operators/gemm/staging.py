"""Which operands the host copies into buffers of its own, because a tile is larger than they are."""

from dataclasses import dataclass

from bdforge.devices import TileKind
from bdforge.operators.gemm.grid import Problem as Sizes
from bdforge.operators.gemm.grid import Tiling
from bdforge.operators.gemm.plan import Plan
from bdforge.operators.gemm.spec import LARGEST_SIZE, Problem, SpecError


@dataclass(frozen=True, slots=True)
class Staged:
    """A host buffer without gaps that stands for an operand of `rows` x `columns`, and why it must."""

    rows: int
    columns: int
    why: str

    def __str__(self) -> str:
        return f"staged as {self.rows} x {self.columns}: {self.why}"


@dataclass(frozen=True, slots=True)
class Staging:
    """What the host copies: `a` and `b` before the run, into the upper left corner of zeros; `c` after it, from there.

    None means that the array reads or writes the user's memory. Packed B is never staged: packing makes it fit. With
    `a_in_slabs` A's columns stand in whole slabs, see `bd_patterns.Problem`.
    """

    a: Staged | None
    b: Staged | None
    c: Staged | None
    a_in_slabs: bool = False


@dataclass(frozen=True, slots=True)
class Leading:
    """Positions from one line to the next in A, B and C as the user has them."""

    a: int
    b: int
    c: int


def walked_sizes(tiles: Tiling, M: int, K: int, N: int) -> tuple[int, int, int]:
    """M, K, N as the shims walk them: at least a tile, a slab and a tile, in whole granules."""
    least = (tiles.least_rows, tiles.k_mt, tiles.n)
    sizes = zip((M, K, N), tiles.granules, least, strict=True)
    return tuple(max(_up(size, granule), tile) for size, granule, tile in sizes)  # type: ignore[return-value]


def stage(plan: Plan, problem: Problem, leading: Leading) -> tuple[Staging, Sizes]:
    """What is staged of `problem`, whose lines are `leading` positions apart, and what the shims then walk.

    SpecError lists every reason why no design of this plan can compute it.
    """
    if reasons := _refusals(plan, problem, leading):
        raise SpecError("\n".join(f"{plan.spec.name}: {problem}: {reason}" for reason in reasons))
    tiles = plan.tiling
    M, K, N = walked_sizes(tiles, problem.M, problem.K, problem.N)
    reasons = {name: _reasons(plan, problem, leading, name) for name in "abc"}
    ragged = K % tiles.k_mt
    a_in_slabs = bool(ragged) and tiles.b.order != "packed"
    if a_in_slabs:
        reasons["a"].append(f"K = {K} is no multiple of k_mt = {tiles.k_mt} and B is not packed")
    depth = _up(K, tiles.k_mt) if a_in_slabs else K
    shapes = {"a": (M, depth), "b": (K, N), "c": (M, N)}
    staged = {name: Staged(*shapes[name], "; ".join(why)) if why else None for name, why in reasons.items()}
    dense = {name: _line(tiles, name, shape) for name, shape in shapes.items()}
    lines = {name: dense[name] if staged[name] else getattr(leading, name) for name in shapes}
    ldb = 0 if tiles.b.order == "packed" else lines["b"]
    return Staging(**staged, a_in_slabs=a_in_slabs), Sizes(M, K, N, lines["a"], lines["c"], ldb, a_in_slabs)


def _line(tiles: Tiling, name: str, shape: tuple[int, int]) -> int:
    """Positions of a line of an operand without gaps."""
    return shape[0] if getattr(tiles, name).order == "column" else shape[1]


_AXES = {"a": "MK", "b": "KN", "c": "MN"}


def _reasons(plan: Plan, problem: Problem, leading: Leading, name: str) -> list[str]:
    """Why an operand cannot be reached where it is."""
    tiles, store = plan.tiling, getattr(plan.tiling, name)
    if store.order == "packed":
        return []
    least = dict(zip("MKN", zip(("m", "k_mt", "n"), (tiles.least_rows, tiles.k_mt, tiles.n), strict=True), strict=True))
    granule = dict(zip("MKN", tiles.granules, strict=True))
    reasons = [reason for axis in _AXES[name] for reason in _below(axis, getattr(problem, axis), *least[axis])]
    along = _AXES[name][0 if store.order == "column" else 1]
    values = [(axis, getattr(problem, axis), granule[axis]) for axis in _AXES[name]]
    values.append((f"ld{name}", getattr(leading, name), store.granule))
    odd = [
        f"{what} = {value} is no multiple of {multiple}, so that "
        + ("lines do not start at whole words" if what in (along, f"ld{name}") else "tiles do not start at whole words")
        for what, value, multiple in values
        if value % multiple
    ]
    step, step_max = store.line_words(getattr(leading, name)), plan.device.generation.limits(TileKind.SHIM).step_max
    far = [f"ld{name} = {getattr(leading, name)} is more than {step_max} words, a BD's longest step"]
    return [*reasons, *odd[:1], *(far if step > step_max else [])]


def _below(name: str, size: int, tile_name: str, tile: int) -> list[str]:
    return [f"{name} = {size} is below {tile_name} = {tile}"] if size < tile else []


def check_problem(plan: Plan, problem: Problem) -> None:
    """SpecError lists every reason why a design of this plan cannot compute a problem, wherever its operands lie."""
    if reasons := _size_refusals(plan, problem):
        raise SpecError("\n".join(f"{plan.spec.name}: {problem}: {reason}" for reason in reasons))


def _size_refusals(plan: Plan, problem: Problem) -> list[str]:
    sizes = (("M", problem.M), ("K", problem.K), ("N", problem.N))
    reasons = [
        f"{name} = {size} is outside 1 to {LARGEST_SIZE}" for name, size in sizes if not 1 <= size <= LARGEST_SIZE
    ]
    limit, kernel = plan.kernel.depth_limit, plan.kernel.multiply
    if limit < problem.K:
        reasons.append(f"K = {problem.K} could overflow {kernel}'s sums; at most {limit}")
    return reasons


def _refusals(plan: Plan, problem: Problem, leading: Leading) -> list[str]:
    reasons = _size_refusals(plan, problem)
    for name, axes in _AXES.items():
        order, value = getattr(plan.tiling, name).order, getattr(leading, name)
        axis = axes[0 if order == "column" else 1]
        if order != "packed" and value < (size := getattr(problem, axis)):
            reasons.append(f"ld{name} = {value} is below {axis} = {size}; lines would overlap")
    return reasons


def _up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
