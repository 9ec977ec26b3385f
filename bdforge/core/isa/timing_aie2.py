"""Timing of AIE2's forms, derived from their names, operands and `data/aie2_latency.csv`.

For AIE2 only the result stage of each itinerary is known as a table (llvm-aie `AIE2Schedule.td`). The rest follows
from what is known of the families: operands are read at stage 1 save accumulators (3: chains of VMAC at distance 2,
of VMAC.f at 4), the source of VUNPACK (7), shift and modes of VLDA.UPS (7) and the source of 8- and 16-bit stores (7);
memory is read at 5 and written at 5, by VST.SRS and VST.CONV at 7, by 8- and 16-bit stores at 11. Units other than
the lock port and the window of 8- and 16-bit stores are not known, so structural conflicts of others are not checked.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache

from bdforge.core.isa.form_timing import Resource, Timing
from bdforge.core.isa.tables import rows

# Forms by name, first match: the itinerary whose result stage holds; None: no result besides address and counters.
_ITINERARIES: tuple[tuple[str, str | None], ...] = (
    (r"VST|ST_|J(?!NZD)|JNZ_|RET|ACQ|REL|EVENT|DONE|NOP|PADD|MOV_\w*2ms|MOV_\w*tlast\w*|VMOV_mv_mcd", None),
    (r"VLDA_\w*UPS", "VLDA_UPS"),
    (r"VLD|LDA|MOV_\w*ss2scl|VMOV_mv_scd|VMOV_LO|VMOV_HI", "VLDA_W"),
    (r"VUNPACK", "VUNPACK"),
    (r"VMUL_F|VMAC_F|VMSC_F|VNEGMUL_F|VADDM\w+_F|VADD_F|VSUB_F|VNEG\w*_F|VCLR_vclr_BF", "VMACf"),
    (r"VMUL|VMAC|VMSC|VNEGM|VADDM|VSUBM|VNEGSUB|VNEGADD|VCLR|VMOV_D|(VADD|VSUB|VNEG)$", "VMAC"),
    (r"VSRS", "VSRS"),
    (r"VUPS", "VUPS"),
    (r"MUL", "MUL"),
    (r"MOV_D(\d)", r"MOVd\1"),
    (r"V", "VADD"),
)
_TWO_RESULTS = re.compile(r"V(ABS_GTZ|MAXDIFF_LT|SUB_LT|SUB_GE|BNEG_LTZ|MIN_GE|MAX_LT|NEG_GTZ)")
_PART_STORE = re.compile(r"ST_\w*S(8|16)(_|$)")
_ACCUMULATORS = {"eCM", "mCMa", "mBMa"}  # classes of the vec slot's accumulators
# What forms name without a field for it, first match; and registers that they write or read besides.
_FIXED = (
    (r".*COND", {"cond": "r26"}), (r"SEL", {"cond": "r27"}), (r".*doTlast_reg$", {"tlast": "r28"}),
    (r"VINSERT", {"idx": "r29"}), (r"VBCSTSHFL", {"mod": "r29"}), (r"DIVS$", {"sd": "r31"}),
)  # fmt: skip
_IMPLICIT_DEFS = (
    (r"(ADD|SUB|ADC|SBC|ABS|JNZD)(_add_r_ri)?$", {"srCarry": 1}), (r"PADD\w_sp", {"sp": 1}), (r"JL", {"lr": 4}),
)  # fmt: skip
_IMPLICIT_USES = (
    (r".*(?<!no)spill|.*sp_imm", "sp"), (r"(ADC|SBC)$", "srCarry"), (r"RET$", "lr"),
    (r".*SRS|VST_CONV|VCONV_BF16", "crRnd"), (r"V(ABS|MAX|MIN|SUB|LT|GE|EXTRACT)\w*_D\d+$", "crVaddSign"),
)  # fmt: skip
_LOCK_PORT = Resource("LCKREQ", 0, 4)
_PART_WORD = Resource("PART_WORD_STORE", 1, 6)
_OTHER_ACCESS = Resource("PART_WORD_STORE", 0, 1, reserved=True)


@cache
def _latencies() -> Mapping[str, int]:
    return {row["itinerary"]: int(row["result_stage"]) for row in rows("aie2_latency")}


def aie2_timing(name: str, fields: Mapping[str, str]) -> Timing:
    """Timing of the form `name`, whose `fields` are operand names with their classes."""
    if name.startswith("PADDB_"):  # `dst` there are bits that a sibling form has for its result
        fields = {n: kind for n, kind in fields.items() if n != "dst"}
    stage = _result_stage(name)
    results = _results(name, fields, stage)
    defs = dict.fromkeys(results, stage or 1)
    accumulating = re.match(r"V(ADD|SUB)(MAC|MSC)", name) is not None
    uses = {n: _read_stage(name, n, kind) for n, kind in fields.items() if n not in results or accumulating}
    address_defs, ties = _address(name, fields)
    fixed = _fixed(name)
    uses |= dict.fromkeys(fixed, 1)
    if name == "DIVS":
        defs, ties = defs | {"sd_out": 1}, ties | {"sd_out": "sd"}
    return Timing(
        defs=defs | address_defs,
        uses=uses,
        implicit_defs=_implicit_defs(name),
        implicit_uses=_implicit_uses(name),
        bypass=_bypass(name, stage, {**defs, **uses}, fields),
        ties=ties,
        fixed=fixed,
        resources=tuple(_resources(name)),
        memory_stages=_memory_stages(name),
    )


def _result_stage(name: str) -> int | None:
    for pattern, itinerary in _ITINERARIES:
        match = re.match(pattern, name)
        if match:
            return _latencies()[match.expand(itinerary)] if itinerary else None
    return 1


def _results(name: str, fields: Mapping[str, str], stage: int | None) -> list[str]:
    if re.match(r"VLDB_(SPARSE|COMPR)_(POP|PEEK)", name):
        return ["op1"]
    if stage is None:
        return []
    return [n for n in ("dst", "op0", "op1") if n in fields and (n != "op1" or _TWO_RESULTS.match(name))]


def _read_stage(name: str, operand: str, kind: str) -> int:
    if name.startswith("VUNPACK"):
        return 7
    if kind == "eR" and _PART_STORE.match(name):
        return 7
    if operand == "su" and name.startswith("VLDA"):
        return 7
    return 3 if kind in _ACCUMULATORS else 1


def _address(name: str, fields: Mapping[str, str]) -> tuple[dict[str, int], dict[str, str]]:
    """Address registers that the form updates, all at stage 1."""
    counters = ["dc"] if "_2D" in name else ["dcl", "dch"] if "_3D" in name else []
    steps = "ptr" in fields and re.search(r"pstm|ptr_inc|^VLDB_(SPARSE|COMPR)", name)
    return (dict.fromkeys(("ptr_out", *counters), 1), {"ptr_out": "ptr"}) if counters or steps else ({}, {})


def _fixed(name: str) -> dict[str, str]:
    return next((fixed for pattern, fixed in _FIXED if re.match(pattern, name)), {})


def _implicit_defs(name: str) -> dict[str, int]:
    return next((defs for pattern, defs in _IMPLICIT_DEFS if re.match(pattern, name)), {})


def _implicit_uses(name: str) -> dict[str, int]:
    late = 7 if name.startswith(("VLDA", "VLDB", "VUNPACK")) else 1
    uses = {register: 1 for pattern, register in _IMPLICIT_USES if re.match(pattern, name)}
    if re.search(r"SRS|UPS|PACK_[DS]", name) and "UNPACK" not in name:
        uses["crSat"] = late
    dynamic = re.search(r"(SRS|SRSM|UPS|UNPACK|PACK)_\w*D\d", name)
    if dynamic:
        uses[f"cr{dynamic[1].removesuffix('M').capitalize() if 'PACK' in dynamic[1] else dynamic[1][:3]}Sign"] = late
    return uses


def _bypass(name: str, stage: int | None, operands: Iterable[str], fields: Mapping[str, str]) -> dict[str, str]:
    if stage == _latencies()["VMAC"]:
        return {n: "VEC" for n in operands if fields.get(n) in _ACCUMULATORS}
    if stage == _latencies()["VADD"] and name.startswith("V") and not re.match("VU?N?PACK|VFLOOR", name):
        return {n: "MV" for n in operands if fields.get(n, "").startswith("mX")}
    return {}


def _resources(name: str) -> Iterable[Resource]:
    if name.startswith(("ACQ", "REL")):
        yield _LOCK_PORT
    if _PART_STORE.match(name):
        yield _PART_WORD
    elif _memory_stages(name):
        yield _OTHER_ACCESS


def _memory_stages(name: str) -> tuple[int, ...]:
    if _PART_STORE.match(name):
        return (5, 11)
    if re.match(r"VST_\w*(SRS|CONV)", name):
        return (7,)
    return (5,) if re.match(r"V?LD|V?ST_", name) and "TM" not in name else ()
