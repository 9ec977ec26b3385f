"""The fast executor against the plain one: every form with random operands, random bundles, loops, calls, bytes."""

import random

import pytest

from bdforge.core import isa
from bdforge.core.exact.interpreter import Interpreter
from bdforge.core.exact.translated import Translated
from bdforge.core.isa.meaning import MeaningKind
from support.random_programs import assembled, bundles, differences, forms, instruction, looping, outcome, registers

DONE = "nop\n" * 12 + "done\n"


def both(
    generation: str, code: bytes, rng: random.Random, given: dict[str, int] | None = None
) -> tuple[str, list[str]]:
    """How a program ends, and what the executors disagree on."""
    isa_ = isa.load(generation)
    values, seed = given or registers(isa_, rng), rng.randrange(1 << 30)
    plain, fast = (outcome(executor, isa_, code, values, seed) for executor in (Interpreter, Translated))
    return plain["end"], differences(plain, fast)


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [1, 4])
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


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("generation", isa.GENERATIONS)
def test_loops_calls_and_branches_do_the_same(generation, seed):
    rng = random.Random(100 + seed)
    code = looping(generation, rng)
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
