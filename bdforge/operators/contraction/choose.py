"""Choosing how a contraction is mapped: which operands are staged, which parts of dimensions make a tile, their order.

Every combination of staged operands, with the boxes that waste least and those that read the longest runs, is priced;
the cheapest one that the shims can walk is taken.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from itertools import count, product

from bdforge.common.messages import clip, listed
from bdforge.design.sequences import Dim
from bdforge.design.sequences.interpret import STEPS_MAX
from bdforge.operators.contraction.boxes import Box, Near, Part, splits, spreads, waste
from bdforge.operators.contraction.dims import TENSORS, Contraction, ContractionError, Kind, TensorDim
from bdforge.operators.contraction.price import Price, price
from bdforge.operators.contraction.program import Mapped
from bdforge.operators.contraction.sides import NAMES, Side, Tiles
from bdforge.operators.contraction.walks import WalkReason
from bdforge.operators.gemm.operands import micro_tiles
from bdforge.operators.gemm.plan import GemmPlan

KEPT = 3
"""Boxes of a group that are tried by each measure."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A mapping with its price; `contraction` is the user's, its inputs exchanged where that is better."""

    contraction: Contraction
    mapped: Mapped
    price: Price


@dataclass(frozen=True, slots=True)
class Given:
    """What is not to be chosen: boxes of M, N and K, and the dimensions dealt to rows and columns ("": any)."""

    boxes: tuple[Box, Box, Box]
    rows: str = ""
    columns: str = ""


def choose(
    found: Contraction,
    gemm: GemmPlan,
    staged: str | None = None,
    once: str = "",
    given: Given | None = None,
) -> Choice:
    """The cheapest mapping; `staged` names the operands to stage (of A, B, C) where that is not to be chosen.

    Operands in `once` are staged before and cost nothing. ContractionError with the reasons where nothing fits.
    """
    if staged is not None and (set(staged) - set(NAMES) or len(set(staged)) < len(staged)):
        raise ContractionError(f"staged {clip(repr(staged))}: names operands of A, B and C, each once, such as AB")
    reasons: dict[str, None] = {}
    turned = [found, found.exchanged()] if gemm.types[0] == gemm.types[1] and given is None else [found]
    priced, number = [], count()
    for contraction in turned:
        for mapped in _mappings(contraction, gemm, staged, given, reasons):
            try:
                priced.append((price(mapped), next(number), contraction, mapped))
            except WalkReason as reason:
                reasons[str(reason)] = None
    for cost, _, contraction, mapped in sorted(priced, key=lambda entry: (entry[0].total_us(once), entry[1])):
        if (reason := _refusal(mapped)) is None:
            return Choice(contraction, mapped, cost)
        reasons[reason] = None
    raise ContractionError("\n  - ".join(["no mapping fits the shims:", listed(reasons, "\n  - ", 12)]))


def _refusal(mapped: Mapped) -> str | None:
    """Why the array cannot run a mapping that has walks."""
    if mapped.steps > STEPS_MAX:
        return f"takes {mapped.steps} steps, at most {STEPS_MAX}; split a dimension and call it for each part"
    if (most := max(mapped.bds())) > mapped.limits.bds:
        return f"takes {most} BDs of a shim at a time; there are {mapped.limits.bds}"
    try:
        mapped.program()
    except WalkReason as reason:
        return str(reason)
    return None


def _mappings(
    contraction: Contraction, gemm: GemmPlan, staged: str | None, given: Given | None, reasons: dict[str, None]
) -> Iterator[Mapped]:
    packed = gemm.tiling.b.order == "packed"
    for stages in product((False, True), repeat=3):
        named = "".join(name for name, stage in zip(NAMES, stages, strict=True) if stage)
        if (packed and not stages[1]) or (
            staged is not None and named != "".join(sorted(set(staged) | {*("B" * packed)}))
        ):
            continue
        here = [i for i, stage in enumerate(stages) if not stage]
        fused = contraction if given else contraction.fused(here)
        batch = tuple(Part(dim, 1, dim.size) for dim in fused.of("C"))
        units = (given.rows, given.columns) if given else ("", "")
        for m, n, k in product(*_choices(fused, stages, gemm, given, reasons)):
            if (mapped := _mapped(Tiles(batch, m, n, k), stages, gemm, reasons, units)) is not None:
                yield mapped


def _choices(
    fused: Contraction, stages: Sequence[bool], gemm: GemmPlan, given: Given | None, reasons: dict[str, None]
) -> list[list[Box]]:
    """Boxes of M, N and K that are tried."""
    if given:
        return [[box] for box in given.boxes]
    tiling = gemm.tiling
    sizes: dict[Kind, int] = {"M": tiling.m, "N": tiling.n, "K": tiling.k_mt}
    return [list(_boxes(fused, kind, size, stages, reasons)) for kind, size in sizes.items()]


