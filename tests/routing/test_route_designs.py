"""Routes of whole designs and of single flows, judged by an independent checker."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from route_checks import check_routes, routed
from route_designs import circuit, flows_only, packets, routes_text

from bdforge.array.mlir import parse
from bdforge.array.mlir.array_ops import FlowOp
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.mlir.stream_ops import PacketFlowOp
from bdforge.array.routing import negotiate, route
from bdforge.array.routing.path_search import find_path
from bdforge.devices import device_named
from bdforge.operators import render
from bdforge.operators.gemm import load_spec, plan_gemm

ROOT = Path(__file__).resolve().parents[2]
VECTORS = ROOT / "tests" / "mlir" / "data"
WAYS_TRIED = 200  # that routing the whole array may search


def device_in(text: str) -> DeviceOp:
    return next(op for op in parse(text).walk() if isinstance(op, DeviceOp))


@pytest.fixture(scope="module")
def gemm() -> DeviceOp:
    spec = load_spec(ROOT / "designs" / "gemm_i8_i2_bitnet.toml")
    return device_in(render(plan_gemm(spec, device_named("strix_halo")), spec.problems))


@pytest.mark.slow
def test_the_whole_array_gemm_routes(gemm, monkeypatch):
    tried = []
    monkeypatch.setattr(negotiate, "find_path", lambda *arguments: tried.append(1) or find_path(*arguments))
    routing = route(gemm)
    assert len(tried) < WAYS_TRIED
    check_routes(gemm, routing)
    assert len(routing.nets) == 4 + 4 + 8 + 8 + 32 + 8


@pytest.mark.slow
def test_the_gemm_fills_the_links_that_its_mapping_must_fill(gemm):
    use = {(link.column, link.row, str(link.side)): (link.used, link.available) for link in route(gemm).links}
    assert all(use[column, 2, "South"] == (4, 4) for column in range(8))  # four tiles of C
    assert all(use[column, 0, "North"][0] == 2 - column % 2 for column in range(8))  # B, and A in even columns
    assert use[0, 2, "East"] == (1, 4)


@pytest.mark.parametrize("name", ["chain.mlir", "packets_pad.mlir", "contested_routes.mlir"])
def test_the_vectors_route(name):
    device = device_in((VECTORS / name).read_text())
    check_routes(device, route(device))


def test_hops_count_borders_between_tiles():
    device = device_in((VECTORS / "packets_pad.mlir").read_text())
    routing = route(device)
    first, second = (op for op in device.walk() if isinstance(op, PacketFlowOp))
    assert [routing.path(first, i).hops for i in (0, 1)] == [1, 2]
    assert (routing.path(second).hops, len(routing.path(second).connections)) == (2, 3)


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize(
    ("source", "sink", "hops"),
    [
        ((0, 2, "DMA", 0), (3, 5, "DMA", 1), 6),
        ((3, 1, "DMA", 5), (3, 1, "DMA", 5), 0),
        ((0, 1, "DMA", 0), (1, 1, "DMA", 0), 3),  # memtiles have no east: by way of row 0 or 2
        ((2, 0, "DMA", 1), (3, 0, "DMA", 0), 1),
        ((1, 3, "Core", 0), (1, 2, "Core", 0), 1),
        ((1, 3, "Trace", 1), (1, 0, "South", 0), 3),
        ((0, 0, "TileControl", 0), (0, 0, "South", 0), 0),
    ],
)
def test_a_lone_flow_takes_the_shortest_way(device, source, sink, hops):
    routing = routed(device, circuit(source, sink))
    ((path,),) = map(routing.paths, routing.nets)
    assert path.hops == hops


@pytest.mark.parametrize(("source", "sink"), [((0, 2), (3, 5)), ((3, 5), (0, 2)), ((0, 5), (3, 2)), ((1, 0), (1, 5))])
def test_ways_turn_as_little_as_they_can_and_keep_their_channel(source: tuple[int, int], sink: tuple[int, int]):
    """Of two ways between the same tiles each turns once at most; up a column the second is on channel 1 all along."""
    design = flows_only("npu2_4col", *(circuit((*source, "DMA", i), (*sink, "DMA", i)) for i in (0, 1)))
    routing = route(design)
    for number, flow in enumerate(op for op in design.walk() if isinstance(op, FlowOp)):
        masters = [connection.master for connection in routing.path(flow).connections[:-1]]
        turns = sum(a.bundle is not b.bundle for a, b in pairwise(masters))
        assert turns == (source[0] != sink[0]), list(map(str, masters))
        channels = {master.channel for master in masters}
        assert channels == {number} if source[0] == sink[0] else len(channels) == 1


def test_a_broadcast_uses_each_wire_once():
    sinks = [(column, row, "DMA", 0) for column in range(4) for row in (2, 3)]
    routing = route(flows_only("npu1", *(circuit((1, 1, "DMA", 0), sink) for sink in sinks)))
    assert len(routing.nets) == 1
    assert sum(link.used for link in routing.links) == 8  # a tree over the source's tile and eight others


def test_a_broadcast_grows_from_its_nearest_end():
    """By way of (1, 3) to (0, 4): three wires. To the far end first it would go west, and take a fourth."""
    source, near, far = (1, 2, "DMA", 0), (1, 3, "DMA", 0), (0, 4, "DMA", 0)
    for ends in ((near, far), (far, near)):
        routing = route(flows_only("npu2_2col", *(circuit(source, end) for end in ends)))
        assert sum(link.used for link in routing.links) == 3


def test_packets_of_one_source_go_together_as_far_as_they_can():
    """North with those to (0, 4), then east to (1, 3): three wires; east at once would take a fourth."""
    ends = [((0, 2, "DMA", 0), (0, 4, "DMA", 0)), ((0, 2, "DMA", 0), (1, 3, "DMA", 0))]
    together = route(flows_only("npu2_2col", *(packets(i, *pair) for i, pair in enumerate(ends))))
    assert sum(link.used for link in together.links) == 3


def test_the_busiest_switch_is_counted_by_hand():
    # In the core, which has no east and west: masters DMA, DMA, South; slaves South, South, DMA.
    routing = route(flows_only(
        "npu2_1col", circuit((0, 1, "DMA", 0), (0, 2, "DMA", 0)), circuit((0, 1, "DMA", 1), (0, 2, "DMA", 1)),
        circuit((0, 2, "DMA", 0), (0, 1, "DMA", 3)),
    ))  # fmt: skip
    assert routing.busiest == (0, 2, 3, 15, 3, 17)
    assert [tuple(link) for link in routing.links] == [(0, 1, "North", 2, 6), (0, 2, "South", 1, 4)]


def test_ways_of_a_broadcast_come_in_the_order_of_the_text():
    source, ends = (0, 2, "DMA", 0), [(0, 4, "DMA", 0), (0, 2, "Core", 0), (0, 3, "DMA", 0)]
    design = flows_only("npu2_1col", packets(3, source, *ends))
    routing = route(design)
    (net,), (flow,) = routing.nets, [op for op in design.walk() if isinstance(op, PacketFlowOp)]
    assert [path.connections[-1].master for path in routing.paths(net)] == ends
    assert [routing.path(flow, i).connections[-1].master for i in range(3)] == ends
    assert [path.hops for path in routing.paths(net)] == [2, 0, 1]
    joined = routing.connections(net)
    assert len(set(joined)) == len(joined) == 2 + 2 + 1  # of three switches


@pytest.mark.parametrize("seed", [7, 10, 23, 25, 28])
def test_dense_broadcasts_route_where_one_order_is_not_enough(seed):
    rng = Random(seed)
    ports = [(column, row, "DMA", i) for column in (0, 1) for row in range(6) for i in range(6 if row == 1 else 2)]
    sources, sinks = (rng.sample(ports, int(len(ports) * share)) for share in (0.7, 0.85))
    fan_out = [*sources, *rng.choices(sources, k=len(sinks) - len(sources))]
    routed("npu2_2col", *map(circuit, fan_out, sinks))


def test_a_device_without_flows_has_no_busiest_switch():
    routing = route(flows_only("npu2_1col"))
    assert (routing.busiest, routing.links, routing.nets) == (None, [], [])


def test_every_port_of_a_column_can_be_used():
    up = [circuit((0, 1, "DMA", i), (0, 2 + i // 2, "DMA", i % 2)) for i in range(6)]
    down = [circuit((0, 2 + i, "DMA", 0), (0, 1, "DMA", i)) for i in range(4)]
    routing = routed("npu2_1col", *up, *down)
    use = {(link.row, str(link.side)): (link.used, link.available) for link in routing.links}
    assert (use[1, "North"], use[2, "South"]) == ((6, 6), (4, 4))


def test_packets_of_many_tiles_share_the_way_to_a_shim():
    flows = [packets(row, (column, row, "Trace", 0), (0, 0, "DMA", 0)) for column in (0, 1) for row in range(1, 6)]
    flows += [circuit((0, 2 + i, "DMA", 0), (0, 1, "DMA", i)) for i in range(3)]
    routed("npu1_2col", *flows)


@pytest.mark.slow
def test_routes_do_not_depend_on_hash_seeds():
    """Nor on that of this process, which is another in every run."""
    environment = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-c", "from route_designs import routes_text; print(routes_text())"]
    done = subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True)
    assert "Connection" in done.stdout
    assert done.stdout == f"{routes_text()}\n"
