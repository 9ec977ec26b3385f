"""Streams that do not wait, packet headers, tile registers, the timer and sums with the cascade, worked by hand."""

import numpy as np
import pytest

from bdforge.core import isa
from bdforge.core.isa.errors import OpenError
from bdforge.devices.registers import packet_header
from support.differences import same
from support.machine_code import EXECUTORS, World, run_text

NOPS = "nop\n" * 8
BOTH = pytest.mark.parametrize("generation", isa.GENERATIONS)
EACH = pytest.mark.parametrize("executor", EXECUTORS)


@EACH
def test_words_that_do_not_wait_say_whether_they_came_and_went(executor):
    text = f"mov.nb r1, ss\n{NOPS}mov r2, srSS0\nmov r3, r1\nmov.nb ms, r3\n{NOPS}mov r4, srMS0\nmov.nb.tlast ms, r3\n"
    world = World(words=[77], room=1)
    core = run_text(
        executor, f"{text}{NOPS}mov r5, srMS0\nmov.nb r6, ss\n{NOPS}mov r7, srSS0\n", {"r6": 5}, world=world
    )
    assert [core.read(f"r{i}") for i in (1, 2, 3, 4, 5, 7)] == [77, 1, 77, 1, 0, 0]
    assert world.sent == [(77, False)]


@EACH
def test_a_word_that_did_not_come_cannot_be_used(executor):
    with pytest.raises(OpenError, match="at 0x14: a value is read from r1 of which no source tells"):
        run_text(executor, f"mov.nb r1, ss\n{NOPS}add r2, r1, r1", {"r1": 5})
    core = run_text(executor, f"mov.nb r1, ss\n{NOPS}mova r1, #3\nadd r2, r1, r1", {"r1": 5})
    assert core.read("r2") == 6


@BOTH
@EACH
def test_headers_of_packets_are_sent(executor, generation):
    world = World()
    text = f"mov.ph ms, r1, #5\nmov.ph.tlast ms, r1, #2\nmov.ph ms, r1, #7, r28\n{NOPS}"
    run_text(executor, text, {"r1": 0xFE3, "r28": 2}, generation, world)
    assert world.sent == [(5, 3, False), (2, 3, True), (7, 3, False)]
    assert packet_header(4, 2, 5, 3) == 1 << 31 | 4 << 21 | 2 << 16 | 5 << 12 | 3  # odd with bit 31


@BOTH
@EACH
def test_control_words_are_sent_with_odd_parity(executor, generation):
    world = World()
    run_text(executor, f"mov.cph.tlast ms, m2, #3, #1, r9\n{NOPS}", {"m2": 0x1D000, "r9": 17}, generation, world)
    ((word, last),) = world.sent
    assert word & 0x7FFFFFFF == 17 << 24 | 1 << 22 | 3 << 20 | 0x1D000
    assert word.bit_count() % 2 == 1
    assert last


@BOTH
@EACH
def test_registers_of_the_tile_are_read_and_written(executor, generation):
    world = World(registers={0x340F8: 1234})
    text = (
        f"lda.tm r1, [p0{', #0' * (generation == 'aie2p')}]\n{NOPS}st.tm r1, [p1{', #0' * (generation == 'aie2p')}]\n"
    )
    core = run_text(executor, text + NOPS, {"p0": 0x340F8, "p1": 0x34508}, generation, world)
    assert core.read("r1") == 1234
    assert world.registers == {0x340F8: 1234, 0x34508: 1234}


@EACH
def test_walks_over_tile_registers_step_as_others(executor):
    world = World(registers={0x1D000: 5, 0x1D004: 6})
    text = f"lda.tm r1, [p0], #4\nlda.tm r2, [p0], m1\nst.tm r3, [p0, #8]\n{NOPS}"
    core = run_text(executor, text, {"p0": 0x1D000, "m1": 0x100, "r3": 9}, world=world)
    assert (core.read("r1"), core.read("r2"), core.read("p0")) == (5, 6, 0x1D104)
    assert world.registers[0x1D10C] == 9


@BOTH
@EACH
def test_the_timer_has_64_bits(executor, generation):
    core = run_text(executor, f"mov l2, cntr\n{NOPS}", {}, generation, World(timer=(7 << 32) + 9))
    assert core.read("l2") == (7 << 32) + 9


WORD = np.arange(3, 19, dtype=np.int32) * 0x01010101


@pytest.mark.parametrize("part", range(4))
@EACH
def test_a_word_of_the_cascade_is_added_at_its_part(executor, part):
    before = np.arange(64, dtype=np.int32) - 32
    given = {"dm0": int.from_bytes(before.tobytes(), "little"), "crSCDEn": 1, "r31": part, "r2": 0, "r3": 0x308}
    added = np.zeros(64, np.int32)
    added[16 * part : 16 * part + 16] = WORD

    def ran(text: str) -> np.ndarray:
        core = run_text(executor, f"{text}\n{NOPS}", given | {"x1": 3, "x2": 5}, world=World(cascade=[WORD.tobytes()]))
        assert core.read("r31") == part
        return np.frombuffer(core.read("dm1" if "dm1" in text else "dm0").to_bytes(256, "little"), np.int32)

    product = np.zeros(64, np.int32)
    product[0] = 15
    same(ran("vadd dm1, dm0, scd, r31, r2"), before + added)
    same(ran("vsub dm1, dm0, scd, r31, r2"), before - added)
    same(ran("vaddmac dm0, scd, r31, x1, x2, r3"), before + added + product)
    same(ran("vaddmsc dm0, scd, r31, x1, x2, r3"), before + added - product)


