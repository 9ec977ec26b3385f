"""What is decoded from a configuration's register writes, in terms that other models of the array have too."""

from collections.abc import Iterable

from bdforge.lower.physical import physical_text
from bdforge.lower.state import ArrayState
from bdforge.mlir import DeviceOp, parse
from bdforge.routing.nets import Port
from bdforge.routing.physical import Switches
from bdforge.txn import Operation

Ways = dict[tuple[Port, int | None], set[Port]]
"""The master ports behind which the words of a slave port, or its packets of one id, leave the switches."""


def device_of(text: str, file: str = "d.mlir") -> DeviceOp:
    """The first device of a text."""
    return next(op for op in parse(text, file).walk() if isinstance(op, DeviceOp))


def ways_of(device: DeviceOp) -> Ways:
    """What the switches of a device in physical form lead where."""
    return {(stream.source, stream.packet_id): set(stream.ends) for stream in Switches(device).streams() if stream.ends}


def decoded_ways(operations: Iterable[Operation]) -> Ways:
    """The same of register writes."""
    return ways_of(device_of(physical_text(ArrayState(operations))))
