"""Packet rules, arbiters and msels of switches."""

import pytest
from route_checks import check_routes
from route_designs import circuit, flows_only, packets

from bdforge.devices.switches import MSELS_PER_ARBITER
from bdforge.routing import RoutingError, route

CONTROL = [(0, row, "TileControl", 0) for row in range(6)]


def test_one_source_reaches_the_control_ports_of_a_column():
    device = flows_only("npu2_1col", *(packets(i, (0, 0, "DMA", 0), sink) for i, sink in enumerate(CONTROL)))
    routing = route(device)
    check_routes(device, routing)
    assert all(link.used == 1 for link in routing.links)  # all six ids go up on one wire
    assert max(map(len, routing.rules.values())) <= 4


def test_ids_that_go_the_same_way_share_a_rule():
    device = flows_only("npu1_1col", *(packets(i, (0, 2, "DMA", 0), (0, 0, "DMA", 0)) for i in range(8)))
    routing = route(device)
    check_routes(device, routing)
    assert {(rule.id, rule.mask) for rules in routing.rules.values() for rule in rules} == {(0, 0b11000)}


def test_one_id_from_two_sources_to_one_place_joins():
    device = flows_only(
        "npu2_1col", packets(0, (0, 5, "DMA", 0), (0, 0, "DMA", 0)), packets(0, (0, 4, "DMA", 0), (0, 0, "DMA", 0))
    )
    routing = route(device)
    check_routes(device, routing)
    assert all(link.used == 1 for link in routing.links)


def test_one_id_from_two_sources_to_two_places_stays_apart():
    device = flows_only(
        "npu2_1col", packets(0, (0, 5, "DMA", 0), (0, 0, "DMA", 0)), packets(0, (0, 4, "DMA", 0), (0, 1, "DMA", 0))
    )
    routing = route(device)
    check_routes(device, routing)
    assert {(link.row, link.used) for link in routing.links} == {(5, 1), (4, 2), (3, 2), (2, 2), (1, 1)}


def test_overlapping_fan_outs_share_an_arbiter():
    source, ends = (0, 2, "DMA", 0), [(0, 2, "DMA", 0), (0, 2, "TileControl", 0), (0, 2, "Core", 0)]
    device = flows_only("npu2_1col", packets(1, source, ends[0], ends[1]), packets(2, source, ends[1], ends[2]),
                        packets(3, (0, 2, "DMA", 1), (0, 2, "DMA", 1)))  # fmt: skip
    routing = route(device)
    check_routes(device, routing)
    first, second, third = (rule for rules in routing.rules.values() for rule in rules)
    assert first.arbiter == second.arbiter != third.arbiter
    assert first.msel != second.msel


def test_too_many_ways_from_one_port_are_named():
    # Ids 1 and 2, 1 and 4, ... lie so that no mask joins any two of the five ways.
    ends = [(0, 2, "DMA", 0), (0, 2, "TileControl", 0), (0, 2, "Core", 0), (0, 2, "FIFO", 0), (0, 3, "DMA", 0)]
    flows = [packets(i, (0, 2, "DMA", 0), sink) for i, sink in zip((0, 1, 2, 4, 8), ends, strict=True)]
    with pytest.raises(RoutingError, match=r"\(0, 2\) DMA : 0 would need 5 packet rules and has 4") as caught:
        route(flows_only("npu2_1col", *flows))
    assert not caught.value.definite


def test_packets_avoid_wires_of_circuits():
    circuits = [circuit((0, 2 + i, "DMA", 0), (0, 1, "DMA", i)) for i in range(3)]
    device = flows_only("npu2_1col", packets(0, (0, 5, "DMA", 0), (0, 1, "DMA", 5)),
                        packets(1, (0, 4, "DMA", 1), (0, 1, "DMA", 5)), *circuits)  # fmt: skip
    routing = route(device)
    check_routes(device, routing)
    assert max(link.used for link in routing.links) == 4


CONTROL_PORT, CORE_PORT, FIFO_PORT = ((0, 2, bundle, 0) for bundle in ("TileControl", "Core", "FIFO"))
OVERLAPPING = [
    (CONTROL_PORT, CORE_PORT), (CORE_PORT, FIFO_PORT), (FIFO_PORT, CONTROL_PORT), (CONTROL_PORT,),
    (CONTROL_PORT, CORE_PORT, FIFO_PORT),
]  # fmt: skip


def joined(count: int) -> list[str]:
    """So many ways from two sources; all have ends in common, so they share one arbiter."""
    return [packets(i, (0, 2, "DMA", i % 2), *ends) for i, ends in enumerate(OVERLAPPING[:count])]


def test_an_arbiter_serves_as_many_ways_as_it_has_msels():
    device = flows_only("npu2_1col", *joined(MSELS_PER_ARBITER))
    routing = route(device)
    check_routes(device, routing)
    rules = [rule for rules in routing.rules.values() for rule in rules]
    assert len({rule.arbiter for rule in rules}) == 1
    assert sorted(rule.msel for rule in rules) == list(range(MSELS_PER_ARBITER))


def test_one_way_more_than_an_arbiter_has_msels_is_refused():
    message = r"\(0, 2\) would send packets to 5 sets of masters, more than 8 arbiters with 4 msels each separate"
    with pytest.raises(RoutingError, match=message):
        route(flows_only("npu2_1col", *joined(MSELS_PER_ARBITER + 1)))
