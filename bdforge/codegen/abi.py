"""How programs of cores and kernels call each other, on both generations.

Peano's convention as far as it is known: memrefs are bare pointers, in p0, p1, ... in their order; integers and index
values in r0, r1, ... in theirs; a result comes in r0; `lr` holds where to return to, `sp` the end of the caller's
stack, which grows upwards and is as it was when a function returns. Which registers a function of a compiler leaves
alone is not known here, so a core program keeps nothing in registers across its call. Functions that this project
assembles promise more (`Callee.quiet`): they use no stack, leave `KEPT` alone, and all that they store is written
when they return.
"""

from dataclasses import dataclass

from bdforge.devices import Generation
from bdforge.isa import load

POINTERS = tuple(f"p{i}" for i in range(6))
"""Of arguments that are memrefs."""

NUMBERS = tuple(f"r{i}" for i in range(8))
"""Of arguments that are integers."""

RESULT = "r0"
KEPT = tuple(f"r{i}" for i in range(16, 32) if i != 27)
"""What assembled functions leave alone."""

TEMPORARY = tuple(f"r{i}" for i in range(8, 16))
"""What a core program works with between two calls."""


def quiet_cycles(generation: Generation) -> int:
    """After a return, until all that a compiler's function began is done: registers written, and memory."""
    isa = load(generation)
    return max(isa.last_stage, isa.last_memory_stage)


@dataclass(frozen=True, slots=True)
class Callee:
    """A function of machine code. `quiet` ones keep the promise above; others take `stack_bytes` of the stack."""

    name: str
    quiet: bool = False
    stack_bytes: int = 0
