"""What issuing an instruction takes: distances that texts and listings state, and refusals."""

import pytest

from bdforge.core.isa import IsaError, load
from bdforge.devices import AIE2, AIE2P
from bdforge.perf.kernels.blocks import _after
from bdforge.perf.kernels.scheduled_forms import ACCUMULATOR_TILES, SLOTS, VECTOR_REGISTERS, timed_form

VMAC = timed_form(AIE2P, "VMAC_vmul_cm_core_X_X")
BFP_MAC = timed_form(AIE2P, "VMAC_f_vmac_bfp_vmul_bfp_core_EX_EX")
AIE2_VMAC = timed_form(AIE2, "VMAC_vmac_cm_core_dense")
AIE2_FLOATS = timed_form(AIE2, "VMAC_F_vmac_bm_core_dense")


@pytest.mark.parametrize(
    ("writer", "reader", "operand", "distance"),
    [
        (VMAC, VMAC, "acc1", 2),
        (BFP_MAC, BFP_MAC, "acc1", 3),
        (timed_form(AIE2P, "VLDA_dmx_lda_x_pstm_nrm_imm"), VMAC, "s1", 7),
        (timed_form(AIE2P, "VLDA_dmx_lda_bm_pstm_nrm_imm"), VMAC, "acc1", 4),
        (timed_form(AIE2P, "VLDA_UPS_2x_dmx_lda_ups_x2c_pstm_nrm_imm_upsSign1"), VMAC, "acc1", 6),
        (timed_form(AIE2P, "VLDB_POP_512_normal_pop"), BFP_MAC, "s1", 8),
        (timed_form(AIE2P, "VBAND"), VMAC, "s2", 2),
        (timed_form(AIE2P, "VBAND"), timed_form(AIE2P, "VADD_8"), "s1", 1),
        (timed_form(AIE2P, "VSHUFFLE_vec_shuffle_bm"), VMAC, "acc1", -1),
        (VMAC, timed_form(AIE2P, "VST_dmx_sts_bm_pstm_nrm_imm"), "src", 6),
        (AIE2_VMAC, AIE2_VMAC, "acc1", 2),
        (AIE2_FLOATS, AIE2_FLOATS, "acc1", 4),
        (timed_form(AIE2, "VLDB_dmw_ldb_ag_pstm_nrm_imm"), AIE2_VMAC, "s2", 7),
        (timed_form(AIE2, "VBAND"), timed_form(AIE2, "VADD_8"), "s1", 1),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_distances_are_those_of_listings(writer, reader, operand, distance):
    assert writer.distance_to(reader, operand) == distance


def test_a_result_forwards_only_between_registers_of_the_same_path():
    move, plain = (timed_form(AIE2P, "VMOV_alu_mv_mv_x", **kinds) for kinds in ({"src": "bm"}, {}))
    shuffle = timed_form(AIE2P, "VSHUFFLE_vec_shuffle_x")
    assert shuffle.distance_to(plain, "src") == 1
    assert shuffle.distance_to(move, "src") == 2
    assert ("DM_RM_L0", 0) in move.ports
    assert plain.ports == ()


def test_slots_are_taken_together_by_long_instructions():
    long = next(name for name, form in load(AIE2P).forms.items() if form.slot == "lng")
    assert timed_form(AIE2P, long).slots == ("alu", "mv")
    assert {slot for f in (VMAC, BFP_MAC, AIE2_VMAC) for slot in f.slots} <= set(SLOTS)


def test_slots_are_those_of_the_longest_bundle():
    for generation in (AIE2, AIE2P):
        lanes = [{slot for slot, _, _ in format_.lanes} for format_ in load(generation).formats.values()]
        assert set(SLOTS) in lanes


def test_units_keep_their_cycles_and_shared_ones_are_no_ports():
    assert timed_form(AIE2P, "VST_dmx_sts_bm_pstm_nrm_imm").ports == (("DMX_WRS", 1), ("DM_ADS", 1))
    assert timed_form(AIE2P, "ACQ_COND_mLockId_imm").ports == tuple(("LCKREQ", cycle) for cycle in range(4))


@pytest.mark.parametrize(
    ("before", "form", "cycles"),
    [
        ("VLDA_FILL_512", "VLDA_POP_512_normal_pop", 1),
        ("VST_PUSH_576_CONV_bfp16ebs8_fp32", "VST_FLUSH_512_CONV_normal_flush", 1),
        ("VLDA_dmx_lda_x_pstm_nrm_imm", "VSHUFFLE_vec_shuffle_x", 7),
        ("VSHUFFLE_vec_shuffle_x", "VST_dmx_sts_x_pstm_nrm_imm", 2),  # no bypass leads to a store
    ],
)
def test_a_chain_s_next_instruction_follows_a_fifo_at_once_and_a_register_when_it_is_written(before, form, cycles):
    assert _after(timed_form(AIE2P, before), timed_form(AIE2P, form)) == cycles


def test_registers_are_counted():
    assert VECTOR_REGISTERS == 12
    assert dict(ACCUMULATOR_TILES) == {("AIE2", 1024): 9, ("AIE2", 512): 18, ("AIE2P", 2048): 5}


def test_unknown_instructions_and_operands_are_refused():
    with pytest.raises(IsaError, match="aie2p has no instruction form 'VMACC'"):
        timed_form(AIE2P, "VMACC")
    with pytest.raises(IsaError, match="no operand 'acc2', only acc1, s1, s2, acc"):
        VMAC.read_cycle("acc2")
    with pytest.raises(IsaError, match="has no register result that VMAC_vmul_cm_core_X_X could read"):
        timed_form(AIE2P, "VST_dmx_sts_bm_pstm_nrm_imm").distance_to(VMAC, "s1")
