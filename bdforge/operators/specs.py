"""Specs of any operator: what they have in common, how the text of one is checked, and why one cannot be built.

A spec is TOML with `kind = "..."` at the top. An operator says the form of its file as a `SpecForm` of pydantic, and
its spec is a `FormSpec` of it; one whose spec is more than its file derives from `Spec` and calls `validated` itself.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from bdforge.common.messages import InputError, clip, form_fault, listed
from bdforge.design import Design, RtpAddresses, check, rtp_addresses
from bdforge.design.manifest import spec_hash
from bdforge.design.placement import from_end, moved
from bdforge.design.sequences import SequenceOptions
from bdforge.devices import DEVICES, Device

LARGEST_SIZE = 1 << 20
"""Of a tile, a buffer or a problem along one axis, in elements."""
Size = Annotated[int, Field(ge=1, le=LARGEST_SIZE, strict=True)]
Count = Annotated[int, Field(ge=0, le=LARGEST_SIZE, strict=True)]
Shift = Annotated[int, Field(ge=0, le=31, strict=True)]
STACK_BYTES = 4096
"""Of a core where a spec does not say. Peano's frames of kernels like ours were seen to take 960 to 1216 bytes, which
varies with its version (mlir-air 1980); upstream's matmul asks for 3328."""

Rounding = Literal[
    "floor", "ceil", "symmetric_floor", "symmetric_ceil", "negative_inf", "positive_inf", "symmetric_zero",
    "symmetric_inf", "conv_even", "conv_odd",
]  # fmt: skip
"""Rounding modes of shifts, as the AIE API names them."""

File = TypeVar("File", bound=BaseModel)
FormT = TypeVar("FormT", bound="SpecForm[Any]")
ProblemT = TypeVar("ProblemT", bound="ProblemForm")


class SpecError(InputError):
    """A design spec that cannot be read or cannot be built; the message lists every reason."""


STRICT = ConfigDict(extra="forbid")


class Section(BaseModel):
    """A table of a spec's file; keys that it does not know are faults.

    A table that a spec keeps as it is is a dataclass of pydantic's instead, with `config=STRICT`.
    """

    model_config = STRICT


class ArraySection(Section):
    """The array that a design is made for, any without; and how much of it. No columns: as the operator has it."""

    device: Literal["npu1", "npu2"] | None = None
    rows: Annotated[int, Field(ge=1, le=4, strict=True)] = 4
    columns: Annotated[int, Field(ge=1, le=8, strict=True)] | None = None


class PlacedArray(ArraySection):
    """Where in an array a design lies, so that others lie beside it, and a composition writes what it needs while they
    run.

    Its first column, and the rows of cores below its own; `from_end` takes the last locks, BDs and lines of program
    memory of its tiles.
    """

    first_column: Annotated[int, Field(ge=0, le=7, strict=True)] = 0
    first_row: Annotated[int, Field(ge=0, le=3, strict=True)] = 0
    from_end: bool = False

    def part(self, columns: int, device: Device) -> str:
        """The part of an array, as MLIR names it, that holds so many columns of a design."""
        return device.part(self.first_column + columns)

    def arranged(self, design: Design) -> Design:
        """A placed design as it stands, or where this says, by `bdforge.design.placement`."""
        made = moved(design, self.first_column, self.first_row) if self.first_column or self.first_row else design
        return from_end(made) if self.from_end else made

    def cores(self, design: Design) -> tuple[RtpAddresses, ...]:
        """`rtp_addresses` of an arranged design, with columns as it counts its own."""
        return tuple(one._replace(column=one.column - self.first_column) for one in rtp_addresses(design))

    def reasons(self, rows: int, columns: int, device: Device) -> Iterator[str]:
        """As `array_reasons`, for `rows` x `columns` cores here."""
        yield from array_reasons(self.device, rows, columns, device)
        for name, first, count, most in (
            ("column", self.first_column, columns, device.columns), ("row", self.first_row, rows, device.core_rows),
        ):  # fmt: skip
            if count <= most < first + count:
                yield (
                    f"array.first_{name} = {first} leaves {most - first} of {device.name}'s {most} {name}s, not the "
                    f"{count} of this design; take a smaller first_{name}, or fewer {name}s"
                )


class SequenceSection(Section):
    """How runtime sequences wait, see `SequenceOptions`."""

    wait: str = "column"
    in_flight: Annotated[int, Field(strict=True)] = 0

    def options(self, where: str) -> SequenceOptions:
        """The options; SpecError for those that there are not."""
        try:
            return SequenceOptions(self.wait, self.in_flight)
        except InputError as error:
            raise SpecError(f"{where}: {error}") from None


class ProblemForm(Section):
    """A problem that is built in; an operator's form adds the sizes."""

    name: str = ""


class MatrixProblem(ProblemForm):
    """A product of matrices, C (M x N) of depth K."""

    M: Size
    K: Size
    N: Size


