"""Registers: their widths, and the leaf parts that composed ones are made of.

A whole register and its parts share one timeline, so state and hazards are kept per leaf: `x3` is `wl3` (low) and
`wh3`, `dm0` is `bmll0`, `bmlh0`, `bmhl0`, `bmhh0`, `d1` is `m1`, `dn1`, `dj1`, `dc1`. AIE2P's parts are the table
`data/aie2p_aliases.csv`. AIE2's follow from the sizes of its registers (llvm-aie: cm = bml, bmh; bm = two am; x = wl,
wh); that l0 to l7 are the pairs from r16 on, and which half of q goes with qwl, is from the register names alone.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from bdforge.core.isa.errors import IsaError
from bdforge.core.isa.tables import read_parts

SIGN = re.compile(r"Sign[01]?$")
"""Control registers that tell whether lanes are signed: one of a kind on AIE2, two on AIE2P."""

_SIGNS = ("vaddSign", "unpackSign", "packSign", "srsSign", "upsSign")
_RESET: Mapping[str, Mapping[str, int]] = {
    "aie2p": {f"{stem}{digit}": digit for stem in _SIGNS for digit in (0, 1)}, "aie2": {},
}  # fmt: skip

_WIDTHS: Mapping[str, int] = (
    dict.fromkeys(("p", "m", "dn", "dj", "dc", "sp", "lr", "ls", "le", "dp"), 20)
    | dict.fromkeys(("r", "s", "lc", "el", "eh"), 32)
    | dict.fromkeys(("wl", "wh", "amll", "amlh", "amhl", "amhh"), 256)
    | dict.fromkeys(("bmll", "bmlh", "bmhl", "bmhh", "lfl", "lfh", "lfe", "sfl", "sfh"), 512)
    | dict.fromkeys(("ql", "qh"), 64)
    | {"crRnd": 4, "crSat": 2, "srCarry": 1}
    | dict.fromkeys(("crSRSMode", "crUPSMode", "crUnpackSize", "crPackSize", "crSCDEn", "crMCDEn"), 1)
    | dict.fromkeys(_SIGNS, 1)
)
_CONTROL_WIDTH = 32  # control and status registers whose width no source states


@dataclass(frozen=True, slots=True)
class Leaf:
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
def leaves(generation: str, register: str) -> tuple[Leaf, ...]:
    """The leaf parts of a register, low ones first; IsaError for a name that no register has."""
    parts = _parts(generation).get(register)
    if parts is None:
        return (Leaf(register, 0, _width(register)),)
    return tuple(
        Leaf(leaf.name, lsb + leaf.lsb, leaf.bits) for part, lsb, _ in parts for leaf in leaves(generation, part)
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
    """Whether a register is a status flag, `sr` and what it is of; signs of SRS are controls."""
    stem = prefix(leaf)
    return stem.startswith("sr") and stem not in _SIGNS


def _width(register: str) -> int:
    stem = prefix(register)
    if stem in _WIDTHS:
        return _WIDTHS[stem]
    if stem[:2] in ("cr", "sr") or register == "CORE_ID":
        return _CONTROL_WIDTH
    raise IsaError(f"unknown register {register!r}")


@cache
def _parts(generation: str) -> Mapping[str, tuple[tuple[str, int, int], ...]]:
    if generation == "aie2":
        return _aie2_parts()
    # Pointer, FIFO and position that one bit of a FIFO load chooses together (llvm-aie: ePF).
    fifos = {f"plfr{i}": ((f"p{i}", 0, 20), (f"lf{i}", 20, 1024), (f"r{24 + i}", 1044, 32)) for i in range(2)}
    return read_parts() | fifos


def _aie2_parts() -> dict[str, tuple[tuple[str, int, int], ...]]:
    parts: dict[str, tuple[tuple[str, int, int], ...]] = {}
    for i in range(9):
        parts[f"cm{i}"] = _stack(512, f"bml{i}", f"bmh{i}")
        parts[f"bml{i}"] = _stack(256, f"amll{i}", f"amlh{i}")
        parts[f"bmh{i}"] = _stack(256, f"amhl{i}", f"amhh{i}")
    for i in range(12):
        parts[f"x{i}"] = _stack(256, f"wl{i}", f"wh{i}")
    for i in range(2, 6):
        parts[f"y{i}"] = _stack(512, f"x{2 * i}", f"x{2 * i + 1}")
    for i in range(4):
        parts[f"q{i}"] = _stack(64, f"ql{i}", f"qh{i}")
        parts[f"qx{i}"] = ((f"x{i}", 0, 512), (f"q{i}", 512, 128))
        parts[f"qwl{i}"] = ((f"wl{i}", 0, 256), (f"ql{i}", 256, 64))
        parts[f"qwh{i}"] = ((f"wh{i}", 0, 256), (f"qh{i}", 256, 64))
    for i in range(8):
        parts[f"l{i}"] = _stack(32, f"r{16 + 2 * i}", f"r{17 + 2 * i}")
        parts[f"d{i}"] = _stack(20, f"m{i}", f"dn{i}", f"dj{i}", f"dc{i}")
    for i in range(4):
        parts[f"d{i}_3d"] = _stack(80, f"d{i}", f"d{i + 4}")
    return parts


def _stack(bits: int, *names: str) -> tuple[tuple[str, int, int], ...]:
    return tuple((name, bits * i, bits) for i, name in enumerate(names))
