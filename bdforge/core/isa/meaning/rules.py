"""Rules from form names to meanings: scalars, vector lanes, the multiplier. Memory and requests are beside."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from bdforge.core.isa.meaning.control_rules import AFTER_LAST_PART
from bdforge.core.isa.meaning.memory_rules import UPPER_HALF
from bdforge.core.isa.meaning.semantics import DATA, Meaning
from bdforge.core.isa.meaning.shape import View
from bdforge.core.isa.meaning.shuffle import AIE2_MODES, MODES


@dataclass(frozen=True, slots=True)
class Rule:
    """Forms whose name without addressing matches `pattern`: operands by role, in assembly order (`roles`).

    `$sign` among the inputs is the register of the form's signedness, a digit a constant. Options are numbers, or
    groups of the pattern in braces.
    """

    pattern: str
    operation: str
    roles: str
    outputs: str
    inputs: str
    options: str = ""
    note: str = ""

    def meaning(self, match: re.Match[str], view: View) -> Meaning:
        """The meaning of a form that matches."""
        roles = self.roles.split()
        inputs = tuple(_input(name, view, roles) for name in self.inputs.split())
        outputs = tuple(view.role(name, roles) for name in self.outputs.split())
        options = tuple(_option(text, match) for text in self.options.split())
        return Meaning(self.operation, inputs, outputs, options, walk=view.walk, offset=view.offset, note=self.note)


def _input(name: str, view: View, roles: list[str]) -> str | int:
    if name == "$sign":
        return view.sign()
    return int(name) if name.isdecimal() else view.role(name, roles)


_FLAGS = {
    word: code
    for code, words in enumerate(
        ("ADD MAC LT EQZ MAX_LT SUB_", "SUB MSC GE NEZ NE MIN_GE MAXDIFF_", "ABS_ GTZ", "NEG_ LTZ", "BNEG_")
    )
    for word in words.split()
}
"""Options by the words of forms that mean them."""


def _option(text: str, match: re.Match[str]) -> int:
    if not text.startswith("{"):
        return int(text)
    group = match[int(text[1:-1])]
    return int(group) if group.isdecimal() else _FLAGS[group]


_SUB_CARRY = "the carry of a subtraction is that of s0 + ~s1 + 1: its polarity is open"
_MARKED = "the mask is of its sources, as those of VMAX_LT and VMIN_GE"
_BINARY = ("d0 s0 s1", "d0", "s0 s1")
_ALONE = "shuffles of one register; those of two are open"
_VECTORS = ("d s1 s2", "d", "s1 s2")
_BITS = r"(8|16|32|64)"

SCALAR = (
    Rule("ADD(?:_alu_r_rr|_add_r_ri)?", "add", "d0 s0 s1", "d0 srCarry", "s0 s1"),
    Rule("SUB", "sub", "d0 s0 s1", "d0 srCarry", "s0 s1", note=_SUB_CARRY),
    Rule("ADC", "adc", "d0 s0 s1", "d0 srCarry", "s0 s1 srCarry"),
    Rule("SBC", "sbc", "d0 s0 s1", "d0 srCarry", "s0 s1 srCarry", note=_SUB_CARRY),
    Rule("ADD_NC(?:_mv_add_r[ri])?", "add_nc", "dst s0 s1", "dst", "s0 s1"),
    Rule("MUL(?:_mul_r_rr)?", "mul", *_BINARY),
    Rule("(MAC|MSC)", "mac", "d0 s0 s1", "d0", "a0 s0 s1", "{1}"),
    Rule("AND", "and", *_BINARY),
    Rule("OR", "or", *_BINARY),
    Rule("XOR", "xor", *_BINARY),
    Rule("EQ", "eq", *_BINARY),
    Rule("NE", "ne", *_BINARY),
    Rule("(LT|GE)", "lt", *_BINARY, "1 {1}"),
    Rule("(LT|GE)U", "lt", *_BINARY, "0 {1}"),
    Rule("LSHL", "shift", *_BINARY, "0"),
    Rule("ASHL", "shift", *_BINARY, "1"),
    Rule("ABS", "abs", "d0 s0", "d0", "s0", note="its carry is open and stays as it was"),
    Rule("CLZ", "clz", "d0 s0", "d0", "s0"),
    Rule("CLB", "clb", "d0 s0", "d0", "s0"),
    Rule("POPCOUNT", "popcount", "d0 s0", "d0", "s0"),
    Rule("(EQZ|NEZ)", "eqz", "d0 s0", "d0", "s0", "{1}"),
    Rule("EXTEND_?s(8|16)", "extend", "d0 s0", "d0", "s0", "{1} 1"),
    Rule("EXTEND_?u(8|16)", "extend", "d0 s0", "d0", "s0", "{1} 0"),
)

LANES = (
    Rule(rf"V(ADD|SUB)_{_BITS}", "vadd", *_VECTORS, "{2} {1}"),
    Rule("VBAND", "vand", *_VECTORS),
    Rule("VBOR", "vor", *_VECTORS),
    Rule(rf"V(LT|GE)_[SD]?{_BITS}(?:_vaddSign.)?", "vcompare", "cmp s1 s2", "cmp", "s1 s2 $sign", "{2} {1}"),
    Rule(rf"V(MAX_LT|MIN_GE)_[SD]?{_BITS}(?:_vaddSign.)?", "vchoose", "d cmp s1 s2", "d cmp", "s1 s2 $sign", "{2} {1}"),
    Rule("V(LT|GE)_(?:bf16|BF16)", "vcompare_bf16", "cmp s1 s2", "cmp", "s1 s2", "{1}"),
    Rule("V(MAX_LT|MIN_GE)_(?:bf16|BF16)", "vchoose_bf16", "d cmp s1 s2", "d cmp", "s1 s2", "{1}"),
    Rule(rf"V(SUB_|MAXDIFF_)(LT|GE)_[SD]?{_BITS}(?:_vaddSign.)?", "vmarked", "d cmp s1 s2", "d cmp", "s1 s2 $sign",
         "{3} {1} {2}", _MARKED),
    Rule(rf"V(ABS_|NEG_|BNEG_)(GTZ|LTZ)_?[SDs]?{_BITS}(?:_vaddSign.)?", "vmarked", "d cmp s2", "d cmp", "s2 s2 $sign",
         "{3} {1} {2}", _MARKED),
    Rule(rf"VEQZ_{_BITS}", "veqz", "cmp s2", "cmp", "s2", "{1}"),
    Rule(rf"VSEL_{_BITS}", "vselect", "d s1 s2 sel", "d", "s1 s2 sel", "{1}"),
    Rule(rf"VBCST_{_BITS}", "vbroadcast", "dst src", "dst", "src", "{1}"),
    Rule(rf"VEXTRACT_[SD]?{_BITS}(?:_vec_extract_(?:imm|r)_vaddSign.)?", "vextract", "dst s1 idx", "dst",
         "s1 idx $sign", "{1}"),
    Rule(rf"VINSERT_{_BITS}_mIdxImm0", "vinsert", "dst s1 src", "dst", "s1 src 0", "{1}"),
    Rule(rf"VINSERT_{_BITS}(?:_mR29_insert)?", "vinsert", "dst s1 src", "dst", "s1 src idx", "{1}"),
    Rule(r"VEXTBCST_(8|16|32|64|128)(?:_vec_extract_broadcast_(?:imm|r)|_mExtractIdxImm|_mRm)", "vextract_broadcast",
         "dst s1 idx", "dst", "s1 idx", "{1}"),
    Rule(rf"VPUSH_(?:hi|HI)_{_BITS}", "vpush_high", "d s1 s2", "d", "s1 s2", "{1}"),
    Rule(rf"VPUSH_(?:lo|LO)_{_BITS}", "vpush_low", "d s1 s2", "d", "s1 s2", "{1}"),
    Rule("VSHIFT", "vshift", "d s1 s2 shift", "d", "s1 s2 shift"),
    Rule("VSHUFFLE_vec_shuffle_(?:x|bm)", "vshuffle", "dst s1 s2 mod", "dst", "s1 s2 mod", str(MODES)),
    Rule("VSHUFFLE", "vshuffle", "dst s1 s2 mod", "dst", "s1 s2 mod", str(AIE2_MODES)),
    Rule(rf"VBCSTSHFL_{_BITS}_vec_broadcast_shuffle_(?:x|bm)", "vbroadcast_shuffle", "dst src mod", "dst", "src mod",
         f"{{1}} {MODES}", _ALONE),
    Rule(rf"VBCSTSHFL_{_BITS}", "vbroadcast_shuffle", "dst src", "dst", "src mod", f"{{1}} {AIE2_MODES}", _ALONE),
    Rule("VEXTBCSTSHFL_(16|32|64|128)", "vextract_broadcast_shuffle", "dst s1 idx", "dst", "s1 idx mod",
         f"{{1}} {MODES}", _ALONE),
    Rule("VCLR(?:_vclr(?:_BF)?)?", "move", "dst", "dst", "0"),
    Rule("VMOV_D", "move", "dst acc1", "dst", "acc1"),
)  # fmt: skip

_IN_RANGE = "normal numbers and zeros, results of 32 bits, scales of 0 to 31"
_SAME_VALUE = "values that stay the same, unscaled"

_MOVES = (
    r"MOVX_(?:alu_cg|mvx_cr_imm|mvx_cr_r|mvx_scl)|MOVXM(?:_lng_cg)?|MOVA(?:_lda_cg)?|MOVS|MOV_[dD][1-6]|MOV_mv_(?:cg|scl)"
    r"|MOV_alu_mv_mv_mv_(?:cg|scl|e_mv_.*)|VMOV_alu_mv_mv_(?:x|w|cm|q|qx|qex|ex|w_to_q)|VMOV_mv_(?:x|cm)"
)


def moves(match: re.Match[str], view: View) -> Meaning:
    """A copy of the one source into the one result."""
    source = next(iter(view.form.timing.uses), "") or "imm"
    source = next((f for f in view.form.names if f != view.result), source)
    return Meaning("move", (source,), (view.result,))


def vmov_w(match: re.Match[str], view: View) -> Meaning:
    """AIE2's copy between registers of 256 bits, accumulator quarters and masks."""
    return Meaning(
        "move", ("op1",), ("op0",), note="copies between q and registers of 256 bits: the upper half is open"
    )


