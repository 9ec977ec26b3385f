"""What of a GEMM design its sequences depend on."""

from dataclasses import dataclass

from bdforge.design.model import Design
from bdforge.design.parameters import RtpAddresses, rtp_addresses
from bdforge.devices import Device, TileKind, TileLimits
from bdforge.devices.limits import TASK_REPEAT_MAX
from bdforge.devices.types import TYPES
from bdforge.operators.gemm.core_tiles import fixed_steps
from bdforge.operators.gemm.finish import fed_operands
from bdforge.operators.gemm.grid import Tiling
from bdforge.operators.gemm.kernels import Kernel
from bdforge.operators.gemm.operands import Packing
from bdforge.operators.gemm.resident import Pool, pool_of
from bdforge.operators.gemm.spec import GemmSpec
from bdforge.operators.specs import LARGEST_SIZE


@dataclass(frozen=True, slots=True)
class ShimChannel:
    """A shim's channel."""

    direction: str
    index: int


@dataclass(frozen=True, slots=True)
class SequenceBasis:
    """All of a design that its sequences depend on. `memory` are the MLIR types of A, B and C in host memory."""

    tiling: Tiling
    limits: TileLimits
    depth_limit: int
    largest_size: int
    channels: tuple[ShimChannel, ShimChannel, ShimChannel]
    cores: tuple[RtpAddresses, ...]
    memory: tuple[str, str, str]
    types: tuple[str, str, str]
    packing: Packing
    in_flight: int
    most: int = TASK_REPEAT_MAX
    """Panels or column steps of one step."""
    fixed_steps: int = 0
    """Steps of K that cores take without being told."""
    pool: Pool | None = None
    """Where panels of B stay."""


def sequence_basis(spec: GemmSpec, kernel: Kernel, tiling: Tiling, design: Design, device: Device) -> SequenceBasis:
    """All of it of a placed design."""
    channels = {a.name[0]: ShimChannel(a.direction, a.channel) for a in design.allocations}
    return SequenceBasis(
        tiling=tiling,
        limits=device.generation.limits(TileKind.SHIM),
        depth_limit=kernel.depth_limit,
        largest_size=LARGEST_SIZE,
        channels=(channels["a"], channels["b"], channels["c"]),
        cores=rtp_addresses(design),
        memory=(_memory_type(spec, tiling, "a"), _memory_type(spec, tiling, "b"), _memory_type(spec, tiling, "c")),
        types=(spec.a, spec.b, spec.c),
        packing=Packing(kernel.s, kernel.t, spec.tile.m, kernel.field_scaled, fed_operands(spec)),
        in_flight=spec.sequence.steps,
        fixed_steps=fixed_steps(spec),
        pool=pool_of(spec, design) if spec.buffers.residency == "b" else None,
    )


def _memory_type(spec: GemmSpec, tiling: Tiling, name: str) -> str:
    return "i8" if getattr(tiling, name).order == "packed" else TYPES[getattr(spec, name)].memory
