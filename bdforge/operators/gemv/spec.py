"""GEMV specs: TOML in `designs/`, checked at the edge."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from bdforge.devices import DEVICES, Device, Generation
from bdforge.operators.gemm.kernels import KERNELS, Kernel
from bdforge.operators.gemv.weights import SUMS
from bdforge.operators.specs import (
    STACK_BYTES,
    WHOLE,
    FormSpec,
    MatrixProblem,
    PlacedArray,
    Section,
    Size,
    SpecForm,
    for_array,
)

KIND = "gemv"


class Types(Section):
    """Types of C = A W."""

    a: Literal["int8", "bf16"]
    w: Literal["int8", "int2", "bf16"]
    c: Literal["int32", "f32", "bf16"]


class GemvTile(Section):
    """Rows of A and C, up to `m`; cores take tiles of W of k x n at a time."""

    m: Annotated[int, Field(ge=1, le=8, strict=True)] = 8
    k: Size
    n: Size


class GemvBuffers(Section):
    """Tiles of W that a core holds, those that came before A did beside the one that it multiplies, and that its
    memtile holds for it."""

    w: Annotated[int, Field(ge=2, le=12, strict=True)] = 2
    w_memtile: Annotated[int, Field(ge=2, le=20, strict=True)] = 2


class GemvArray(PlacedArray):
    """No `columns`: all of the product's; no `channels`: as many of each shim's as read W as fast as DRAM."""

    channels: Annotated[Literal[1, 2] | None, WHOLE] = None


class GemvForm(SpecForm[MatrixProblem]):
    """A GEMV design: C (M x N) = A (M x K) W (K x N)."""

    kind: Literal["gemv"]
    types: Types
    tile: GemvTile
    buffers: GemvBuffers = GemvBuffers()
    array: GemvArray = GemvArray()
    stack_bytes: Size = STACK_BYTES


class GemvSpec(FormSpec[GemvForm]):
    """A GEMV design's spec."""

    kind: ClassVar[str] = KIND
    FORM = GemvForm

    @property
    def accumulator(self) -> str:
        """The type in which cores sum."""
        return SUMS[self.form.types.w]

    def kernel(self, generation: Generation) -> Kernel | None:
        """The kernel that multiplies on a generation, if there is one."""
        return KERNELS.get((generation.name, self.form.types.a, self.form.types.w, self.accumulator))


def fits(spec: GemvSpec, device: Device) -> bool:
    """Whether the spec names the array, or it has a kernel there and no more columns than there are."""
    known = any(spec.kernel(other.generation) for other in DEVICES.values())
    return for_array(spec, device) and (spec.kernel(device.generation) is not None or not known)
