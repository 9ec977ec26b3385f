"""Floats that become block floats and integers, scalars that stay the same, and comparisons of bfloat16."""

from fractions import Fraction
from math import floor, frexp

import numpy as np
import pytest

from bdforge.core import isa
from bdforge.core.isa.errors import OpenError
from support.machine_code import EXECUTORS, bits, run_text


def block_of(values: np.ndarray, mode: int) -> tuple[list[int], int]:
    """(mantissas, exponent) of eight numbers by fractions: rounded down, or to the nearest with ties to even."""
    exponent = max(frexp(abs(float(v)))[1] - 1 for v in values if v)
    while True:
        exact = [Fraction(float(v)) * 64 / Fraction(2) ** exponent for v in values]
        made = [floor(v) if mode == 0 else (-1 if v < 0 else 1) * round(abs(v)) for v in exact]
        if max(made) <= 127:
            return made, exponent + 127
        exponent += 1


@pytest.mark.parametrize("mode", [0, 12])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_floats_become_block_floats(executor, mode):
    rng = np.random.default_rng(mode)
    values = (rng.standard_normal(64) * 2.0 ** rng.integers(-9, 9, 64)).astype(np.float32)
    values[8:10], values[16:18] = (1.999, -1.999), (0.0, 1.0)
    blocks = [block_of(values[i : i + 8], mode) for i in range(0, 64, 8)]
    mantissas = np.array([m for made, _ in blocks for m in made], np.int8)
    core = run_text(executor, "vconv.bfp16ebs8.fp32 ex3, dm1\n" + "nop\n" * 8, {"dm1": bits(values), "crRnd": mode})
    assert core.read("ex3") == bits(mantissas) | bits(np.array([e for _, e in blocks], np.uint8)) << 512
    assert run_text(executor, "vconv.bfp16ebs8.fp32 ex3, dm1" + "\nnop" * 8, {"dm1": 0, "ex3": 5}).read("ex3") == 0
    values[16] = np.float32(2.0**-121)
    values[17:24] = 0
    with pytest.raises(OpenError, match="a zero among block floats is open"):
        run_text(executor, "vconv.bfp16ebs8.fp32 ex3, dm1", {"dm1": bits(values), "crRnd": mode})


HEADS = {
    126.5: ((126, 127), (126, 127)), 127: ((127, 127), (127, 127)), 127.4375: ((127, 127), (127, 127)),
    127.5: ((127, 127), (64, 128)), 127.75: ((127, 127), (64, 128)), -127: ((-127, 127), (-127, 127)),
    -127.5: ((-128, 127), (-128, 127)), -127.75: ((-128, 127), (-128, 127)),
}  # fmt: skip
"""Of a block's first number, in 64ths: mantissa and exponent as it is rounded down, and to the nearest."""


