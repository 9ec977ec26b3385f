"""Over-subscribed designs: refused with tile, direction, how many streams and which."""

import pytest
from route_checks import check_routes
from route_designs import circuit, flows_only, packets

import bdforge.array.routing.negotiate as negotiate
from bdforge.array.mlir import MlirError
from bdforge.array.routing import RoutingError, route
from bdforge.array.routing.nets import flow_cautions, named, nets_of

CORES = (0, 4, "DMA", 1), (0, 5, "DMA", 1)


def refusal(device: str, *flows: str) -> RoutingError:
    with pytest.raises(RoutingError) as caught:
        route(flows_only(device, *flows))
    return caught.value


def test_two_circuits_into_one_channel_are_refused_with_both():
    error = refusal("npu2", circuit((0, 0, "DMA", 0), (0, 1, "DMA", 2)), circuit((3, 4, "DMA", 1), (0, 1, "DMA", 2)))
    assert (error.message, error.line, error.definite) == (
        "2 streams end in (0, 1) DMA : 2, which carries 1 circuit, or packets only: (0, 0) DMA : 0 to (0, 1) DMA : 2 "
        "(line 3); (3, 4) DMA : 1 to (0, 1) DMA : 2 (line 4); use another channel, or packet flows for all of them",
        4,
        True,
    )
    assert isinstance(error, MlirError)


def test_a_circuit_and_packets_cannot_start_at_one_channel():
    error = refusal("npu1", circuit((0, 2, "DMA", 0), (0, 1, "DMA", 0)), packets(3, (0, 2, "DMA", 0), (0, 3, "DMA", 0)))
    assert "2 streams start at (0, 2) DMA : 0" in error.message
    assert "packets 3 of (0, 2) DMA : 0 to (0, 3) DMA : 0 (line 4)" in error.message


def test_a_shims_dma_and_its_south_port_are_the_same_port():
    error = refusal("npu1", circuit((0, 2, "DMA", 0), (0, 0, "DMA", 0)), circuit((0, 3, "DMA", 0), (0, 0, "South", 2)))
    assert "2 streams end in (0, 0) DMA : 0" in error.message


def test_packet_flows_and_their_ends_may_be_given_twice():
    """aiecc's column overlay makes such."""
    once, twice = (packets(3, (0, 2, "DMA", 0), *[(0, 1, "DMA", 0)] * times) for times in (1, 2))
    flows = [once, once + " {keep_pkt_header = true, priority_route = true}", twice]
    (net,) = nets_of(flows_only("npu1", *flows))
    assert (len(net.sinks), net.priority) == (1, True)
    check_routes(flows_only("npu1", *flows), route(flows_only("npu1", *flows)))


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        (circuit((0, 2, "DMA", 2), (0, 1, "DMA", 0)), "core (0, 2) has MM2S channels 0 to 1, not 2"),
        (circuit((0, 2, "DMA", 0), (0, 1, "DMA", 6)), "memtile (0, 1) has S2MM channels 0 to 5, not 6"),
        (circuit((0, 0, "DMA", 2), (0, 1, "DMA", 0)), "shim (0, 0) has MM2S channels 0 to 1, not 2"),
        (circuit((0, 2, "DMA", -1), (0, 1, "DMA", 0)), "core (0, 2) has MM2S channels 0 to 1, not -1"),
        (circuit((0, 0, "South", 8), (0, 1, "DMA", 0)), "shim (0, 0) South : 8 is the way in from outside"),
        (circuit((0, 1, "Core", 0), (0, 2, "DMA", 0)), "memtile (0, 1) has no slave port Core; flows may use DMA, "
         "TileControl, Trace"),
        (circuit((0, 2, "DMA", 0), (0, 2, "Trace", 0)), "core (0, 2) has no master port Trace; flows may use Core, "
         "DMA, TileControl, FIFO"),
        (circuit((0, 0, "PLIO", 0), (0, 2, "DMA", 0)), "shim (0, 0) has no slave port PLIO"),
        (circuit((0, 2, "North", 4), (0, 2, "DMA", 0)), "core (0, 2) has slave ports North 0 to 3, not 4"),
        (packets(32, (0, 1, "DMA", 0), (0, 2, "DMA", 0)), "packet id 32 is outside 0 to 31, what a header holds"),
    ],
)  # fmt: skip
def test_ports_that_do_not_exist_or_cannot_be_reached_are_named(flow, message):
    error = refusal("npu2_1col", flow)
    assert error.message.startswith(message)
    assert (error.definite, error.line) == (True, 3)


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        (circuit((0, 0, "Trace", 0), (0, 0, "DMA", 0)), "(0, 0) Trace : 0: the trace of a shim leaves it as packets"),
        (circuit((0, 0, "Trace", 0), (1, 0, "DMA", 0)), "(0, 0) Trace : 0: the trace of a shim leaves it as packets"),
        *(
            (circuit((1, 0, side, 0), (1, 1, "DMA", 0)), f"(1, 0) {side} : 0 is a port between two switches")
            for side in ("East", "West", "North")
        ),
        (circuit((0, 1, "South", 5), (0, 1, "DMA", 0)), "(0, 1) South : 5 is a port between two switches"),
        (circuit((0, 1, "North", 3), (0, 1, "DMA", 0)), "(0, 1) North : 3 is a port between two switches"),
        *(
            (circuit((0, 0, "DMA", 1), (0, 0, "DMA", n)), f"(0, 0) DMA : 1 to (0, 0) DMA : {n}: no circuit joins")
            for n in (0, 1)
        ),
    ],
)
def test_circuits_that_mlir_aie_cannot_lead_are_refused(flow: str, message: str):
    assert refusal("npu2", flow).message.startswith(message)


