"""Signs are control registers that forms read when they run, and SRS shifts up where its shift is the greatest four."""

from fractions import Fraction
from math import floor

import pytest

from bdforge.core import isa
from bdforge.core.isa.assembler import assemble
from bdforge.core.isa.hazards import check_source
from support.machine_code import EXECUTORS, run_text

LOW = 0xFFFF
SIGNED = {  # what reads each kind of sign: text, registers, result where lanes are unsigned, and where they are signed
    "vadd": ("vextract.16 r0, x1, #0, {}", {"x1": LOW}, {"r0": LOW}, {"r0": 0xFFFFFFFF}),
    "unpack": ("vunpack x0, wl1, {}", {"wl1": 0x8F, "crUnpackSize": 1}, {"x0": 0x8F}, {"x0": 0xFF8F}),
    "pack": ("vpack wl0, x1, {}", {"x1": 0xFF7F, "crSat": 1}, {"wl0": 0x0F}, {"wl0": 0xF7}),
    "srs": ("vsrs.2x wl0, bmll1, s0, {}", {"bmll1": 0xFFFFFFFF, "crSat": 1}, {"wl0": 0}, {"wl0": LOW}),
    "ups": ("vups.2x bmll0, wl1, s0, {}", {"wl1": LOW}, {"bmll0": LOW}, {"bmll0": 0xFFFFFFFF}),
}


@pytest.mark.parametrize("held", [0, 1, None])
@pytest.mark.parametrize("digit", [0, 1])
@pytest.mark.parametrize("kind", SIGNED)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_sign_is_what_its_register_holds(executor, kind, digit, held):
    """Where nobody writes it, it is the digit of its name."""
    text, given, unsigned, signed = SIGNED[kind]
    register = f"{kind}Sign{digit}"
    set_ = "" if held is None else f"movx {register}, #{held}\n"
    other = f"movx {kind}Sign{1 - digit}, #{digit if held is None else 1 - held}\n"  # is not looked at
    core = run_text(executor, set_ + other + text.format(register) + "\nnop" * 8, given)
    for name, value in (signed if (digit if held is None else held) else unsigned).items():
        assert core.read(name) == value
    assert run_text(executor, f"mov r0, {register}", {register: 1}).read("r0") == 1


def test_signs_are_no_sticky_flags():
    """Two results in one are a fault, as in every register but status flags."""
    source = assemble("mov srsSign0, r0 ; movx srsSign0, #1\nnop\nnop\nnop\ndone", "aie2p")
    assert "two-results" in {hazard.rule for hazard in check_source(source)}


def moved(value: int, shift: int, rounding: int, bits: int) -> int:
    """(value << 4) / 2^((shift + 4) mod 64), rounded down or to nearest even, saturated: what AIE's manual says."""
    exact = Fraction(value << 4, 1 << (shift + 4) % 64)
    found = floor(exact) if rounding == 0 else round(exact)
    return max(-(1 << bits - 1), min((1 << bits - 1) - 1, found))


VALUES = (1, -1, 5, -5, 0x1234567, -0x1234567, 0x7FFFFFFF, -0x80000000)


@pytest.mark.parametrize("wide", [0, 1])
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("generation", isa.GENERATIONS)
def test_srs_shifts_by_the_whole_amount_and_up_at_its_end(generation, executor, wide):
    lane, narrow = (64, 32) if wide else (32, 16)
    values = [v << 24 for v in VALUES] if wide else [*VALUES, *VALUES]
    source = sum((v & ((1 << lane) - 1)) << lane * i for i, v in enumerate(values))
    text, register = {
        "aie2p": ("vsrs.2x wl0, bmll1, s0, srsSign1", "bmll1"),
        "aie2": (f"vsrs.s{narrow}.s{lane} wl0, bml1, s0", "bml1"),
    }[generation]
    for rounding in (0, 12):
        for shift in (0, 1, 31, 32, 33, 40, 58, 59, 60, 61, 62, 63):
            given = {register: source, "s0": shift, "crRnd": rounding, "crSat": 1}
            given |= {"crSRSMode": wide} if generation == "aie2p" else {}
            found = run_text(executor, text + "\nnop" * 4, given, generation).read("wl0")
            expected = [moved(v, shift, rounding, narrow) & ((1 << narrow) - 1) for v in values]
            assert [found >> narrow * i & ((1 << narrow) - 1) for i in range(len(values))] == expected, (
                shift,
                rounding,
            )
