"""Packet rules, arbiters and msels of switches."""

import random

import pytest
from route_checks import check_routes, routed
from route_designs import circuit, flows_only, packets

from bdforge.array.mlir.switch_ops import AmselOp
from bdforge.array.routing import RoutingError, route
from bdforge.array.routing.nets import Net, SwitchPort, nets_of
from bdforge.array.routing.packets import _assign, _joined, _rules
from bdforge.array.routing.write import write_device_routes
from bdforge.devices.switches import MSELS_PER_ARBITER, PortBundle

CONTROL = [(0, row, "TileControl", 0) for row in range(6)]


def test_one_source_reaches_the_control_ports_of_a_column():
    routing = routed("npu2_1col", *(packets(i, (0, 0, "DMA", 0), sink) for i, sink in enumerate(CONTROL)))
    assert all(link.used == 1 for link in routing.links)  # all six ids go up on one wire
    assert max(map(len, routing.rules.values())) <= 4


def test_ids_that_go_the_same_way_share_a_rule():
    routing = routed("npu1_1col", *(packets(i, (0, 2, "DMA", 0), (0, 0, "DMA", 0)) for i in range(8)))
    assert {(rule.id, rule.mask) for rules in routing.rules.values() for rule in rules} == {(0, 0b11000)}


def test_one_id_from_two_sources_to_one_place_joins():
    routing = routed(
        "npu2_1col", packets(0, (0, 5, "DMA", 0), (0, 0, "DMA", 0)), packets(0, (0, 4, "DMA", 0), (0, 0, "DMA", 0))
    )
    assert all(link.used == 1 for link in routing.links)


def test_one_id_from_two_sources_to_two_places_stays_apart():
    routing = routed(
        "npu2_1col", packets(0, (0, 5, "DMA", 0), (0, 0, "DMA", 0)), packets(0, (0, 4, "DMA", 0), (0, 1, "DMA", 0))
    )
    assert {(link.row, link.used) for link in routing.links} == {(5, 1), (4, 2), (3, 2), (2, 2), (1, 1)}


def test_overlapping_fan_outs_share_an_arbiter():
    source, ends = (0, 2, "DMA", 0), [(0, 2, "DMA", 0), (0, 2, "TileControl", 0), (0, 2, "Core", 0)]
    routing = routed("npu2_1col", packets(1, source, ends[0], ends[1]), packets(2, source, ends[1], ends[2]),
                        packets(3, (0, 2, "DMA", 1), (0, 2, "DMA", 1)))  # fmt: skip
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
    routing = routed("npu2_1col", packets(0, (0, 5, "DMA", 0), (0, 1, "DMA", 5)),
                        packets(1, (0, 4, "DMA", 1), (0, 1, "DMA", 5)), *circuits)  # fmt: skip
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
    routing = routed("npu2_1col", *joined(MSELS_PER_ARBITER))
    rules = [rule for rules in routing.rules.values() for rule in rules]
    assert len({rule.arbiter for rule in rules}) == 1
    assert sorted(rule.msel for rule in rules) == list(range(MSELS_PER_ARBITER))


def test_one_way_more_than_an_arbiter_has_msels_is_refused():
    message = r"\(0, 2\) would send packets to 5 sets of masters, more than 6 arbiters with 4 msels each separate"
    with pytest.raises(RoutingError, match=message):
        route(flows_only("npu2_1col", *joined(MSELS_PER_ARBITER + 1)))


def port(channel: int, bundle: PortBundle = PortBundle.DMA) -> SwitchPort:
    return SwitchPort(0, 2, bundle, channel)


def net(packet_id: int | None, *sinks: SwitchPort) -> Net:
    """Words of one port to some others, without the flows that it comes from."""
    return Net(port(9), packet_id, None, sinks=dict.fromkeys(sinks))  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(6))
