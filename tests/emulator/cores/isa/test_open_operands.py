"""What no source tells: the last operands of each instruction that are known, and the first that stop a core."""

from collections.abc import Mapping
from typing import Any

import pytest

from bdforge.core import isa
from bdforge.core.isa.errors import OpenError
from support.machine_code import EXECUTORS, drive, memories, run_text

ISA = isa.load("aie2p")
DONE = ISA.encode([ISA.instruction("DONE")])


def lane(value: int, bits: int, index: int = 0) -> int:
    """A register that holds one number in a lane."""
    return (value & ((1 << bits) - 1)) << bits * index


def outcome(executor: Any, form: str, values: tuple[Any, ...], given: Mapping[str, int]) -> Any:
    """The core after an instruction, or the reason why its result is open."""
    drawn = isa.Instruction(ISA.form(form), values)
    core = executor(ISA, ISA.encode([drawn]) + DONE, memories())
    for name, value in given.items():
        core.write(name, value)
    try:
        drive(core)
    except OpenError as error:
        return str(error)
    return core


SRS = "VSRS_2x_mv_w_srs_bm_srsSign1", ("wl2", "bmll1", "s0")
UPS = "VUPS_2x_mv_ups_w2b_upsSign1", ("bmll1", "wl2", "s0")
PACK = "VPACK_mv_pack_w_packSign1", ("wl2", "x1")
NARROW = "VCONV_bf16_fp32_mv_w_srs_bf", ("wl2", "bmll1")
FLOAT = "MOV_alu_mv_alu_fx2flt", ("r2", "r1")
WHOLE = "MOV_alu_mv_alu_flt2fx", ("r2", "r1")
EXTRACT = {bits: (f"VEXTRACT_{bits}_vec_extract_r_vaddSign0", ("r1", "r2", "x1")) for bits in (8, 16, 32)}
EXTRACT[64] = "VEXTRACT_64_vec_extract_r_vaddSign0", ("l0", "r2", "x1")
SPREAD = "VEXTBCST_128_vec_extract_broadcast_r", ("x2", "r2", "x1")
INSERT = "VINSERT_32_mR29_insert", ("x2", "x1", "r1")
SHIFT = "VSHIFT", ("x2", "x1", "x3", "r1")
ALIGN = "VSHIFT_ALIGN", ("x2", "s1", "x1", "x3")
SHUFFLE = "VSHUFFLE_vec_shuffle_x", ("x2", "r1", "x1", "x3")
MATRIX = "VBCSTSHFL_16_vec_broadcast_shuffle_x", ("x2", "r2")
ABS = {bits: (f"VABS_GTZ_{bits}_vaddSign1", ("x2", "x1")) for bits in (8, 16, 32)}
NEGATE = "VNEG_GTZ_16", ("x2", "x1")
PRODUCT = "VMUL_vmul_cm_core_X_Y", ("r1", "x1", "y2", "dm2")
SUM = "VADD_vmac_cm2_add_reg", ("r1", "dm1", "dm2", "dm3")
LANES = "VMUL_f_vmul_bf_vmul_bf_core_Y_Y", ("r1", "y1", "y2", "dm2")
FLOATS = "VADD_f_vmac_cm2_add_reg", ("r1", "dm1", "dm2", "dm3")

