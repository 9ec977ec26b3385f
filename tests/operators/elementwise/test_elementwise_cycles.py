"""Cycles that functions claim for a vector, against the busiest slot of their kernels' loops."""

from collections import Counter

import pytest

from bdforge.core.codegen.kernels import assembled
from bdforge.core.isa import load
from bdforge.devices import AIE2, AIE2P, Generation
from bdforge.operators.elementwise.functions import FUNCTIONS

FORMS = {
    AIE2P: {
        "mul bf16": "VMUL_f_vmul_bf_vmul_bf_core_X_X",
        "narrow bf16": "VCONV_bf16_fp32_mv_x_srs_bf",
        "store bf16": "VST_CONV_bf16_fp32_dmx_sts_srs_bf_pstm_nrm_imm",
        "max bf16": "VMAX_LT_16_vaddSign1",
        "widen int8": "VUPS_4x_mv_ups_x2d_upsSign1",
        "add int8": "VADD_vmac_cm2_add_reg",
        "mul int8": "VMUL_vmul_cm_core_X_X",
        "narrow int8": "VSRS_2x_mv_x_srs_cm_srsSign1",
        "unpack int8": "VUNPACK_mv_unpack_x_unpackSign1",
        "store int8": "VST_SRS_4x_dmx_sts_srs_dm_pstm_nrm_imm_srsSign1",
        "max int8": "VMAX_LT_8_vaddSign1",
    },
    AIE2: {
        "mul bf16": "VMUL_F_vmac_bm_core_dense",
        "narrow bf16": "VCONV_BF16_FP32",
        "store bf16": "VST_CONV_BF16_FP32_ag_pstm_nrm_imm",
        "max bf16": "VMAX_LT_S16",
        "widen int8": "VUPS_S32_S8_mv_ups_w2c",
        "add int8": "VADD",
        "mul int8": "VMUL_vmac_cm_core_dense",
        "narrow int8": "VSRS_S16_S32_mv_x_srs",
        "unpack int8": "VUNPACK_S16_S8",
        "store int8": "VST_SRS_S8_S32_ag_pstm_nrm_imm",
        "max int8": "VMAX_LT_S8",
    },
}
HALVES = {AIE2: 1, AIE2P: 2}  # registers of 16-bit lanes that a vector of int8 becomes


def body(function: str, type_: str, halves: int) -> list[tuple[str, int]]:
    """What a vector takes beside its two loads and its store, and how many of each; loads convert nothing."""
    if function == "add":
        return [("widen", 2), ("add", 1)]
    if function == "mul":
        return [("mul", 1)]
    if type_ == "bf16":
        return [("max", 1), ("mul", 1), ("narrow", 1), ("mul", 1)]
    return [("max", 1), ("mul", 1), ("narrow", halves), ("unpack", halves), ("mul", halves)]


@pytest.mark.parametrize("generation", FORMS, ids=lambda generation: generation.name)
@pytest.mark.parametrize(
    ("function", "type_"),
    [("add", "int8"), *((name, type_) for name in ("mul", "relu2_gate") for type_ in ("bf16", "int8"))],
)
def test_a_vector_takes_the_cycles_that_its_function_claims(function: str, type_: str, generation: Generation):
    forms = [f"{what} {type_}" for what, times in body(function, type_, HALVES[generation]) for _ in range(times)]
    isa = load(generation)
    use = Counter(slot for name in (*forms, f"store {type_}") for slot in isa.form(FORMS[generation][name]).slots)
    claimed, found = FUNCTIONS[function].cycles[type_], max(use.values())  # a load in either unit
    assert found == claimed if generation is AIE2P else found <= claimed


@pytest.mark.daily("add", "relu2_gate")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_vector_of_bf16_takes_the_cycles_between_two_as_assembled(name: str):
    function = FUNCTIONS[name]
    few, many = (
        assembled(
            "elementwise_bf16",
            "aie2p",
            (f"FUNCTION={name}", f"OPERANDS={function.operands}", f"TILE_ELEMENTS={32 * vectors}"),
        ).cycles
        for vectors in (20, 30)
    )
    assert many is not None
    assert few is not None
    assert many - few == 10 * function.cycles["bf16"]
