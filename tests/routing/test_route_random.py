"""Random flows on small arrays: what is routed obeys every rule, and little is refused."""

from hypothesis import given, settings
from hypothesis import strategies as st
from route_checks import check_routes
from route_designs import circuit, flows_only, packets

from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.routing import Routing, RoutingError, route
from bdforge.devices import MLIR_DEVICES

DEVICES = ["npu2_1col", "npu1_2col", "npu2_3col", "npu1"]


@st.composite
def designs(draw, with_packets: bool):
    name = draw(st.sampled_from(DEVICES))
    ports = [
        (column, row, "DMA", channel)
        for column in range(MLIR_DEVICES[name].columns)
        for row in range(6)
        for channel in range(MLIR_DEVICES[name].limits(column, row).channels)
    ]
    sinks = draw(st.lists(st.sampled_from(ports), min_size=1, max_size=16, unique=True))
    sources = draw(st.lists(st.sampled_from(ports), min_size=len(sinks), max_size=len(sinks)))
    as_packets = {source: with_packets and draw(st.booleans()) for source in sources}
    flows = []
    for source, sink in zip(sources, sinks, strict=True):
        if not as_packets[source]:
            flows.append(circuit(source, sink))
            continue
        packet_id = draw(st.integers(0, 5))
        others = [s for s in sinks if s != sink and draw(st.integers(0, 9)) == 0]
        flows.append(packets(packet_id, source, sink, *dict.fromkeys(others)))
    return flows_only(name, *flows)


def attempt(device: DeviceOp) -> tuple[Routing | None, RoutingError | None]:
    try:
        return route(device), None
    except RoutingError as error:
        return None, error


@settings(deadline=None, derandomize=True, max_examples=20)
@given(designs(with_packets=False))
def test_circuits_never_share_and_always_arrive(device):
    routing, refused = attempt(device)
    assert refused is None or refused.definite, refused
    if routing:
        check_routes(device, routing)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(designs(with_packets=True))
def test_packets_arrive_where_their_ids_say(device):
    routing, refused = attempt(device)
    assert refused is None or refused.definite or "packet rules" in refused.message, refused
    if routing:
        check_routes(device, routing)
