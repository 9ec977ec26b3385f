"""Kernels of machine code, as a program that calls them takes them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bdforge.codegen.abi import Callee
from bdforge.isa.flow import TARGET_BYTES


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function as assembly, which comes from `source`; several of one source have the same text.

    `cycles` are those of a call, from its first bundle to its return, without waits for banks; None where nobody
    counted them.
    """

    callee: Callee
    text: str
    source: str
    cycles: int | None = None


def callees(kernels: Mapping[str, Kernel]) -> dict[str, Callee]:
    """What core programs must know of kernels."""
    return {name: kernel.callee for name, kernel in kernels.items()}


def joined(texts: Iterable[str]) -> str:
    """Sources one after the other, each once and each function where one may begin."""
    align = TARGET_BYTES.bit_length() - 1
    return "".join(f"\n        .text\n        .p2align {align}\n{text}" for text in dict.fromkeys(texts))
