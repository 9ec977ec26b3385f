"""Text of instructions: it names one form, reads like the compiler's, and comes back as the same code."""

import random
from contextlib import suppress

import pytest
from test_isa_bundles import RECORDED

from bdforge.core import isa
from bdforge.core.isa import EncodeError
from bdforge.core.isa.operand_kinds import RegisterClass
from bdforge.core.isa.syntax import Syntax, match, syntaxes, text_of
from support.instructions import draw


@pytest.mark.parametrize("generation", isa.GENERATIONS)
def test_random_instructions_of_every_form_come_back_from_text(generation):
    isa_ = isa.load(generation)
    rng = random.Random(9)
    for form in isa_.forms.values():
        for _ in range(2):
            drawn = draw(form, rng)
            assert match(isa_, text_of(generation, drawn), {}) == drawn


def _overlap(a: Syntax, b: Syntax) -> bool:
    """Whether some text fits both patterns."""
    if len(a.pattern) != len(b.pattern):
        return False
    return all(_meet(a, x, b, y) for x, y in zip(a.pattern, b.pattern, strict=True))


def _meet(a: Syntax, x: str, b: Syntax, y: str) -> bool:
    """Whether some token fits both items: names in common, or numbers (ranges are taken to meet)."""
    one, other = _names(a, x), _names(b, y)
    return bool(one & other)


def _names(syntax: Syntax, item: str) -> set[str]:
    kind = syntax.form.field(item[1:-1]).kind if item[0] == "{" else None
    if isinstance(kind, RegisterClass):
        return set(kind.codes)
    return {"#0", "#1"} if kind else {item}


@pytest.mark.parametrize("generation", isa.GENERATIONS)
def test_no_text_fits_two_forms(generation):
    for family in syntaxes(generation).values():
        for i, one in enumerate(family):
            for other in family[:i]:
                assert one.form is other.form or not _overlap(one, other), (one.form, other.form)


USUAL = [
    ("aie2p", "VLDA_dmx_lda_x_pstm_nrm_imm", {"dst": "x1", "ptr": "p0", "imm": 64}, "vlda x1, [p0], #64"),
    ("aie2p", "VLDB_dmx_ldb_x_idx_imm", {"dst": "x6", "ptr": "p1", "imm": 0}, "vldb x6, [p1, #0]"),
    ("aie2p", "LDA_dms_lda_spill", {"dst": "r3", "imm": -32}, "lda r3, [sp, #-32]"),
    ("aie2p", "VLDA_2D_dmx_lda_bm", {"dst": "bmll1", "ptr": "p2", "mod": "d1"}, "vlda.2d bmll1, [p2], d1"),
    ("aie2p", "VMAC_vmul_cm_core_X_X", {"dst": "dm0", "acc1": "dm1", "s1": "x1", "s2": "x2", "acc": "r0"},
     "vmac dm0, dm1, x1, x2, r0"),
    ("aie2p", "VUPS_2x_mv_ups_x2c_upsSign1", {"dst": "cml0", "src": "x0", "su": "s0"},
     "vups.2x cml0, x0, s0, upsSign1"),
    ("aie2p", "VST_SRS_4x_dmx_sts_srs_dm_pstm_nrm_imm_srsSign1", {"src": "dm1", "su": "s1", "ptr": "p3", "imm": 64},
     "vst.srs.4x dm1, s1, [p3], #64, srsSign1"),
    ("aie2p", "VMAX_LT_16_vaddSign1", {"d": "x0", "s1": "x1", "s2": "x2"}, "vmax_lt.16 x0, r16, x1, x2, vaddSign1"),
    ("aie2p", "ACQ_mLockId_imm", {"id": 48, "s1": "r0"}, "acq #48, r0"),
    ("aie2p", "PADDXM_pstm_sp_imm", {"imm": 64}, "paddxm [sp], #64"),
    ("aie2p", "MOV_st_mMStream_tlast_reg", {"src": "r1"}, "mov ms, r1, r28"),
    ("aie2p", "VLDA_POP_576_normal_pop", {"dst": "ex0", "ptr": "plfr1"}, "vlda.pop.576 ex0, [p1, lf1, r25]"),
    ("aie2p", "JNZ", {"s0": "r2", "i": 0x120}, "jnz r2, #0x120"),
    ("aie2", "VLDA_UPS_S32_S16_ag_idx_imm", {"op0": "bml1", "su": "s3", "ptr": "p0", "imm": 32},
     "vlda.ups.s32.s16 bml1, s3, [p0, #32]"),
    ("aie2", "VST_SRS_S8_S32_ag_pstm_nrm", {"ptr": "p0", "mod": "m1", "op2": "cm0", "su": "s0"},
     "vst.srs.s8.s32 cm0, s0, [p0], m1"),
    ("aie2", "VMAC_vmac_cm_core_dense", {"op0": "cm0", "op1": "cm0", "op2": "x0", "op3": "x1", "op4": "r0"},
     "vmac cm0, cm0, x0, x1, r0"),
    ("aie2", "EXTENDs8", {"op0": "r0", "op1": "r1"}, "extend.s8 r0, r1"),
    ("aie2", "SELEQZ", {"op0": "r0", "op1": "r1", "op2": "r2"}, "sel.eqz r0, r1, r2, r27"),
    ("aie2", "SELNEZ", {"op0": "r0", "op1": "r1", "op2": "r2"}, "sel.nez r0, r1, r2, r27"),
    ("aie2p", "MOV_alu_mv_alu_flt2fx", {"d0": "r0", "s0": "r1"}, "flt2fx r0, r1, s3"),
    ("aie2p", "MOV_alu_mv_alu_fx2flt", {"d0": "r0", "s0": "r1"}, "fx2flt r0, r1, s2"),
    ("aie2p", "EVENT_event0", {}, "event #0"), ("aie2p", "EVENT_event1", {}, "event #1"),
    ("aie2p", "EVENT_ERROR", {}, "event error"), ("aie2p", "EVENT_WARNING", {}, "event warning"),
    ("aie2", "MOV_NB_TLAST_mv_cph2ms", {"mod": "m0", "imm": 1, "op2": 2, "op3": "r4"},
     "mov.cph.nb.tlast ms, m0, #1, #2, r4"),
]  # fmt: skip


