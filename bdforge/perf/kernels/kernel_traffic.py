"""How micro-tiles of C move between memory and accumulators, and the passes over C made of such moves."""

from collections.abc import Callable, Mapping

from bdforge.devices import AIE2, AIE2P, Generation
from bdforge.perf.kernels.blocks import Chain
from bdforge.perf.kernels.kinds import Traffic
from bdforge.perf.kernels.loop import Operation
from bdforge.perf.kernels.operand_loads import load, shuffle
from bdforge.perf.kernels.scheduled_forms import TimedForm, timed_form

FLOAT_PARTS = 3
"""bfloat16 parts of a float32 operand at full precision: each part of one operand is multiplied by each of the other,
nine products in all, and each part but the last is subtracted to reach the next (AIE API, emulated float products)."""

TO_FLOAT_OPERATIONS = 5
"""Operations of the MAC slot that make float32 lanes out of int32 ones (AIE API, `to_float`)."""

_FORMS: Mapping[str, Mapping[str, str]] = {
    AIE2.name: {
        "load sums": "VLDA_dmw_lda_am_ag_pstm_nrm_imm",
        "store": "VST_dmw_sts_w_ag_pstm_nrm_imm",
        "store sums": "VST_dmw_sts_am_ag_pstm_nrm_imm",
        "load bf16": "VLDA_CONV_FP32_BF16_pstm_nrm_imm",
        "store bf16": "VST_CONV_BF16_FP32_ag_pstm_nrm_imm",
        "widen": "VUPS_S32_S16_mv_ups_x2c",
        "widen bf16": "VUPS_S32_S16_mv_ups_x2c",
        "narrow": "VSRS_S16_S32_mv_x_srs",
        "narrow bf16": "VSRS_S16_S32_mv_x_srs",
        "store narrow": "VST_SRS_S16_S32_ag_pstm_nrm_imm",
        "multiply floats": "VMAC_F_vmac_bm_core_dense",
    },
    AIE2P.name: {
        "load sums": "VLDA_dmx_lda_bm_pstm_nrm_imm",
        "store": "VST_dmx_sts_x_pstm_nrm_imm",
        "store sums": "VST_dmx_sts_bm_pstm_nrm_imm",
        "load bf16": "VLDA_CONV_fp32_bf16_dmx_lda_ups_bf_pstm_nrm_imm",
        "store bf16": "VST_CONV_bf16_fp32_dmx_sts_srs_bf_pstm_nrm_imm",
        "widen 2x": "VUPS_2x_mv_ups_x2c_upsSign1",
        "widen 4x": "VUPS_4x_mv_ups_x2d_upsSign1",
        "widen bf16": "VCONV_fp32_bf16_mv_ups_xbf",
        "narrow 2x": "VSRS_2x_mv_x_srs_cm_srsSign1",
        "narrow 4x": "VSRS_4x_mv_x_srs_dm_srsSign1",
        "narrow bf16": "VCONV_bf16_fp32_mv_x_srs_bf",
        "load 2x": "VLDA_UPS_2x_dmx_lda_ups_x2c_pstm_nrm_imm_upsSign1",
        "load 4x": "VLDA_UPS_4x_dmx_lda_ups_x2d_pstm_nrm_imm_upsSign1",
        "store 2x": "VST_SRS_2x_dm_sts_srs_cm_pstm_nrm_imm_srsSign1",
        "store 4x": "VST_SRS_4x_dmx_sts_srs_dm_pstm_nrm_imm_srsSign1",
        "multiply floats": "VMAC_f_vmac_bf_vmul_bf_core_X_X",
        "open blocks": "VLDA_FILL_512",
        "load blocks": "VLDA_POP_512_normal_pop",
        "widen blocks": "VMUL_f_vmul_bfp_vmul_bfp_core_EX_EX",
        "store blocks": "VST_PUSH_576_CONV_bfp16ebs8_fp32",
        "close blocks": "VST_FLUSH_512_CONV_normal_flush",
    },
}
"""Forms of `bdforge.core.isa` by what they do with C. On AIE2 those of 8 and 16 bits take the same slots and cycles."""


def _form(generation: Generation, use: str) -> TimedForm:
    return timed_form(generation, _FORMS[generation.name][use])


