"""Runtime sequences: what the host's controller does for one problem."""

from collections.abc import Iterator
from dataclasses import dataclass

from bd_patterns import AwaitC, Pattern, Start, Step, Tiling, Transfer, runtime_parameters, schedule, walk
from bd_patterns import Problem as WalkProblem
from bdforge.devices import TileKind
from bdforge.plan.gemm import RTP_K_STEPS, RTP_OUTPUT_TILES, Plan
from bdforge.plan.model import Buffer, Lock
from bdforge.plan.padding import Padding, padding
from bdforge.plan.spec import Problem


@dataclass(frozen=True, slots=True)
class Task:
    """One shim task: a BD on a named channel. `repeat_count` is the number of runs minus 1, as in MLIR."""

    name: str
    allocation: str
    buffer: Buffer
    pattern: Pattern
    bd_id: int
    repeat_count: int
    token: bool

    @property
    def linear(self) -> bool:
        """Whether the BD needs no dimensions."""
        return self.pattern.is_linear


@dataclass(frozen=True, slots=True)
class Event:
    """A stretch of the sequence: configure and start tasks, or wait and free."""

    comment: str
    configure: tuple[Task, ...] = ()
    start: tuple[str, ...] = ()
    wait: tuple[str, ...] = ()
    free: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sequence:
    """A runtime sequence: arguments A, B, C; run-time parameters of every core; events in order."""

    name: str
    comment: str
    arguments: tuple[Buffer, Buffer, Buffer]
    cores: tuple[tuple[Buffer, Lock], ...]
    parameters: tuple[tuple[int, int], ...]
    events: tuple[Event, ...]


def plan_sequence(plan: Plan, problem: Problem) -> Sequence:
    """The sequence that computes `problem`, padded as `padding` says; WalkError when the shims cannot walk it."""
    padded = padding(plan, problem)
    tiling, sizes = _tiling(plan), WalkProblem(padded.M, padded.K, padded.N, lda=padded.K, ldc=padded.N)
    arguments = _arguments(plan, padded)
    steps = walk(tiling, sizes, plan.device.generation.limits(TileKind.SHIM))
    k_steps, output_tiles = runtime_parameters(tiling, sizes)
    return Sequence(
        name=problem.sequence,
        comment=f"C ({problem.M} x {problem.N}) = A ({problem.M} x {problem.K}) B ({problem.K} x {problem.N}), "
        f"padding: {padded}",
        arguments=arguments,
        cores=tuple((core.rtp, core.locks["go"]) for core in plan.cores),
        parameters=((RTP_K_STEPS, k_steps), (RTP_OUTPUT_TILES, output_tiles)),
        events=tuple(_events(schedule(steps), dict(zip("ABC", arguments, strict=True)))),
    )


def _tiling(plan: Plan) -> Tiling:
    spec, kernel = plan.spec, plan.kernel
    tile = spec.tile
    return Tiling(tile.m, tile.k, tile.n, spec.k_mt, spec.rows, spec.columns, b_bits=kernel.b_bits)


def _arguments(plan: Plan, padded: Padding) -> tuple[Buffer, Buffer, Buffer]:
    kernel = plan.kernel
    b_elements = kernel.b_tile_elements(padded.K, padded.N)
    return (
        Buffer("A", padded.M * padded.K, kernel.memory_a, "row-major"),
        Buffer("B", b_elements, kernel.memory_b, "packed tile by tile, N-tile by N-tile"),
        Buffer("C", padded.M * padded.N, kernel.memory_c, "row-major"),
    )


def _events(moves: Iterator[Start | AwaitC], arguments: dict[str, Buffer]) -> Iterator[Event]:
    for move in moves:
        match move:
            case Start(step):
                tasks = tuple(_task(step, t, arguments[t.operand]) for t in step.transfers)
                # C first: a shim S2MM channel without a task accepts nothing.
                order = sorted(tasks, key=lambda t: not t.token)
                yield Event(_describe(step), configure=tasks, start=tuple(t.name for t in order))
            case AwaitC(step):
                yield Event(
                    f"step {step.index} is complete when its C tokens are here; its BDs are free again",
                    wait=tuple(_name(step, t) for t in step.of("C")),
                    free=tuple(_name(step, t) for t in step.transfers if t.operand != "C"),
                )


def _describe(step: Step) -> str:
    columns = f"column step {step.first}"
    if step.count > 1:
        columns = f"column steps {step.first} to {step.first + step.count - 1}"
    return f"step {step.index}: row panel {step.panel}, {columns}"


def _task(step: Step, transfer: Transfer, buffer: Buffer) -> Task:
    return Task(
        name=_name(step, transfer),
        allocation=f"{transfer.operand.lower()}_{transfer.column}",
        buffer=buffer,
        pattern=transfer.pattern,
        bd_id=transfer.bd_id,
        repeat_count=transfer.repeat - 1,
        token=transfer.token,
    )


def _name(step: Step, transfer: Transfer) -> str:
    return f"{transfer.operand.lower()}{transfer.column}_step{step.index}"
