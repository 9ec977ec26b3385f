"""The instruction table: distances that texts and listings state, and refusals."""

import pytest

from bdforge.devices import AIE2, AIE2P
from bdforge.perf.kernels.isa import SLOTS, IsaError, form

VMAC = form(AIE2P, "VMAC", "X_X int8")
BFP_MAC = form(AIE2P, "VMAC.f", "bfp16 EX_EX")


@pytest.mark.parametrize(
    ("writer", "reader", "operand", "distance"),
    [
        (VMAC, VMAC, "acc1", 2),
        (BFP_MAC, BFP_MAC, "acc1", 3),
        (form(AIE2P, "VLDA", "x 512b [p],#imm"), VMAC, "s1", 7),
        (form(AIE2P, "VLDA", "bm"), VMAC, "acc1", 4),
        (form(AIE2P, "VLDA.UPS", "2x 512b"), VMAC, "acc1", 6),
        (form(AIE2P, "VLDB.POP", "512"), BFP_MAC, "s1", 8),
        (form(AIE2P, "VBAND"), VMAC, "s2", 2),
        (form(AIE2P, "VBAND"), form(AIE2P, "VADD/VSUB", "x"), "s1", 1),
        (form(AIE2P, "VUNPACK", "x -> y"), VMAC, "s2", 7),
        (VMAC, form(AIE2P, "VST", "bm"), "src", 6),
        (form(AIE2, "VMAC", "cm int8"), form(AIE2, "VMAC", "cm int8"), "acc1", 2),
        (form(AIE2, "VMAC.f"), form(AIE2, "VMAC.f"), "acc1", 4),
    ],
    ids=lambda value: value.mnemonic if hasattr(value, "mnemonic") else str(value),
)
def test_distances_are_those_of_listings(writer, reader, operand, distance):
    assert writer.distance_to(reader, operand) == distance


def test_slots_are_alternatives_or_taken_together():
    assert form(AIE2, "VLDA", "w 256b").slots == (("lda",), ("ldb",))
    assert form(AIE2P, "MOVXM").slots == (("alu", "mv"),)
    assert {slot for f in (VMAC, BFP_MAC) for slots in f.slots for slot in slots} <= set(SLOTS)


def test_ports_keep_their_cycles():
    assert form(AIE2P, "VST", "bm").ports == (("DMX_WRS", 2), ("DM_ADS", 2))
    assert ("PART_WORD", 7) in form(AIE2P, "ST.s8/s16").ports


@pytest.mark.parametrize(
    ("mnemonic", "start", "message"),
    [
        ("VMACC", "", "AIE2P instruction VMACC '' is unknown; the table has: no form of this mnemonic"),
        ("VMAC", "X_", "ambiguous; the table has: X_X int8 8x8x8; X_Y"),
    ],
)
def test_unknown_instructions_are_refused(mnemonic, start, message):
    with pytest.raises(IsaError, match=message):
        form(AIE2P, mnemonic, start)


def test_operands_that_are_not_read_are_refused():
    with pytest.raises(IsaError, match="no operand 'acc2'; the table lists acc1, s1, s2, conf"):
        VMAC.read_cycle("acc2")
    with pytest.raises(IsaError, match="has no register result that VMAC could read"):
        form(AIE2P, "VST", "bm").distance_to(VMAC, "s1")
