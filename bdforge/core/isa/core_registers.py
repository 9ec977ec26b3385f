"""Registers: their widths, and the leaf parts that composed ones are made of.

A whole register and its parts share one timeline, so state and hazards are kept per leaf: `x3` is `wl3` (low) and
`wh3`, `dm0` is `bmll0`, `bmlh0`, `bmhl0`, `bmhh0`, `d1` is `m1`, `dn1`, `dj1`, `dc1` (`data/*_aliases.csv`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from bdforge.core.isa.errors import IsaError
from bdforge.core.isa.isa_tables import read_parts, rows

SIGN = re.compile(r"Sign[01]?$")
"""Control registers that tell whether lanes are signed: one of a kind on AIE2, two on AIE2P."""

_SIGNS = ("vaddSign", "unpackSign", "packSign", "srsSign", "upsSign")
_RESET: Mapping[str, Mapping[str, int]] = {
    "aie2p": {f"{stem}{digit}": digit for stem in _SIGNS for digit in (0, 1)}, "aie2": {},
}  # fmt: skip

_CONTROL_WIDTH = 32  # control and status registers whose width no source states


@dataclass(frozen=True, slots=True)
class RegisterLeaf:
    """A part that has no parts: its name, its lowest bit in the whole register, its bits."""

    name: str
    lsb: int
    bits: int


def prefix(register: str) -> str:
    """A register's name without its number: `bmhl3` -> `bmhl`, `d0_3d` -> `d_3d`."""
    stem = register.removesuffix("_3d")
    letters = stem.rstrip("0123456789")
    return letters if stem == register else letters + "_3d"


@cache
def leaves(generation: str, register: str) -> tuple[RegisterLeaf, ...]:
    """The leaf parts of a register, low ones first; IsaError for a name that no register has."""
    parts = _parts(generation).get(register)
    if parts is None:
        return (RegisterLeaf(register, 0, _width(register)),)
    return tuple(
        RegisterLeaf(leaf.name, lsb + leaf.lsb, leaf.bits)
        for part, lsb, _ in parts
        for leaf in leaves(generation, part)
    )


def width(generation: str, register: str) -> int:
    """Bits of a register; IsaError for a name that no register has."""
    return max(leaf.lsb + leaf.bits for leaf in leaves(generation, register))


def reset_values(generation: str) -> Mapping[str, int]:
    """What registers hold when a core starts, where it is not 0.

    AIE2P's signs: those that end with 1 are signed. That is from programs which read `srsSign0`, `upsSign0` and
    `upsSign1` without writing them; whoever reads the others writes them too, so theirs is an assumption.
    """
    return _RESET[generation]


def is_status(leaf: str) -> bool:
    """Whether a register is a status flag, `sr` and what it is of, which several may set; signs of SRS are controls."""
    stem = prefix(leaf)
    return stem.startswith("sr") and stem not in _SIGNS


def _width(register: str) -> int:
    stem = prefix(register)
    if stem in (known := _widths()):
        return known[stem]
    if stem[:2] in ("cr", "sr") or register == "CORE_ID":
        return _CONTROL_WIDTH
    raise IsaError(f"unknown register {register!r}")


@cache
def _widths() -> Mapping[str, int]:
    """Bits of registers by their names without numbers, on both generations."""
    return {row["registers"]: int(row["bits"]) for row in rows("widths")}


@cache
def _parts(generation: str) -> Mapping[str, tuple[tuple[str, int, int], ...]]:
    return read_parts(generation)
