"""Whether completion tokens reach the controller.

A token is a packet of the channel's controller id from the control port of its tile; the controller reads it behind
South 0 of a shim, with its header. Without that way data moves and the wait for it never ends (hipscope, on silicon).
"""

from collections.abc import Iterator, Sequence

from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.routing import RoutingError, SwitchPort
from bdforge.array.routing.physical import Switches, switches_of
from bdforge.array.routing.write import routed
from bdforge.devices import PortBundle
from bdforge.devices.registers import CONTROLLER_ID_MASK, TILE_REGISTERS, address
from bdforge.devices.switches import SHIM_TOKEN_MASTER
from bdforge.devices.txn_format.operations import DIRECTIONS, LoadPdi, MaskWrite, Operation, Sync, Write


def token_problem(switches: Switches, column: int, row: int, controller_id: int) -> str | None:
    """Why the tokens of a tile do not reach the controller; None where they do."""
    leaves = switches.follow(SwitchPort(column, row, PortBundle.TILE_CONTROL, 0), controller_id)
    arrived = [leaf for leaf in leaves if (leaf.master.row, leaf.master.bundle) == (0, PortBundle.SOUTH)]
    arrived = [leaf for leaf in arrived if leaf.master.channel == SHIM_TOKEN_MASTER]
    if any(leaf.keeps_header for leaf in arrived):
        return None
    return (
        f"packets {controller_id} must go from TileControl : 0 of tile ({column}, {row}) to South : "
        f"{SHIM_TOKEN_MASTER} of a shim, and keep their header (aie.masterset ... {{keep_pkt_header = true}}), but "
        f"{'the header is dropped there' if arrived else 'the switches do not lead them there'}"
    )


def lost_token(direction: str, channel: int, column: int, row: int, problem: str) -> str:
    return (
        f"the token of {direction} {channel} of tile ({column}, {row}) never reaches the controller, so this wait does "
        f"not end: {problem}. The id is the controller id of the channel's control register"
    )


def lost_tokens(device: DeviceOp, operations: Sequence[Operation]) -> Iterator[str]:
    """What is wrong with each wait of a lowered sequence, up to where it loads another device."""
    try:
        switches = switches_of(routed(device))
    except RoutingError:  # which is a fault of its own
        return
    ids: dict[int, int] = {}
    for operation in operations:
        match operation:
            case LoadPdi():
                return
            case MaskWrite(at, value, mask) if mask & CONTROLLER_ID_MASK:
                ids[at] = value
            case Write(at, value):
                ids[at] = value
            case Sync():
                yield from _awaited(device, operation, switches, ids)


def _awaited(device: DeviceOp, sync: Sync, switches: Switches, ids: dict[int, int]) -> Iterator[str]:
    direction = DIRECTIONS[sync.direction]
    for column in range(sync.column, sync.column + sync.columns):
        for row in range(sync.row, sync.row + sync.rows):
            registers = TILE_REGISTERS[device.device.kind(column, row)]
            at = address(column, row, registers.control_offset(direction, sync.channel))
            controller_id = registers.control.decode([ids.get(at, 0)])["controller_id"]
            if (problem := token_problem(switches, column, row, controller_id)) is not None:
                where = "" if sync.location is None else f"{sync.location}: "
                yield where + lost_token(direction, sync.channel, column, row, problem)
