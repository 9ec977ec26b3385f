"""How many bytes an instruction moves, and by which registers it addresses them."""

import re
from collections.abc import Mapping
from functools import cache

from bdforge.isa.forms import Form
from bdforge.isa.machine import load
from bdforge.isa.operands import Immediate

_UNALIGNED = re.compile(r"PADD|_TM|FILL|POP|PUSH|FLUSH|PEEK|RESET|VLDB_4x|MOV")

_AIE2_VECTOR_BYTES = 32  # of every vector access besides those of 128 bits


def access_bytes(generation: str, form: Form) -> int | None:
    """Bytes of a load or store, to which its address must be aligned; None if it accesses no data memory, or walks a
    FIFO or a table, whose addresses need not be aligned.

    From the mnemonic, else from the step of the immediate offsets that the same access has.
    """
    if not form.timing.memory_stages or _UNALIGNED.search(form.name):
        return None
    narrow = re.search(r"_[SUsu](8|16)(_|$)", form.name) if re.match(r"(LDA|ST)_", form.name) else None
    if narrow:
        return int(narrow[1]) // 8
    if re.search(r"_128(_|$)", form.name):
        return 16
    vectors = _AIE2_VECTOR_BYTES if generation == "aie2" and form.name.startswith("V") else None
    return _steps(generation).get(_access(form.name), vectors)


@cache
def _steps(generation: str) -> Mapping[str, int]:
    """Step of the immediates by access."""
    steps: dict[str, int] = {}
    for form in load(generation).forms.values():
        kind = next((f.kind for f in form.fields if f.name == "imm"), None)
        if form.timing.memory_stages and isinstance(kind, Immediate):
            steps[_access(form.name)] = kind.step
    return steps


def _access(name: str) -> str:
    """The form's name without its addressing mode."""
    return re.sub(r"_(ag_)?(idx|pstm_nrm|spill)(_imm)?(?=_|$)", "", re.sub(r"_[23]D(?=_|$)", "", name))
