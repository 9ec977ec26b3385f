"""Rules for loads, stores, address steps and what changes width."""

import re
from dataclasses import replace

from bdforge.core.isa.meaning.semantics import DATA, AddressWalk, Meaning, MemoryAccess
from bdforge.core.isa.meaning.shape import View
from bdforge.core.isa.meaning.unknown import open_form

_LINE = 64  # bytes of an accumulator part


UPPER_HALF = "the upper half of the register is unknown"


def padd(_: re.Match[str], view: View) -> Meaning:
    """A step of a pointer or the stack pointer without access."""
    return Meaning("none", walk=view.walk, offset=view.offset)


def _access(view: View, store: bool, size_bytes: int, operation: str, operands: tuple, options: tuple, note: str = ""):
    """A load with `operation` on what it brings, a store of what `operation` makes, or neither without an address."""
    if view.walk is AddressWalk.NONE:
        return Meaning(operation, operands, (view.result,), options, note=note)
    return Meaning(
        operation, operands, (DATA,) if store else (view.result,), options, access=MemoryAccess(store, size_bytes),
        walk=view.walk, offset=view.offset, note=note,
    )  # fmt: skip


def narrow_load(match: re.Match[str], view: View) -> Meaning:
    """LDA of 8 or 16 bits, extended."""
    bits = int(match[2])
    return _access(view, False, bits // 8, "extend", (DATA,), (bits, int(match[1] in "sS")))


def narrow_store(match: re.Match[str], view: View) -> Meaning:
    """ST of 8 or 16 bits."""
    bits = int(match[1])
    return replace(_access(view, True, bits // 8, "store_low", (view.source,), (bits,)), low_bits=bits)


def load(match: re.Match[str], view: View) -> Meaning:
    """A load of a whole register."""
    if "128" in match[0]:
        low = _access(view, False, 16, "low_half", (DATA,), (), UPPER_HALF)
        return replace(low, doubtful=low.outputs)
    word = match[0].startswith("LDA_dms")
    return _access(view, False, 4 if word else view.bits(view.result) // 8, "move", (DATA,), ())


def store(match: re.Match[str], view: View) -> Meaning:
    """A store of a whole register."""
    bits = 128 if "128" in match[0] else 32 if match[0].startswith("ST_dms") else view.bits(view.source)
    return replace(_access(view, True, bits // 8, "store_low", (view.source,), (bits,)), low_bits=bits)


def _source(view: View) -> str | int:
    """What a conversion reads: the loaded data, or a register."""
    return DATA if view.form.timing.memory_stages and view.form.slot in ("lda", "ldb") else view.source


def _lane(match: re.Match[str], view: View, control: str) -> str | int:
    """Whether accumulator lanes have 64 bits: by control register, or in AIE2's names."""
    return control if view.generation == "aie2p" else int(match.groupdict()["acc"] == "64")


def _factor(match: re.Match[str]) -> int:
    found = match.groupdict()
    return int(found["factor"]) if "factor" in found else int(found["acc"]) // int(found["lane"])


def ups(match: re.Match[str], view: View) -> Meaning:
    """VUPS and VLDA.UPS."""
    operands = (_source(view), "su", "crSat", _lane(match, view, "crUPSMode"), view.sign())
    bits = view.bits(view.result)
    widths = (bits // _factor(match), bits)
    note = "the shift wraps; one that overflows under saturation is open"
    return _access(view, False, widths[0] // 8, "ups", operands, widths, note)


def srs(match: re.Match[str], view: View) -> Meaning:
    """VSRS and VST.SRS."""
    operands = (view.source, "su", "crRnd", "crSat", _lane(match, view, "crSRSMode"), view.sign())
    bits = view.bits(view.source)
    widths = (bits, bits // _factor(match))
    note = "shifts by 60 to 63 are up, by 4 to 1"
    return _access(view, True, widths[1] // 8, "srs", operands, widths, note)


def unpack(match: re.Match[str], view: View) -> Meaning:
    """VUNPACK and VLDB.UNPACK."""
    wide = "crUnpackSize" if view.generation == "aie2p" else int(match["lane"] == "8")
    bits = view.bits(view.result) // 2
    return _access(view, False, bits // 8, "unpack", (_source(view), wide, view.sign()), (bits,))


def pack(match: re.Match[str], view: View) -> Meaning:
    """VPACK and VST.PACK."""
    wide = "crPackSize" if view.generation == "aie2p" else int(match["lane"] == "16")
    bits = view.bits(view.source)
    operands = (view.source, "crSat", wide, view.sign())
    return _access(view, True, bits // 16, "pack", operands, (bits,), "the rule of its lanes is by analogy with SRS")


def widen_bf16(_: re.Match[str], view: View) -> Meaning:
    """VCONV.fp32.bf16 and VLDA.CONV."""
    bits = view.bits(view.result)
    return _access(view, False, bits // 16, "widen_bf16", (_source(view),), (bits // 32,))


def narrow_bf16(_: re.Match[str], view: View) -> Meaning:
    """VCONV.bf16.fp32 and VST.CONV."""
    bits = view.bits(view.source)
    if bits < _LINE * 8:  # AIE2's 2D and 3D forms name registers that hold no fp32 of that many lanes
        raise open_form(view.form.name, view.bare)
    return _access(view, True, bits // 16, "narrow_bf16", (view.source, "crRnd"), (bits // 32,), "NaNs are open")


_AIE2_UPS = r"_S(?P<acc>32|64)_[SD](?P<lane>8|16|32)(?:_mv_ups_\w+)?"
_AIE2_SRS = r"M?_[SD](?P<lane>8|16|32)_S(?P<acc>32|64)(?:_mv_\w+)?"

BUILDERS = (
    (r"PADD[ABS].*|PADDXM\w*", padd),
    (r"LDA_([sSuU])(8|16)(?:_dmhb_lda)?", narrow_load),
    (r"ST_[sS](8|16)", narrow_store),
    (r"LDA_dms(?:_lda)?|LDA_dmv_lda_q|VLD[AB](?:_128)?(?:_dmv_lda_w)?", load),
    (r"VLD[AB]_dm[wx]_ld[ab](?:_(?:x|w|bm|am|fifohl))?", load),
    (r"ST_dms(?:_sts)?|ST_dmv_sts_q|VST_128(?:_dmv_sts_w)?|VST_dm[wx]_sts_(?:x|w|bm|am|fifohl)", store),
    (r"(?:VUPS|VLDA_UPS)_(?P<factor>[24])x_\w+", ups),
    (rf"(?:VUPS|VLDA_UPS){_AIE2_UPS}", ups),
    (r"(?:VSRS|VST_SRS)_(?P<factor>[24])x_\w+", srs),
    (rf"(?:VSRS|VST_SRS){_AIE2_SRS}", srs),
    (r"VUNPACK_mv_unpack_\w+|VLDB_UNPACK_dm\w+", unpack),
    (r"(?:VUNPACK|VLDB_UNPACK)_[SD]\d+_[SD](?P<lane>4|8)", unpack),
    (r"VPACK_mv_pack_\w+|VST_PACK_dm\w+", pack),
    (r"(?:VPACK|VST_PACK)_[SD]\d+_[SD](?P<lane>8|16)", pack),
    (r"VCONV_(?:fp32_bf16_\w+|FP32_BF16)|VLDA_CONV_(?:fp32_bf16_\w+|FP32_BF16)", widen_bf16),
    (r"VCONV_(?:bf16_fp32_\w+|BF16_FP32)|VST_CONV_(?:bf16_fp32_\w+|BF16_FP32)", narrow_bf16),
)  # fmt: skip
"""Patterns of whole names without addressing, with what makes the meaning; the first match holds."""
