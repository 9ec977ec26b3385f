"""Timing: distances against a table worked out from measured kernels, stages against those of whole families."""

import random
import re

import pytest

from bdforge.core import isa
from bdforge.core.isa.effects import distance, effects
from bdforge.core.isa.forms import FormTiming, Resource
from support.instructions import draw

OPERANDS = {
    "VLDA_dmx_lda_x_idx_imm": {"dst": "x1", "ptr": "p0", "imm": 0},
    "VLDA_dmx_lda_bm_idx_imm": {"dst": "bmhl1", "ptr": "p0", "imm": 0},
    "VLDA_POP_576_normal_pop": {"dst": "ex1", "ptr": "plfr0"},
    "VLDA_UPS_2x_dmw_lda_ups_w2b_idx_imm_upsSign1": {"dst": "bmhl1", "ptr": "p0", "imm": 0, "su": "s0"},
    "VLDB_dmx_ldb_x_idx_imm": {"dst": "x1", "ptr": "p0", "imm": 0},
    "VUNPACK_mv_unpack_w_unpackSign0": {"dst": "x1", "src": "wl1"},
    "VBAND": {"d": "x1", "s1": "x1", "s2": "x2"},
    "VUPS_2x_mv_ups_w2b_upsSign0": {"dst": "bmhl1", "src": "wl1", "su": "s0"},
    "VSRS_2x_mv_w_srs_bm_srsSign0": {"dst": "wl1", "src": "bmhl1", "su": "s0"},
    "VMAC_vmul_cm_core_X_X": {"dst": "dm1", "acc1": "dm1", "s1": "x1", "s2": "x2", "acc": "r0"},
    "VMAC_f_vmac_bfp_vmul_bfp_core_EX_EX": {"dst": "dm1", "acc1": "dm1", "s1": "ex1", "s2": "ex2", "acc": "r0"},
    "VST_dmx_sts_bm_idx_imm": {"src": "bmhl1", "ptr": "p0", "imm": 0},
    "LDA_dms_lda_idx_imm": {"dst": "p1", "ptr": "p0", "imm": 0},
    "ADD_alu_r_rr": {"d0": "r0", "s0": "r0", "s1": "r1"},
    "MUL": {"d0": "r0", "s0": "r0", "s1": "r1"},
}

# Producer -> consumer on one register, distances measured in compiled and hand-written kernels.
DISTANCES = [
    ("VLDA_dmx_lda_x_idx_imm", "VMAC_vmul_cm_core_X_X", "s1", 7),
    ("VLDB_dmx_ldb_x_idx_imm", "VMAC_vmul_cm_core_X_X", "s1", 7),
    ("VLDA_dmx_lda_bm_idx_imm", "VMAC_vmul_cm_core_X_X", "acc1", 4),
    ("VLDA_POP_576_normal_pop", "VMAC_f_vmac_bfp_vmul_bfp_core_EX_EX", "s1", 8),
    ("VLDA_UPS_2x_dmw_lda_ups_w2b_idx_imm_upsSign1", "VMAC_vmul_cm_core_X_X", "acc1", 6),
    ("VLDB_dmx_ldb_x_idx_imm", "VUNPACK_mv_unpack_w_unpackSign0", "src", 1),
    ("VBAND", "VMAC_vmul_cm_core_X_X", "s1", 2),
    ("VBAND", "VBAND", "s1", 1),
    ("VMAC_vmul_cm_core_X_X", "VST_dmx_sts_bm_idx_imm", "src", 6),
    ("VMAC_vmul_cm_core_X_X", "VSRS_2x_mv_w_srs_bm_srsSign0", "src", 6),
    ("VMAC_vmul_cm_core_X_X", "VMAC_vmul_cm_core_X_X", "acc1", 2),
    ("VMAC_f_vmac_bfp_vmul_bfp_core_EX_EX", "VMAC_f_vmac_bfp_vmul_bfp_core_EX_EX", "acc1", 3),
    ("VUNPACK_mv_unpack_w_unpackSign0", "VMAC_vmul_cm_core_X_X", "s1", 7),
    ("VBAND", "VUNPACK_mv_unpack_w_unpackSign0", "src", -4),
    ("VUPS_2x_mv_ups_w2b_upsSign0", "VSRS_2x_mv_w_srs_bm_srsSign0", "src", 3),
    ("VSRS_2x_mv_w_srs_bm_srsSign0", "VMAC_vmul_cm_core_X_X", "s1", 4),
    ("LDA_dms_lda_idx_imm", "LDA_dms_lda_idx_imm", "ptr", 7),
    ("ADD_alu_r_rr", "ADD_alu_r_rr", "s0", 1),
    ("MUL", "ADD_alu_r_rr", "s0", 2),
]