@pytest.mark.parametrize(
    "flow",
    [
        circuit((0, 0, "DMA", 0), (1, 0, "DMA", 1)),
        circuit((0, 2, "Trace", 0), (0, 0, "DMA", 0)),
        circuit((0, 1, "Trace", 0), (0, 0, "DMA", 0)),
        circuit((0, 1, "DMA", 2), (0, 1, "DMA", 2)),
        packets(4, (0, 0, "Trace", 0), (0, 0, "DMA", 0)),
        packets(4, (0, 0, "DMA", 0), (0, 0, "DMA", 0)),
    ],
)
def test_ways_next_to_them_are_routed(flow: str):
    assert len(route(flows_only("npu2", flow)).nets) == 1


def fan(ends: dict[int, str]) -> list[str]:
    """Packets of these ids from one shim, each to the core of its letter, or to those of its letters."""
    rows = {"a": 2, "b": 3, "c": 4}
    return [packets(number, (0, 0, "DMA", 0), (0, rows[letter], "DMA", 0))
            for number, letters in ends.items() for letter in letters]  # fmt: skip


@pytest.mark.parametrize(
    ("ends", "lost"),
    [
        ({1: "a", 2: "a", 3: "b"}, 3),  # 1 and 2 share no low bit, so their rule takes 0 to 3
        ({1: "a", 2: "a", 0: "b"}, 0),
        ({3: "b", 1: "a", 2: "a"}, 3),
        ({0: "a", 31: "a", 17: "b"}, 17),
        ({4: "ab", 8: "ab", 12: "a"}, 12),
        ({4: "a", 5: "b", 6: "a", 7: "a"}, 5),
        ({1: "a", 2: "a", 4: "b"}, None),
        ({0: "a", 1: "a", 2: "b", 3: "b"}, None),
        ({1: "a", 2: "b", 3: "c"}, None),
        ({1: "ab", 2: "ab", 4: "a", 8: "b"}, None),
    ],
)
def test_packets_that_would_follow_the_rule_of_others_are_refused(ends: dict[int, str], lost: int | None):
    flows = fan(ends)
    if lost is None:
        assert len(route(flows_only("npu2", *flows)).nets) == len(ends)
    else:
        error = refusal("npu2", *flows)
        assert error.message.startswith(f"packets {lost} of (0, 0) DMA : 0 to (0, ")
        assert f"which packets {lost} would follow too" in error.message


