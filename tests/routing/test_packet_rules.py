"""Packet rules, arbiters and msels of switches."""

import random
from types import SimpleNamespace

import pytest
from route_checks import check_routes
from route_designs import circuit, flows_only, packets

from bdforge.array.mlir.switch_ops import AmselOp
from bdforge.array.routing import RoutingError, route
from bdforge.array.routing.fabric import fabric_of, wires
from bdforge.array.routing.negotiate import Negotiation
from bdforge.array.routing.nets import Net, SwitchPort, nets_of
from bdforge.array.routing.packets import PacketRule, PacketSetup, _assign, _branches, _joined, _rules
from bdforge.array.routing.path_search import END, find_path
from bdforge.array.routing.write import write_device_routes
from bdforge.devices import mlir_device_named
from bdforge.devices.switches import MSELS_PER_ARBITER, PortBundle

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
    message = r"\(0, 2\) would send packets to 5 sets of masters, more than 6 arbiters with 4 msels each separate"
    with pytest.raises(RoutingError, match=message):
        route(flows_only("npu2_1col", *joined(MSELS_PER_ARBITER + 1)))


def port(channel: int, bundle: PortBundle = PortBundle.DMA) -> SwitchPort:
    return SwitchPort(0, 2, bundle, channel)


def net(packet_id: int | None, *sinks: SwitchPort) -> Net:
    """Words of one port to some others, without the flows that it comes from."""
    return Net(port(9), packet_id, None, sinks=dict.fromkeys(sinks))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other", "shares", "joins"),
    [
        (net(None, port(0)), net(None, port(0)), False, False),
        (net(None, port(0)), net(3, port(0)), False, False),
        (net(3, port(0)), net(None, port(0)), False, False),
        (net(3, port(0)), net(4, port(0)), True, False),
        (net(3, port(0)), net(3, port(0)), True, True),
        (net(3, port(0)), net(3, port(1)), False, False),
        (net(3, port(0), port(1)), net(3, port(0), port(1)), False, False),
    ],
    ids=["circuits", "circuit-packets", "packets-circuit", "ids", "one-place", "two-places", "fan-outs"],
)
def test_packets_share_a_port_and_join_only_with_one_id_to_one_place(one: Net, other: Net, shares: bool, joins: bool):
    assert (one.shares_with(other), one.joins(other)) == (shares, joins)


def test_a_rule_matches_the_ids_that_agree_under_its_mask():
    matching = lambda number, mask: [i for i in range(32) if PacketRule(number, mask, 0, 0, ()).matches(i)]  # noqa: E731
    assert matching(0b00100, 0b11100) == [4, 5, 6, 7]
    assert matching(31, 31) == [31]
    assert matching(0, 1) == list(range(0, 32, 2))
    assert matching(5, 0) == list(range(32))


@pytest.mark.parametrize("seed", range(6))
def test_rules_send_every_id_its_way_and_no_id_another(seed: int):
    rng = random.Random(seed)
    ways = [frozenset({port(i)}) for i in range(rng.randint(1, 4))]
    by_id = {i: rng.choice(ways) for i in rng.sample(range(32), rng.randint(1, 32))}
    rules = _rules(by_id)
    for packet_id, way in by_id.items():
        assert {masters for number, mask, masters in rules if (packet_id ^ number) & mask == 0} == {way}


@pytest.mark.parametrize(
    ("ways", "rules"),
    [
        (lambda i: 0, [(0, 0)]),
        (lambda i: i & 1, [(0, 1), (1, 1)]),
        (lambda i: i >> 3 & 1, [(0, 8), (8, 8)]),
        (lambda i: i >> 4 & 1, [(0, 16), (16, 16)]),
    ],
)
def test_ids_that_differ_in_one_bit_need_a_rule_for_each_value_of_it(ways, rules):
    found = _rules({i: frozenset({port(ways(i))}) for i in range(32)})
    assert [(number, mask) for number, mask, _ in found] == rules


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


