"""Forms whose meaning no source tells, by family, with what is missing."""

import re

from bdforge.core.isa.errors import OpenError

_COND = "the polarity of the condition in r26 is not told"
_FIFO_LOAD = "whether the pointer goes on by lines or by the bytes taken, and by what a fill moves it, is told two ways"
_FIFO_STORE = "what r26 counts, and by what the pointer goes on, is not told"
_FLOAT_SCALAR = "its bits are not published"
_SPARSE = "which of the operand's elements a sparse product takes for a mask is not told"

FAMILIES: tuple[tuple[str, str], ...] = (
    (r"(ACQ|REL)_COND_.*", _COND),
    (r"DIVS", "one step of a division with r31; the step is not told"),
    (r"(INV|SQRT|INVSQRT)_.*|VTANH|VEXP2", f"an approximation: {_FLOAT_SCALAR}"),
    (r"MOV_NB_.*", "the stage at which it says whether it went is not told on AIE2"),
    (r"VLD[AB](_FILLX?|_POPX?)_.*", _FIFO_LOAD),
    (r"VST_(PUSH|FLUSH)_.*", _FIFO_STORE),
    (r"VLDB_4x(16|32|64)_(hi|lo|HI|LO)", "how the addresses and elements of a gather lie is not told"),
    (r"VLDB_(COMPR|SPARSE)_.*", "the format of compressed data, and how its FIFO goes on, is not told"),
    (r"VADDSUB_.*", "whether a set bit of the mask adds or subtracts is not told"),
    (r"VSHIFT_ALIGN", "the use of its two shifts is not told"),
    (r"VSHUFFLE_vec_shuffle_ex", "how exponents go with their mantissas is not told"),
    (r"VCONV_bfp16.*", "nothing is told of blocks of 16"),
    (r"VFLOOR_.*", "what its bit for registers of 512 bits chooses is not told"),
    (r"VST_CONV_BF16_FP32", "the register class of its source is not told"),
    (r"V\w+_(?:[EXY]+_Q\w+|sparse_(?:narrow|wide))", _SPARSE),
    (r"V\w+_F(_.*)?", "which of its terms is negated, or how two accumulators join products, is not told"),
    (r"VNEG(MAC|MSC|ADD|SUB)(_.*)?", "which of its terms is negated is not told"),
)
"""Patterns of whole names without addressing, with what is missing; the first match holds."""


def missing(bare: str) -> str:
    """What no source tells of a form without meaning, by its name without addressing; "" for one of no family."""
    return next((reason for pattern, reason in FAMILIES if re.fullmatch(pattern, bare)), "")


def open_form(name: str, bare: str) -> OpenError:
    """The error for a form without meaning."""
    return OpenError(f"what {name} does is open: {missing(bare) or 'no source tells'}")
