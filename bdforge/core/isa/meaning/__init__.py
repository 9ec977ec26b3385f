"""What instructions do: each form's meaning as data, and the plain operations that make results of operands.

`meaning_of` says which operation a form is on which of its operands, what it loads, stores or branches to; `compute`
does it, on bit patterns. What no source tells is not made up: such forms have no meaning (OpenError with the form),
and operations raise OpenError for operands whose result is not known.
"""

from bdforge.core.isa.meaning import fifo, floats, lanes, multiply, nonlinear, scalar, shuffle, width
from bdforge.core.isa.meaning.floats import ASSUMPTIONS
from bdforge.core.isa.meaning.form_meanings import access_of, bare_name, evidence_of, meaning_of, what_is_open
from bdforge.core.isa.meaning.multiply import macs_of, product_text
from bdforge.core.isa.meaning.nonlinear import Approximated, Approximation, approximated
from bdforge.core.isa.meaning.semantics import (
    ADDRESS,
    APPROXIMATION,
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

__all__ = [
    "ADDRESS", "APPROXIMATION", "ASSUMPTIONS", "DATA", "OPERATIONS", "AddressWalk", "Approximated", "Approximation",
    "Meaning", "MeaningKind", "MemoryAccess", "Partly", "Result", "access_of", "approximated", "bare_name", "compute",
    "evidence_of", "macs_of", "meaning_of", "product_text", "what_is_open",
]  # fmt: skip

_IMPLEMENTING = (fifo, floats, lanes, multiply, nonlinear, scalar, shuffle, width)  # entered their operations on import
