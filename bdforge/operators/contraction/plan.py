"""A contraction planned on a GEMM design: another sequence program for the same array."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

import numpy as np

from bdforge.design.model import Design
from bdforge.design.sequences import Program
from bdforge.devices import Device
from bdforge.devices.types import TYPES
from bdforge.operators.contraction.boxes import Part, box_size
from bdforge.operators.contraction.choose import Choice, Given, choose
from bdforge.operators.contraction.config import Config
from bdforge.operators.contraction.dims import Contraction, ContractionError
from bdforge.operators.contraction.sides import Side
from bdforge.operators.contraction.spec import KIND, ContractionSpec
from bdforge.operators.gemm.plan import GemmPlan, plan_gemm
from bdforge.operators.gemm.reference import Reference, moved_back
from bdforge.operators.gemm.spec import GemmSpec
from bdforge.operators.operator_api import Cost, Expected, Kernels, Plan
from bdforge.operators.specs import Problem


@dataclass(frozen=True, repr=False)
class ContractionPlan(Plan):
    """A contraction on the array of a GEMM's plan. Operands have an axis for each dimension, longest strides first."""

    gemm: GemmPlan
    choice: Choice
    spec: GemmSpec | ContractionSpec
    """What was planned: the GEMM, where no spec of its own asked for the contraction."""
    device: Device = field(init=False)
    design: Design = field(init=False)

    def __post_init__(self) -> None:
        for name in ("device", "design"):
            object.__setattr__(self, name, getattr(self.gemm, name))

    @cached_property
    def program(self) -> Program:  # type: ignore[override]
        """The runtime sequence of the contraction."""
        return self.choice.mapped.program()

    @property
    def kernels(self) -> Kernels:
        """The GEMM's."""
        return self.gemm.kernels

    @property
    def sides(self) -> tuple[Side, Side, Side]:
        """A, B and C as the shims walk them."""
        return self.choice.mapped.sides

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The one that it is planned for."""
        return (self.problem,)

    @property
    def problem(self) -> Problem:
        """The sizes that it is planned for."""
        return Problem(KIND, {part.dim.name: part.dim.size for side in self.sides for part in side.parts})

    def reference(self, inputs: Mapping[str, np.ndarray]) -> dict[str, Expected]:
        """C by numpy: batch by batch the product of matrices whose K is in the order of the cores' steps."""
        a, b = (self._matrices(side, inputs[side.name], number) for number, side in enumerate(self.sides[:2]))
        known = Reference(self.gemm.spec, self.gemm.kernel, self.gemm.tiling)
        found = [known.expected({"A": left, "B": right}) for left, right in zip(a, b, strict=True)]
        values = self._tensor(np.stack([one.values for one in found]))
        bounds = [one.bound for one in found if one.bound is not None]
        return {"C": Expected(values, self._tensor(np.stack(bounds)) if bounds else None)}

    def _matrices(self, side: Side, array: np.ndarray, number: int) -> np.ndarray:
        """[batch][rows][columns] of an input; K in whole slabs, in order of the steps: tiles before positions."""
        tiles, names, shape = side.tiles, [], []
        for axis, part in enumerate(side.axes):
            name, split = part.dim.name, part in tiles.k
            if split:
                positions, held = k_positions(part)
                array = array.take(positions, axis) * held.reshape([-1] + [1] * (array.ndim - axis - 1)).astype(
                    array.dtype
                )
            names += [(name, "tile"), (name, "")] if split else [(name, "")]
            shape += [part.count, part.size] if split else [part.dim.size]
        wanted: list[list[tuple[str, str]]] = [[(part.dim.name, "") for part in tiles.batch]]
        for group in tiles.groups(number):
            outer = [(part.dim.name, "tile") for part in group] if group is tiles.k else []
            wanted.append(outer + [(part.dim.name, "") for part in group])
        order = [[names.index(name) for name in group] for group in wanted]
        sizes = [prod(shape[place] for place in group) for group in order]
        return array.reshape(shape).transpose([place for group in order for place in group]).reshape(sizes)

    def _tensor(self, products: np.ndarray) -> np.ndarray:
        side = self.sides[2]
        parts = [*side.tiles.batch, *side.tiles.m, *side.tiles.n]
        array, names = products.reshape([part.dim.size for part in parts]), [part.dim.name for part in parts]
        return array.transpose([names.index(part.dim.name) for part in side.axes])

    def cost(self, problem: Problem) -> Cost:
        """What a run moves, and the MACs of cores at the peak of their types."""
        mapped, tiling = self.choice.mapped, self.gemm.tiling
        tiles = mapped.batches * mapped.rows.tiles * mapped.columns.tiles
        macs = tiles * tiling.m * tiling.n * mapped.depth
        return Cost.of(self.sequence(problem), self.choice.contraction.macs, macs / self.gemm.peak_macs)


