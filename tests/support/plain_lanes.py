"""The rest of `plain_forms`: scalars, lanes, moves, the multiplier."""

import re
from collections.abc import Callable

import numpy as np

from support.plain_forms import (
    Situation,
    address,
    lanes,
    loaded,
    narrowed,
    packed,
    packed_half,
    sign_of,
    stored,
    unpacked,
    widened,
    width,
)

WORD = 0xFFFFFFFF
SHAPES = {  # rows (AIE2: half), depth, columns, bits of s1, s2 and the accumulator, by amode, bmode, variant
    (0, 0, 0): (8, 16, 8, 8, 4, 32),
    (0, 1, 0): (8, 8, 8, 8, 8, 32), (0, 2, 0): (8, 4, 8, 16, 8, 32), (0, 3, 0): (8, 2, 8, 16, 16, 32),
    (1, 0, 0): (4, 2, 8, 32, 16, 64), (1, 2, 0): (4, 8, 8, 16, 8, 64), (1, 3, 0): (4, 4, 8, 16, 16, 64),
}  # fmt: skip
FOUR_COLUMNS = {(1, 0, 0): (2, 32, 16), (1, 2, 1): (8, 16, 8), (1, 3, 1): (4, 16, 16)}
"""AIE2's products of 4 x depth x 4 into lanes of 64 bits: depth, bits of s1 and s2."""
LANE_WISE = {(0, 1, 1): (64, 8, 32), (1, 3, 2): (32, 16, 64)}


def _signed(value: int) -> int:
    return (value & WORD) - (1 << 32) * (value >> 31 & 1)


def _shifted(value: int, by: int) -> int:
    by = _signed(by)
    return value << by % 32 if by >= 0 else value >> -by % 32


SCALARS: dict[str, Callable[[int, int], int]] = {
    "ADD": lambda a, b: a + b, "SUB": lambda a, b: a - b, "MUL": lambda a, b: a * b, "AND": lambda a, b: a & b,
    "OR": lambda a, b: a | b, "XOR": lambda a, b: a ^ b, "EQ": lambda a, b: a & WORD == b & WORD,
    "NE": lambda a, b: a & WORD != b & WORD, "LTU": lambda a, b: a & WORD < b & WORD,
    "GEU": lambda a, b: a & WORD >= b & WORD, "LT": lambda a, b: _signed(a) < _signed(b),
    "GE": lambda a, b: _signed(a) >= _signed(b), "LSHL": _shifted, "ASHL": lambda a, b: _shifted(_signed(a), b),
}  # fmt: skip
UNARY: dict[str, Callable[[int], int]] = {
    "ABS": lambda a: abs(_signed(a)), "CLZ": lambda a: f"{a:032b}".find("1") if a else 32,
    "CLB": lambda a: len(re.match(r"^(0+|1+)", f"{a:032b}")[0]) - 1, "POPCOUNT": lambda a: f"{a:b}".count("1"),  # type: ignore[index]
    "EQZ": lambda a: a == 0, "NEZ": lambda a: a != 0,
}  # fmt: skip


def scalar(s: Situation) -> None:
    """Scalar arithmetic."""
    base = re.sub(r"_.*", "", s.name)
    d, *sources = s.plain
    values = [s.value(v) for v in sources]
    if s.name.startswith("EXTEND"):
        bits, sign = int(re.findall(r"\d+", s.name)[0]), "s" in s.name
        s.registers[d] = int(lanes(values[0], bits, 1, sign)[0]) & WORD
    elif base in UNARY:
        s.registers[d] = int(UNARY[base](values[0])) & WORD
    elif base in ("MAC", "MSC"):
        s.registers[d] = s.get(d) + (values[0] * values[1] if base == "MAC" else -values[0] * values[1]) & WORD
    elif base == "DIVS":
        rest, divisor = values[-2:] if s.generation == "aie2p" else values[:2]
        both = (rest << 32 | s.get("r31")) << 1 & (1 << 64) - 1
        fits = both >> 32 >= divisor
        s.registers |= {"r31": both & WORD | fits}
        s.registers[d] = (both >> 32) - divisor * fits
    elif base.startswith("SEL"):
        s.registers[d] = values[0] if (s.get("r27") == 0) == ("EQZ" in s.name) else values[1]
    elif base in ("ADC", "SBC"):
        s.registers[d] = values[0] + (values[1] if base == "ADC" else ~values[1]) + s.get("srCarry") & WORD
    else:
        s.registers[d] = int(SCALARS[base](*values)) & WORD


def carry(s: Situation) -> int | None:
    """The carry that a form leaves, None if it leaves none."""
    base = re.sub(r"_.*", "", s.name)
    if base not in ("ADD", "SUB", "ADC", "SBC") or s.name.startswith("ADD_NC"):
        return None
    a, b = (s.value(v) & WORD for v in s.plain[1:3])
    b = b if base in ("ADD", "ADC") else ~b & WORD
    return a + b + {"ADD": 0, "SUB": 1}.get(base, s.get("srCarry")) >> 32