def test_rules_send_every_id_its_way_and_no_id_another(seed: int):
    rng = random.Random(seed)
    ways = [frozenset({port(i)}) for i in range(rng.randint(1, 4))]
    by_id = {i: rng.choice(ways) for i in rng.sample(range(32), rng.randint(1, 32))}
    rules = _rules(by_id)
    for packet_id, way in by_id.items():
        assert {masters for number, mask, masters in rules if (packet_id ^ number) & mask == 0} == {way}


A, B = frozenset({port(0)}), frozenset({port(1)})


@pytest.mark.parametrize(
    ("by_id", "rules"),
    [
        ({5: A}, [(5, 31, A)]),
        ({4: A, 5: A}, [(4, 30, A)]),
        ({1: A, 2: A}, [(0, 28, A)]),  # 0 and 3 match too, which nobody sends
        ({1: A, 2: A, 0: B}, [(1, 31, A), (2, 31, A), (0, 31, B)]),
        ({1: A, 2: A, 8: B}, [(0, 28, A), (8, 31, B)]),
        ({16: A, 31: A}, [(16, 16, A)]),
        ({0: A, 1: A, 2: A, 4: B, 5: B, 6: A}, [(0, 28, A), (6, 31, A), (4, 30, B)]),
    ],
)
def test_a_rule_takes_as_many_ids_as_it_can_and_says_as_much_of_them(by_id: dict, rules: list):
    """Most ids first, then most bits of the mask, then the lowest id; ways in the order of their masters."""
    assert [(number, mask, way) for number, mask, way in _rules(by_id)] == rules


def assigned(
    sets: set[frozenset[SwitchPort]], urgent: frozenset[SwitchPort] = frozenset()
) -> dict[frozenset[SwitchPort], tuple[int, int]]:
    found = _assign(sets, urgent)
    sizes = sorted(map(len, _joined(sets)), reverse=True)
    assert found is not None, f"groups of {sizes} msels, placed largest first, fit the arbiters, but one found no place"
    return found


def test_ways_with_priority_take_arbiters_from_5_down_and_msels_from_3_down():
    alone = [frozenset({port(i)}) for i in range(10)]
    urgent = frozenset(port(i) for i in range(8))
    first, second = assigned(set(alone[:8]), urgent), assigned(set(alone[:8]))
    assert [first[way] for way in alone[:8]] == [*((arbiter, 3) for arbiter in (5, 4, 3, 2, 1, 0)), (5, 2), (4, 2)]
    assert [second[way] for way in alone[:8]] == [*((arbiter, 0) for arbiter in range(6)), (0, 1), (1, 1)]
    mixed = assigned({alone[0], alone[8]}, urgent)
    assert (mixed[alone[0]], mixed[alone[8]]) == ((5, 3), (0, 0))
    both = assigned({frozenset({port(0)}), frozenset({port(0), port(8)})}, urgent)
    assert sorted(both.values()) == [(5, 2), (5, 3)]


def test_ways_with_priority_choose_before_the_others():
    """Seven ways, whose last has priority: had the others chosen first, msel 0 of arbiter 5 would be taken."""
    alone = [frozenset({port(i)}) for i in range(7)]
    found = assigned(set(alone), frozenset({port(6)}))
    assert [found[way] for way in alone] == [*((arbiter, 0) for arbiter in (0, 1, 2, 3, 4)), (0, 1), (5, 3)]


@pytest.mark.parametrize("sizes", [(1,) * 24, (4, *(1,) * 20), (3, 3, *(2,) * 8, 1, 1), (4, 4, 4, 4, 4, 4), (1,) * 6])
@pytest.mark.parametrize("priority", [0, 3, 6])
def test_msels_of_all_arbiters_are_used_up(sizes: tuple[int, ...], priority: int):
    """Groups of ways with a common end need one arbiter each; together they need no more than the 24 msels."""
    groups = [[frozenset({port(100 * g), port(100 * g + way)}) for way in range(size)] for g, size in enumerate(sizes)]
    urgent = frozenset(port(100 * (len(sizes) - 1 - g)) for g in range(priority))
    found = assigned({way for group in groups for way in group}, urgent)
    assert all(len({found[way][0] for way in group}) == 1 for group in groups)
    assert len(set(found.values())) == sum(sizes)
    assert all(0 <= arbiter < 6 and 0 <= msel < 4 for arbiter, msel in found.values())