@pytest.mark.parametrize(("generation", "form", "operands", "text"), USUAL)
def test_usual_text(generation, form, operands, text):
    instruction = isa.load(generation).instruction(form, **operands)
    assert text_of(generation, instruction).replace("\t", " ") == text
    assert match(isa.load(generation), text.upper().replace(", ", ","), {}) == instruction


def test_recorded_bundles_come_back_from_text():
    for generation, code, *_ in RECORDED:
        isa_ = isa.load(generation)
        texts = [text_of(generation, instruction) for instruction in isa_.decode(bytes.fromhex(code)).slots]
        assert isa_.encode([match(isa_, text, {}) for text in texts]).hex() == code


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vldaa x0, [p0]", "no instruction 'vldaa'; did you mean vlda"),
        ("ad r0", "'ad'; did you mean and or add or adc?"), ("zzzzzz", "'zzzzzz'"), ("x" * 60, f"'{'x' * 40}'"),
        ("lda r0, [p0, #2]", "#2 is not a multiple of 4; forms: lda mLdaScl, [eP, #-32..28]"),
        ("lda r0, [p0], #32", "#32 is outside -32 to 28 in steps of 4; forms: lda mLdaScl, [eP], #-32..28"),
        ("vlda x0, [p0], #60", "#60 is not a multiple of 64; forms: vlda X, [eP], #-512..448"),
        ("vlda x0, [p0], #512", "#512 is outside -512 to 448"),
        ("add r0, r1", "expected ','; forms: add eR, eR, #-64..63 | add eR, eR, eR"),
        ("add r0, r1, r2, r3", "unexpected ','"),
        ("mul r0, r1, p2", "p2 is not in register class eR"),
        ("vlda.fill.512 [p1, lf0, r24]", "p1, lf0, r24 is none of p0, lf0, r24 or p1, lf1, r25"),
        ("movxm r0, 5", "5 is not a number: write #5"),
        ("movxm r0, #here", "symbol 'here' is not defined"),
        ("movxm r0, #0x1_zz", "is no number"),
        ("ret r0", "unexpected 'r0'"),
    ],
)  # fmt: skip
def test_wrong_text_is_refused_with_the_forms_there_are(text, message):
    with pytest.raises(EncodeError) as caught:
        match(isa.load("aie2p"), text, {})
    assert message in str(caught.value)


def test_junk_text_never_gives_another_fault():
    rng = random.Random(10)
    isa_ = isa.load("aie2p")
    words = [*list(syntaxes("aie2p"))[::40], "r0", "#", "[", "]", ",", "#1", "p0", "x0", "\x00", "é", "#0x", "-", "+"]
    for _ in range(400):
        text = " ".join(rng.choice(words) for _ in range(rng.randrange(1, 7)))
        with suppress(EncodeError):
            match(isa_, text, {})
