"""What is decoded from a configuration's register writes, in terms that other models of the array have too."""

from collections.abc import Iterable

from bdforge.array.lower.array_state import ArrayState
from bdforge.array.lower.switch_state import smallest_device, written_switches
from bdforge.array.mlir import parse
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.routing.nets import SwitchPort
from bdforge.array.routing.physical import Switches, switches_of
from bdforge.devices.txn_format.operations import Operation

Ways = dict[tuple[SwitchPort, int | None], set[SwitchPort]]
"""The master ports behind which the words of a slave port, or its packets of one id, leave the switches."""


def device_of(text: str, file: str = "d.mlir") -> DeviceOp:
    """The first device of a text."""
    return next(op for op in parse(text, file).walk() if isinstance(op, DeviceOp))


def ways_of(switches: Switches) -> Ways:
    """What switches lead where."""
    return {(stream.source, stream.packet_id): set(stream.ends) for stream in switches.streams() if stream.ends}


def ways_of_text(device: DeviceOp) -> Ways:
    """The same of a device in physical form."""
    return ways_of(switches_of(device))


def decoded_ways(operations: Iterable[Operation]) -> Ways:
    """The same of register writes."""
    state = ArrayState(operations)
    return ways_of(written_switches(state, smallest_device(state)))
