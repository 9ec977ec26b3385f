"""Streams that settings of switches make, read port by port: where they end, what they lose, what they wait for."""

import pytest

from bdforge.array.mlir import parse
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.routing import RoutingError
from bdforge.array.routing.nets import SwitchPort
from bdforge.array.routing.physical import RoutedStream, read_routes, switches_of
from bdforge.devices import PortBundle


def device(*settings: str) -> DeviceOp:
    """A column of npu2 with every tile and what is told besides."""
    tiles = " ".join(f"%t{row} = aie.tile(0, {row})" for row in range(6))
    body = "\n".join(settings)
    module = parse(f"module {{ aie.device(npu2_1col) {{ {tiles}\n{body} }} }}", "switches.mlir")
    return next(op for op in module.walk() if isinstance(op, DeviceOp))


def box(row: int, settings: str, kind: str = "switchbox") -> str:
    """The switch of a tile in column 0, or a shim's mux."""
    return f"%{kind}{row} = aie.{kind}(%t{row}) {{ {settings} }}"


def streams(*settings: str) -> list[RoutedStream]:
    return list(switches_of(device(*settings)).streams())


def ends(stream: RoutedStream) -> list[str]:
    return [str(end) for end in stream.ends.values()]


def packet(*masters: str, arbiter: int = 0, source: str = "DMA : 0", rule: str = "31, 5") -> str:
    """A switch that sends packets of id 5 from a slave port to masters, which may say that they keep the header."""
    sets = " ".join(f"%m{i} = aie.masterset({master.partition(' {')[0]}, %a){master[len(master.partition(' {')[0]):]}"
                    for i, master in enumerate(masters))  # fmt: skip
    return f"%a = aie.amsel<{arbiter}> (1) {sets} aie.packet_rules({source}) {{ aie.rule({rule}, %a) }}"


def test_a_circuit_is_followed_over_wires_to_all_its_ends():
    (stream,) = streams(box(3, "aie.connect<DMA : 1, South : 2>"),
                        box(2, "aie.connect<North : 2, DMA : 0> aie.connect<North : 2, South : 3>"),
                        box(1, "aie.connect<North : 3, DMA : 5>"))  # fmt: skip
    assert (str(stream.start), stream.packet_id, stream.lost) == ("(0, 3) DMA : 1", None, [])
    assert ends(stream) == ["(0, 2) DMA : 0", "(0, 1) DMA : 5"]
    assert not stream.packet_switched


@pytest.mark.parametrize(
    ("settings", "lost"),
    [
        (box(2, "aie.connect<DMA : 0, North : 1>"), ["nothing is set for slave port (0, 3) South : 1"]),
        *((box(0, f"aie.connect<TileControl : 0, South : {channel}>"),
           [f"it leaves the array at (0, 0) South : {channel}, which no aie.shim_mux joins to a DMA channel"])
          for channel in (1, 2, 3, 4, 5)),
        (box(0, "aie.connect<TileControl : 0, South : 0>"), []),
    ],
    ids=["unset", *(f"edge {channel}" for channel in (1, 2, 3, 4, 5)), "token"],
)  # fmt: skip
def test_a_circuit_says_where_its_words_are_lost(settings: str, lost: list[str]):
    (stream,) = streams(settings)
    assert stream.lost == lost
    if not lost:
        assert len(read_routes(device(settings)).nets) == 1
        return
    with pytest.raises(RoutingError, match=r"the circuit from .* is lost: ") as caught:
        read_routes(device(settings))
    assert lost[0] in caught.value.message


BACK = box(3, "aie.connect<South : 1, South : 1>")