def low_half(match: re.Match[str], view: View) -> Meaning:
    """A copy of 128 bits into a register of 256."""
    copied = moves(match, view)
    return replace(copied, operation="low_half", doubtful=copied.outputs, note=UPPER_HALF)


def select(match: re.Match[str], view: View) -> Meaning:
    """SEL: the condition is r27."""
    condition = "s2" if "s2" in view.operands else "cond"
    roles = ["d0", "s0", "s1"]
    d0, s0, s1 = (view.role(name, roles) for name in roles)
    return Meaning("select", (s0, s1, condition), (d0,), (int(match[1] == "NEZ"),))


def multiplies(match: re.Match[str], view: View) -> Meaning:
    """VMUL, VMAC, VADDMAC and their negations, of integers."""
    accumulators = 0 if match[2] == "MUL" else 2 if match[2][:3] in ("ADD", "SUB") else 1
    operands = [*["acc1", "acc2"][:accumulators], "s1", "s2", "acc"]
    roles = operands if accumulators == 2 else ["dst", *operands]  # the sum lands in its first accumulator
    inputs = tuple(view.role(name, roles) for name in operands)
    minus = int(match[1] == "NEG" or match[2].endswith("MSC")), int(match[2].startswith("SUB"))
    result = next(iter(view.form.timing.defs))
    return Meaning("multiply", inputs, (result,), (int(view.generation == "aie2"), accumulators, *minus))