LANE = re.compile(r"(?:_[SDs]?|GTZ)(8|16|32|64|128)(?:_|$)")
"""Bits of a lane, in a form's name."""
MARKED = re.compile(r"V(SUB|MAXDIFF|ABS|NEG|BNEG)_(LTZ|GTZ|LT|GE)")
MAKES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "SUB": lambda a, b: a - b, "MAXDIFF": lambda a, b: np.where(a > b, a - b, 0), "NEG": lambda a, b: 0 - b,
    "ABS": lambda a, b: np.where(b < 0, -b, b), "BNEG": lambda a, b: -1 - b,
}  # fmt: skip
HOLDS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "LT": lambda a, b: b > a, "GE": lambda a, b: b <= a, "GTZ": lambda a, b: b > 0, "LTZ": lambda a, b: b < 0,
}  # fmt: skip
ONE_REGISTER = {
    28: (16, 8, 4), 29: (16, 4, 8), 34: (32, 4, 4), 35: (8, 8, 8), 36: (8, 16, 4), 37: (8, 4, 16), 39: (16, 4, 4),
    40: (16, 4, 2), 41: (16, 2, 4), 42: (16, 8, 2), 43: (16, 2, 8), 44: (16, 16, 2), 45: (16, 2, 16), 46: (8, 8, 4),
    47: (8, 4, 8),
}  # fmt: skip
"""Shuffles of one register, as bits of an element, rows and columns of the matrices that they transpose."""