@EACH
def test_four_words_of_the_cascade_follow_each_other(executor):
    words = [WORD + i for i in range(4)]
    given = {"crSCDEn": 1, "r31": 0, "r2": 0}
    text = "vadd dm0, dm0, scd.incr, r31, r2\nnop\n" * 4 + NOPS
    core = run_text(executor, text, given, world=World(cascade=[word.tobytes() for word in words]))
    assert core.read("dm0").to_bytes(256, "little") == b"".join(word.tobytes() for word in words)
    with pytest.raises(OpenError, match="a value is read from r31"):
        run_text(executor, f"{text}mov r1, r31", given, world=World(cascade=[word.tobytes() for word in words]))


@pytest.mark.parametrize("part", range(4))
@EACH
def test_a_register_chooses_the_part_that_the_cascade_fills(executor, part):
    world = World(cascade=[WORD.tobytes()] * 2)
    given = {"crSCDEn": 1, "r31": part, "dm1": (1 << 2048) - 1, "dm2": (1 << 2048) - 1}
    core = run_text(executor, f"vmov dm1, scd, r31\nvmov dm2, scd.incr, r31\n{NOPS}", given, world=world)
    expected = np.full(64, -1, np.int32)
    expected[16 * part : 16 * part + 16] = WORD
    assert core.read("dm1") == core.read("dm2") == int.from_bytes(expected.tobytes(), "little")
    assert core.read("r31") == (part + 1) % 4


@BOTH
@EACH
def test_the_lower_half_of_a_load_of_16_bytes_is_known(executor, generation, filled_memory):
    load = f"vldb.128 wl3, [p0, dj0]\n{NOPS}"
    core = run_text(executor, f"{load}vst.128 wl3, [p0, #32]\n{NOPS}", {"p0": 0x70400}, generation)
    assert core.memory.load(0x70420, 16) == core.read("wl3") == int.from_bytes(bytes(range(1, 17)), "little")
    use = "vst wl3, [p0, #64]" if generation == "aie2" else "vbor x4, x3, x3"
    with pytest.raises(OpenError, match="a value is read from wl3"):
        run_text(executor, f"{load}{use}\n{NOPS}", {"p0": 0x70400}, generation)


@EACH
@pytest.mark.parametrize("gap", ["", "nop\n", NOPS])
def test_what_is_unknown_is_so_for_those_to_whom_it_is_forwarded(executor, gap):
    """A move of 16 bytes leaves the upper half of a vector open; a move of all of it makes it known again."""
    given = {"wl1": 7, "wl3": 5}
    with pytest.raises(OpenError, match="a value is read from wl3"):
        run_text(executor, f"vmov wl3, q0\n{gap}vmov wl4, wl3\n{NOPS}", given)
    core = run_text(executor, f"vmov wl3, q0\nvmov wl3, wl1\n{gap}vmov wl4, wl3\n{NOPS}", given)
    assert core.read("wl4") == 7


WALKED = {"2d": [4, 8, 1008, 1012, 1016, 2016, 2020], "3d": [4, 8, 108, 112, 116, 1116, 1120]}
"""Three by two places of the same step, 100 and 1000: where a pointer is after each access."""


@BOTH
@EACH
@pytest.mark.parametrize("kind", WALKED)
def test_pointers_walk_in_two_and_three_dimensions(executor, generation, kind):
    given = {"p0": 0x70000, "m0": 1000, "dn0": 2, "dj0": 4, "dc0": 0, "dn4": 1, "dj4": 100, "dc4": 0}
    found = []
    for steps in range(1, 8):
        core = run_text(executor, f"padda.{kind} [p0], d0{'_3d' * (kind == '3d')}\n{NOPS}" * steps, given, generation)
        found.append((core.read("p0") - 0x70000, core.read("dc0"), core.read("dc4")))
    inner, outer = [1, 2, 0, 1, 2, 0, 1], ([0, 0, 1, 1, 1, 0, 0] if kind == "3d" else [0] * 7)
    assert found == list(zip(WALKED[kind], inner, outer, strict=True))


@EACH
def test_addresses_have_20_bits(executor):
    given = {"p0": 0xFFFFC, "m0": 12, "dn0": 0, "dj0": 4, "dc0": 0, "p1": 4, "dn4": 0, "dj4": 0, "dc4": 0xFFFFF}
    core = run_text(executor, f"padda [p0], m0\npadda [p1], #-64\n{NOPS}", given)
    assert (core.read("p0"), core.read("p1")) == (8, 0xFFFC4)
    core = run_text(executor, f"padda.3d [p0], d0_3d\n{NOPS}", given)
    assert (core.read("p0"), core.read("dc0"), core.read("dc4")) == (0xFFFFC, 0, 0)
