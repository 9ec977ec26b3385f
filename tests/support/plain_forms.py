"""What integer forms do, once more: from their names alone, in numpy and fractions, for comparison.

Nothing here knows how bdforge classifies forms. `expected` tells what an instruction makes of registers and memory.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np

BYTES = {"wl": 32, "wh": 32, "amll": 32, "amlh": 32, "amhl": 32, "amhh": 32, "x": 64, "y": 128, "q": 16, "cm": 128,
         "cml": 128, "cmh": 128, "dm": 256, "ex": 72, "qx": 80, "qex": 88, "l": 8}  # fmt: skip
ADDRESS = 0xFFFFF


@dataclass
class Situation:
    """An instruction with what registers and memory hold before it, and what it should change."""

    generation: str
    name: str
    operands: Mapping[str, Any]
    get: Callable[[str], int]
    load: Callable[[int, int], bytes]
    registers: dict[str, int] = field(default_factory=dict)
    stored: dict[int, bytes] = field(default_factory=dict)

    def value(self, operand: Any) -> int:
        """A register's value, or an immediate."""
        return self.get(operand) if isinstance(operand, str) else operand

    @property
    def plain(self) -> list[Any]:
        """Operands that make no address, results first."""
        skipped = ("ptr", "dj", "mod", "imm", "su") if "ptr" in self.operands else ("su",)
        order = [
            "d",
            "dst",
            "d0",
            "op",
            "cmp",
            "acc1",
            "acc2",
            "s0",
            "s1",
            "s2",
            "src",
            "idx",
            "sel",
            "shift",
            "i",
            "imm",
            "acc",
        ]
        rest = {k: v for k, v in self.operands.items() if k not in skipped}
        if spills(self.name) or self.name.startswith("PADD"):
            rest.pop("imm", None)
        return [rest[k] for k in sorted(rest, key=lambda k: order.index(k) if k in order else 0)]


def spills(name: str) -> bool:
    """Whether a form addresses by the stack pointer."""
    return re.search("(?<!no)spill", name) is not None


def width(situation: Situation, register: str) -> int:
    """Bytes of a register, by its name."""
    stem = register.rstrip("0123456789")
    if stem.startswith("bm") or stem[:2] in ("lf", "sf"):
        return 64
    return BYTES.get(stem, 4)


def lanes(value: int | bytes, bits: int, count: int, sign: bool) -> np.ndarray:
    """Lanes as Python integers, lowest first."""
    number = int.from_bytes(value, "little") if isinstance(value, bytes) else value
    found = [number >> bits * i & ((1 << bits) - 1) for i in range(count)]
    return np.array([v - (1 << bits) if sign and v >> bits - 1 else v for v in found], object)


def packed(values: Any, bits: int) -> int:
    """A register of lanes."""
    return sum((int(v) & ((1 << bits) - 1)) << bits * i for i, v in enumerate(values))


def address(s: Situation) -> int:
    """The address of an access; pointer and counters are stepped."""
    o = s.operands
    if spills(s.name):
        return s.get("sp") + o["imm"] & ADDRESS
    base = s.get(o["ptr"])
    if "_2D" in s.name or "_3D" in s.name:
        first = int(re.findall(r"\d+", o["mod"])[0])
        s.registers |= _walk(s, base, first, first + 4 if "_3D" in s.name else None)
        return base
    offset = next((s.value(o[k]) for k in ("dj", "mod", "imm") if k in o), 0)
    if "pstm" in s.name or s.name.startswith("PADD"):
        s.registers[o["ptr"]] = base + offset & ADDRESS
        return base
    return base + offset & ADDRESS


def _walk(s: Situation, base: int, low: int, high: int | None) -> dict[str, int]:
    made = {}
    step = s.get(f"dj{low}")
    if s.get(f"dc{low}") != s.get(f"dn{low}"):
        made[f"dc{low}"] = s.get(f"dc{low}") + 1
    else:
        made[f"dc{low}"], step = 0, s.get(f"m{low}")
        if high is not None and s.get(f"dc{high}") != s.get(f"dn{high}"):
            made[f"dc{high}"], step = s.get(f"dc{high}") + 1, s.get(f"dj{high}")
        elif high is not None:
            made[f"dc{high}"] = 0
    return made | {s.operands["ptr"]: base + step & ADDRESS}


def sign_of(s: Situation, kind: str) -> bool:
    """Signedness: what the control register holds that the name ends with, or AIE2's."""
    if found := re.search(r"[a-z]+Sign[01]$", s.name):
        return bool(s.get(found[0]))
    return bool(s.get(f"cr{kind}Sign")) if re.search(r"_D\d", s.name) else True


def accumulator_bits(s: Situation, control: str) -> int:
    """Bits of an accumulator's lanes."""
    if found := re.search(r"SRSM?_[SD]\d+_S(32|64)", s.name):
        return int(found[1])
    return 64 if s.get(control) else 32


