"""A planned sequence as the templates place it."""

from collections.abc import Iterator

from bdforge.design.model import Buffer
from bdforge.design.sequence import Event, Sequence, Task, TaskBd, TokenWait
from bdforge.operators.gemm.plan import RTP_K_STEPS, RTP_OUTPUT_TILES, Plan
from bdforge.operators.gemm.schedule import AwaitC, Release, Start
from bdforge.operators.gemm.sequence import GemmSequence, sequence, shim_channels
from bdforge.operators.gemm.spec import Problem
from bdforge.operators.gemm.types import TYPES
from bdforge.operators.gemm.walk import Step, Transfer


def plan_sequence(plan: Plan, problem: Problem) -> Sequence:
    """The sequence that computes `problem` on arrays without gaps; SpecError and WalkError as `sequence`."""
    return mlir_sequence(sequence(plan, problem.M, problem.K, problem.N))


def mlir_sequence(planned: GemmSequence) -> Sequence:
    """The MLIR of a planned sequence; lowered, it is the same stream of words."""
    problem, parameters = planned.problem, planned.parameters
    arguments = _arguments(planned)
    return Sequence(
        name=problem.sequence,
        comment=f"C ({problem.M} x {problem.N}) = A ({problem.M} x {problem.K}) B ({problem.K} x {problem.N}), "
        f"edges: {planned.edges()}",
        arguments=arguments,
        parameters=((RTP_K_STEPS, parameters.k_steps), (RTP_OUTPUT_TILES, parameters.output_tiles)),
        events=tuple(_events(planned, {argument.name: argument for argument in arguments})),
    )


def _arguments(planned: GemmSequence) -> tuple[Buffer, ...]:
    spec, layouts = planned.plan.spec, planned.plan.spec.layouts
    packed = layouts.b == "packed"
    b_role = "packed tile by tile, n-tile by n-tile" if packed else f"{layouts.b}-major"
    panels, tiles = planned.fed_bytes
    fed = (Buffer("R", panels, "i8", "for row panels"), Buffer("S", tiles, "i8", "for n-tiles"))
    return (
        Buffer("A", planned.a_elements, TYPES[spec.a].memory, f"{layouts.a}-major"),
        Buffer("B", planned.b_elements, "i8" if packed else TYPES[spec.b].memory, b_role),
        Buffer("C", planned.c_elements, TYPES[spec.c].memory, f"{layouts.c}-major"),
        *(fed if spec.epilogue.fed else ()),
    )


def _events(planned: GemmSequence, arguments: dict[str, Buffer]) -> Iterator[Event]:
    channels = shim_channels(planned.plan)
    for event in planned.events:
        match event:
            case Start(step, transfers, bd_ids):
                yield Event(
                    f"step {step.index}: {_range('row panel', step.panel, step.panels)}, "
                    f"{_range('column step', step.first, step.count)}",
                    tuple(
                        _task(channels[t.operand, t.column].name, _name(step, t), t, ids, arguments)
                        for t, ids in zip(transfers, bd_ids, strict=True)
                    ),
                )
            case Release():
                cores = tuple((core.rtp, core.locks["go"]) for core in planned.plan.cores)
                yield Event("cores may begin: their data are on the way", cores=cores)
            case AwaitC(step):
                yield Event(
                    f"step {step.index} is complete when its C tokens are here; its BDs are free again",
                    waits=tuple(TokenWait(w.direction, w.channel, w.column, w.columns) for w in planned.waits()),
                    free=tuple(_name(step, t) for t in step.transfers),
                )


def _range(what: str, first: int, count: int) -> str:
    return f"{what} {first}" if count == 1 else f"{what}s {first} to {first + count - 1}"


def _task(allocation: str, name: str, transfer: Transfer, ids: tuple[int, ...], buffers: dict[str, Buffer]) -> Task:
    bds = tuple(
        TaskBd(buffers[transfer.source(i)], pattern, bd_id, f"{name}_bd{i}" if i else "")
        for i, (pattern, bd_id) in enumerate(zip(transfer.bds, ids, strict=True))
    )
    return Task(name, allocation, bds, transfer.runs - 1, transfer.token)


def _name(step: Step, transfer: Transfer) -> str:
    return f"{transfer.operand.lower()}{transfer.column}_step{step.index}"