_WORD_ADDED = "the word is added at its part, nothing at the others"


def from_cascade(match: re.Match[str], view: View) -> Meaning:
    """A sum whose second addend is a word of the cascade, at the part that r31 numbers."""
    floats = float_accumulates if match["sum"] else float_multiplies
    plain = (floats if "_f_" in match[0] else accumulates if match["sum"] else multiplies)(match, view)
    counter = "r" if "r" in view.form.timing.uses else "c"
    return replace(
        plain, inputs=tuple(DATA if name in ("acc2", "imm") else name for name in plain.inputs),
        request="get cascade", asks=("crSCDEn", counter), counts=(counter, "r_out") if counter == "r" else None,
        note="; ".join(filter(None, (plain.note, _WORD_ADDED, AFTER_LAST_PART * (counter == "r")))),
    )  # fmt: skip


_NUMBERS = "normal numbers and zeros; all else is open"
_EDGES = "zeros of sums, but +0 and +0, by `float-edges`"
_ANY_ORDER = "sums that are the same in any order, others by `float-edges`"


def float_multiplies(match: re.Match[str], view: View) -> Meaning:
    """The same of bf16 lanes, and of block floats."""
    name = match[0]
    accumulators = 2 if name.startswith("VADDM") else 0 if "MUL_" in name else 1
    inputs = (*["acc1", "acc2"][:accumulators], "s1", "s2", "acc")
    minus = int(name.startswith("VNEG") or "MSC_" in name)
    half = name.endswith("X_X")
    options = (accumulators, minus, 32 if half else 64 if name.endswith("Y_Y") else 0)
    notes = (
        [_NUMBERS]
        + [_EDGES] * (accumulators > 0)
        + [_ANY_ORDER] * (accumulators == 2)
        + ["lanes 32 to 63 are unknown"] * half
    )
    result = next(iter(view.form.timing.defs))
    return Meaning(
        "fmultiply", inputs, (result,), options, doubtful=(result,) * half, low_bits=1024 * half, note="; ".join(notes)
    )


_ALIGNED = "terms are rounded at the greatest exponent, then their sum"


def float_matrices(match: re.Match[str], view: View) -> Meaning:
    """VMUL, VNEGMUL and VMAC of AIE2's matrices of bf16."""
    accumulators = int(match[2] == "MAC")
    operands = [*["acc1"][:accumulators], "s1", "s2", "acc"]
    inputs = tuple(view.role(name, ["dst", *operands]) for name in operands)
    options = accumulators, int(match[1] is not None)
    return Meaning("fmatrix", inputs, (view.role("dst", ["dst"]),), options, note=f"{_NUMBERS}; conf 0x1c; {_ALIGNED}")


