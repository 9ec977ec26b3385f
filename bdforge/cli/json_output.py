"""What commands print with `--json`, for other programs: docs/json.md has the fields, and how to get JSON Schema."""

from collections.abc import Iterable, Mapping

from pydantic import Field

from bdforge.array.emulator.verification import Verification
from bdforge.cli.json_object import JsonObject
from bdforge.design.sequences import PlannedSequence
from bdforge.devices.timing import Timing
from bdforge.operators import ComposedPlan, Problem
from bdforge.perf.bounds.composition_time import step_times
from bdforge.perf.bounds.estimate import Estimate
from bdforge.perf.bounds.operator_bound import CostEstimate
from bdforge.runtime.npu import Finding


class VerifiedDesign(JsonObject):
    """`bdforge verify`: what the checks find; the exit code is 2 where there are faults."""

    design: str = Field(description="the file as it was named")
    faults: list[str] = Field(description="what is wrong, a sentence each, behind file:line:column where a text has it")
    warnings: list[str] = Field(description="what may be wrong")
    summary: str = Field(description='what was checked, in one line; "" of what cannot be read')

    @classmethod
    def of(cls, design: str, found: Verification) -> "VerifiedDesign":
        """Of a design that was checked."""
        return cls(design=design, faults=[*found.faults], warnings=[*found.warnings], summary=found.summary)


class FoundPart(JsonObject):
    """One thing that the real chain needs."""

    name: str = Field(description="what it is")
    present: bool = Field(description="whether it is here")
    fails: bool = Field(description="whether what it is for cannot work")
    purposes: list[str] = Field(description="what it is for, as `--for` names it")
    detail: str = Field(description="what was seen")
    fault: str = Field(description="what is wrong with it")
    remedy: str = Field(description="how to get or mend it")


class Examination(JsonObject):
    """`bdforge doctor`: what is here, and what is missing; the exit code is 1 where what `--for` names needs more."""

    parts: list[FoundPart] = Field(description="all that was looked for")

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> "Examination":
        """Of what was found."""
        return cls(
            parts=[
                FoundPart(
                    name=one.name, present=one.present, fails=one.fails, purposes=[*one.purposes], detail=one.detail,
                    fault=one.fault, remedy=one.remedy,
                )
                for one in findings
            ]
        )  # fmt: skip


class ModelledProblem(JsonObject):
    """A problem of a design of one operator."""

    sizes: dict[str, int] = Field(description="by name, as `--shape` has them")
    time_us: float = Field(description="of a run, its dispatch included")
    range_us: tuple[float, float] = Field(description="as the text output tells it")
    bound: str = Field(description="what binds")
    parallel_us: dict[str, float] = Field(description="what each resource needs on its own; they overlap")
    serial_us: dict[str, float] = Field(description="what is added")

    @classmethod
    def of(cls, sizes: Mapping[str, int], found: Estimate | CostEstimate) -> "ModelledProblem":
        """Of an estimate of one problem."""
        low, high = (float(one) for one in found.time_range_us)
        parallel, serial = ({name: float(us) for name, us in part.items()} for part in (found.parallel, found.serial))
        return cls(
            sizes=dict(sizes), time_us=float(found.time_us), range_us=(low, high), bound=found.bound,
            parallel_us=parallel, serial_us=serial,
        )  # fmt: skip


class ModelledStep(JsonObject):
    """A step of a composition, or what ends its run."""

    name: str = Field(description="as the composition names it")
    design: str = Field(description='its design; "" where a run ends')
    problem: str = Field(description="its sizes, as tables show them")
    time_us: float = Field(description="without a dispatch")
    bound: str = Field(description="what binds")
    change_us: float = Field(description="of the array's configuration, before it")


class ModelledComposition(JsonObject):
    """A problem of a composition, in one command."""

    sizes: dict[str, int] = Field(description="by name, as `--shape` has them")
    steps: list[ModelledStep] = Field(description="in order")
    dispatch_us: float = Field(description="of a command alone")
    further_us: float = Field(description="of a further command of a list, instead")

    @classmethod
    def of(
        cls, plan: ComposedPlan, problem: Problem, sequence: PlannedSequence, timing: Timing
    ) -> "ModelledComposition":
        """Of a problem and its sequence."""
        steps = [
            ModelledStep(
                name=one.name, design=one.design, problem=str(one.problem), time_us=one.us, bound=one.bound,
                change_us=one.change_us,
            )
            for one in step_times(plan, problem, sequence, timing)
        ]  # fmt: skip
        first, further = timing.dispatch_ns / 1e3, timing.runlist_dispatch_ns / 1e3
        return cls(sizes=dict(problem.sizes), steps=steps, dispatch_us=first, further_us=further)


class ModelledLoad(JsonObject):
    """What bringing a design's whole configuration to the array takes, in three ways; low confidence."""

    cdo_bytes: int = Field(description="of its register writes, as a PDI has them")
    packet_bytes: int = Field(description="of the same as control packets")
    pdi_us: float = Field(description="as a PDI, on a fresh context; at most, of more than 93 KB")
    writes_us: float = Field(description="by register writes of an instruction stream")
    packets_us: float = Field(description="by control packets through one stream")


class ModelledDesign(JsonObject):
    """`bdforge estimate` of a design: all times are modelled."""

    design: str = Field(description="its name")
    device: str = Field(description="the product")
    problems: list[ModelledProblem | ModelledComposition] = Field(description="those given, or the design's own")
    load: ModelledLoad | None = Field(None, description="of a built design with machine code in all cores")


OUTPUTS: tuple[type[JsonObject], ...] = (
    VerifiedDesign, Examination, FoundPart, ModelledDesign, ModelledProblem, ModelledComposition, ModelledStep,
    ModelledLoad,
)  # fmt: skip
"""Objects in the order of docs/json.md."""
