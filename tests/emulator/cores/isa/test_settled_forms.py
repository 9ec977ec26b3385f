"""Forms that evidence from several places settled, worked by hand: division steps, locks by condition, powers."""

import numpy as np
import pytest

from bdforge.core import isa
from bdforge.core.isa.errors import OpenError
from support.machine_code import EXECUTORS, World, bits, run_text

BOTH = pytest.mark.parametrize("generation", isa.GENERATIONS)
EACH = pytest.mark.parametrize("executor", EXECUTORS)
NOPS = "\nnop" * 9


@BOTH
@EACH
@pytest.mark.parametrize(("dividend", "divisor"), [(100, 7), (7, 100), (0xFFFFFFFF, 1), (1 << 31, 3), (12345, 12345)])
def test_32_steps_divide(executor, generation, dividend, divisor):
    step = {"aie2p": "divs r3, r31, r3, r1\n", "aie2": "divs r3, r3, r1, r31\n"}[generation]
    core = run_text(executor, step * 32, {"r1": divisor, "r31": dividend}, generation)
    assert (core.read("r31"), core.read("r3")) == divmod(dividend, divisor)


@EACH
@pytest.mark.parametrize(("rest", "left", "divisor", "made"), [
    (0x80000000, 0, 1, (0, 0)), (0xC0000000, 1 << 31, 0x80000001, (0, 1)), (5, 3, 0, (10, 7)),
])  # fmt: skip
def test_a_step_drops_the_33rd_bit_and_takes_zero_from_any_rest(executor, rest, left, divisor, made):
    core = run_text(executor, "divs r2, r31, r3, r1", {"r1": divisor, "r3": rest, "r31": left})
    assert (core.read("r2"), core.read("r31")) == made


@BOTH
@EACH
@pytest.mark.parametrize("condition", [0, 1, 0x80000000])
@pytest.mark.parametrize(("lock", "register"), [("#50", {}), ("r9", {"r9": 50})])
def test_locks_by_condition_are_asked_for_unless_it_is_0(executor, generation, condition, lock, register):
    world = World({50: 3})
    text = f"acq.cond {lock}, r1, r26\nnop\nnop\nnop\nrel.cond {lock}, r2, r26"
    given = {"r1": 0xFFFFFFFE, "r2": 5, "r26": condition}
    run_text(executor, text + NOPS, given | register, generation, world)
    assert world.log == ([["acq", 50, -2, 1], ["rel", 50, 5, 6]] if condition else [])


SHUFFLED = {  # a mode of two registers: bytes of a broadcast byte, shuffled with zeros for the second
    0: b"\7" * 32 + b"\0" * 32, 20: b"\7\0" * 32, 21: b"\7\0" * 32, 10: b"\7" * 32 + b"\0" * 32, 22: b"\7" * 64,
    23: b"\0" * 64, 18: b"\7\7\0\0" * 16, 35: b"\7" * 64,
}  # fmt: skip


@BOTH
@EACH
@pytest.mark.parametrize("mode", SHUFFLED)
def test_a_broadcast_is_shuffled_with_zeros(executor, generation, mode):
    core = run_text(executor, "vbcstshfl.8 x1, r2, r29" + NOPS, {"r2": 0x507, "r29": mode + 64}, generation)
    assert core.read("x1").to_bytes(64, "little") == SHUFFLED[mode]