class SpecForm(Section, Generic[ProblemT]):
    """An operator's file: what decides the array configuration, and what does not (`sequence`, `problems`)."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    sequence: SequenceSection = SequenceSection()
    problems: tuple[ProblemT, ...] = ()


def _whole(value: Any) -> Any:
    if value is not None and type(value) is not int:
        raise ValueError("input should be a whole number")
    return value


WHOLE = BeforeValidator(_whole)
"""Of choices among numbers, which pydantic compares as Python does: to it 1.0 and true are 1."""


def validated(form: type[File], content: Mapping[str, Any], where: str) -> File:
    """TOML content in the form of an operator's file; SpecError lists every fault, `where` heads each.

    As JSON, whose arrays are tuples of a form, so that all else is of its own type: no "1" is a number, no 1 is true.
    """
    try:
        return form.model_validate_json(json.dumps(content, default=str), strict=True)
    except ValidationError as error:
        faults = (f"{where}: {form_fault(e, '.'.join(map(clip, e['loc'])))}" for e in error.errors())
        raise SpecError(listed(faults, "\n")) from None


@dataclass(frozen=True, eq=False)
class Problem:
    """Sizes of one run, by parameter of the sequence program, in the order in which shapes are written (MxKxN).

    Leading dimensions are not in it. Two problems are equal when kind and sizes are, whatever their names.
    """

    kind: str
    sizes: Mapping[str, int]
    name: str = ""

    @property
    def sequence(self) -> str:
        """Name of its runtime sequence, such as gemm_256x2560x640."""
        return f"{self.kind}_{self}"

    def __str__(self) -> str:
        return "x".join(map(str, self.sizes.values()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[str, tuple[tuple[str, int], ...]]:
        return self.kind, tuple(self.sizes.items())


class Spec(ABC):
    """A design spec. `name` is its file's; `problems` are built in; `sequence` says how its sequences wait."""

    __slots__ = ()
    kind: ClassVar[str]
    if TYPE_CHECKING:  # fields of a frozen dataclass, which an abstract property would be the default of

        @property
        def name(self) -> str: ...
        @property
        def problems(self) -> tuple[Any, ...]: ...  # `Problem`s
        @property
        def sequence(self) -> SequenceOptions: ...

    @property
    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Everything that decides the array configuration, as its TOML file would hold it."""

    @property
    def content(self) -> dict[str, Any]:
        """The spec as its TOML file would hold it; the operator's `load` reads it back."""
        problems = [{"name": problem.name, **problem.sizes} for problem in self.problems]
        return {"kind": self.kind, **self.facts, "sequence": asdict(self.sequence), "problems": problems}

    @property
    def hash(self) -> str:
        """Identity of everything that decides the array configuration (not problems and sequences)."""
        return spec_hash(self.content)


@dataclass(frozen=True, slots=True)
class FormSpec(Spec, Generic[FormT]):
    """A spec that is what its file says, `form`. Its class names the FORM."""

    FORM: ClassVar[type[SpecForm[Any]]]
    name: str
    form: FormT
    problems: tuple[Problem, ...]
    sequence: SequenceOptions

    @property
    def facts(self) -> dict[str, Any]:
        """Everything that decides the array configuration, as its TOML file would hold it."""
        return self.form.model_dump(exclude={"kind", "sequence", "problems"}, exclude_none=True)

    @classmethod
    def load(cls, content: dict[str, Any], name: str, where: str = "design") -> Self:
        """A spec from TOML content; SpecError lists every fault, `where` heads each."""
        form = cast(FormT, validated(cls.FORM, content, where))
        problems = (Problem(cls.kind, p.model_dump(exclude={"name"}), p.name) for p in form.problems)
        return cls(name, form, tuple(problems), form.sequence.options(where))


def sizes_tried(step: int, least: int, most: int) -> list[int]:
    """Multiples of a step within both ends that are worth trying: powers of two, three and five times those."""
    tried = {step * odd << doubled for odd in (1, 3, 5) for doubled in range(LARGEST_SIZE.bit_length())}
    return sorted(size for size in tried if least <= size <= most)


def refuse(spec: Spec, reasons: Iterable[str]) -> None:
    """Raise SpecError with all reasons, if there are any."""
    if told := [f"{spec.name}: {reason}" for reason in reasons]:
        raise SpecError("\n".join(told))


def for_array(spec: Any, device: Device) -> bool:
    """Whether the `array` of a spec's form is a product's, with no more columns than that has."""
    array: ArraySection = spec.form.array
    return array.device in (None, device.mlir) and (array.columns or 0) <= device.columns


def array_reasons(array: str | None, rows: int, columns: int, device: Device) -> Iterator[str]:
    """Why a product has not `rows` x `columns` cores, or is not the `array` that a spec is made for."""
    if array not in (None, device.mlir):
        others = ", ".join(other.name for other in DEVICES.values() if other.mlir == array)
        yield f"array.device = {array}, but {device.name} is an {device.mlir}; build for {others}"
    if columns > device.columns:
        yield f"array.columns = {columns}, but {device.name} has {device.columns}; use fewer"
    if rows > device.core_rows:
        yield f"array.rows = {rows}, but {device.name} has {device.core_rows} rows of cores"


def stack_reasons(setting: str, stack_bytes: int, device: Device) -> Iterator[str]:
    """Why a stack of that size, as `setting` of a spec says it, cannot lie below buffers."""
    align = device.generation.vector_align_bytes
    if stack_bytes % align:
        yield f"{setting} = {stack_bytes} is not a multiple of {align}; the buffers behind it would misalign"


def design_reasons(design: Design, settings: Mapping[str, str]) -> list[str]:
    """Why no array holds a mapped design: whole vectors, memory, BDs, locks and what the registers hold.

    `settings` name what of a spec helps, by the rule that is broken.
    """
    align = design.array.generation.vector_align_bytes
    cores = [tile for tile in design.tiles if tile.core]
    odd = dict.fromkeys((b.role, b.bytes) for tile in cores for b in tile.buffers if b.bytes % align)
    reasons = [f"core: {role}: {size} bytes are not a multiple of {align}; use a larger tile" for role, size in odd]
    found = [(reason, settings.get(reason.rule)) for reason in check(design)]
    return reasons + [f"{reason}: {help_}" if help_ else str(reason) for reason, help_ in found]
