"""Rules for branches, locks, streams, cascades, events and the end."""

import re

from bdforge.isa.meaning.model import Kind, Meaning
from bdforge.isa.meaning.shape import View

_EVENTS = {"event0": 0, "event1": 1, "WARNING": 2, "ERROR": 3}


def jump(match: re.Match[str], view: View) -> Meaning:
    """J and JL, to an address or by a register."""
    target = next(name for name in view.form.names)
    outputs = ("lr",) if match[0].startswith("JL") else ()
    return Meaning("always", (target,), outputs, kind=Kind.BRANCH)


def conditional(match: re.Match[str], view: View) -> Meaning:
    """JZ and JNZ: the condition is read at the branch."""
    condition, target = ("s0", "i") if "s0" in view.operands else ("op0", "imm")
    return Meaning("zero" if match[0] == "JZ" else "nonzero", (target, condition), kind=Kind.BRANCH)


def counted(_: re.Match[str], view: View) -> Meaning:
    """JNZD: the register is compared before it is decremented."""
    result, condition, target = ("d0", "s0", "a") if "s0" in view.operands else ("op0", "op1", "op2")
    return Meaning("decrement", (target, condition), (result, "srCarry"), kind=Kind.BRANCH)


def back(_: re.Match[str], view: View) -> Meaning:
    """RET."""
    return Meaning("always", ("lr",), kind=Kind.BRANCH)


def lock(match: re.Match[str], view: View) -> Meaning:
    """ACQ and REL: id and value."""
    number = next(name for name in view.form.names)
    value = view.form.names[1]
    return Meaning("acquire" if match[1] == "ACQ" else "release", (number, value), kind=Kind.REQUEST)


def event(match: re.Match[str], view: View) -> Meaning:
    """EVENT: the number is fixed by the form or, on AIE2, an immediate."""
    number = "imm" if match[1] is None else _EVENTS[match[1]]
    return Meaning("event", (number,), kind=Kind.REQUEST)


def done(_: re.Match[str], view: View) -> Meaning:
    """DONE: the core stops; what is under way still lands."""
    return Meaning("done", kind=Kind.REQUEST)


def stream_in(_: re.Match[str], view: View) -> Meaning:
    """A blocking read of the stream."""
    return Meaning("get stream", outputs=(view.result,), kind=Kind.REQUEST)


def stream_out(match: re.Match[str], view: View) -> Meaning:
    """A blocking write to the stream: TLAST is 0, 1 or bit 0 of r28."""
    name = match[0]
    last: str | int = "tlast" if "tlast" in view.form.timing.uses else int("TLAST" in name or name.endswith("_tlast"))
    return Meaning("put stream", (view.source, last), kind=Kind.REQUEST)


def cascade_in(match: re.Match[str], view: View) -> Meaning:
    """A read of the cascade, into a register of its size or one of the parts of a wider one."""
    enable = view.control("crSCDEn", 1)
    part = {None: None, "LO": 0, "HI": 1}.get(match["part"], match["part"])
    part = None if part is None else int(part)
    return Meaning("get cascade", (enable,), (view.result,), kind=Kind.REQUEST, part=part)


def cascade_out(_: re.Match[str], view: View) -> Meaning:
    """A write to the cascade."""
    return Meaning("put cascade", (view.source, view.control("crMCDEn", 1)), kind=Kind.REQUEST)


BUILDERS = (
    (r"JL?_(?:alumv_or|lng|jump_ind|jump_imm)|JL(?:_IND)?", jump),
    (r"JZ|JNZ", conditional),
    (r"JNZD", counted),
    (r"RET", back),
    (r"(ACQ|REL)_mLockId_(?:imm|reg)", lock),
    (r"EVENT(?:_(\w+))?", event),
    (r"DONE", done),
    (r"MOV_lda|MOV_mv_ss2scl", stream_in),
    (r"MOV_st_mMStream_tlast_(?:imm|reg)|MOV_tlast|MOV(?:_TLAST)?_mv_scl2ms(?:_doTlast_reg)?", stream_out),
    (r"VMOV_lda_mv_scd_(?:x|bm)|VMOV_mv_scd|VMOV_(?P<part>[0-3]|LO|HI)(?:_mv_scd_(?:cm|dm_imm))?", cascade_in),
    (r"VMOV_st_mv_mcd_(?:x|bm)|VMOV_mv_mcd", cascade_out),
)
"""Patterns of whole names, with what makes the meaning; the first match holds."""