def test_one_way_more_than_there_are_msels_has_no_place():
    assert _assign({frozenset({port(i)}) for i in range(24)}, frozenset()) is not None
    assert _assign({frozenset({port(i)}) for i in range(25)}, frozenset()) is None


def test_ten_ids_through_one_memtile_take_arbiters_that_the_dialect_has():
    sources = [(0, row, "DMA", channel) for row in (0, 2, 3) for channel in (0, 1)]
    into = [packets(i, source, (0, 1, "DMA", i)) for i, source in enumerate(sources)]
    ends = [(0, row, "DMA", channel) for row in (0, 2) for channel in (0, 1)]
    out = [packets(6 + i, (0, 1, "DMA", i), sink) for i, sink in enumerate(ends)]
    device = flows_only("npu2_1col", *into, *out)
    check_routes(device, route(device))
    write_device_routes(device)
    arbiters = {op.arbiter for op in device.walk() if isinstance(op, AmselOp)}
    assert arbiters == set(range(6)), "each of the first six has its own"


def test_nets_come_circuits_first_and_then_packets_with_priority():
    """One flow of a net with priority is enough, wherever it stands."""
    flows = [packets(1, (0, 2, "DMA", 0), (0, 3, "DMA", 0)), packets(2, (0, 2, "DMA", 1), (0, 3, "DMA", 1)),
             packets(2, (0, 2, "DMA", 1), (0, 4, "DMA", 1)), circuit((0, 1, "DMA", 0), (0, 2, "DMA", 0))]  # fmt: skip
    urgent = flows[1] + " {priority_route = true}"
    for given in ([flows[0], urgent, *flows[2:]], [flows[0], flows[2], urgent, flows[3]]):
        nets = nets_of(flows_only("npu2_1col", *given))
        assert [(net.packet_id, net.priority) for net in nets] == [(None, False), (2, True), (1, False)]


def test_packets_of_strangers_keep_to_wires_of_their_own():
    """Ids of two sources to two places have four wires; those of one source take one wire together."""
    ends = [((0, 5, "DMA", 0), (0, 2, "DMA", 0)), ((0, 5, "DMA", 1), (0, 2, "DMA", 1))]
    apart = route(flows_only("npu2_1col", *(packets(i, *pair) for i, pair in enumerate(ends))))
    assert [link.used for link in apart.links] == [2, 2, 2]
    together = route(flows_only("npu2_1col", *(packets(i, ends[0][0], sink) for i, (_, sink) in enumerate(ends))))
    assert [link.used for link in together.links] == [1, 1, 1]


@pytest.mark.parametrize(("words", "expected"), [(" {priority_route = true}", (5, 3)), ("", (0, 0))])
def test_a_packet_with_priority_that_stays_in_its_tile_takes_arbiter_5_too(words: str, expected: tuple[int, int]):
    flow = packets(15, (0, 0, "TileControl", 0), (0, 0, "South", 0)) + words
    ((rule,),) = route(flows_only("npu2_1col", flow)).rules.values()
    assert (rule.arbiter, rule.msel) == expected


def test_ways_that_must_share_an_arbiter_get_theirs_before_single_ones():
    alone = {frozenset({port(i)}) for i in range(8)}
    four = {frozenset({port(8), port(i)}) for i in (8, 9, 10, 11)}
    found = assigned(alone | four)
    assert len({found[way][0] for way in four}) == 1
    assert len(set(found.values())) == len(found)