@pytest.mark.parametrize("mode", [0, 12])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_only_a_mantissa_above_127_raises_the_exponent_of_its_block(executor, mode):
    values = np.ones((8, 8), np.float32)
    values[:, 0] = np.array(list(HEADS)) / 64
    core = run_text(executor, "vconv.bfp16ebs8.fp32 ex3, dm1\n" + "nop\n" * 8, {"dm1": bits(values), "crRnd": mode})
    made = core.read("ex3").to_bytes(72, "little")
    mantissas = np.frombuffer(made, np.int8, 64)[::8].tolist()
    found = dict(zip(HEADS, zip(mantissas, made[64:], strict=True), strict=True))
    assert found == {head: wanted[mode // 12] for head, wanted in HEADS.items()}


@pytest.mark.parametrize("mode", [0, 12])
@pytest.mark.parametrize(
    ("largest", "zero", "modes"),
    [
        (2.0**-120, 0.0, (0, 12)), (2.0**-121, 0.0, ()), (2.0**-121, None, (0, 12)), (1.0, 0.0, (0, 12)),
        (1.0, -0.0, (12,)), (1.0, 2.0**-127, ()), (np.inf, 1.0, ()), (2.0**127, 1.0, (0, 12)),
        (127.5 * 2.0**121, 1.0, (0,)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("executor", EXECUTORS)
def test_blocks_are_known_by_their_largest_number_and_their_zeros(executor, largest, zero, modes, mode):
    """Zeros beside an exponent of 7 (of 127 for 1) or more; the exponent 255 is nobody's."""
    values = np.full((8, 8), abs(largest) if np.isfinite(largest) else 1.0, np.float32)
    values[3, 0] = largest
    if zero is not None:
        values[3, 5] = zero
    text, given = "vconv.bfp16ebs8.fp32 ex3, dm1\n" + "nop\n" * 8, {"dm1": bits(values), "crRnd": mode}
    if mode not in modes:
        with pytest.raises(OpenError, match="block floats"):
            run_text(executor, text, given)
        return
    made, exponent = block_of(values[3], mode)
    core = run_text(executor, text, given)
    found = core.read("ex3").to_bytes(72, "little")
    assert (np.frombuffer(found, np.int8, 8, 24).tolist(), found[64 + 3]) == (made, exponent)


@pytest.mark.parametrize("generation", isa.GENERATIONS)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_floats_become_integers_rounded_down(executor, generation):
    values = np.array(
        [1.5, -1.5, 0.0, -0.0, 3.25, -3.25, 100, -100, 0.0625, -0.0625, 7, 8, 9, -1e-20, 1e-20, 255], np.float32
    )
    words = (values.view(np.uint32) >> 16).astype(np.uint16)
    exact = (words.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    text = "vfloor.s32.bf16 x3, wl1, s1\n" + "nop\n" * 8
    core = run_text(executor, text, {"wl1": bits(words), "s1": 3}, generation)
    assert core.read("x3") == bits(np.floor(exact * 8).astype(np.int32))
    with pytest.raises(OpenError, match="beyond the range of integers"):
        run_text(executor, text, {"wl1": 0x7F00, "s1": 3}, generation)


TOP, BEYOND, SPECIAL = 255 << 23, "beyond the range of integers", "open but of normal numbers"


@pytest.mark.parametrize(
    ("lane", "shift", "wanted"),
    [
        (0x4EFF, 0, TOP), (0x4F00, 0, BEYOND), (0xCEFF, 0, -TOP), (0xCF00, 0, -(1 << 31)), (0xCF01, 0, BEYOND),
        (0x3F7F, 31, TOP), (0x3F80, 31, BEYOND), (0xBF80, 31, -(1 << 31)), (0xBF81, 31, BEYOND),
        (0x3F80, 32, "a scale by 32 is open: known are 0 to 31"), (0x7F7F, 0, BEYOND), (0xFF7F, 0, BEYOND),
        (0x0080, 31, 0), (0x8080, 31, -1), (0x8000, 31, 0), (0x0001, 0, SPECIAL), (0x007F, 0, SPECIAL),
        (0x7F80, 0, SPECIAL), (0xFFC0, 0, SPECIAL),
    ],
    ids=lambda value: f"{value:#06x}" if isinstance(value, int) and 0 < value < 1 << 16 and value > 64 else None,
)  # fmt: skip
@pytest.mark.parametrize("executor", EXECUTORS)
def test_floats_become_integers_up_to_the_ends_of_32_bits(executor, lane: int, shift: int, wanted: int | str):
    """bf16 0x4F00 is 2^31, the first that no int32 holds; 0xCF00 is -2^31, the last that one does."""
    try:
        core = run_text(executor, "vfloor.s32.bf16 x3, wl1, s1\n" + "nop\n" * 8, {"wl1": lane << 80, "s1": shift})
        found: int | str = int(np.array(core.read("x3") >> 160 & 0xFFFFFFFF, np.uint32).view(np.int32))
    except OpenError as error:
        found = str(error)
    held = wanted in found if isinstance(wanted, str) and isinstance(found, str) else found == wanted
    assert held, f"bf16 {lane:#06x} times 2^{shift}: {found}, wanted {wanted}"


@pytest.mark.parametrize("value", [0, 1, -1, 1 << 24, -(1 << 31), 12345678])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_scalars_that_stay_the_same_are_converted(executor, value):
    core = run_text(
        executor, "fx2flt r1, r2, s2\n" + "nop\n" * 4 + "flt2fx r3, r1, s3\nnop\nnop", {"r2": value & 0xFFFFFFFF}
    )
    assert core.read("r1") == int(np.float32(value).view(np.uint32))
    assert core.read("r3") == value & 0xFFFFFFFF
    with pytest.raises(OpenError, match="an integer that is rounded"):
        run_text(executor, "fx2flt r1, r2, s2", {"r2": (1 << 24) + 1})


ORDER = [0xFF80, 0xFF7F, 0xC000, 0xBF80, 0x8080, 0x8001, 0x8000, 0x0000, 0x0001, 0x0080, 0x3F80, 0x4000, 0x7F7F, 0x7F80]
"""bf16 from minus to plus infinity, the two zeros side by side: they are equal."""


@pytest.mark.parametrize("generation", isa.GENERATIONS)
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("form", ["vlt.bf16", "vge.bf16", "vmax_lt.bf16", "vmin_ge.bf16"])
def test_lanes_of_bf16_are_compared_as_numbers(executor, form, generation):
    pairs = [(a, b) for a in ORDER for b in ORDER]
    pairs += [(0, 0)] * (-len(pairs) % 32)
    chooses = form.startswith("vm")
    text = f"{form} {'x3, ' * chooses}r16, x1, x2\n" + "nop\n" * 8
    for first in range(0, len(pairs), 32):
        a, b = (np.array(column, np.uint16) for column in zip(*pairs[first : first + 32], strict=True))
        x, y = ((v.astype(np.uint32) << 16).view(np.float32) for v in (a, b))
        mask = x < y if "_lt" in form or "vlt" in form else x >= y
        core = run_text(executor, text, {"x1": bits(a), "x2": bits(b)}, generation)
        assert core.read("r16") == sum(1 << i for i in range(32) if mask[i])
        assert not chooses or core.read("x3") == bits(np.where(mask, b, a))
    for nan in (0x7F81, 0xFFC0):
        for given in ({"x1": nan}, {"x2": nan}):
            with pytest.raises(OpenError, match="comparisons with a NaN are open"):
                run_text(executor, text, given, generation)