def test_ids_of_other_sources_do_not_count():
    others = packets(3, (1, 0, "DMA", 0), (0, 3, "DMA", 0))
    assert len(route(flows_only("npu2", *fan({1: "a", 2: "a"}), others)).nets) == 3


def test_a_seventh_stream_north_is_refused_by_tile_and_direction():
    flows = [circuit((0, 1, "DMA", i), (0, 2 + i // 2, "DMA", i % 2)) for i in range(6)]
    error = refusal("npu2_1col", *flows, circuit((0, 0, "DMA", 0), (0, 5, "DMA", 0)))
    assert error.definite
    assert error.message.startswith("7 streams must go north from memtile (0, 1), which has 6 ports on that side: ")
    assert error.message.endswith("(0, 1) DMA : 5 to (0, 4) DMA : 1 (line 8); and 1 more")


def test_a_fifth_stream_south_is_refused_by_tile_and_direction():
    flows = [circuit((0, 2 + i // 2, "DMA", i % 2), (0, 1, "DMA", i)) for i in range(5)]
    error = refusal("npu1_1col", *flows)
    assert error.message.startswith("5 streams must go south from core (0, 2), which has 4 ports on that side: ")
    assert "(0, 4) DMA : 0 to (0, 1) DMA : 4 (line 7)" in error.message


def test_more_streams_between_columns_than_wires_are_refused():
    # Two columns: rows 0 and 2 to 5 have 4 wires east each, so 20 in all; 22 streams want to cross.
    sources = [(0, 1, "DMA", i) for i in range(6)] + [(0, row, "DMA", i) for row in (0, 2, 3, 4, 5) for i in (0, 1)]
    sinks = [(1, 1, "DMA", i) for i in range(6)] + [(1, row, "DMA", i) for row in (0, 2, 3, 4, 5) for i in (0, 1)]
    error = refusal("npu2_2col", *(circuit(*pair) for pair in zip(sources, sinks, strict=True)),
                    *(circuit((0, row, bundle, 0), (1, row, "Core", 0))
                      for row, bundle in ((2, "Core"), (3, "Core"), (4, "Core"), (5, "Core"))),
                    circuit((0, 2, "TileControl", 0), (1, 2, "TileControl", 0)))  # fmt: skip
    assert error.definite
    assert "21 streams must leave tiles (0, 0) to (0, 5), which 20 wires do (20 east)" in error.message


def test_a_broadcast_that_ends_inside_too_leaves_a_region():
    """A shim and its memtile have 6 wires north and 4 east: 11 streams want out, and one ends inside as well."""
    sources = [(0, 1, "DMA", i) for i in range(6)] + [(0, 1, "TileControl", 0), (0, 0, "DMA", 0), (0, 0, "DMA", 1),
               (0, 0, "TileControl", 0), (0, 0, "FIFO", 0)]  # fmt: skip
    sinks = [(1, 1, "DMA", i) for i in range(6)] + [(1, row, "DMA", i) for row in (2, 3, 4) for i in (0, 1)]
    flows = [circuit(*pair) for pair in zip(sources, sinks, strict=False)]
    error = refusal("npu2_2col", *flows, circuit(sources[0], (0, 1, "DMA", 0)))
    assert (error.definite, error.message.partition(": ")[0]) == (
        True, "11 streams must leave tiles (0, 0) to (0, 1), which 10 wires do (4 east, 6 north)"
    )  # fmt: skip


def test_packets_count_as_one_stream_at_a_border():
    circuits = [circuit((0, 1, "DMA", i), (0, 2 + i // 2, "DMA", i % 2)) for i in range(5)]
    many = [packets(i, (0, 0, "DMA", 0), (0, 5, "DMA", i)) for i in (0, 1)]
    route(flows_only("npu2_1col", *circuits, *many))
    error = refusal("npu2_1col", *circuits, circuit((0, 1, "DMA", 5), (0, 4, "DMA", 1)), *many)
    assert error.message.startswith("7 streams must go north from memtile (0, 1)")


KEPT = packets(1, (0, 2, "DMA", 0), (0, 1, "DMA", 1)) + " {keep_pkt_header = true}"
WARNED = {  # flows and the name of the warning about the last of them
    "between switches": ([circuit((0, 2, "DMA", 0), (0, 2, "North", 0))], "open-flow"),
    "from a wire": ([circuit((0, 2, "South", 5), (0, 2, "DMA", 0))], "open-flow"),
    "out of the array": ([circuit((0, 2, "DMA", 0), (0, 0, "South", 2))], "open-flow"),
    "packets out": ([packets(1, (0, 2, "DMA", 0), (0, 0, "South", 2))], "open-flow"),
    "trace": ([circuit((0, 2, "Trace", 0), (0, 0, "South", 2))], ""),
    "token": ([circuit((0, 0, "TileControl", 0), (0, 0, "South", 0))], ""),
    "shim": ([circuit((0, 2, "DMA", 0), (0, 0, "DMA", 1))], ""),
    "twice": ([circuit((0, 2, "DMA", 0), (0, 1, "DMA", 1))] * 2, "duplicate-flow"),
    "packets twice": ([packets(1, (0, 2, "DMA", 0), (0, 1, "DMA", 1))] * 2, ""),
    "some headers": ([KEPT, packets(2, (0, 2, "DMA", 0), (0, 1, "DMA", 1))], "packet-headers"),
    "all headers": ([KEPT, KEPT], ""),
    "to two ends": ([circuit((0, 2, "DMA", 0), (0, 1, "DMA", end)) for end in (1, 2)], ""),
    "from two starts": ([circuit((0, 2, "DMA", start), (0, 1, "DMA", 1)) for start in (0, 1)], ""),
}


@pytest.mark.parametrize("name", WARNED)
def test_flows_that_carry_nothing_here_are_warned_of(name: str):
    flows, kind = WARNED[name]
    assert [found for found, _ in flow_cautions(flows_only("npu2_1col", *flows))] == [kind] * bool(kind)


def test_a_message_lists_six_nets_and_lines_of_nets_with_several_flows():
    flows = [circuit((0, 3, "DMA", 0), sink) for sink in ((0, 2, "DMA", 0), (0, 4, "DMA", 0))]
    flows += [circuit((0, 2, "DMA", 1), (0, 3, "DMA", 1))] * 2
    spread, again = nets_of(flows_only("npu2_1col", *flows, packets(4, (0, 1, "DMA", 0), *CORES)))[:2]
    assert str(spread) == "(0, 3) DMA : 0 to 2 places (lines 3 to 4)"
    assert str(again) == "(0, 2) DMA : 1 to (0, 3) DMA : 1 (line 5)"
    assert str(nets_of(flows_only("npu2_1col", packets(4, (0, 1, "DMA", 0), *CORES)))[0]) == (
        "packets 4 of (0, 1) DMA : 0 to 2 places (line 3)"
    )
    assert named([again] * 6) == "; ".join([str(again)] * 6)
    assert named([again] * 7) == f"{named([again] * 6)}; and 1 more"


def test_giving_up_is_not_called_impossible(monkeypatch):
    monkeypatch.setattr(negotiate, "_FIRST_PRESSURE", 0)
    monkeypatch.setattr(negotiate, "_ROUNDS", 1)
    error = refusal("npu2_1col", *(circuit((0, 1, "DMA", i), (0, 2 + i, "DMA", 0)) for i in (0, 1)),
                    circuit((0, 0, "DMA", 0), (0, 3, "DMA", 1)))  # fmt: skip
    assert not error.definite
    assert "no routes were found: 2 ports stay contested ((0, 1) North : 0 is wanted by 3" in error.message
    assert "The search is a heuristic, so routes may exist" in error.message
