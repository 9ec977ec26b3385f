"""Routes of flows through the stream switches, as aiecc must find them too.

`route` joins every aie.flow and aie.packet_flow of a device, or says which ports are over-subscribed and by whom. The
routes are ours: aiecc may choose others, but the capacities and legal connections are the array's.
"""

from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.routing.cuts import check_cuts
from bdforge.array.routing.fabric import fabric_of
from bdforge.array.routing.negotiate import Negotiation
from bdforge.array.routing.nets import Net, RoutingError, SwitchPort, nets_of
from bdforge.array.routing.packets import PacketRule
from bdforge.array.routing.physical import is_physical, read_routes
from bdforge.array.routing.result import Connection, LinkUse, Path, Routing, SwitchUse


def route(device: DeviceOp) -> Routing:
    """Routes for all flows of a device, the same in every run; those of its switches, where it sets them itself.

    RoutingError names tile, direction, streams wanted and available, and the flows; it is `definite` unless only the
    search gave up.
    """
    if is_physical(device):
        return read_routes(device)
    nets = nets_of(device)
    check_cuts(device.device, nets)
    negotiation = Negotiation(fabric_of(device.device), nets)
    setup = negotiation.run()
    return Routing(negotiation.fabric, {net: negotiation.trees[net] for net in nets}, setup.rules)


__all__ = [
    "Connection",
    "LinkUse",
    "Net",
    "PacketRule",
    "Path",
    "Routing",
    "RoutingError",
    "SwitchPort",
    "SwitchUse",
    "is_physical",
    "route",
]  # fmt: skip
