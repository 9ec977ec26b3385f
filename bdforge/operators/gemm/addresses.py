"""Where a design keeps its buffers, and above all what a host writes: run-time parameters and their locks."""

from dataclasses import dataclass

from bdforge.operators.gemm.plan import Plan


@dataclass(frozen=True, slots=True)
class CoreAddresses:
    """Full addresses of one core: its parameters' first word, and the value of the lock that says they are there."""

    parameters: int
    go: int


def core_addresses(plan: Plan) -> tuple[CoreAddresses, ...]:
    """The addresses of every core, in the plan's order; the text fixes them."""
    return tuple(CoreAddresses(core.tile.address(core.rtp), core.tile.address(core.locks["go"])) for core in plan.cores)


def buffer_addresses(plan: Plan) -> dict[str, int]:
    """Byte address of every buffer in its tile's memory, by name."""
    return {b.name: b.address for tile in plan.array.tiles for b in tile.buffers if b.address is not None}