@pytest.mark.parametrize(
    ("other", "follows"),
    [
        (packets(3, (0, 4, "DMA", 0), (0, 0, "DMA", 0)), True),
        (packets(3, (0, 4, "DMA", 0), (0, 0, "DMA", 1)), False),
        (packets(4, (0, 4, "DMA", 0), (0, 0, "DMA", 0)), False),
        (packets(3, (0, 4, "DMA", 0), (0, 0, "DMA", 0), (0, 1, "DMA", 0)), False),
        (circuit((0, 4, "DMA", 0), (0, 0, "DMA", 1)), False),
    ],
    ids=["id and place", "place", "id", "places", "circuit"],
)
def test_only_packets_of_one_id_to_one_place_must_follow_each_other(other: str, follows: bool):
    device = flows_only("npu2_1col", packets(3, (0, 5, "DMA", 0), (0, 0, "DMA", 0)), other)
    first = SwitchPort(0, 5, PortBundle.DMA, 0)
    placed, late = sorted(nets_of(device), key=lambda net: net.source != first)
    negotiation = Negotiation(fabric_of(device.device), [placed, late])
    negotiation._place(placed)
    (path,) = negotiation.trees[placed].values()
    assert negotiation._forced(placed) == {}
    assert negotiation._forced(late) == (dict(zip(path, [*path[1:], END], strict=True)) if follows else {})


STREAM = packets(3, (0, 5, "DMA", 0), (0, 0, "DMA", 0))
LONE = circuit((0, 5, "DMA", 0), (0, 0, "DMA", 0))