@pytest.mark.parametrize(
    ("rules", "lost"),
    [
        ("%2 = aie.masterset(North : 1, %0, %1)", "it runs in a circle through (0, 3) South : 1"),
        ("%2 = aie.masterset(North : 1, %0) %3 = aie.masterset(Core : 0, %0, %1)", "it reaches (0, 2) Core : 0 twice"),
    ],
    ids=["circle", "twice"],
)
def test_packets_that_come_back_say_so(rules: str, lost: str):
    (stream,) = streams(box(2, f"""%0 = aie.amsel<0> (0) %1 = aie.amsel<0> (1) {rules}
        aie.packet_rules(DMA : 0) {{ aie.rule(31, 5, %0) }} aie.packet_rules(North : 1) {{ aie.rule(31, 5, %1) }}"""),
        BACK)  # fmt: skip
    assert stream.lost == [lost]
    assert list(map(str, stream.arbiters)) == ["arbiter 0 of the switch of (0, 2)"], "held once, though taken twice"


def test_a_mux_gives_ports_at_the_edge_the_names_of_dma_channels():
    up, down = streams(box(0, "aie.connect<DMA : 1, North : 7> aie.connect<North : 3, DMA : 1>", "shim_mux"),
                       box(0, "aie.connect<South : 7, North : 0> aie.connect<North : 0, South : 3>"),
                       box(1, "aie.connect<South : 0, DMA : 0> aie.connect<DMA : 0, South : 0>"))  # fmt: skip
    assert (str(up.start), ends(up)) == ("(0, 0) DMA : 1", ["(0, 1) DMA : 0"])
    assert (str(down.start), ends(down)) == ("(0, 1) DMA : 0", ["(0, 0) DMA : 1"])


def test_packets_are_followed_by_ids_past_the_arbiters_on_their_way():
    found = streams(box(2, packet("North : 0", arbiter=3, rule="30, 4")),
                    box(3, packet("DMA : 1", arbiter=5, source="South : 0")))  # fmt: skip
    four, five = found
    assert [(stream.packet_id, ends(stream)) for stream in found] == [(4, []), (5, ["(0, 3) DMA : 1"])]
    assert four.lost == ["no rule of (0, 3) South : 0 matches id 4"]
    assert [str(arbiter) for arbiter in five.arbiters] == [
        "arbiter 3 of the switch of (0, 2)", "arbiter 5 of the switch of (0, 3)",
    ]  # fmt: skip
    assert (five.lost, [leaf.keeps_header for leaf in five.leaves]) == ([], [False])


@pytest.mark.parametrize(
    ("master", "keeps"),
    [("DMA : 0", False), ("DMA : 0 {keep_pkt_header = true}", True), ("Core : 0", True), ("South : 0", True),
     ("Core : 0 {keep_pkt_header = false}", False), ("TileControl : 0", True)],
)  # fmt: skip
def test_masters_of_dmas_drop_headers_unless_the_text_says_otherwise(master: str, keeps: bool):
    (stream,) = streams(box(2, packet(master)), box(1, "aie.connect<North : 0, DMA : 0>"))
    assert [leaf.keeps_header for leaf in stream.leaves] == [keeps]


def test_the_edge_of_the_array_drops_headers_unless_the_text_says_otherwise():
    kept, dropped = (
        next(iter(streams(box(0, packet(f"South : 0{words}", source="TileControl : 0")))))
        for words in (" {keep_pkt_header = true}", "")
    )
    assert (kept.leaves[0].keeps_header, dropped.leaves[0].keeps_header) == (True, False)


def test_every_id_takes_the_first_rule_that_it_matches():
    """Ids 5 and 4 to the core, other even ones to the FIFO, all odd ones left to nobody."""
    settings = box(
        2,
        """%a = aie.amsel<0> (0) %b = aie.amsel<1> (0) %m0 = aie.masterset(Core : 0, %a)
        %m1 = aie.masterset(FIFO : 0, %b) aie.packet_rules(DMA : 0) { aie.rule(30, 4, %a) aie.rule(1, 0, %b) }""",
    )
    core, fifo = {4, 5}, set(range(0, 32, 2)) - {4}
    found = {stream.packet_id: ends(stream) for stream in streams(settings)}
    assert found == {i: ["(0, 2) Core : 0"] for i in core} | {i: ["(0, 2) FIFO : 0"] for i in fifo}