@pytest.mark.parametrize(("producer", "consumer", "operand", "cycles"), DISTANCES)
def test_distances_of_dependences(producer, consumer, operand, cycles):
    isa_ = isa.load("aie2p")
    write = effects(isa_.instruction(producer, **OPERANDS[producer])).writes[0]
    reads = effects(isa_.instruction(consumer, **OPERANDS[consumer])).reads
    assert distance(write, next(read for read in reads if read.operand == operand)) == cycles


@pytest.mark.parametrize(
    ("generation", "form", "results", "reads"),
    [
        ("aie2", "VMAC_vmac_cm_core_dense", {"op0": 5}, {"op1": 3, "op2": 1, "op3": 1, "op4": 1}),
        ("aie2", "VMAC_F_vmac_bm_core_dense", {"op0": 6}, {"op1": 3, "op2": 1, "op3": 1, "op4": 1}),
        ("aie2", "VMUL_vmac_cm_core_dense", {"op0": 5}, {"op1": 1, "op2": 1, "op3": 1}),
        ("aie2", "VLDA_dmw_lda_w_ag_idx_imm", {"op0": 7}, {"ptr": 1, "imm": 1}),
        ("aie2", "VUNPACK_S8_S4", {"op0": 7}, {"op1": 7}),
        ("aie2", "VSRS_S16_S32_mv_w_srs", {"op0": 4}, {"op1": 1, "su": 1}),
        ("aie2", "VUPS_S32_S16_mv_ups_w2b", {"op0": 3}, {"op1": 1, "su": 1}),
        ("aie2", "MUL_mul_r_rr", {"op0": 2}, {"op1": 1, "op2": 1}),
        ("aie2", "VPACK_S4_S8", {"op0": 2}, {"op1": 1}),
        ("aie2", "MOV_D4", {"op0": 5}, {"op1": 1}),
        ("aie2", "VMAX_LT_S16", {"op0": 2, "op1": 2}, {"op2": 1, "op3": 1}),
        ("aie2", "VADDMAC_vmac_bm_core_dense", {"op0": 5}, {"op0": 3, "op1": 3}),
        ("aie2", "ST_S8_ag_idx", {}, {"op0": 7, "ptr": 1, "dj": 1}),
    ],
)
def test_stages_of_aie2_families(generation, form, results, reads):
    timing = isa.load(generation).form(form).timing
    assert dict(timing.defs) == results
    assert reads.items() <= dict(timing.uses).items()


def test_every_operand_of_every_form_resolves_to_registers_that_exist():
    rng = random.Random(8)
    for generation in isa.GENERATIONS:
        for form in isa.load(generation).forms.values():
            found = effects(draw(form, rng))
            for access in found.reads + found.writes:
                assert isa.leaves(generation, access.register)
                assert 1 <= access.stage <= 9
            assert form.timing.defs.keys() | form.timing.uses.keys() >= set(form.names) - {"dst"}, form


def test_registers_that_follow_from_other_operands():
    isa_ = isa.load("aie2p")

    def registers(name, **operands):
        found = effects(isa_.instruction(name, **operands))
        return {a.operand: a.register for a in found.reads}, {a.operand: a.register for a in found.writes}

    reads, writes = registers("VLDA_POP_576_fifo_1d_pop", dst="ex3", mod="m2", ptr="plfr1")
    assert reads == {"ptr": "p1", "fifo_reg": "lf1", "pos": "r25", "mod": "m2"}
    assert writes.items() >= {"dst": "ex3", "ptr_out": "p1", "fifo_reg_out": "lf1", "pos_out": "r25"}.items()
    _, writes = registers("PADDB_3D", mod="d2_3d", ptr="p4")
    assert writes == {"ptr_out": "p4", "dcl": "dc2", "dch": "dc6"}
    reads, writes = registers(
        "VADDMAC_vmac_cm2_add_reg_vmul_cm_core_X_X", acc="r1", s1="x0", s2="x1", acc1="dm1", acc2="dm3"
    )
    assert (reads["acc1"], reads["acc2"], writes["dst"]) == ("dm1", "dm3", "dm1")
    reads, writes = registers("MAC", d0="r4", s0="r5", s1="r6")
    assert (reads["a0"], writes["d0"]) == ("r4", "r4")
    _, writes = registers("VMAX_LT_8_vaddSign1", d="x0", s1="x1", s2="x2")
    assert writes["cmp"] == "l8"
    reads, _ = registers("ST_dms_sts_spill", src="r3", imm=-4)
    assert reads["sp"] == "sp"


