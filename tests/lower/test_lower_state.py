"""Register writes decoded again: switches against the text that they come from, and what no rule knows."""

import pytest

from bdforge.array.images.image_build import image
from bdforge.array.images.pdi import cdos
from bdforge.array.images.read import read_image
from bdforge.array.lower.array_state import ArrayState, StateError
from bdforge.array.lower.switch_state import smallest_device, written_switches
from bdforge.array.routing.nets import SwitchPort
from bdforge.array.routing.packets import PacketRule
from bdforge.array.routing.physical import Switches
from bdforge.devices import TileKind
from bdforge.devices.register_names import What
from bdforge.devices.switches import masters_of, slaves_of
from bdforge.devices.txn_format.operations import BlockWrite, MaskPoll, MaskWrite, Noop, Write
from support.cdo_vectors import PARTS, VECTORS
from support.decoded import decoded_ways, device_of, ways_of_text
from support.images import IMAGES


@pytest.mark.parametrize("name", VECTORS)
def test_switches_lead_where_the_text_does(name):
    """The real tool's writes, decoded, against the switchboxes that it took them from."""
    vector = VECTORS[name]
    written = [op for part in PARTS for op in vector.operations(part)]
    assert decoded_ways(written) == ways_of_text(device_of(vector.lowered))


@pytest.mark.parametrize("name", VECTORS)
def test_our_routes_join_the_same_ends_as_the_real_ones(name):
    vector = VECTORS[name]
    ours = decoded_ways(vector.configuration(vector.mlir).operations)
    real = decoded_ways([op for part in PARTS for op in vector.operations(part)])
    assert {key: sinks for key, sinks in ours.items() if key in real} == real
    assert all(packet == 15 for (_, packet) in ours.keys() - real.keys())


def test_a_pdi_leaves_the_state_of_its_writes():
    found = VECTORS["npu2_core_elf"].configuration()
    (read,) = read_image(IMAGES["pdi_core"]).configurations
    first, second = ArrayState(found.operations), ArrayState(read)
    assert first.tiles.keys() == second.tiles.keys()
    for place, tile in first.tiles.items():
        other = second.tiles[place]
        assert (tile.registers, tile.bds, tile.tasks) == (other.registers, other.bds, other.tasks)
        assert (tile.memory.data, tile.program.data) == (other.memory.data, other.program.data)
        assert tile.memory.written == other.memory.written
    assert dict(first.tiles[1, 2].memory.spans())[0x400] == b"constants."
    assert first.tiles[1, 2].of(What.CORE) == {(): 1}


def test_masks_keep_other_bits_and_bytes():
    state = ArrayState([
        Write(0x1D000, 0xFFFF), MaskWrite(0x1D000, 0x1200, 0xFF00), BlockWrite(0x200400, (0x04030201,)),
        MaskWrite(0x200404, 0xAABB00DD, 0xFFFF), MaskWrite(0x1F000, 0x400, 0xC00), MaskWrite(0x1F000, 0x4000, 0xC000),
    ])  # fmt: skip
    assert state.tiles[0, 0].bds[0][0] == 0x12FF
    assert list(state.tiles[0, 2].memory.spans()) == [(0x400, bytes([1, 2, 3, 4, 0xDD, 0]))]
    assert state.tiles[0, 0].of(What.MUX) == {(): 0x4400}


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (Write(0x00036000, 1), "shim (0, 0) register 0x36000: no rule knows what it is; 0x1 is written to it"),
        (BlockWrite(0x0221DE14, (0, 0, 0, 0)), "core (1, 2) register 0x1de20"),
        (Write(0x00600000, 1), "nothing is at address 0x600000: column 0, row 6"),
        (Write(0x00700000, 1), "nothing is at address 0x700000: column 0, row 7"),
        (Write(0x1_0000_0000, 1), "nothing is at address 0x100000000"),
        (Write(0x00200402, 1), "offset 0x402"),
        (BlockWrite(0x0020FFFC, (1, 2)), "8 bytes at 0xfffc end beyond the memory's 0x10000"),
        (MaskWrite(0x00200400, 1, 0xF), "splits a byte"),
        (MaskWrite(0x00200400, 1, 0xF000FF), "splits a byte"),
        (MaskWrite(0x0001D204, 1, 1), "shim (0, 0) S2MM 0 queue: a masked write to a task queue"),
        (MaskPoll(0x001C0000, 1, 1), "memtile (0, 1) lock 0: waits for 0x1 under mask 0x1, but holds 0x0"),
        (Noop(), "a Noop is no register write"),
    ],
)
def test_what_no_rule_knows_is_refused_by_address_and_name(operation, message):
    with pytest.raises(StateError) as caught:
        ArrayState([operation])
    assert message in str(caught.value)