def _boxes(
    contraction: Contraction, kind: Kind, size: int, stages: Sequence[bool], reasons: dict[str, None]
) -> Iterator[Box]:
    """The best boxes of a group: those that waste least, and those with the longest runs in place."""
    a, b, c = (1 if tensor in TENSORS[kind] else None for tensor in range(3))
    dims = contraction.of(kind) or (TensorDim(f"({kind})", 1, (a, b, c)),)
    tensors = [tensor for tensor in TENSORS[kind] if not stages[tensor]]
    found: dict[Box, None] = {}
    for tensor in tensors or TENSORS[kind][:1]:
        ordered = sorted(dims, key=lambda dim: (-(dim.strides[tensor] or 0), -dim.size))
        legal = []
        for box in splits(ordered, size):
            if not tensors:
                box = tuple(replace(part, padded=True) for part in box)
            elif any(part.size > part.dim.size for part in box):
                continue
            legal.append(box)
        if not legal:
            reasons[f"{kind} has {_shown(dims)}, less than a tile of {size} in {_staged(tensors)}: stage it"] = None
        found |= dict.fromkeys(nsmallest(KEPT, legal, key=lambda box: (waste(box), *_inner(box))))
        if tensors:
            found |= dict.fromkeys(nsmallest(KEPT, legal, key=lambda box: (*_inner(box), waste(box))))
    yield from found


def _inner(box: Box) -> tuple[int, ...]:
    return tuple(-part.size for part in reversed(box))


def _shown(dims: Sequence[TensorDim]) -> str:
    return " x ".join(f"{dim.name} = {dim.size}" for dim in dims)


def _staged(tensors: Sequence[int]) -> str:
    return " and ".join(NAMES[tensor] for tensor in tensors)


def _mapped(
    tiles: Tiles,
    stages: Sequence[bool],
    gemm: GemmPlan,
    reasons: dict[str, None],
    units: tuple[str, str] = ("", ""),
) -> Mapped | None:
    """A mapping where operands in place can be; None, with the reasons, where not."""
    if not (stages[0] or stages[1]) and any(not part.regular for part in tiles.k):
        reasons["K is no whole number of slabs: stage A or B, for zeros in what is read twice"] = None
        return None
    most = gemm.limits.iteration_wrap_max
    rows = spreads(tiles.m, gemm.tiling.rows, 1, along=units[0])
    columns = spreads(tiles.n, gemm.tiling.columns, most, _near(stages, gemm), units[1])
    if odd := [name for name, spread in zip(units, (rows, columns), strict=True) if name and spread.unit != name]:
        reasons[f"spatial dimension {odd[0]}: its tiles cannot be dealt out regularly; name another, or none"] = None
        return None
    tiles = replace(tiles, m=rows.box, n=columns.box)
    sides = _sides(tiles, stages, gemm)
    for side in sides:
        if not side.staged and (faults := list(side.unreachable())):
            reasons[f"{side.name} in place: {faults[0]}"] = None
            return None
    return _within_steps(Mapped(sides, rows, columns, gemm))


def _near(stages: Sequence[bool], gemm: GemmPlan) -> Near:
    """Whether tasks of B and C that are in place can move on so far."""
    stores = [(tensor, store) for tensor, store in ((1, gemm.tiling.b), (2, gemm.tiling.c)) if not stages[tensor]]

    def near(part: Part, tiles: int) -> bool:
        steps = (store.words(tiles * part.size * (part.dim.strides[tensor] or 0)) for tensor, store in stores)
        return all(step <= gemm.limits.step_max for step in steps)

    return near


def _sides(tiles: Tiles, stages: Sequence[bool], gemm: GemmPlan) -> tuple[Side, Side, Side]:
    tiling, kernel, packed = gemm.tiling, gemm.kernel, None
    if tiling.b.order == "packed":
        k, n = tiling.k, tiling.n
        tile = micro_tiles(k, n, kernel.t, tiling.b.bits, kernel.field_scaled)
        packed = (Dim(0, tiling.k_mt // k, k, k * n), *tile)
    return (
        Side(0, tiles, tiling.a, stages[0]),
        Side(1, tiles, tiling.b, stages[1], packed),
        Side(2, tiles, tiling.c, stages[2]),
    )


def _within_steps(mapped: Mapped) -> Mapped:
    """Without turns where the next column step is farther away than a BD can step."""
    far = any(mapped.sides[i].store.words(mapped.run(i)) > mapped.limits.step_max for i in (1, 2))
    return replace(mapped, columns=replace(mapped.columns, turns=1)) if far else mapped
