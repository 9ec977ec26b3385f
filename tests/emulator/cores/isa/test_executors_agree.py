"""The fast executor against the plain one: every form with random operands, random bundles, loops, calls, bytes."""

import random

import pytest

from bdforge.core import isa
from bdforge.core.exact.interpreter import Interpreter
from bdforge.core.exact.translated import Translated
from bdforge.core.isa.assembler import assemble
from bdforge.core.isa.meaning import MeaningKind
from support.random_programs import bundles, differences, forms, instruction, outcome, registers

DONE = "nop\n" * 12 + "done\n"


def both(
    generation: str, code: bytes, rng: random.Random, given: dict[str, int] | None = None
) -> tuple[str, list[str]]:
    """How a program ends, and what the executors disagree on."""
    isa_ = isa.load(generation)
    values, seed = given or registers(isa_, rng), rng.randrange(1 << 30)
    plain, fast = (outcome(executor, isa_, code, values, seed) for executor in (Interpreter, Translated))
    return plain["end"], differences(plain, fast)


def assembled(text: str, generation: str) -> bytes:
    """Code of a text."""
    ((_, code),) = assemble(text, generation, "random.s").code
    return code


@pytest.mark.daily("aie2p-1")
@pytest.mark.parametrize("rounds", [1, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("generation", isa.GENERATIONS)
def test_every_form_that_is_known_does_the_same(generation, rounds):
    rng = random.Random(11)
    tail, wrong, ended = assembled(DONE, generation), {}, 0
    for form in forms(generation):
        if form.delay_slots:
            continue
        given = registers(isa.load(generation), rng)
        for _ in range(rounds):
            drawn = instruction(form, rng)
            end, found = both(generation, isa.load(generation).encode([drawn]) + tail, rng, given)
            ended += end == "done"
            if found:
                wrong[form.name] = (drawn.operands, end, found[:2])
    assert wrong == {}
    assert ended > 325 * rounds


@pytest.mark.daily(every=4)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("generation", isa.GENERATIONS)
def test_random_bundles_do_the_same(generation, seed):
    rng = random.Random(seed)
    pool = forms(generation, MeaningKind.COMPUTE)
    ends = []
    for _ in range(8):
        code = bundles(generation, 40, rng, pool) + assembled(DONE, generation)
        end, found = both(generation, code, rng)
        ends.append(end)
        assert found == []
    assert len(set(ends)) > 1 or ends[0] == "done"


LOOPS = """
        movxm   ls, #first
        movxm   le, #last
        movx    r4, #3
        j       #start
        {nops}
        .p2align 4
sub:    {body2}
        ret
        {slots}
        .p2align 4
start:  movx    lc, #4
        {body1}
        {nops}
        {nops}
        .p2align 4
first:  {body1}
        .p2align 4
last:   nopa ; nopb ; nops ; nopx ; nopm ; nopv
        jl      #sub
        {slots}
        jnz     r4, #start
        add     r4, r4, #-1
        {slots4}
        {nops}
        done
"""


def raw(generation: str, count: int, rng: random.Random) -> str:
    """Random bundles as bytes of a source; scalar loads and stores keep memory accesses apart."""
    pool = [
        form for form in forms(generation, MeaningKind.COMPUTE) if not form.timing.memory_stages and form.slot != "lng"
    ]
    code = bundles(generation, count, rng, pool)
    return ".byte " + ", ".join(str(byte) for byte in code)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("generation", isa.GENERATIONS)
def test_loops_calls_and_branches_do_the_same(generation, seed):
    rng = random.Random(100 + seed)
    nops = "\n".join(["nop"] * 5)
    text = LOOPS.format(
        nops=nops, slots=raw(generation, 5, rng), slots4=raw(generation, 4, rng),
        body1=raw(generation, rng.randrange(1, 9), rng), body2=raw(generation, 3, rng),
    )  # fmt: skip
    if generation == "aie2":
        text = text.replace("movx    lc", "movxm lc").replace("movx    r4", "movxm r4")
    code = assembled(text.replace("add     r4", "add r4"), generation)
    end, found = both(generation, code, rng)
    assert found == []
    assert end == "done" or "Open" in end


def changed(code: bytes, rng: random.Random) -> bytes:
    """Code with a few bytes changed."""
    found = bytearray(code)
    for _ in range(3):
        found[rng.randrange(len(found))] = rng.randrange(256)
    return bytes(found)


@pytest.mark.daily("aie2p-150")
@pytest.mark.parametrize("programs", [150, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("generation", isa.GENERATIONS)
def test_random_bytes_end_with_a_name_and_do_the_same(generation, programs):
    rng = random.Random(programs)
    every, ends = list(isa.load(generation).forms.values()), set()
    every += 3 * [form for form in every if form.delay_slots]
    for _ in range(programs):
        code = b"".join(isa.load(generation).encode([instruction(rng.choice(every), rng)]) for _ in range(8))
        code = rng.choice((code, rng.randbytes(60), changed(code, rng), code + rng.randbytes(9)))
        end, found = both(generation, code, rng)
        assert found == []
        ends.add(end.split(":")[0])
    assert {"DecodeError", "OpenError", "AccessError", "ControlError"} <= ends