def float_accumulates(match: re.Match[str], view: View) -> Meaning:
    """VADD, VSUB, VNEG of accumulators of floats."""
    found = accumulates(match, view)
    aie2 = int(view.generation == "aie2")
    options = (*found.options, *[0] * (3 - len(found.options)), aie2)
    note = f"{_NUMBERS}; {_ALIGNED if aie2 else _EDGES}"
    return replace(found, operation="faccumulate", options=options, note=note)


def accumulates(match: re.Match[str], view: View) -> Meaning:
    """VADD, VSUB, VNEG of accumulators."""
    count = 1 if match[1] == "NEG" else 2
    roles = ["dst", *["acc1", "acc2"][:count], "acc"]
    inputs = tuple(view.role(name, roles) for name in roles[1:])
    minus = {"ADD": (0, 0), "SUB": (0, 1), "NEG": (1,)}[match[1]]
    result = view.role("dst", roles)
    return Meaning("accumulate", inputs, (result,), (view.bits(result), *minus))


_FLOATS = "_core_(?:X_X|Y_Y|EX_E[XY])"


def _named(name: str) -> re.Match[str]:
    """A match whose first group is what is done."""
    found = re.match(r"V([A-Z]+)", name)
    assert found
    return found


CONVERSIONS = (
    Rule("VCONV_bfp16ebs8_fp32", "blocks_bfp16", "dst src", "dst", "src crRnd",
         note="crRnd 0 and 12; normal numbers, and zeros beside greater ones"),
    Rule("VFLOOR_s32_bf16_mv_float_to_int_w", "floor_bf16", "dst src shft", "dst", "src shft", note=_IN_RANGE),
    Rule("VFLOOR_S32_BF16_mFl2FxSrc_(?:W|AM)", "floor_bf16", "dst src shft", "dst", "src shft", note=_IN_RANGE),
    Rule("MOV_alu_mv_alu_fx2flt", "to_float", "d0 s0", "d0", "s0 s2", note=_SAME_VALUE),
    Rule("MOV_alu_mv_alu_flt2fx", "to_integer", "d0 s0", "d0", "s0 s3", note=_SAME_VALUE),
)  # fmt: skip

Builder = Callable[[re.Match[str], View], Meaning]

BUILDERS: tuple[tuple[str, Builder], ...] = (
    *((rule.pattern, rule.meaning) for rule in SCALAR + LANES + CONVERSIONS),
    (r"SEL_?(EQZ|NEZ)", select),
    (_MOVES, moves),
    (r"VMOV_mv_w", vmov_w),
    (r"VMOV_alu_mv_mv_q_to_w", low_half),
    (r"V(NEG)?(MUL|(?<!NEG)MAC|(?<!NEG)MSC)_v(?:mul_cm_core_[XY]_[XY]|mac_cm_core_dense)", multiplies),
    (r"V()((?:ADD|SUB)M(?:AC|SC))_(?:vmac_cm2_add_reg_vmul_cm_core_[XY]_[XY]|vmac_bm_core_dense)", multiplies),
    (r"V(NEG)?(ADDMAC|ADDMSC)(?P<sum>)_vmac_cm2_add_scd(?:_incr)?_vmul_cm_core_[XY]_[XY]", from_cascade),
    (r"V(?P<sum>ADD|SUB)_vmac_cm2_add_scd(?:_incr)?", from_cascade),
    (r"V(NEG)?(MUL|(?<!NEG)MAC)_F_vmac_bm_core_dense", float_matrices),
    (rf"V(?:NEG)?(?:MUL|MAC|MSC)_f_v\w+{_FLOATS}|VADDM(?:AC|SC)_f_\w+add_reg_\w+{_FLOATS}", float_multiplies),
    (rf"VADDM(?:AC|SC)_f(?P<sum>)_\w+add_scd_(?:incr_)?\w+{_FLOATS}", from_cascade),
    (r"V(?P<sum>ADD|SUB)_f_vmac_cm2_add_scd(?:_incr)?", from_cascade),
    (r"V(ADD|SUB)_f_vmac_cm2_add_reg|V(ADD|SUB|NEG)_[fF]", lambda m, v: float_accumulates(_named(m[0]), v)),
    (r"V(ADD|SUB)_vmac_cm2_add_reg|V(?:ADD|SUB)", lambda m, v: accumulates(_named(m[0]), v)),
    (r"V(NEG)", accumulates),
)
"""Patterns of whole names without addressing, with what makes the meaning; the first match holds."""

NOTHING = Meaning("none")
