"""The runtime sequence of any GEMM, with what is known of it as a GEMM: how its edges are handled, how long it is.

One loaded design serves every M, K, N; a sequence is all that differs. The design's sequence program (`program`) yields
it here, in the MLIR of a rendered sequence, and in C++ from the manifest.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from bdforge.design.sequences import Builder, Expr, PlannedSequence, Start, evaluate
from bdforge.operators.gemm.spec import AXES, GemmProblem
from bdforge.operators.gemm.stages import Stages
from bdforge.operators.operator_api import Plan


class Staged(NamedTuple):
    """A host buffer without gaps that stands for an operand of `rows` x `columns`, and why it must."""

    rows: int
    columns: int
    why: str

    def __str__(self) -> str:
        return f"staged as {self.rows} x {self.columns}: {self.why}"


class Staging(NamedTuple):
    """What the host copies: `a` and `b` before the run, into the upper left corner of zeros; `c` after it, from there.

    None means that the array reads or writes the user's memory. Packed B is never staged: packing makes it fit. Of
    several outputs `c` is the first that is. With `a_in_slabs` A's columns stand in whole slabs.
    """

    a: Staged | None
    b: Staged | None
    c: Staged | None
    a_in_slabs: bool


class WalkedSizes(NamedTuple):
    """What the shims walk: sizes, positions from line to line (0 for packed B; of several outputs those of the first),
    whole panels, slabs and n-tiles."""

    M: int
    K: int
    N: int
    lda: int
    ldb: int
    ldc: int
    panels: int
    depth: int
    n_tiles: int
    column_steps: int


class Counts(NamedTuple):
    """How long a stream is, and what it makes the array do."""

    steps: int
    operations: int
    words: int
    output_tiles: int
    macs: int

    @property
    def bytes(self) -> int:
        """Size of the stream."""
        return 4 * self.words


class Edges(NamedTuple):
    """How the edges of each operand are handled, one sentence to an edge."""

    a: tuple[str, ...]
    b: tuple[str, ...]
    c: tuple[str, ...]
    brief: str

    def __str__(self) -> str:
        named = zip("ABC", (self.a, self.b, self.c), strict=True)
        return "; ".join(f"{name} {', '.join(edges)}" for name, edges in named if edges) or "none"


@dataclass(frozen=True)
class GemmSequence(PlannedSequence):
    """What the controller does for one problem: C (M x N) = A (M x K) B (K x N), on `plan`'s array."""

    plan: Any

    @classmethod
    def of(cls, plan: Plan, found: PlannedSequence) -> "GemmSequence":
        """A sequence of a GEMM's plan."""
        return cls(found.program, found.parameters, found.device, found.wide, found.events, plan)

    @property
    def problem(self) -> GemmProblem:
        """The user's sizes."""
        return GemmProblem.of(self.parameters)

    @cached_property
    def staging(self) -> Staging:
        """What the host copies."""
        a, b, *c = map(self._staged, self._stages.axes_of)
        return Staging(a, b, next(filter(None, c), None), bool(self._at(self._stages.a_in_slabs)))

    @cached_property
    def walk(self) -> WalkedSizes:
        """The numbers by which the shims walk."""
        stages = self._stages
        found = (*stages.sizes, *stages.leading[:3], stages.panels, stages.depth, stages.n_tiles, stages.steps)
        return WalkedSizes(*map(self._at, found))

    @property
    def processed(self) -> tuple[int, int, int]:
        """M, K, N as the array computes them: whole row panels, slabs and column steps."""
        walk, tiles = self.walk, self.plan.tiling
        return walk.panels * tiles.panel_rows, walk.depth, walk.column_steps * tiles.step_columns

    def counts(self) -> Counts:
        """Length of the stream and work of the array."""
        walk, spec = self.walk, self.plan.spec
        tiles = walk.panels * walk.column_steps * spec.rows * spec.columns
        return Counts(
            steps=sum(isinstance(event, Start) for event in self.events),
            operations=len(self.operations()),
            words=len(self.words()),
            output_tiles=tiles,
            macs=tiles * spec.tile.m * spec.tile.n * walk.depth,
        )

    def edges(self) -> Edges:
        """How each operand's edges are handled."""
        walk, staging, packed = self.walk, self.staging, self.plan.tiling.b.order == "packed"
        staged = {"A": staging.a, "B": staging.b, "C": staging.c}
        edges = {name: [str(buffer)] if buffer else [] for name, buffer in staged.items()}
        over = {axis: whole - getattr(walk, axis) for axis, whole in zip(AXES, self.processed, strict=True)}
        if over["M"]:
            edges["A"].append(f"reads {over['M']} rows again")
            edges["C"].append(f"writes {over['M']} rows again")
        if over["K"]:
            zeros, again = f"holds 0 for {over['K']} {{}} of the last slab", f"reads {over['K']} {{}} again"
            edges["A"].append((again if packed else zeros).format("columns"))
            edges["B"].append((zeros if packed else again).format("rows"))
        if over["N"]:
            edges["B"].append(f"is packed in {walk.n_tiles} n-tiles" if packed else f"reads {over['N']} columns again")
            edges["C"].append(f"writes {over['N']} columns again")
        overlapping = [axis for axis, more in over.items() if more]
        brief = [f"{', '.join(overlapping)} overlap"] if overlapping else []
        brief += [f"{name} staged" for name, buffer in staged.items() if buffer]
        return Edges(tuple(edges["A"]), tuple(edges["B"]), tuple(edges["C"]), "; ".join(brief) or "none")

    @cached_property
    def _stages(self) -> Stages:
        return Stages(Builder(self.program.parameters, 1), self.plan.tiling, self.plan.limits)

    def _at(self, value: Expr) -> int:
        return evaluate(value, self.parameters)

    def _staged(self, name: str) -> Staged | None:
        told = [r.text.format(self._at(r.value)) for r in self._stages.reasons(name) if self._at(r.when)]
        rows, columns = map(self._at, self._stages.shape(name))
        return Staged(rows, columns, "; ".join(told)) if told else None


def sequence(plan: Plan, M: int, K: int, N: int, **leading: int | None) -> GemmSequence:
    """The runtime sequence of C (M x N) = A (M x K) B (K x N), 1 <= M, K, N <= 2^20.

    `lda`, `ldb`, `ldc`: positions from one line to the next (without gaps by default), lines being rows of row-major
    operands and columns of column-major ones; packed B has none, and an output `q` has `ldq`. It waits as the
    spec says, or as `Plan.waiting` was told. SpecError lists every reason why the plan cannot compute it, WalkError why
    the shims cannot move it.
    """
    given = {name: positions for name, positions in leading.items() if positions is not None}
    gaps = [name for name in plan.program.parameters if name not in AXES]
    if unknown := given.keys() - set(gaps):
        raise TypeError(f"sequence() takes {', '.join(gaps)}, not {', '.join(sorted(unknown))}")
    return GemmSequence.of(plan, plan.sequence(GemmProblem(M, K, N), given))