def rounded(value: int, shift: int, mode: int) -> int:
    """value / 2^shift, rounded."""
    exact = Fraction(int(value), 1 << shift)
    low = floor(exact)
    if exact == low:
        return low
    toward_zero = low if exact > 0 else low + 1
    away = low + 1 if exact > 0 else low
    even = low if low % 2 == 0 else low + 1
    directed = {0: low, 1: low + 1, 2: toward_zero, 3: away}
    if mode in directed:
        return directed[mode]
    if exact - low != Fraction(1, 2):
        return low if exact - low < Fraction(1, 2) else low + 1
    return {8: low, 9: low + 1, 10: toward_zero, 11: away, 12: even, 13: 2 * low + 1 - even}[mode]


def clamped(value: int, bits: int, saturate: int, sign: bool) -> int:
    """A value in the range of a lane."""
    if not saturate:
        return value
    low, high = (-(1 << bits - 1) + (saturate == 3), (1 << bits - 1) - 1) if sign else (0, (1 << bits) - 1)
    return max(low, min(high, value))


def narrowed(s: Situation, source: str) -> bytes:
    """SRS."""
    bits = accumulator_bits(s, "crSRSMode")
    count = width(s, source) * 8 // bits
    total = width(s, source) // (int(found[1]) if (found := re.search(r"_([24])x_", s.name)) else _ratio(s, bits))
    lane = total * 8 // count
    shift = s.get(s.operands["su"]) % 64
    shift -= 64 * (shift >= 60)  # the last four shift up
    values = [
        rounded(v << max(-shift, 0), max(shift, 0), s.get("crRnd")) for v in lanes(s.get(source), bits, count, True)
    ]
    made = [clamped(v, lane, s.get("crSat"), sign_of(s, "SRS")) for v in values]
    return packed(made, lane).to_bytes(total, "little")


def _ratio(s: Situation, bits: int) -> int:
    found = re.search(r"_[SD](8|16|32)(_|$)", s.name)
    assert found
    return bits // int(found[1])


def widened(s: Situation, source: bytes, result_bytes: int) -> int:
    """UPS."""
    bits = 64 if "_S64_" in s.name else 32 if "_S32_" in s.name else accumulator_bits(s, "crUPSMode")
    count = result_bytes * 8 // bits
    values = lanes(source, len(source) * 8 // count, count, sign_of(s, "UPS"))
    return packed([int(v) << s.get(s.operands["su"]) % 64 for v in values], bits)


def unpacked(s: Situation, source: bytes) -> int:
    """UNPACK."""
    wide = re.search(r"_[SD]8$|_[SD]8_ag|_[SD]8_pstm", s.name) if s.generation == "aie2" else s.get("crUnpackSize")
    bits = 8 if wide else 4
    return packed(lanes(source, bits, len(source) * 8 // bits, sign_of(s, "Unpack")), 2 * bits)


def packed_half(s: Situation, source: str) -> bytes:
    """PACK."""
    wide = re.search(r"_[SD]16", s.name) if s.generation == "aie2" else s.get("crPackSize")
    bits, size = 16 if wide else 8, width(s, source)
    values = lanes(s.get(source), bits, size * 8 // bits, True)
    made = [clamped(int(v), bits // 2, s.get("crSat"), sign_of(s, "Pack")) for v in values]
    return packed(made, bits // 2).to_bytes(size // 2, "little")


def loaded(s: Situation) -> None:
    """Loads."""
    dst = s.plain[0]
    if found := re.match(r"LDA_(?:[23]D_)?([sSuU])(8|16)", s.name):
        data = s.load(address(s), int(found[2]) // 8)
        s.registers[dst] = int.from_bytes(data, "little", signed=found[1] in "sS") & 0xFFFFFFFF
    elif "UPS" in s.name:
        factor = int(found[1]) if (found := re.search(r"_([24])x_", s.name)) else _ups_ratio(s)
        s.registers[dst] = widened(s, s.load(address(s), width(s, dst) // factor), width(s, dst))
    elif "UNPACK" in s.name:
        s.registers[dst] = unpacked(s, s.load(address(s), width(s, dst) // 2))
    else:
        s.registers[dst] = int.from_bytes(s.load(address(s), width(s, dst)), "little")


def _ups_ratio(s: Situation) -> int:
    found = re.search(r"_S(32|64)_[SD](8|16|32)", s.name)
    assert found
    return int(found[1]) // int(found[2])


def stored(s: Situation) -> None:
    """Stores."""
    source, at = s.plain[0], address(s)
    if found := re.match(r"ST_(?:[23]D_)?[sS](8|16)", s.name):
        data = s.get(source).to_bytes(4, "little")[: int(found[1]) // 8]
    elif "SRS" in s.name:
        data = narrowed(s, source)
    elif "PACK" in s.name:
        data = packed_half(s, source)
    else:
        size = 16 if "128" in s.name else width(s, source)
        data = s.get(source).to_bytes(max(size, 32), "little")[:size]
    s.stored[at] = data