@pytest.mark.parametrize(
    ("ours", "tenants", "price"),
    [
        pytest.param(LONE, [], 0, id="a circuit on an empty port"),
        pytest.param(STREAM, [], 3, id="packets on an empty port"),
        pytest.param(LONE, [circuit((0, 4, "DMA", 0), (0, 1, "DMA", 0))], 500, id="circuits"),
        pytest.param(LONE, [packets(4, (0, 4, "DMA", 0), (0, 1, "DMA", 0))], 500, id="a circuit where packets go"),
        pytest.param(STREAM, [circuit((0, 4, "DMA", 0), (0, 1, "DMA", 0))], 530, id="packets where a circuit goes"),
        pytest.param(STREAM, [packets(4, (0, 4, "DMA", 0), (0, 1, "DMA", 0))], 30, id="strangers"),
        pytest.param(STREAM, [packets(4, (0, 5, "DMA", 0), (0, 1, "DMA", 0))], 0, id="of one source"),
        pytest.param(STREAM, [packets(4, (0, 4, "DMA", 0), (0, 0, "DMA", 0))], 0, id="to one place"),
        pytest.param(STREAM, [packets(3, (0, 4, "DMA", 0), (0, 1, "DMA", 0))], 530, id="of one id to two places"),
        pytest.param(STREAM, [packets(3, (0, 4, "DMA", 0), (0, 0, "DMA", 0))], 0, id="of one id to one place"),
        pytest.param(STREAM, [packets(4, (0, 4, "DMA", 0), (0, 1, "DMA", 0)),
                              packets(5, (0, 3, "DMA", 0), (0, 0, "DMA", 0))], 0, id="one of them related"),
        pytest.param(LONE, [circuit((0, 4, "DMA", 0), (0, 1, "DMA", 0)),
                            circuit((0, 3, "DMA", 0), (0, 1, "DMA", 1))], 1000, id="two circuits"),
    ],
)  # fmt: skip
def test_a_port_costs_what_its_tenants_and_its_history_make_it(ours: str, tenants: list[str], price: int):
    """Half a wire of 1000 for each net that collides; 30 among strangers' packets, 3 for packets alone."""
    device = flows_only("npu2_1col", ours, *tenants)
    first = SwitchPort(0, 5, PortBundle.DMA, 0)
    ids = {3} if ours == STREAM else {None}
    nets = nets_of(device)
    (one,) = (net for net in nets if net.source == first and net.packet_id in ids)
    negotiation = Negotiation(fabric_of(device.device), nets)
    negotiation.tenants[7] = [net for net in nets if net is not one]
    assert negotiation._cost(one, 7) == price
    negotiation.history[7] = 1000
    assert negotiation._cost(one, 7) == price + 1000
    negotiation.pressure = 750
    assert negotiation._cost(one, 7) == price + 1000 + 250 * (price // 500)


def test_contested_ports_grow_dearer_by_a_wire_and_collisions_by_half_up_to_eight_wires():
    """The nets of both contested ports and of crowded ones are routed again; only branches of those grow dearer."""
    flows = [circuit((0, row, "DMA", 0), (0, 1, "DMA", row)) for row in (2, 3, 4)]
    negotiation = Negotiation(fabric_of(mlir_device_named("npu2_1col")), nets_of(flows_only("npu2_1col", *flows)))
    one, two, three = negotiation.nets
    negotiation.trees = {net: {port(0): [node]} for net, node in ((one, 1), (two, 2), (three, 3))}
    assert negotiation._raise_prices([1], None) == [one]
    assert (negotiation.pressure, negotiation.history) == (750, {1: 1000})
    assert negotiation._raise_prices([], PacketSetup(crowded=[2], branches={3})) == [two, three]
    assert (negotiation.pressure, negotiation.history) == (1125, {1: 1000, 3: 1000})
    for expected in (1687, 2530, 3795, 5692, 8000, 8000):
        negotiation._raise_prices([1], None)
        assert negotiation.pressure == expected
    negotiation._clear()
    assert (negotiation.pressure, negotiation.history, negotiation.trees) == (500, {}, {})


def test_ids_beyond_a_header_are_refused_before_any_search():
    flow = packets(31, (0, 1, "DMA", 0), (0, 2, "DMA", 0))
    assert [net.packet_id for net in nets_of(flows_only("npu2_1col", flow))] == [31]
    with pytest.raises(RoutingError, match="packet id 32 is outside 0 to 31, what a header holds"):
        nets_of(flows_only("npu2_1col", flow.replace("31", "32")))


def test_ways_that_must_share_an_arbiter_get_theirs_before_single_ones():
    alone = {frozenset({port(i)}) for i in range(8)}
    four = {frozenset({port(8), port(i)}) for i in (8, 9, 10, 11)}
    found = assigned(alone | four)
    assert len({found[way][0] for way in four}) == 1
    assert len(set(found.values())) == len(found)


def test_ports_behind_all_masters_but_the_commonest_are_branches():
    """Port 1 is used by two ids, 0 and 2 by one: what follows them is a branch."""
    fabric = SimpleNamespace(feeders=[None, port(0), port(1), port(2), port(3)])
    sets = [frozenset({port(0), port(1)}), frozenset({port(1), port(2)})]
    assert _branches(fabric, sets) == {1, 3}  # type: ignore[arg-type]


def test_packets_of_an_id_go_on_where_others_of_it_do():
    """Even where their destination lies in the same tile; where the others end, nothing goes on."""
    fabric = fabric_of(mlir_device_named("npu2_1col"))
    start = fabric.index[SwitchPort(0, 3, PortBundle.DMA, 0)]
    here, there = (SwitchPort(0, row, PortBundle.CORE, 0) for row in (3, 5))

    def path(goal: SwitchPort, forced: dict[int, int]) -> list[SwitchPort] | None:
        found = find_path(fabric, [start], goal, lambda _: 0, forced)
        return None if found is None else [fabric.ports[node] for node in found]

    assert path(here, {}) == path(here, {start: END}) == [fabric.ports[start]]
    assert path(there, {start: END}) is None
    for step in fabric.onward[start]:
        for goal in (here, there):
            found = path(goal, {start: step})
            assert found is not None, f"{goal} by way of {fabric.ports[step]}"
            assert found[1] == fabric.ports[step], f"{goal}: {list(map(str, found))}"
            assert found[-1].tile == goal.tile


@pytest.mark.parametrize(
    ("column", "row", "side", "count"),
    [
        (0, 0, "WEST", 0),
        (0, 0, "NORTH", 6),
        (0, 1, "EAST", 0),
        (0, 2, "SOUTH", 4),
        (0, 5, "NORTH", 0),
        (1, 3, "WEST", 4),
    ],
)
def test_a_switch_has_so_many_wires_to_a_side(column: int, row: int, side: str, count: int):
    assert wires(mlir_device_named("npu2_4col"), column, row, PortBundle[side]) == count
