"""The runtime sequence of any problem: what the host's controller does, as events and as instruction words.

One loaded design serves every M, K, N; a sequence is all that differs. The design's sequence program (`program`) yields
it here, in the MLIR of a rendered sequence, and in C++ from the manifest.
"""

from dataclasses import dataclass, replace

import numpy as np

from bdforge.design.events import placed_sequence
from bdforge.design.sequence import Sequence
from bdforge.devices import TileKind, mlir_device_named
from bdforge.operators.gemm.grid import Grid, RuntimeParameters, runtime_parameters
from bdforge.operators.gemm.grid import Problem as Sizes
from bdforge.operators.gemm.plan import Plan
from bdforge.operators.gemm.spec import Problem, SpecError
from bdforge.operators.gemm.staging import Leading, Staging, stage
from bdforge.sequences import Event, Program, ProgramError, Start, WalkError, interpret
from bdforge.sequences.interpret import arguments_of
from bdforge.sequences.words import illegal, operations
from bdforge.txn.codec import encode
from bdforge.txn.operations import Operation


@dataclass(frozen=True, slots=True)
class Counts:
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

    @property
    def words_per_tile(self) -> float:
        """Words of the stream for each core's tile of C."""
        return self.words / self.output_tiles


@dataclass(frozen=True, slots=True)
class Edges:
    """How the edges of each operand are handled, one sentence to an edge."""

    a: tuple[str, ...]
    b: tuple[str, ...]
    c: tuple[str, ...]
    brief: str

    def __str__(self) -> str:
        named = zip("ABC", (self.a, self.b, self.c), strict=True)
        return "; ".join(f"{name} {', '.join(edges)}" for name, edges in named if edges) or "none"


