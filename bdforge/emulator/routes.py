"""Whether a device's flows fit the stream switches."""

from bdforge.emulator.errors import DesignError
from bdforge.emulator.strictness import Strictness
from bdforge.mlir.array_ops import DeviceOp
from bdforge.routing import RoutingError, is_physical, route
from bdforge.routing.nets import flow_cautions, nets_of

_ROUTABLE: set[int] = set()
"""Hashes of flows that were routed in this process: a design is run more often than it changes."""


def check_routes(device: DeviceOp, strictness: Strictness) -> None:
    """DesignError for flows that have no routes; a warning where only the search for them gave up."""
    try:
        for name, caution in flow_cautions(device):
            strictness.caution(name, caution)
        if is_physical(device):
            route(device)
            return
        key = hash((device.device, *((n.source, n.packet_id, n.priority, *n.sinks) for n in nets_of(device))))
        if key not in _ROUTABLE:
            route(device)
            _ROUTABLE.add(key)
    except RoutingError as error:
        if error.definite:
            strictness.fault("routing", DesignError(str(error)))
        else:
            strictness.warn(f"routing: {error}")