def test_a_memory_is_written_to_its_last_word():
    state = ArrayState([BlockWrite(0x0020FFF8, (1, 2))])
    assert list(state.tiles[0, 2].memory.spans()) == [(0xFFF8, bytes([1, 0, 0, 0, 2, 0, 0, 0]))]


@pytest.mark.parametrize("columns", range(1, 9))
def test_the_smallest_array_has_all_columns_and_no_more(columns: int):
    state = ArrayState([Write((columns - 1) << 25 | 0x1C0000, 1)])
    assert smallest_device(state).columns == columns


def test_an_array_of_more_columns_than_there_are_is_refused():
    with pytest.raises(StateError, match="column 8 is configured; no array has as many"):
        smallest_device(ArrayState([Write(8 << 25 | 0x1C0000, 1)]))


def test_polls_hold_for_what_was_written():
    """Bits that the mask leaves out count nothing; what was never written is 0, in a tile with writes and in others."""
    wrote = Write(0x001C0000, 3)
    ArrayState([wrote, MaskPoll(0x001C0000, value=1, mask=1)])
    ArrayState([wrote, MaskPoll(0x001C0010, value=0, mask=1), MaskPoll(0x021C0000, value=0, mask=1)])
    for address, value in ((0x001C0000, 2), (0x001C0010, 1), (0x021C0000, 1)):
        with pytest.raises(StateError, match=f"waits for {value:#x} under mask 0x1"):
            ArrayState([wrote, MaskPoll(address, value=value, mask=1)])


def test_all_images_of_a_design_hold_the_same_state():
    found = VECTORS["npu2_whole"].configuration()
    states = []
    for suffix in (".cdo", ".pdi", ".xclbin"):
        (read,) = read_image(image(found, suffix, bare=True)).configurations
        states.append({place: (t.registers, t.bds, t.tasks) for place, t in ArrayState(read).tiles.items()})
    assert states[0] == states[1] == states[2]
    assert len(cdos(image(found, ".pdi", bare=True))) == 1


SLAVE, MASTER = (SwitchPort(0, 2, *ports(TileKind.CORE)[number]) for ports, number in ((slaves_of, 3), (masters_of, 0)))
CIRCUIT = {0x3F10C: 0x80000000, 0x3F000: 0x80000003}  # slave port 3 is on; master port 0 takes its words
PACKETS = {0x3F10C: 0xC0000000, 0x3F234: 0x031F0121, 0x3F000: 0xC0000021}  # its rule 1: id 3 to msel 2 of arbiter 1


def written(words: dict[int, int]) -> Switches:
    """The switch of core (0, 2) after writes to its registers."""
    state = ArrayState([Write(0x200000 + offset, value) for offset, value in words.items()])
    return written_switches(state, smallest_device(state))


@pytest.mark.parametrize(
    ("changed", "joined"),
    [
        ({}, True), ({0x3F10C: 0}, False), ({0x3F10C: 0xC0000000}, False), ({0x3F000: 3}, False),
        ({0x3F000: 0xC0000003}, False), ({0x3F000: 0x80000002}, False),
    ],
)  # fmt: skip
def test_a_circuit_needs_both_ports_on_and_neither_for_packets(changed: dict[int, int], joined: bool):
    assert written(CIRCUIT | changed).circuits == ({SLAVE: [MASTER]} if joined else {})


@pytest.mark.parametrize(
    ("changed", "masters"),
    [
        ({}, (MASTER,)), ({0x3F10C: 0x80000000}, None), ({0x3F10C: 0}, None), ({0x3F234: 0x031F0021}, None),
        ({0x3F000: 0x40000021}, ()), ({0x3F000: 0x80000021}, ()), ({0x3F000: 0xC0000011}, ()),
        ({0x3F000: 0xC0000041}, ()), ({0x3F000: 0xC0000022}, ()), ({0x3F000: 0xC0000079}, (MASTER,)),
    ],
)  # fmt: skip
def test_a_rule_needs_its_port_on_and_leads_to_masters_of_its_msel(changed: dict[int, int], masters: tuple | None):
    expected = {} if masters is None else {SLAVE: (PacketRule(3, 31, 1, 2, masters),)}
    assert written(PACKETS | changed).rules == expected


@pytest.mark.parametrize(("word", "keeps"), [(0xC0000021, True), (0xC00000A1, False)])
def test_a_master_port_drops_headers_where_it_is_told_to(word: int, keeps: bool):
    assert written(PACKETS | {0x3F000: word}).keeps == {MASTER: keeps}


def test_only_ids_that_a_rule_takes_make_streams_and_none_is_lost_at_its_source():
    found = [(stream.source, stream.packet_id, stream.lost) for stream in written(PACKETS).streams()]
    assert found == [(SLAVE, 3, [])]