def transposed(value: int, mode: int) -> int:
    """A register with its matrices transposed one by one."""
    bits, rows, columns = ONE_REGISTER[mode]
    return packed(lanes(value, bits, 512 // bits, False).reshape(-1, rows, columns).swapaxes(1, 2).ravel(), bits)


def vector(s: Situation) -> None:
    """Lanes of 512 bits."""
    digits = LANE.search(s.name)
    bits = int(digits[1]) if digits else 8
    count = 512 // bits
    d, *rest = s.plain
    values = [s.value(v) for v in rest]
    x = [lanes(v, bits, count, sign_of(s, "Vadd")) for v in values]
    if found := MARKED.match(s.name):
        masks = ("l8" if bits == 8 else "r16") if s.generation == "aie2p" else rest[0]
        a, b = x[-2] if len(x) > 1 else x[-1], x[-1]
        made, holds = MAKES[found[1]](a, b), HOLDS[found[2]](a, b)
        s.registers |= {d: packed(made, bits), masks: packed(holds, 1)}
    elif s.name.startswith("VADDSUB"):
        s.registers[d] = packed(x[0] + x[1] * (1 - 2 * lanes(values[2], 1, count, False)), bits)
    elif re.match(r"V(ADD|SUB)_", s.name):
        s.registers[d] = packed(x[0] + x[1] if "ADD" in s.name else x[0] - x[1], bits)
    elif s.name in ("VBAND", "VBOR"):
        s.registers[d] = values[0] & values[1] if s.name == "VBAND" else values[0] | values[1]
    elif re.match(r"V(LT|GE)_", s.name):
        s.registers[d] = packed(x[0] < x[1] if "LT" in s.name else x[0] >= x[1], 1)
    elif re.match(r"V(MAX_LT|MIN_GE)_", s.name):
        masks = "r16" if s.generation == "aie2p" and bits > 8 else "l8" if s.generation == "aie2p" else rest[0]
        a, b = x[-2:]
        mask = a < b if "LT" in s.name else a >= b
        s.registers |= {d: packed(np.where(mask, b, a), bits), masks: packed(mask, 1)}
    elif s.name.startswith("VEQZ"):
        s.registers[d] = packed(x[0] == 0, 1)
    elif s.name.startswith("VSEL"):
        s.registers[d] = packed(np.where(lanes(values[2], 1, count, False) == 1, x[1], x[0]), bits)
    else:
        _placed(s, d, values, x, bits)


def _placed(s: Situation, d: str, values: list[int], x: list[np.ndarray], bits: int) -> None:
    count = 512 // bits
    if s.name.startswith(("VBCSTSHFL", "VEXTBCSTSHFL")):
        lane = x[0][values[1]] if "EXT" in s.name else values[0]
        s.registers[d] = transposed(packed([lane] * count, bits), s.get("r29"))
    elif s.name.startswith("VBCST"):
        s.registers[d] = packed([values[0]] * count, bits)
    elif s.name.startswith("VEXTRACT"):
        s.registers[d] = int(x[0][values[1]]) & ((1 << 8 * width(s, d)) - 1)
    elif s.name.startswith("VEXTBCST"):
        s.registers[d] = packed([x[0][values[1]]] * count, bits)
    elif s.name.startswith("VINSERT"):
        made = list(x[0])
        made[0 if "Imm0" in s.name else s.get("r29")] = values[1]
        s.registers[d] = packed(made, bits)
    elif "PUSH_HI" in s.name.upper():
        s.registers[d] = packed([*x[0][1:], values[1]], bits)
    elif "PUSH_LO" in s.name:
        s.registers[d] = packed([values[0], *x[1][:-1]], bits)
    elif "PUSH_lo" in s.name:
        low, high = (values[0], x[1]) if width(s, s.plain[1]) < 64 else (values[1], x[0])
        s.registers[d] = packed([low, *high[:-1]], bits)
    elif s.name == "VSHIFT_ALIGN":
        o = s.operands
        pre, below, above = (
            s.get(o[k]) for k in (("pre", "s1", "s2") if s.generation == "aie2p" else ("op2", "op1", "op3"))
        )
        shift = s.get("r30" if s.generation == "aie2p" else o["op4"])
        whole = below.to_bytes(64, "little")[(shift if not pre else 2 << pre) :].ljust(64, b"\0")
        s.registers[d] = int.from_bytes(whole[: 64 - shift] + above.to_bytes(64, "little")[:shift], "little")
    elif s.name == "VSHIFT":
        both = values[0].to_bytes(64, "little") + values[1].to_bytes(64, "little")
        s.registers[d] = int.from_bytes(both[values[2] : values[2] + 64], "little")
    else:
        raise AssertionError(f"{s.name} has no rule")


def moved(s: Situation) -> None:
    """Copies."""
    d, *sources = s.plain
    s.registers[d] = s.value(sources[0]) & ((1 << 8 * width(s, d)) - 1) if sources else 0


def _shape(generation: str, key: tuple[int, int, int]) -> tuple[int, ...]:
    if generation == "aie2" and key in FOUR_COLUMNS:
        depth, bits1, bits2 = FOUR_COLUMNS[key]
        return 4, depth, 4, bits1, bits2, 64
    rows, *rest = SHAPES[key]
    return rows // 2 if generation == "aie2" else rows, *rest


def multiplied(s: Situation) -> None:
    """Products, accumulated."""
    dst, *rest = s.plain
    if s.generation == "aie2p" and "ADDM" in s.name:
        dst, rest = s.operands["acc1"], [s.operands[k] for k in ("acc1", "acc2", "s1", "s2", "acc")]
    elif re.match("V(ADD|SUB)M", s.name):
        rest = [dst, *rest]
    *accumulators, s1, s2, conf_register = rest
    conf = s.get(conf_register)
    key = conf >> 1 & 3, conf >> 3 & 3, conf >> 5 & 7
    sign1, sign2 = bool(conf >> 9 & 1), bool(conf >> 8 & 1)
    if key in LANE_WISE:
        count, bits, lane = LANE_WISE[key]
        product = lanes(s.get(s1), bits, count, sign1) * lanes(s.get(s2), bits, count, sign2)
    else:
        rows, depth, columns, bits1, bits2, lane = _shape(s.generation, key)
        a = lanes(s.get(s1), bits1, rows * depth, sign1).reshape(rows, depth)
        product = (a @ lanes(s.get(s2), bits2, depth * columns, sign2).reshape(depth, columns)).ravel()
    minus = ("NEG" in s.name or "MSC" in s.name) != bool(conf >> 11 & 1)
    total = -product if minus else product
    for index, accumulator in enumerate(accumulators):
        value = lanes(s.get(accumulator), lane, len(product), True)
        if index == 0:
            value = value * (0 if conf & 1 else 1 << 16 * (conf >> 10 & 1))
        negated = bool(conf >> 12 + index & 1) != (index == 1 and "SUBM" in s.name)
        total = total + (-value if negated else value)
    s.registers[dst] = packed(total, lane)


def converted(s: Situation) -> None:
    """Widening and narrowing between registers."""
    d, source = s.plain[:2]
    if "UPS" in s.name:
        s.registers[d] = widened(s, s.get(source).to_bytes(width(s, source), "little"), width(s, d))
    elif "SRS" in s.name:
        s.registers[d] = int.from_bytes(narrowed(s, source), "little")
    elif "UNPACK" in s.name:
        s.registers[d] = unpacked(s, s.get(source).to_bytes(width(s, source), "little"))
    else:
        s.registers[d] = int.from_bytes(packed_half(s, source), "little")


def stepped(s: Situation) -> None:
    """PADD."""
    if "ptr" in s.operands:
        address(s)
    else:
        s.registers["sp"] = s.get("sp") + s.value(next(iter(s.operands.values()))) & 0xFFFFF


RULES: tuple[tuple[str, Callable[[Situation], None]], ...] = (
    (r"PADD", stepped),
    (r"V?LD", loaded),
    (r"V?ST_", stored),
    (r"V(UPS|SRSM?|UNPACK|PACK)_", converted),
    (r"V(NEG|ADD|SUB)?(MUL|MAC|MSC)_v", multiplied),
    (r"MOV|VMOV|VCLR", moved),
    (r"V", vector),
    (r"", scalar),
)


def expected(s: Situation) -> Situation:
    """The situation with what it changes; scalars of 20 bits are cut by whoever compares."""
    next(rule for pattern, rule in RULES if re.match(pattern, s.name))(s)
    return s
