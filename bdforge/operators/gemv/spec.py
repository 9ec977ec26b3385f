"""GEMV specs: TOML in `designs/`, checked at the edge, a plain dataclass inside."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from bdforge.devices import DEVICES, Device, Generation
from bdforge.operators.gemm.kernels import KERNELS, Kernel
from bdforge.operators.specs import (
    STACK_BYTES,
    ArraySection,
    Problem,
    Section,
    SequenceSection,
    Size,
    Spec,
    validated,
)
from bdforge.sequences import DEFAULT_OPTIONS, SequenceOptions

KIND = "gemv"
ACCUMULATORS = {"int2": "int32", "bf16": "f32"}
"""In which cores sum, by W's type."""


@dataclass(frozen=True, slots=True)
class GemvSpec(Spec):
    """A GEMV design: C (M x N) = A (M x K) W (K x N), M up to `m`. Cores take tiles of W of k x n at a time.

    No `columns`: all of the product's; no `channels`: as many of each shim's as it takes to read W as fast as DRAM.
    """

    kind: ClassVar[str] = KIND
    name: str
    a: str
    w: str
    c: str
    m: int
    k: int
    n: int
    rows: int
    columns: int | None
    channels: int | None
    array: str | None
    stack_bytes: int
    problems: tuple[Problem, ...]
    sequence: SequenceOptions = DEFAULT_OPTIONS

    @property
    def facts(self) -> dict[str, Any]:
        """Everything that decides the array configuration, as a TOML file would hold it."""
        array = {"device": self.array, "rows": self.rows, "columns": self.columns, "channels": self.channels}
        return {
            "types": {"a": self.a, "w": self.w, "c": self.c},
            "tile": {"m": self.m, "k": self.k, "n": self.n},
            "array": {key: value for key, value in array.items() if value is not None},
            "stack_bytes": self.stack_bytes,
        }

    def kernel(self, generation: Generation) -> Kernel | None:
        """The kernel that multiplies on a generation, if there is one."""
        return KERNELS.get((generation.name, self.a, self.w, ACCUMULATORS[self.w]))


class _Types(Section):
    a: Literal["int8", "bf16"]
    w: Literal["int2", "bf16"]
    c: Literal["int32", "f32", "bf16"]


class _Tile(Section):
    m: Annotated[int, Field(ge=1, le=8, strict=True)] = 8
    k: Size
    n: Size


class _Array(ArraySection):
    channels: Literal[1, 2] | None = None


class _ProblemFile(Section):
    name: str = ""
    M: Size
    K: Size
    N: Size


class _File(Section):
    kind: Literal["gemv"]
    types: _Types
    tile: _Tile
    array: _Array = _Array()
    stack_bytes: Size = STACK_BYTES
    sequence: SequenceSection = SequenceSection()
    problems: list[_ProblemFile] = Field(default_factory=list)


def spec_from(content: dict[str, Any], name: str, where: str = "design") -> GemvSpec:
    """A spec from TOML content; SpecError lists every fault, `where` heads each."""
    file = validated(_File, content, where)
    return GemvSpec(
        name=name,
        **file.types.model_dump(),
        **file.tile.model_dump(),
        rows=file.array.rows,
        columns=file.array.columns,
        channels=file.array.channels,
        array=file.array.device,
        stack_bytes=file.stack_bytes,
        problems=tuple(Problem(KIND, {"M": p.M, "K": p.K, "N": p.N}, p.name) for p in file.problems),
        sequence=file.sequence.options(where),
    )


def fits(spec: GemvSpec, device: Device) -> bool:
    """Whether the spec names the array, or it has a kernel there and no more columns than there are."""
    known = any(spec.kernel(other.generation) for other in DEVICES.values())
    return (
        spec.array in (None, device.mlir)
        and (spec.columns or 0) <= device.columns
        and (spec.kernel(device.generation) is not None or not known)
    )