@EACH
def test_powers_of_two_are_lines_between_powers_below_2(executor):
    """2^n (1 + f) with 7 bits of n + f: 1 is 2, 1.5 is 3, 0.75 is 1.75; below -2 of 8 leading bits, and ones."""
    rng = np.random.default_rng(5)
    drawn = np.concatenate([rng.uniform(-2, 1.99, 200), -(2.0 ** rng.uniform(1, 6.97, 200)), [-126.0, -2.0, 0.0, -0.0]])
    values = np.resize(np.concatenate([drawn, [1.0, 1.5, 0.75, -1e-30]]).astype(np.float32), (26, 16))
    for row in values:
        exact = row.astype(np.float64)
        unit = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(exact), 1))) - 7)
        below = np.floor(exact / unit) * unit + unit - 1 / 128
        number = np.where(np.abs(exact) < 2, np.floor(exact * 128) / 128, below)
        whole = np.floor(number)
        wanted = (2.0**whole * (1 + number - whole)).astype(np.float32).view(np.uint32) >> 16
        found = run_text(executor, "vexp2 wl1, bmll0" + NOPS, {"bmll0": bits(row)}).read("wl1")
        assert found == bits(wanted.astype(np.uint16)), row
    assert run_text(executor, "vexp2 wl1, bmll0" + NOPS, {"bmll0": 0x3FC00000}).read("wl1") & 0xFFFF == 0x4040


@EACH
@pytest.mark.parametrize(("number", "reason"), [
    (2.0, "an approximation here"), (-126.1, "an approximation here"), (-np.inf, "an approximation here"),
    (128.0, "beyond 128"), (np.inf, "beyond 128"), (np.nan, "of no number"),
])  # fmt: skip
def test_powers_that_nobody_told_of_are_refused(executor, number, reason):
    given = {"bmll0": bits(np.array([0.5, number], np.float32))}
    with pytest.raises(OpenError, match=reason):
        run_text(executor, "vexp2 wl1, bmll0" + NOPS, given)


SIGNS = {  # of the product, of a first and of a second accumulator, by mnemonic
    "vmul": (1, 0, 0), "vnegmul": (-1, 0, 0), "vmac": (1, 1, 0), "vmsc": (-1, 1, 0), "vaddmac": (1, 1, 1),
    "vaddmsc": (-1, 1, 1), "vsubmac": (1, 1, -1), "vsubmsc": (-1, 1, -1),
}  # fmt: skip
OPERANDS = {"aie2p": (("y0", "qx2"), ("y0", "qy1")), "aie2": (("x0", "qx1"), ("y2", "qx1"))}
CHOSEN = [(1, 2), (0, 3), (1, 3), (0, 2)]  # rows of each four of column 0 that are there


@BOTH
@EACH
@pytest.mark.parametrize("mnemonic", SIGNS)
def test_a_sparse_form_sums_what_its_name_says(executor, generation, mnemonic):
    """16 x 8 of int8, of which column 0 has eight elements and the others none."""
    rng, (sign, *adds) = np.random.default_rng(8), SIGNS[mnemonic]
    if generation == "aie2p" and "sub" in mnemonic:
        return  # AIE2 alone subtracts accumulators so
    rows, conf, acc = (8, 0x308, "dm") if generation == "aie2p" else (4, 0x3A8, "cm")
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((rows, 16), (8, 8)))
    column, mask = np.zeros(16, int), 0
    for r, chosen in enumerate(CHOSEN):
        column[[4 * r + row for row in chosen]] = b[2 * r : 2 * r + 2, 0]
        mask |= sum(1 << row for row in chosen) << 4 * r
    held = rng.integers(-1000, 1000, (2, rows, 8)).astype(np.int32)
    wanted = adds[0] * held[0].astype(int) + adds[1] * held[1]
    wanted[:, 0] += sign * (a.astype(int) @ column)
    registers = {1: f"{acc}2", 2: f"{acc}2, {acc}0", 3: f"{acc}0, {acc}1"}[1 + sum(map(abs, adds))]
    for s1, s2 in OPERANDS[generation]:
        given = {f"{acc}0": bits(held[0]), f"{acc}1": bits(held[1]), s1: bits(a), s2: bits(b) | mask << 512, "r5": conf}
        core = run_text(executor, f"{mnemonic} {registers}, {s1}, {s2}, r5" + NOPS, given, generation)
        assert core.read(registers[:3]) == bits(wanted.astype(np.int32))
