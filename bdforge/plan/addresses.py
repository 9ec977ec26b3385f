"""Where the cores of a design keep what a host writes: run-time parameters and their locks."""

from dataclasses import dataclass

from bdforge.devices import TileKind
from bdforge.devices.registers import TILE_REGISTERS, address
from bdforge.mlir import parse
from bdforge.mlir.allocate import allocate
from bdforge.mlir.array_ops import DeviceOp
from bdforge.plan.gemm import Plan
from bdforge.plan.templates import render_template


@dataclass(frozen=True, slots=True)
class CoreAddresses:
    """Full addresses of one core: its parameters' first word, and the value of the lock that says they are there."""

    parameters: int
    go: int


_KNOWN: dict[tuple[str, str], tuple[CoreAddresses, ...]] = {}


def core_addresses(plan: Plan) -> tuple[CoreAddresses, ...]:
    """The addresses of every core, in the plan's order, as `bdforge.mlir.allocate` places its buffers and locks.

    Allocated once per design and kept.
    """
    key = plan.spec.hash, plan.device.name
    if key not in _KNOWN:
        _KNOWN[key] = _allocated(plan)
    return _KNOWN[key]


def _allocated(plan: Plan) -> tuple[CoreAddresses, ...]:
    module = parse(render_template("cores.mlir.j2", plan=plan), plan.spec.name)
    allocation = allocate(next(op for op in module.walk() if isinstance(op, DeviceOp)))
    buffers = {op.symbol: at for op, at in allocation.buffers.items()}
    locks = {op.symbol: lock for op, lock in allocation.locks.items()}
    registers = TILE_REGISTERS[TileKind.CORE]
    return tuple(
        CoreAddresses(
            address(core.tile.column, core.tile.row, buffers[core.rtp.name]),
            address(core.tile.column, core.tile.row, registers.lock_offset(locks[core.locks["go"].name])),
        )
        for core in plan.cores
    )
