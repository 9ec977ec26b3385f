"""Rules for branches, locks, streams, cascades, events and the end."""

import re
from dataclasses import replace

from bdforge.core.isa.meaning.semantics import ADDRESS, DATA, Meaning
from bdforge.core.isa.meaning.shape import View

_EVENTS = {"event0": 0, "event1": 1, "WARNING": 2, "ERROR": 3}


def jump(match: re.Match[str], view: View) -> Meaning:
    """J and JL, to an address or by a register."""
    target = next(name for name in view.form.names)
    outputs = ("lr",) if match[0].startswith("JL") else ()
    return Meaning("always", (target,), outputs)


def conditional(match: re.Match[str], view: View) -> Meaning:
    """JZ and JNZ: the condition is read at the branch."""
    condition, target = ("s0", "i") if "s0" in view.operands else ("op0", "imm")
    return Meaning("zero" if match[0] == "JZ" else "nonzero", (target, condition))


def counted(_: re.Match[str], view: View) -> Meaning:
    """JNZD: the register is compared before it is decremented."""
    result, condition, target = ("d0", "s0", "a") if "s0" in view.operands else ("op0", "op1", "op2")
    return Meaning("decrement", (target, condition), (result, "srCarry"))


def _request(name: str, *asks: str | int) -> Meaning:
    """A request without an answer."""
    return Meaning("none", request=name, asks=asks)


def _answered(view: View, name: str, *asks: str | int) -> Meaning:
    """A request whose answer is the form's result."""
    return Meaning("move", (DATA,), (view.result,), request=name, asks=asks)


def lock(match: re.Match[str], view: View) -> Meaning:
    """ACQ and REL: id and value."""
    number, value = view.form.names[:2]
    return _request("acquire" if match[1] == "ACQ" else "release", number, value)


def event(match: re.Match[str], view: View) -> Meaning:
    """EVENT: the number is fixed by the form or, on AIE2, an immediate."""
    return _request("event", "imm" if match[1] is None else _EVENTS[match[1]])


def stream_in(match: re.Match[str], view: View) -> Meaning:
    """A read of the stream; one that does not wait says in srSS0 whether there was a word."""
    if "nb" not in match[0].lower():
        return _answered(view, "get stream")
    outputs, note = (view.result, "srSS0"), "without a word, the register is unknown"
    return Meaning("polled", (DATA,), outputs, request="poll stream", doubtful=outputs[:1], note=note)


def _put(match: re.Match[str], view: View, request: str, *asks: str | int) -> Meaning:
    """A write to the stream: TLAST is 0, 1 or bit 0 of r28; one that does not wait says in srMS0 whether it went."""
    name = match[0].lower()
    last: str | int = "tlast" if "tlast" in view.form.timing.uses else int(bool(re.search("_tlast(?!_imm)", name)))
    if "nb" not in name:
        return _request(f"put {request}", *asks, last)
    return Meaning("move", (DATA,), ("srMS0",), request=f"offer {request}", asks=(*asks, last))


def stream_out(match: re.Match[str], view: View) -> Meaning:
    """A word."""
    return _put(match, view, "stream", view.source)


def packet_header(match: re.Match[str], view: View) -> Meaning:
    """The header of a packet: id and type; the core adds its place and the parity."""
    return _put(match, view, "header", *(view.role(name, ["id"]) for name in ("id", "pcktType")))


def control_header(match: re.Match[str], view: View) -> Meaning:
    """The control word of a packet: address, words, operation, id of the response."""
    address = "addr" if "addr" in view.operands else "mod"
    return _put(
        match, view, "control", address, *(view.role(name, ["", "nw", "op", "id"]) for name in ("nw", "op", "id"))
    )


def cascade_in(match: re.Match[str], view: View) -> Meaning:
    """A read of the cascade, into a register of its size or one of the parts of a wider one."""
    part = {"LO": 0, "HI": 1}.get(match["part"], match["part"])
    part = None if part is None else int(part)
    return replace(_answered(view, "get cascade", view.control("crSCDEn", 1), 0), part=part)


def cascade_in_chosen(_: re.Match[str], view: View) -> Meaning:
    """A read of the cascade into the part of a wide register that r31 numbers, which may then go on to the next."""
    counter = "r" if "r" in view.form.timing.uses else "c"
    counts = (counter, "r_out") if counter == "r" else None
    found = _answered(view, "get cascade", "crSCDEn", counter)
    return replace(found, part=counter, counts=counts, note=AFTER_LAST_PART if counts else "")


AFTER_LAST_PART = "r31 behind the last part is unknown"


def cascade_out(_: re.Match[str], view: View) -> Meaning:
    """A write to the cascade."""
    return _request("put cascade", view.source, view.control("crMCDEn", 1))


def tile_register(match: re.Match[str], view: View) -> Meaning:
    """LDA.TM and ST.TM: a register of the tile, by its offset."""
    stores = match[1] == "ST"
    asked = _request("put register", ADDRESS, view.source) if stores else _answered(view, "get register", ADDRESS)
    return replace(asked, walk=view.walk, offset=view.offset)


_TLAST = "_mMStream_tlast_(?:imm|reg)"
_MODES = "(?:_TLAST)?"

BUILDERS = (
    (r"JL?_(?:alumv_or|lng|jump_ind|jump_imm)|JL(?:_IND)?", jump),
    (r"JZ|JNZ", conditional),
    (r"JNZD", counted),
    (r"RET", lambda _, view: Meaning("always", ("lr",))),
    (r"(ACQ|REL)_mLockId_(?:imm|reg)", lock),
    (r"EVENT(?:_(\w+))?", event),
    (r"DONE", lambda _, view: _request("done")),  # what is under way still lands
    (r"MOV_(?:nb_)?lda|MOV_mv_ss2scl", stream_in),
    (rf"MOV_(?:nb_)?st{_TLAST}|MOV_(?:nb_)?tlast|MOV{_MODES}_mv_scl2ms(?:_doTlast_reg)?", stream_out),
    (rf"MOV_PH(?:_nb)?(?:_tlast|{_TLAST})|MOV{_MODES}_mv_ph2ms(?:_doTlast_reg)?", packet_header),
    (rf"MOV_CPH(?:_nb)?(?:_tlast|{_TLAST})|MOV{_MODES}_mv_cph2ms(?:_doTlast_reg)?", control_header),
    (r"VMOV_lda_mv_scd_dm_(?:dyn|reg)", cascade_in_chosen),
    (r"(LDA|ST)_TM", tile_register),
    (r"MOV_alu_mv_mv_mv_cntr2l|MOV_CNTR", lambda _, view: _answered(view, "get timer")),
    (r"VMOV_lda_mv_scd_(?:x|bm)|VMOV_mv_scd|VMOV_(?P<part>[0-3]|LO|HI)(?:_mv_scd_(?:cm|dm_imm))?", cascade_in),
    (r"VMOV_st_mv_mcd_(?:x|bm)|VMOV_mv_mcd", cascade_out),
)
"""Patterns of whole names, with what makes the meaning; the first match holds."""