ROUNDING = "crRnd is {}, which no source assigns a rounding"
SATURATION = "crSat is 2, which no source explains"
Case = tuple[tuple[str, tuple[Any, ...]], dict[str, int], str]
CASES: list[Case] = [
    *((form, {"crRnd": mode}, ROUNDING.format(mode) if mode in (4, 5, 6, 7, 14, 15) else "")
      for form in (SRS, NARROW) for mode in range(16)),
    *((form, {"crSat": mode}, SATURATION if mode == 2 else "") for form in (SRS, PACK) for mode in range(4)),
    *((UPS, {"wl2": lane(value, 16), "s0": shift, "crSat": 1}, open_) for value, shift, open_ in (
        (1, 30, ""), (1, 31, "what saturation makes"), (-1, 31, ""), (-1, 32, "what saturation makes"), (0, 63, ""),
    )),
    (UPS, {"wl2": 1, "s0": 31, "crSat": 0}, ""),
    (NARROW, {"bmll1": 0x7F800000}, ""), (NARROW, {"bmll1": 0xFF800000}, ""),
    (NARROW, {"bmll1": 0x7F800001}, "a NaN made narrower is open"),
    (NARROW, {"bmll1": lane(0xFFFFFFFF, 32, 15)}, "a NaN made narrower is open"),
    (FLOAT, {"r2": 5, "s2": 0}, ""), (FLOAT, {"r2": 5, "s2": 1}, "a scale by 1 of a scalar is open"),
    (FLOAT, {"r2": (1 << 25) + 2, "s2": 0}, "an integer that is rounded to a float is open"),
    (FLOAT, {"r2": (1 << 25) + 4, "s2": 0}, ""),
    (WHOLE, {"r2": 0x40A00000, "s3": 2}, "a scale by 2 of a scalar is open"),
    (WHOLE, {"r2": 0xCF000000, "s3": 0}, ""), (WHOLE, {"r2": 0x4EFFFFFF, "s3": 0}, ""),
    *((WHOLE, {"r2": bits, "s3": 0}, "a float that is no integer of 32 bits is open")
      for bits in (0x4F000000, 0xCF000001, 0x3FC00000, 0x7F800000, 0x7FC00000)),
    *((form, {"r2": index}, f"lane {index} of {512 // bits}: what an index beyond" if index * bits >= 512 else "")
      for bits, form in EXTRACT.items() for index in (512 // bits - 1, 512 // bits)),
    (SPREAD, {"r2": 3}, ""), (SPREAD, {"r2": 4}, "lane 4 of 4"), (INSERT, {"r29": 15}, ""),
    (INSERT, {"r29": 16}, "lane 16 of 16"),
    (SHIFT, {"r1": 64}, ""), (SHIFT, {"r1": 65}, "shifts by more than 64 bytes are open, this one is by 65"),
    (SHUFFLE, {"r1": 55}, ""), (SHUFFLE, {"r1": 56}, "shuffle mode 56 is unassigned: there are 0 to 55"),
    (MATRIX, {"r29": 55}, ""), (MATRIX, {"r29": 56}, "shuffle mode 56 is unassigned"), (MATRIX, {"r29": 64 + 27}, ""),
    *((ALIGN, {"r30": shift, "s1": step}, open_) for shift, step, open_ in (
        (64, 0, ""), (65, 0, "shifts by more than 64 bytes"), (65, 4, ""), (0, 5, "step 5 of an aligned shift is open"),
        (0, 8 + 4, ""), (0, 7, "step 7"),
    )),
    *((form, {"x1": lane(value, bits, 1)}, open_) for bits, form in ABS.items() for value, open_ in (
        (-(1 << bits - 1) + 1, ""), (-(1 << bits - 1), "a lane beyond the greatest number is open"),
    )),
    (NEGATE, {"x1": lane(-0x7FFF, 16)}, ""), (NEGATE, {"x1": lane(-0x8000, 16)}, "a lane beyond the greatest number"),
    (PRODUCT, {"r1": 0x308}, ""), (PRODUCT, {"r1": 0x10308}, "sub_mask 0x1 of a multiplication is open"),
    (PRODUCT, {"r1": 0x348}, "amode 0, bmode 1, variant 2 of a multiplication are open"),
    (PRODUCT, {"r1": 0x30E}, "amode 3, bmode 1, variant 0 of a multiplication are open"),
    (SUM, {"r1": 0}, ""), (SUM, {"r1": 2}, ""), (SUM, {"r1": 4}, "amode 2 of an addition of accumulators is open"),
    *((SUM, {"r1": conf}, f"conf {conf:#x} of an addition of accumulators is open")
      for conf in (1, 0x400, 0x2000, 0x10000)), (SUM, {"r1": 0x4000}, ""),
    *((FLOATS, {"r1": 4 | conf, "dm1": 0x3F800000}, open_) for conf, open_ in (
        (0, ""), (1, "conf 0x5 of floats is open"), (0x400, "conf 0x404"), (0x2000, "conf 0x2004"), (1 << 16, "conf"),
    )),
    (FLOATS, {"r1": 2, "dm1": 0x3F800000}, "amode 1 of an addition of floats is open"),
    (FLOATS, {"r1": 4, "dm1": 0x00800000}, ""), (FLOATS, {"r1": 4, "dm1": 0x007FFFFF}, ""),
    (FLOATS, {"r1": 4, "dm1": 0x7F7FFFFF}, ""), (FLOATS, {"r1": 4, "dm1": 0x7F800000}, "infinite or no number"),
    (FLOATS, {"r1": 4, "dm1": 0x7F7FFFFF, "dm2": 0x7F7FFFFF}, "a sum beyond fp32 is open"),
    (FLOATS, {"r1": 4, "dm1": 0x3F800000, "dm2": 0xBF800000}, ""),
    (LANES, {"r1": 0x3C, "y1": 0x7F7F, "y2": 0x4000}, "a product beyond fp32 is no number"),
    (LANES, {"r1": 0x3C, "y1": 0x7F7F, "y2": 0x3F80}, ""), (LANES, {"r1": 0x3C, "y1": 0x7F80}, "infinite or no"),
    (LANES, {"r1": 0x3C, "y1": 0xFFC0, "y2": 0x3F80}, "no number"), (LANES, {"r1": 0x3C, "y1": 1, "y2": 1}, ""),
]  # fmt: skip


SHAPES = {  # amode, bmode and variant of conf: who multiplies so
    0x308: "both", 0x310: "both", 0x318: "both", 0x312: "both", 0x31A: "both", 0x300: "aie2", 0x302: "both",
    0x328: "aie2p", 0x35A: "aie2p", 0x30A: "nobody", 0x348: "nobody", 0x30C: "nobody", 0x33A: "aie2", 0x30E: "nobody",
    0x332: "aie2",
    0x388: "nobody",
}  # fmt: skip


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("generation", isa.GENERATIONS)
def test_each_generation_multiplies_in_its_own_shapes(executor: Any, generation: str):
    text = {"aie2p": "vmul dm2, x1, y2, r1", "aie2": "vmul cm2, x1, x2, r1"}[generation]
    for conf, whose in SHAPES.items():
        if whose in ("both", generation):
            run_text(executor, text, {"r1": conf}, generation)
            continue
        modes = f"amode {conf >> 1 & 3}, bmode {conf >> 3 & 3}, variant {conf >> 5 & 7} of a multiplication are open"
        with pytest.raises(OpenError, match=modes):
            run_text(executor, text, {"r1": conf}, generation)


def named(case: Case) -> str:
    """An instruction and its operands."""
    return f"{case[0][0].split('_')[0]} {' '.join(f'{name}={value:#x}' for name, value in case[1].items())}"[:60]


@pytest.mark.daily(every=8)
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("case", CASES, ids=named)
def test_an_operand_is_known_up_to_where_no_source_tells(executor: Any, case: Case):
    (form, values), given, reason = case
    found = outcome(executor, form, values, given)
    told = found if isinstance(found, str) else ""
    assert (reason in told) if reason else not told, f"{form} {values} with {given}: {told or 'is done'}"
