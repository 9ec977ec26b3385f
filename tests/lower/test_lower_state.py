"""Register writes decoded again: switches against the text that they come from, and what no rule knows."""

import pytest

from bdforge.devices.register_names import What
from bdforge.images import cdos
from bdforge.images.build import image
from bdforge.images.read import read_image
from bdforge.lower.state import ArrayState, StateError
from bdforge.txn import BlockWrite, MaskPoll, MaskWrite, Noop, Write
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
        MaskWrite(0x200404, 0xAABBCCDD, 0xFFFF), MaskWrite(0x1F000, 0x400, 0xC00), MaskWrite(0x1F000, 0x4000, 0xC000),
    ])  # fmt: skip
    assert state.tiles[0, 0].bds[0][0] == 0x12FF
    assert list(state.tiles[0, 2].memory.spans()) == [(0x400, bytes([1, 2, 3, 4, 0xDD, 0xCC]))]
    assert state.tiles[0, 0].of(What.MUX) == {(): 0x4400}


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (Write(0x00036000, 1), "shim (0, 0) register 0x36000: no rule knows what it is; 0x1 is written to it"),
        (BlockWrite(0x0221DE14, (0, 0, 0, 0)), "core (1, 2) register 0x1de20"),
        (Write(0x00700000, 1), "nothing is at address 0x700000: column 0, row 7"),
        (Write(0x1_0000_0000, 1), "nothing is at address 0x100000000"),
        (Write(0x00200402, 1), "offset 0x402"),
        (BlockWrite(0x0020FFFC, (1, 2)), "8 bytes at 0xfffc end beyond the memory's 0x10000"),
        (MaskWrite(0x00200400, 1, 0xF), "splits a byte"),
        (MaskWrite(0x0001D204, 1, 1), "shim (0, 0) S2MM 0 queue: a masked write to a task queue"),
        (MaskPoll(0x001C0000, 1, 1), "memtile (0, 1) lock 0: waits for 0x1 under mask 0x1, but holds 0x0"),
        (Noop(), "a Noop is no register write"),
    ],
)
def test_what_no_rule_knows_is_refused_by_address_and_name(operation, message):
    with pytest.raises(StateError) as caught:
        ArrayState([operation])
    assert message in str(caught.value)


def test_polls_hold_for_what_was_written():
    ArrayState([Write(0x001C0000, 3), MaskPoll(0x001C0000, value=1, mask=1)])


def test_all_images_of_a_design_hold_the_same_state():
    found = VECTORS["npu2_whole"].configuration()
    states = []
    for suffix in (".cdo", ".pdi", ".xclbin"):
        (read,) = read_image(image(found, suffix, bare=True)).configurations
        states.append({place: (t.registers, t.bds, t.tasks) for place, t in ArrayState(read).tiles.items()})
    assert states[0] == states[1] == states[2]
    assert len(cdos(image(found, ".pdi", bare=True))) == 1