def k_positions(part: Part) -> tuple[np.ndarray, np.ndarray]:
    """Positions of a dimension of K tile by tile, and which of them count: each once, none beyond it."""
    positions = moved_back(part.walked, part.size)
    covered = np.repeat(np.arange(part.count) * part.size, part.size)
    held = (positions < part.dim.size) & (positions >= covered)
    return np.where(positions < part.dim.size, positions, 0), held


def plan_spec(spec: ContractionSpec, device: Device) -> ContractionPlan:
    """Plan a spec for a product; SpecError lists every reason why it cannot be built."""
    found = plan_contraction(spec.contraction, plan_gemm(spec.gemm, device), spec.form.staged, spec.form.once)
    return replace(found, spec=spec)


def plan_contraction(
    contraction: Contraction, gemm: GemmPlan, staged: str | None = None, once: str = ""
) -> ContractionPlan:
    """Plan a contraction on a design's array; ContractionError lists the reasons why nothing fits.

    `staged` names the operands (A, B, C) that the host stages, which is chosen otherwise; those in `once` are staged
    before, so that their copies cost nothing.
    """
    return _planned(contraction, gemm, staged, once, None)


def plan_config(config: Config, gemm: GemmPlan, staged: str | None = None, once: str = "") -> ContractionPlan:
    """Plan a tiled execution configuration: its prim dimensions are the tile, its spatial ones are dealt out.

    ContractionError where the prim sizes of a type or the last touch are not the design's, and as of
    `plan_contraction`.
    """
    tile, relu = gemm.tiling, gemm.spec.epilogue.relu
    if relu != (config.last == "relu"):
        raise ContractionError(
            f"last touch {config.last}; design {gemm.spec.name} has epilogue.relu = {str(relu).lower()}: change either"
        )
    boxes = []
    for kind, name, size in (("M", "m", tile.m), ("N", "n", tile.n), ("K", "k_mt", tile.k_mt)):
        box = config.box(kind)
        if box_size(box) != size or not box:
            raise ContractionError(
                f"prim dimensions of type {kind} make {box_size(box)}; design {gemm.spec.name} has {name} = {size}"
            )
        boxes.append(box)
    given = Given((boxes[0], boxes[1], boxes[2]), config.unit("M"), config.unit("N"))
    return _planned(config.contraction, gemm, staged, once, given)


def _planned(
    contraction: Contraction, gemm: GemmPlan, staged: str | None, once: str, given: Given | None
) -> ContractionPlan:
    if reasons := list(_unfit(gemm.spec)):
        raise ContractionError("\n  - ".join([f"design {gemm.spec.name} takes no contractions:", *reasons]))
    depth = prod(dim.size for dim in contraction.of("K"))
    if depth > gemm.kernel.depth_limit:
        raise ContractionError(
            f"K = {depth} could overflow the sums; at most {gemm.kernel.depth_limit}: contract parts of K and add them"
        )
    return ContractionPlan(gemm, choose(contraction, gemm, staged, once, given), gemm.spec)


def _unfit(spec: GemmSpec):
    """What of a GEMM design contractions do not know."""
    if spec.buffers.a_shims > 1:
        yield "buffers.a_shims = 2: one shim must bring a core row's A"
    if spec.buffers.residency != "none":
        yield "buffers.residency: panels of B must come anew for each row panel"
    if spec.epilogue.fed:
        yield "epilogue: scales and biases follow a GEMM's rows and columns"
    if spec.tile.m_used:
        yield "tile.m_used: tiles must be full"
    if any(TYPES[name].blocked for name in (spec.a, spec.b, spec.c)):
        yield "bfp16: blocks lie along a matrix' rows; use bf16"
    if spec.rows > spec.columns:
        yield f"array.rows = {spec.rows}: each core row needs a shim for A, there are {spec.columns}"
