"""Forms whose meaning no source tells, by family, with what is missing."""

import re

from bdforge.isa.errors import OpenError

_COND = "the polarity of the condition in r26 is not told"
_FIFO_LOAD = "whether the pointer goes on by lines or by the bytes taken, and by what a fill moves it, is told two ways"
_FIFO_STORE = "what r26 counts, and by what the pointer goes on, is not told"
_FLOAT_SCALAR = "its bits are not published"
_SPARSE = "which of the operand's elements a sparse product takes for a mask is not told"

FAMILIES: tuple[tuple[str, str], ...] = (
    (r"(ACQ|REL)_COND_.*", _COND),
    (r"DIVS", "one step of a division with r31; the step is not told"),
    (r"(INV|SQRT|INVSQRT)_.*|VTANH|VEXP2", f"an approximation: {_FLOAT_SCALAR}"),
    (r"MOV_alu_mv_alu_(flt2fx|fx2flt)", _FLOAT_SCALAR),
    (r"(LDA|ST)_TM", "registers of the tile are not modelled as memory"),
    (r"MOV_(nb|NB)_.*|MOV_(PH|CPH)_.*|MOV_.*_(ph|cph)2ms.*", "non-blocking streams and headers are not modelled"),
    (r"MOV_alu_mv_mv_mv_cntr2l|MOV_CNTR", "the tile's timer is not modelled"),
    (r"VLD[AB](_FILLX?|_POPX?)_.*", _FIFO_LOAD),
    (r"VST_(PUSH|FLUSH)_.*", _FIFO_STORE),
    (
        r"VLD[AB](_dmv_lda_w)?(_128)?(_dmv_lda_w)?",
        "what is left in the upper half of a register of 256 bits is not told",
    ),
    (r"VMOV_alu_mv_mv_q_to_w", "what is left in the upper half of a register of 256 bits is not told"),
    (r"VLDB_4x(16|32|64)_(hi|lo|HI|LO)", "how the addresses and elements of a gather lie is not told"),
    (r"VLDB_(COMPR|SPARSE)_.*", "the format of compressed data, and how its FIFO goes on, is not told"),
    (r"VLD[AB].*|VMOV_alu_mv_mv_q_to_w", "what is left in the upper half of a register of 256 bits is not told"),
    (r"VMOV_lda_mv_scd_dm_(dyn|reg)", "which part r31 chooses is not told"),
    (r"VADDSUB_.*", "whether a set bit of the mask adds or subtracts is not told"),
    (r"VSHIFT_ALIGN", "the use of its two shifts is not told"),
    (r"VSHUFFLE_vec_shuffle_ex", "how exponents go with their mantissas is not told"),
    (r"VCONV_bfp16.*", "rounding and order of block floats are told for some modes only"),
    (r"VFLOOR_.*", "saturation and scale are not told"),
    (r"VST_CONV_BF16_FP32", "the register class of its source is not told"),
    (r"V\w+_(?:[EXY]+_Q\w+|sparse_(?:narrow|wide))", _SPARSE),
    (r"V\w+_scd(_incr)?(_vmul\w+)?", "how a word of the cascade lies in an accumulator is not told"),
    (r"V\w*ADDM[AS]C_f_.*", "the order of three floats in a sum is not told"),
    (r"V\w+_f_vm\w+_bf_core_X_X", "what becomes of lanes 32 to 63 is not told"),
    (r"V(ADD|SUB|NEG)_f.*", "its conf is not told"),
    (r"V\w+_F(_.*)?", "the conf of floats is not told, nor how a sum of several products is rounded"),
    (r"VNEG(MAC|MSC|ADD|SUB)(_.*)?", "which of its terms is negated is not told"),
)
"""Patterns of whole names without addressing, with what is missing; the first match holds."""


def missing(bare: str) -> str:
    """What no source tells of a form without meaning, by its name without addressing; "" for one of no family."""
    return next((reason for pattern, reason in FAMILIES if re.fullmatch(pattern, bare)), "")


def open_form(name: str, bare: str) -> OpenError:
    """The error for a form without meaning."""
    return OpenError(f"what {name} does is open: {missing(bare) or 'no source tells'}")