TrafficOf = Callable[[Generation, bool], Traffic]
"""Traffic of one micro-tile for a generation; the flag says that it is stored column by column."""


def c_int32(generation: Generation, transposed: bool) -> Traffic:
    if transposed:
        return _turned_words(generation, 4)
    return _repeated(4, (_form(generation, "load sums"),), (_form(generation, "store sums"),))


def c_int16(generation: Generation, transposed: bool) -> Traffic:
    return _narrow_integers(generation, transposed, 2, "2x")


def c_int8(generation: Generation, transposed: bool) -> Traffic:
    return _narrow_integers(generation, transposed, 1, "4x")


def _narrow_integers(generation: Generation, transposed: bool, count: int, ratio: str) -> Traffic:
    if transposed:
        return _turned_narrow(generation, count, ratio)
    if generation == AIE2:
        load = (_form(AIE2, "load sums"), _form(AIE2, "widen"))
        return _repeated(count, load, (_form(AIE2, "store narrow"),))
    return _repeated(count, (_form(AIE2P, f"load {ratio}"),), (_form(AIE2P, f"store {ratio}"),))


def c_f32(generation: Generation, transposed: bool) -> Traffic:
    """AIE2's micro-tile of C is half as large as that of integers."""
    if generation == AIE2P:
        return c_int32(generation, transposed)
    if transposed:
        return _turned_words(AIE2, 2)
    return _repeated(2, (_form(AIE2, "load sums"),), (_form(AIE2, "store sums"),))


def c_bf16(generation: Generation, transposed: bool) -> Traffic:
    count = 1 if generation == AIE2 else 2
    if transposed:
        return _turned_traffic(generation, count, _form(generation, "widen bf16"), _form(generation, "narrow bf16"))
    return _repeated(count, (_form(generation, "load bf16"),), (_form(generation, "store bf16"),))


def c_bfp16(generation: Generation, transposed: bool) -> Traffic:
    """A stream for each tile; a product with an identity block widens C, the store path narrows it.

    Block floats are never transposed.
    """
    load = tuple(_form(generation, f"{what} blocks") for what in ("open", "load", "widen"))
    return _repeated(1, load, tuple(_form(generation, f"{what} blocks") for what in ("store", "close")))


def _turned_words(generation: Generation, count: int) -> Traffic:
    """A tile of `count` registers with 32-bit elements is transposed in two rounds of shuffles."""
    turn, enter_x, store = shuffle(generation), load(generation, "").form, _form(generation, "store")
    if generation == AIE2:
        enter, leave = (timed_form(AIE2, "VMOV_mv_x", **kinds) for kinds in ({"dst": "bm"}, {"src": "bm"}))
        return _repeated(count, (enter_x, turn, turn, enter), (leave, turn, turn, store))
    enter, leave = timed_form(AIE2P, "VSHUFFLE_vec_shuffle_bm"), timed_form(AIE2P, "VMOV_alu_mv_mv_x", src="bm")
    return _repeated(count, (enter_x, turn, enter), (leave, turn, turn, store))


def _turned_narrow(generation: Generation, count: int, ratio: str) -> Traffic:
    which = "" if generation == AIE2 else f" {ratio}"
    return _turned_traffic(generation, count, _form(generation, f"widen{which}"), _form(generation, f"narrow{which}"))


def _turned_traffic(generation: Generation, count: int, widen: TimedForm, narrow: TimedForm) -> Traffic:
    turn, enter_x = shuffle(generation), load(generation, "").form
    return _repeated(count, (enter_x, turn, widen), (narrow, turn, _form(generation, "store")))


def _repeated(count: int, load: Chain, store: Chain) -> Traffic:
    return (load,) * count, (store,) * count


def zero(generation: Generation) -> tuple[Operation, ...]:
    return (Operation((_form(generation, "store"),), (("src", "zeros"),)),)


def zero_blocks(generation: Generation) -> tuple[Operation, ...]:
    """72 bytes to 64 elements: nine vectors to 512."""
    return zero(generation) * 9


def unscale(generation: Generation) -> tuple[Operation, ...]:
    """Four column blocks, three of them shifted right into themselves."""
    return shifted(generation) * 3


