"""How programs of cores and kernels call each other, on both generations.

Peano's convention as far as it is known: memrefs are bare pointers, in p0, p1, ... in their order; integers and index
values in r0, r1, ... in theirs; a result comes in r0; `lr` holds where to return to, `sp` the end of the caller's
stack, which grows upwards and is as it was when a function returns. Which registers a function of a compiler leaves
alone is not known here, so a core program keeps nothing in registers across its call. Functions that this project
assembles promise more (`Callee.quiet`): they use no stack, leave `KEPT` alone, and all that they store is written
when they return.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bdforge.core.isa import load
from bdforge.core.isa.flow import TARGET_BYTES
from bdforge.devices import Generation

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


@dataclass(frozen=True, slots=True)
class AssemblyKernel:
    """A function as assembly, which comes from `source`; several of one source have the same text.

    `cycles` are those of a call, from its first bundle to its return, without waits for banks; None where nobody
    counted them.
    """

    callee: Callee
    text: str
    source: str
    cycles: int | None = None


def callees(kernels: Mapping[str, AssemblyKernel]) -> dict[str, Callee]:
    """What core programs must know of kernels."""
    return {name: kernel.callee for name, kernel in kernels.items()}


def joined(texts: Iterable[str]) -> str:
    """Sources one after the other, each once and each function where one may begin."""
    align = TARGET_BYTES.bit_length() - 1
    return "".join(f"\n        .text\n        .p2align {align}\n{text}" for text in dict.fromkeys(texts))
