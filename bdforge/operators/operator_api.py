"""What an operator is to all that stands above it: builds, hosts, the command line and models of time know no more."""

import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bdforge.common.messages import listed
from bdforge.design import Design, render
from bdforge.design.document import document
from bdforge.design.events import placed_sequence
from bdforge.design.sequences import PlannedSequence, Program, ProgramError, SequenceOptions, WalkError
from bdforge.design.sequences import planned as run_program
from bdforge.design.sequences.buffers import inputs_of, outputs_of
from bdforge.design.sequences.interpret import require
from bdforge.design.sequences.sequence_program import Operand
from bdforge.devices import Device, mlir_device_named
from bdforge.devices.types import TYPES
from bdforge.operators.specs import Problem, SpecError


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """What an output must be (in the user's shape), and how far it may be off: None where it must be exact."""

    values: np.ndarray
    bound: np.ndarray | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run moves and computes, for the model of time; bytes as the shims move them, edges included."""

    operations: int
    """MACs or element operations that the answer needs."""
    core_cycles: float
    """Of the busiest core, kernels as modelled; waits are not counted."""
    read_bytes: int
    """DRAM to array."""
    write_bytes: int
    """Array to DRAM."""
    channel_bytes: int
    """Of the busiest shim channel."""
    run_bytes: int
    """Shortest contiguous run in DRAM."""

    @classmethod
    def of(cls, sequence: PlannedSequence, operations: int, core_cycles: float) -> "Cost":
        """The cost of a sequence, whose BDs tell what it moves."""
        moved = sequence.traffic()
        return cls(operations, core_cycles, moved.read_bytes, moved.write_bytes, moved.channel_bytes, moved.run_bytes)


@dataclass(frozen=True, slots=True)
class Kernels:
    """The functions that cores call, and how their sources are compiled.

    `sources` ("kernels/aie2p/add_bf16.cc") are relative to the project, `defines` ("DIM_M=64") hold for all of them.
    `cycles` are a core's for a call by symbol, as modelled, of those that `bdforge.perf` does not model.
    """

    symbols: tuple[str, ...]
    sources: tuple[str, ...]
    defines: tuple[str, ...] = ()
    cycles: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def ours(cls, symbols: Iterable[str], defines: Iterable[str], cycles: Mapping[str, int] | None = None) -> "Kernels":
        """Functions of bdforge's kernels, each of the source of its name."""
        names = tuple(symbols)
        return cls(names, tuple(f"kernels/aie2p/{name}.cc" for name in names), tuple(defines), cycles or {})


