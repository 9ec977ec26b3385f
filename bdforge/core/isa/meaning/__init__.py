"""What instructions do: each form's meaning as data, and the plain operations that make results of operands.

`meaning_of` says which operation a form is on which of its operands, what it loads, stores or branches to; `compute`
does it, on bit patterns. What no source tells is not made up: such forms have no meaning (OpenError with the form),
and operations raise OpenError for operands whose result is not known.
"""

import re
from functools import cache

from bdforge.core.isa.errors import OpenError
from bdforge.core.isa.forms import Form
from bdforge.core.isa.meaning import control_rules, floats, lanes, memory_rules, multiply, rules, scalar, width
from bdforge.core.isa.meaning.floats import ASSUMPTIONS
from bdforge.core.isa.meaning.multiply import macs_of
from bdforge.core.isa.meaning.semantics import (
    ADDRESS,
    DATA,
    OPERATIONS,
    AddressWalk,
    Meaning,
    MeaningKind,
    MemoryAccess,
    Partly,
    Result,
    compute,
)
from bdforge.core.isa.meaning.shape import View
from bdforge.core.isa.meaning.unknown import open_form

__all__ = [
    "ADDRESS",
    "ASSUMPTIONS",
    "DATA",
    "OPERATIONS",
    "AddressWalk",
    "Meaning",
    "MeaningKind",
    "MemoryAccess",
    "Partly",
    "Result",
    "access_of",
    "compute",
    "macs_of",
    "meaning_of",
]  # fmt: skip

_IMPLEMENTING = (floats, lanes, multiply, scalar, width)  # entered their operations on import
_BUILDERS = [
    (re.compile(pattern), build)
    for pattern, build in (*control_rules.BUILDERS, *memory_rules.BUILDERS, *rules.BUILDERS)
]


@cache
def meaning_of(generation: str, form: Form) -> Meaning:
    """What a form does; OpenError if no source tells."""
    if form.name.startswith("NOP"):
        return rules.NOTHING
    view = View(generation, form)
    for pattern, build in _BUILDERS:
        match = pattern.fullmatch(view.bare)
        if match:
            return build(match, view)
    raise open_form(form.name, view.bare)


def access_of(generation: str, form: Form) -> MemoryAccess | None:
    """The load or store of data memory in a form, if there is one and sources tell what the form does."""
    try:
        return meaning_of(generation, form).access
    except OpenError:
        return None
