"""The neutral design: what stands in an array, whatever it computes, and how it becomes checked MLIR text.

A design of your own is a `Design` of tiles with buffers, locks, DMA channels and core programs, of flows and of
sequences; `placed` gives what has no address or BD number one, `check` tells why an array cannot hold it, and `render`
writes it. `examples/stencil` is a whole one.
"""

from bdforge.design.core_code import Advance, Call, Core, Load, Loop, Rotating, Rotation, Store, SwitchOn
from bdforge.design.design_check import check
from bdforge.design.model import Allocation, Cascade, Channel, Design, Flow, Port, Tile
from bdforge.design.parameters import Parameters, RtpAddresses, rtp_addresses
from bdforge.design.placement import placed
from bdforge.design.reasons import DesignError, Reason
from bdforge.design.render import render
from bdforge.design.sequence import Event, LockWrite, RtpWrite, Sequence, Task, TaskBd, TokenWait
from bdforge.design.tile_memory import (
    Acquire,
    Bd,
    Buffer,
    Lock,
    Locks,
    Packet,
    Release,
    Slots,
    in_turn,
    ping_pong,
    ring,
    whole,
)

__all__ = [
    "Acquire", "Advance", "Allocation", "Bd", "Buffer", "Call", "Cascade", "Channel", "Core", "Design", "DesignError",
    "Event", "Flow", "Load", "Lock", "LockWrite", "Locks", "Loop", "Packet", "Parameters", "Port", "Reason", "Release",
    "Rotating", "Rotation", "RtpAddresses", "RtpWrite", "Sequence", "Slots", "Store", "SwitchOn", "Task", "TaskBd",
    "Tile", "TokenWait", "check", "in_turn", "ping_pong", "placed", "render", "ring", "rtp_addresses", "whole",
]  # fmt: skip