def test_a_header_that_is_gone_leads_nowhere():
    """Dropped by the first switch it stays dropped, past masters that keep headers too."""
    south = "South : 0 {keep_pkt_header = false}"
    (stream,) = streams(box(4, packet(south)), box(3, packet("DMA : 1", source="North : 0")))
    assert stream.lost == ["its header is dropped before the packet rules of (0, 3) North : 0"]
    (stream,) = streams(box(4, packet(south)), box(3, "aie.connect<North : 0, Core : 0>"))
    assert stream.lost == []
    (leaf,) = stream.leaves
    assert not leaf.keeps_header, f"the header dropped by (0, 4) is said to arrive at {leaf.master}"


def test_packets_are_followed_from_any_port_that_is_set():
    found = switches_of(device(box(2, packet("North : 0")), box(3, packet("DMA : 1", "Core : 0", source="South : 0"))))

    def leaves(slave: SwitchPort, packet_id: int) -> list[str]:
        return [str(leaf.master) for leaf in found.follow(slave, packet_id)]

    core = ["(0, 3) Core : 0", "(0, 3) DMA : 1"]
    assert (
        sorted(leaves(SwitchPort(0, 2, PortBundle.DMA, 0), 5))
        == sorted(leaves(SwitchPort(0, 3, PortBundle.SOUTH, 0), 5))
        == core
    )
    assert leaves(SwitchPort(0, 2, PortBundle.DMA, 0), 4) == leaves(SwitchPort(0, 2, PortBundle.DMA, 1), 5) == []


LED = "aie.connect<DMA : 0, Core : 0>"


@pytest.mark.parametrize(
    ("flow", "words"),
    [
        ("aie.flow(%t2, DMA : 0, %t2, Core : 0)", ""),
        ("aie.flow(%t2, DMA : 1, %t2, Core : 0)", r"do not lead words from \(0, 2\) DMA : 1 to \(0, 2\) Core : 0"),
        ("aie.flow(%t2, DMA : 0, %t2, FIFO : 0)", r"do not lead words from \(0, 2\) DMA : 0 to \(0, 2\) FIFO : 0"),
        ("aie.packet_flow(5) { aie.packet_source<%t3, DMA : 0> aie.packet_dest<%t3, Core : 0> }", ""),
        (
            "aie.packet_flow(4) { aie.packet_source<%t3, DMA : 0> aie.packet_dest<%t3, Core : 0> }",
            r"do not lead packets 4 from \(0, 3\) DMA : 0 to \(0, 3\) Core : 0",
        ),
    ],
    ids=["circuit", "other source", "other end", "packets", "other id"],
)
def test_flows_beside_switches_are_what_these_do(flow: str, words: str):
    physical = device(box(2, LED), box(3, packet("Core : 0")), flow)
    if not words:
        assert len(read_routes(physical).nets) == 2
        return
    with pytest.raises(RoutingError, match=words):
        read_routes(physical)


def test_an_msel_that_no_master_listens_to_is_named():
    (stream,) = streams(box(2, "%a = aie.amsel<2> (3) aie.packet_rules(DMA : 0) { aie.rule(31, 5, %a) }"))
    assert stream.lost == ["no master port of (0, 2) listens to msel 3 of arbiter 2"]


def test_only_named_ids_of_a_source_are_routes():
    """Rules match more ids than packet flows name; without packet flows all that arrive count."""
    settings = box(2, packet("Core : 0", rule="28, 4"))
    assert [net.packet_id for net in read_routes(device(settings)).nets] == [4, 5, 6, 7]
    flow = "aie.packet_flow(6) { aie.packet_source<%t2, DMA : 0> aie.packet_dest<%t2, Core : 0> }"
    assert [net.packet_id for net in read_routes(device(settings, flow)).nets] == [6]