class Plan(ABC):
    """A spec, planned for a product: all that is rendered, built, run and estimated.

    Operators derive a frozen dataclass from it. `design` is the array's configuration, without sequences.
    """

    __slots__ = ()
    if TYPE_CHECKING:  # fields of a frozen dataclass, which an abstract property would be the default of

        @property
        def spec(self) -> Any: ...  # a `Spec`
        @property
        def device(self) -> Device: ...
        @property
        def design(self) -> Design: ...

    @property
    @abstractmethod
    def program(self) -> Program:
        """The runtime sequence of any size, operands included."""

    @property
    @abstractmethod
    def kernels(self) -> Kernels:
        """What cores call."""

    @abstractmethod
    def reference(self, inputs: Mapping[str, np.ndarray]) -> dict[str, Expected]:
        """Outputs by operand name, by numpy. Inputs that may be missing may be left out."""

    @abstractmethod
    def cost(self, problem: Problem) -> Cost:
        """What a run of a problem costs."""

    @property
    def reference_file(self) -> Path | None:
        """The file whose function or arrays `reference` gives; builds copy it beside the manifest."""
        return None

    def control(self, sequence: PlannedSequence) -> dict[str, Callable[..., None]]:
        """By symbol, what stands for kernels that tell cores what to do next, where a sequence runs without data."""
        return {}

    def random(self, problem: Problem, seed: int) -> dict[str, np.ndarray]:
        """Inputs by operand name, in the types that a host takes: integers over their whole range, floats around 0."""
        rng, values = np.random.default_rng(seed), self.sequence(problem).values
        return {
            operand.name: _random(rng, operand, [values[axis.size] for axis in operand.axes])
            for operand in inputs_of(self.program)
        }

    def expected(
        self, inputs: Mapping[str, np.ndarray], made: Mapping[str, np.ndarray] | None = None
    ) -> dict[str, Expected]:
        """What `reference` says of a run; SpecError where it names what the array does not make.

        `made` are the arrays of the run: where several steps follow each other, each is judged by what it was given.
        """
        return self._named(self.reference(inputs))

    def _named(self, made: dict[str, Expected]) -> dict[str, Expected]:
        names = [operand.name for operand in outputs_of(self.program)]
        if others := [name for name in made if name not in names]:
            raise SpecError(f"{self.spec.name}: its reference gives {listed(others)}; there is {listed(names)}")
        return made

    @property
    def summary(self) -> str:
        """The design in a line."""
        return f"{self.spec.name} on {self.device.name}"

    def __repr__(self) -> str:
        return f"<Plan {self.summary}>"

    def note(self, sequence: PlannedSequence) -> str:
        """What a reader of the MLIR is told of a sequence."""
        sizes = ", ".join(f"{name} = {size}" for name, size in sequence.parameters.items())
        return f"{self.spec.name} for {sizes}"

    def padding(self, sequence: PlannedSequence) -> str:
        """What the array computes beyond a problem, and which operands a host copies; "none" where that is nothing."""
        staged = [operand.name for operand in sequence.program.operands if sequence.values[operand.staged]]
        return f"{', '.join(staged)} staged" if staged else "none"

    @property
    def mlir_device(self) -> str:
        """The array as MLIR names it."""
        return self.design.device

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Those that are built in."""
        return self.spec.problems

    @property
    def writes_sequences(self) -> bool:
        """Whether its text holds the sequences of problems, so that a compiler makes words of them, too."""
        return True

    @property
    def document(self) -> dict[str, Any]:
        """The tables of the document of the design, with the spec that it was made from."""
        return tomllib.loads(document(replace(self.whole, program=None, made_from=None))) | {
            "made_from": self.spec.content
        }

    @property
    def whole(self) -> Design:
        """The design with its sequence of any size, the kernels that it calls, and the spec that it was made from."""
        sources = tuple(source.removeprefix("kernels/") for source in self.kernels.sources)
        facts = {"kernels": sources, "macros": self.kernels.defines, "made_from": self.spec.content}
        return replace(self.design, program=self.program, **facts)

    def text(self, sequences: Mapping[str, PlannedSequence]) -> str:
        """MLIR of the array configuration with runtime sequences by name; DesignError as of `bdforge.design.render`.

        The templates write the dialect's form of March 2026; `bdforge.array.mlir.convert` has the other one.
        """
        return render(self.with_sequences(sequences))

    def with_sequences(self, sequences: Mapping[str, PlannedSequence]) -> Design:
        """The array configuration with runtime sequences by name."""
        placed = (
            placed_sequence(name, self.note(one), self.design, one.program, one.elements, one.events, one.wide)
            for name, one in sequences.items()
        )
        return replace(self.design, sequences=tuple(placed))

    @property
    def wide(self) -> bool:
        """Whether one wait is for the tokens of several columns."""
        return self.spec.sequence.wide

    def waiting(self, options: SequenceOptions) -> Self:
        """The same array, whose sequences wait as `options` say."""
        return replace(self, spec=replace(self.spec, sequence=options))  # type: ignore[type-var]

    def check(self, problem: Problem) -> None:
        """SpecError lists every reason why no sequence of the plan's can compute a problem, wherever operands lie."""
        try:
            require(self.program, dict.fromkeys(self.program.parameters, 0) | dict(problem.sizes))
        except ProgramError as error:
            raise self._refusal(problem, error) from None

    def sequence(self, problem: Problem, leading: Mapping[str, int] | None = None) -> PlannedSequence:
        """The runtime sequence of a problem, with `leading` dimensions by parameter where lines have gaps.

        SpecError lists every reason why the plan cannot compute it, WalkError why the shims cannot move it.
        """
        try:
            given = {**problem.sizes, **(leading or {})}
            return run_program(self.program, given, mlir_device_named(self.mlir_device), self.spec.sequence)
        except ProgramError as error:
            raise self._refusal(problem, error) from None
        except WalkError as error:
            raise WalkError(f"{self.spec.name}: {problem} {error}") from None

    def _refusal(self, problem: Problem, error: ProgramError) -> SpecError:
        return SpecError("\n".join(f"{self.spec.name}: {problem}: {reason}" for reason in str(error).splitlines()))


# quoted: numpy imports its generators when they are named first
def _random(rng: "np.random.Generator", operand: Operand, shape: list[int]) -> np.ndarray:
    type_ = TYPES[operand.type]
    if not type_.integer:
        return rng.normal(size=shape).astype(type_.dtype)
    low, high = operand.values or type_.values or (np.iinfo(type_.dtype).min, np.iinfo(type_.dtype).max)
    return rng.integers(low, high, shape, endpoint=True).astype(type_.dtype)


@dataclass(frozen=True, slots=True)
class Operator:
    """What a package of an operator tells the registry.

    `kind` stands at the top of a spec's TOML. `axes` are the parameters that shapes give, in order ("M", "K", "N");
    none where a design is for one problem. `load(content, name, where)` checks a spec's content, `plan(spec, device)`
    plans it; both raise SpecError with every reason. `fits(spec, device)`: whether a spec is meant for a product's
    array; to be for another one is no fault. `free(spec, device)`: places of numbers in a spec's content that a tuner
    may choose ("tile.k"), with the values worth trying; whether a choice can be built its plan says.
    """

    kind: str
    axes: tuple[str, ...]
    load: Callable[[dict[str, Any], str, str], Any]
    plan: Callable[[Any, Device], Plan]
    fits: Callable[[Any, Device], bool] = lambda spec, device: True
    free: Callable[[Any, Device], Mapping[str, Sequence[int]]] = lambda spec, device: {}

    def problem(self, sizes: Sequence[int], name: str = "") -> Problem:
        """A problem of these sizes; SpecError for another number of them."""
        if len(sizes) != len(self.axes):
            shape = "x".join(map(str, sizes))
            if not self.axes:
                raise SpecError(f"{shape}: {self.kind} takes no sizes, they stand in the design")
            raise SpecError(
                f"{shape} has {len(sizes)} sizes; {self.kind} takes {len(self.axes)}: {'x'.join(self.axes)}"
            )
        return Problem(self.kind, dict(zip(self.axes, sizes, strict=True)), name)