@dataclass(frozen=True, slots=True)
class GemmSequence:
    """What the controller does for one problem: C (M x N) = A (M x K) B (K x N).

    `sizes` are those that the shims walk: the problem's and its leading dimensions, or those of the buffers that
    `staging` asks for.
    """

    plan: Plan
    problem: Problem
    staging: Staging
    sizes: Sizes
    program: Program
    given: dict[str, int]
    events: tuple[Event, ...]

    @property
    def grid(self) -> Grid:
        """Where the tiles lie."""
        return Grid(self.plan.tiling, self.sizes)

    @property
    def parameters(self) -> RuntimeParameters:
        """What every core reads when the GEMM starts."""
        return runtime_parameters(self.grid.tiling, self.sizes)

    @property
    def elements(self) -> list[int]:
        """Memory elements of A, B and C (and R, S), bytes for packed B and what feeds an epilogue."""
        return arguments_of(self.program, self.given)

    @property
    def argument_bytes(self) -> list[int]:
        """Size of every host buffer."""
        pairs = zip(self.elements, self.program.arguments, strict=True)
        return [count * argument.bits // 8 for count, argument in pairs]

    def operations(self) -> list[Operation]:
        """The operations of the instruction stream."""
        bits = [argument.bits for argument in self.program.arguments]
        wide = self.plan.wide
        return list(operations(self.events, bits, self.plan.device.generation, wide))

    def words(self) -> np.ndarray:
        """The instruction stream, uint32."""
        return self._encoded(self.operations())

    def _encoded(self, operations: list[Operation]) -> np.ndarray:
        return encode(operations, mlir_device_named(self.plan.mlir_device))

    def counts(self) -> Counts:
        """Length of the stream and work of the array."""
        grid, spec = self.grid, self.plan.spec
        tiles = self.parameters.output_tiles * spec.rows * spec.columns
        operations = self.operations()
        return Counts(
            steps=sum(isinstance(event, Start) for event in self.events),
            operations=len(operations),
            words=len(self._encoded(operations)),
            output_tiles=tiles,
            macs=tiles * spec.tile.m * spec.tile.n * grid.depth,
        )

    def edges(self) -> Edges:
        """How each operand's edges are handled."""
        return _edges(self)

    @property
    def processed(self) -> tuple[int, int, int]:
        """M, K, N as the array computes them: whole row panels, slabs and column steps."""
        grid = self.grid
        tiles = grid.tiling
        return grid.panels * tiles.panel_rows, grid.depth, grid.column_steps * tiles.step_columns


STEPS_MAX = 1 << 14
"""Of one sequence: its stream would have tens of MiB, and making it takes minutes."""


def sequence(
    plan: Plan, M: int, K: int, N: int, *, lda: int | None = None, ldb: int | None = None, ldc: int | None = None
) -> GemmSequence:
    """The runtime sequence of C (M x N) = A (M x K) B (K x N), 1 <= M, K, N <= 2^20.

    `lda`, `ldb`, `ldc`: positions from one line to the next (without gaps by default), lines being rows of row-major
    operands and columns of column-major ones; packed B, as `bdforge.runtime.b_operand` makes it, has none. It waits as
    the spec says, or as `Plan.waiting` was told. SpecError lists every reason why the plan cannot compute it, WalkError
    why the shims cannot move it.
    """
    problem = Problem(M, K, N)
    given = {name: value for name, value in (("a", lda), ("b", ldb), ("c", ldc)) if value is not None}
    leading = replace(natural_leading(plan, problem), **given)
    staging, sizes = stage(plan, problem, leading)
    program = plan.program
    parameters = {"M": M, "K": K, "N": N, "lda": leading.a, "ldb": leading.b, "ldc": leading.c}
    try:
        events = tuple(interpret(program, parameters, plan.device.generation.limits(TileKind.SHIM)))
    except ProgramError as error:
        raise SpecError(f"{plan.spec.name}: {problem}: {error}") from None
    if faults := illegal(program, events, plan.device.generation.limits(TileKind.SHIM)):
        raise WalkError("\n  - ".join([f"{plan.spec.name}: {problem} cannot be walked:", *faults]))
    return GemmSequence(plan, problem, staging, sizes, program, parameters, events)


def mlir_sequence(planned: GemmSequence) -> Sequence:
    """A planned sequence as templates place it."""
    p = planned.problem
    comment = f"C ({p.M} x {p.N}) = A ({p.M} x {p.K}) B ({p.K} x {p.N}), edges: {planned.edges()}"
    wide = planned.plan.wide
    return placed_sequence(
        p.sequence, comment, planned.plan.design, planned.program, planned.elements, planned.events, wide
    )


def natural_leading(plan: Plan, problem: Problem) -> Leading:
    """Leading dimensions of operands without gaps."""
    M, K, N, layouts = problem.M, problem.K, problem.N, plan.spec.layouts
    shapes = ((layouts.a, M, K), (layouts.b, K, N), (layouts.c, M, N))
    return Leading(*(down if order == "column" else across for order, down, across in shapes))


def _edges(planned: GemmSequence) -> Edges:
    grid, sizes, tiles, staging = planned.grid, planned.sizes, planned.grid.tiling, planned.staging
    packed = tiles.b.order == "packed"
    staged = {"A": staging.a, "B": staging.b, "C": staging.c}
    edges = {name: [str(buffer)] if buffer else [] for name, buffer in staged.items()}
    overlapping = []
    if over := grid.panels * tiles.panel_rows - sizes.M:
        edges["A"].append(f"reads {over} rows again")
        edges["C"].append(f"writes {over} rows again")
        overlapping.append("M")
    if over := grid.depth - sizes.K:
        zeros, again = f"holds 0 for {over} {{}} of the last slab", f"reads {over} {{}} again"
        edges["A"].append((again if packed else zeros).format("columns"))
        edges["B"].append((zeros if packed else again).format("rows"))
        overlapping.append("K")
    if over := grid.column_steps * tiles.step_columns - sizes.N:
        edges["B"].append(f"is packed in {grid.n_tiles} n-tiles" if packed else f"reads {over} columns again")
        edges["C"].append(f"writes {over} columns again")
        overlapping.append("N")
    brief = [f"{', '.join(overlapping)} overlap"] if overlapping else []
    brief += [f"{name} staged" for name, buffer in staged.items() if buffer]
    return Edges(tuple(edges["A"]), tuple(edges["B"]), tuple(edges["C"]), "; ".join(brief) or "none")