def test_ports_follow_the_operands_register():
    isa_ = isa.load("aie2p")

    def ports(name, **operands):
        return {(unit, cycle) for unit, cycle, _ in effects(isa_.instruction(name, **operands)).units}

    load = {"ptr": "p0", "imm": 0}
    assert ("R_WA", 6) in ports("LDA_dms_lda_idx_imm", dst="r5", **load)
    assert ("P_WM", 6) in ports("LDA_dms_lda_idx_imm", dst="p5", **load)
    assert ("QEY_WA_L0", 6) in ports("LDA_dms_lda_idx_imm", dst="el5", **load)
    assert {n for n, c in ports("LDA_dms_lda_idx_imm", dst="lr", **load) if c == 6} == set()
    assert ("DM_WM_L0", 1) in ports("VMOV_alu_mv_mv_x", dst="bmhl2", src="x0")
    assert ("DM_RM_L0", 0) in ports("VMOV_alu_mv_mv_x", dst="x0", src="bmhl2")
    bypass = effects(isa_.instruction("VMOV_alu_mv_mv_x", dst="x0", src="bmhl2"))
    assert (bypass.writes[0].bypass, bypass.reads[0].bypass) == ("MV", None)


# Result stages of whole families of AIE2P, first match, as kernels measured and listed show them; None: no register.
FAMILIES = [
    (r"VLD[AB]_.*(UPS)", 9),
    (r"VLD[AB]_POPX?", 8),
    (r"VLD[AB]_FILL", None),
    (r"VLD[AB]|LDA|VUNPACK|MOV_(nb_)?lda|VMOV_(\d|lda)", 7),
    (r"VSRS", 4),
    (r"VUPS", 3),
    (r"VPACK|VFLOOR", 2),
    (r"VMUL|VMAC|VMSC|VNEGMUL|VADDM|VCLR|VMOV_D|V(ADD|SUB|NEG)(_f|_vmac|$)", 6),
    (r"MUL|MAC|MSC", 2),
    (r"MOV_d1", 2),
    (r"MOV_d6", 7),
    (r"V(BAND|BOR|ADD|SUB|MAX|MIN|SEL|SHUFFLE|SHIFT|BCST|EXTRACT|EXTBCST|INSERT|PUSH)_?\w*|VMOV_alu", 2),
    (r"ADD|SUB|AND|OR|XOR|MOVX|MOVA|ADC|SBC|LSHL|ASHL|EQ|NE|LT|GE", 1),
]


def test_result_stages_of_families():
    counted = dict.fromkeys((pattern for pattern, _ in FAMILIES), 0)
    for form in isa.load("aie2p").forms.values():
        family = next(((p, stage) for p, stage in FAMILIES if re.match(p, form.name)), None)
        if family is None:
            continue
        counted[family[0]] += 1
        results = [stage for n, stage in form.timing.defs.items() if n in ("dst", "d", "d0", "cmp", "op")]
        assert set(results) == ({family[1]} if family[1] else set()), form
        if form.slot == "vec" and form.timing.uses:
            late = {stage for n, stage in form.timing.uses.items() if n in ("acc1", "acc2")}
            assert late <= {4}, form
    assert all(counted.values()), counted


def test_branches_have_five_delay_slots():
    branches = {
        "aie2p": {"J_alumv_or", "J_lng", "JL_alumv_or", "JL_lng", "JNZ", "JZ", "JNZD", "RET"},
        "aie2": {"J_jump_ind", "J_jump_imm", "JL_IND", "JL", "JNZ", "JZ", "JNZD", "RET"},
    }
    for generation, names in branches.items():
        forms = isa.load(generation).forms
        assert {name: forms[name].delay_slots for name in names} == dict.fromkeys(names, 5)
        assert {form.name for form in forms.values() if form.delay_slots} == names


@pytest.mark.parametrize("generation", ["aie2", "aie2p"])
def test_the_last_stages_are_those_of_widening_loads_and_part_word_stores(generation):
    """VLDA.UPS writes its accumulator at 9; a store of 8 or 16 bits reads its word at 5 and writes it at 11."""
    found = isa.load(generation)
    assert (found.last_stage, found.last_memory_stage) == (9, 11)


@pytest.mark.parametrize(
    ("timing", "last"),
    [
        (FormTiming(), 0), (FormTiming(defs={"d": 7}, uses={"s": 1}), 7), (FormTiming(uses={"s": 9}), 9),
        (FormTiming(implicit_defs={"lr": 4}, implicit_uses={"sp": 5}), 5), (FormTiming(memory_stages=(5, 11)), 0),
        (FormTiming(defs={"d": 2}, resources=(Resource("u", 0), Resource("v", 2, 6))), 8),
    ],
)  # fmt: skip
def test_the_last_stage_is_that_of_registers_and_units(timing: FormTiming, last: int):
    """A unit is taken for so many cycles from the cycle after issue on; memory counts apart."""
    assert timing.last_stage == last