def shifted(generation: Generation) -> tuple[Operation, ...]:
    """One micro-tile of int32 shifted by way of 64-bit accumulators, a vector at a time."""
    if generation == AIE2P:
        widen = (Operation((_form(AIE2P, "load 2x"),), (), ("wide",)),)
        narrow = _form(AIE2P, "store 2x")
    else:
        widen = (
            Operation((_form(AIE2, "load sums"),), (), ("lanes",)),
            Operation((_form(AIE2, "widen"),), (("src", "lanes"),), ("wide",)),
        )
        narrow = _form(AIE2, "store narrow")
    return (*widen, Operation((narrow,), (("src", "wide"),))) * 4


def narrowed(wide: TrafficOf, narrow: TrafficOf) -> Callable[[Generation], tuple[Operation, ...]]:
    """One micro-tile loaded into an accumulator as `wide` and stored as `narrow`, block floats by one stream."""

    def body(generation: Generation) -> tuple[Operation, ...]:
        loads, stores = wide(generation, False)[0], narrow(generation, False)[1]
        parts = len(loads) // len(stores)
        enter = tuple(Operation(chain[:1], (), (f"part{i}",)) for i, chain in enumerate(loads))
        return enter + tuple(
            Operation(chain[:1], tuple(("src", f"part{i * parts + p}") for p in range(parts)))
            for i, chain in enumerate(stores)
        )

    return body


def scaled(generation: Generation) -> tuple[Operation, ...]:
    """Lanes of one float product from int32 to bfloat16: conversion, times the row's scale, times the column's."""
    names = ("sums low", "sums high")
    operations = [load(generation, name) for name in names]
    for step in range(TO_FLOAT_OPERATIONS):
        lanes = tuple(("s1", name) for name in names) if step == 0 else (("acc1", f"float{step - 1}"),)
        operations.append(Operation((_multiply(generation),), (*lanes, ("s2", "one")), (f"float{step}",)))
    return (*operations, *_by_two_scales(generation, f"float{TO_FLOAT_OPERATIONS - 1}"))


def scaled_floats(generation: Generation) -> tuple[Operation, ...]:
    """The same from float32."""
    high = load(generation, "sums high")
    return (high, load(generation, "sums"), *_by_two_scales(generation, "sums"))


def _by_two_scales(generation: Generation, value: str) -> tuple[Operation, ...]:
    """Two float32 products, each made of bfloat16 parts of both operands, and the store of the result.

    What the API does between registers and accumulators (moves, constants) is left out; it has the move slot to itself.
    """
    by_row = _float_product(generation, value, "row", "by row")
    by_column = _float_product(generation, "by row", "column", "result")
    return (*by_row, *by_column, Operation((_form(generation, "store bf16"),), (("src", "result"),)))


def _float_product(generation: Generation, left: str, right: str, result: str) -> list[Operation]:
    """Both operands taken apart, then the products of their parts, small ones first, in one accumulator."""
    operations = [*_parts(generation, left, result), *_parts(generation, right, result)]
    pairs = sorted(((i, j) for i in range(FLOAT_PARTS) for j in range(FLOAT_PARTS)), key=sum, reverse=True)
    for place, (i, j) in enumerate(pairs):
        sums = (("acc1", f"{result} {place - 1}"),) if place else ()
        factors = (("s1", f"{result} {left}{i}"), ("s2", f"{result} {right}{j}"))
        name = result if place == len(pairs) - 1 else f"{result} {place}"
        operations.append(Operation((_multiply(generation),), (*sums, *factors), (name,)))
    return operations


def _parts(generation: Generation, value: str, product: str) -> list[Operation]:
    """Each part is narrowed from what the parts before it leave of the value; a constant's value is in a register."""
    narrow = _form(generation, "narrow bf16")
    rest, operations = value, []
    for part in range(FLOAT_PARTS):
        name = f"{product} {value}{part}"
        operations.append(Operation((narrow,), (("src", rest),), (name,)))
        if part < FLOAT_PARTS - 1:
            less = f"{product} {value} less {part}"
            reads = (("acc1", rest), ("s1", name), ("s2", "one"))
            operations.append(Operation((_multiply(generation),), reads, (less,)))
            rest = less
    return operations


def _multiply(generation: Generation) -> TimedForm:
    return _form(generation, "multiply floats")
