"""Programs of settled forms on both executors; and wrong tables and operations that are found."""

import random
from collections import Counter

import pytest

from bdforge.core import isa
from bdforge.core.exact.instruction_plan import plan_of
from bdforge.core.exact.interpreter import Interpreter
from bdforge.core.exact.translated import Translated
from bdforge.core.isa.errors import IsaError
from bdforge.core.isa.meaning import form_meanings, meaning_of
from bdforge.core.isa.meaning.semantics import OPERATIONS, Partly
from support.machine_code import code_of
from support.random_programs import differences, instruction, outcome
from support.recorded_cases import cases, faults
from support.settled_programs import allowing, prepared, program, settled


def disagreement(generation: str, code: bytes, rng: random.Random) -> tuple[str, list[str]]:
    """How a program ends, and what the executors disagree on; not on what is asked in the cycle of a fault."""
    isa_ = isa.load(generation)
    values, seed = prepared(isa_, rng), rng.randrange(1 << 30)
    plain, fast = (outcome(allowing(executor), isa_, code, values, seed) for executor in (Interpreter, Translated))
    found = differences(plain, fast)
    return plain["end"], [one for one in found if plain["end"] == "done" or not one.startswith("log: ")]


@pytest.mark.parametrize("programs", [25, pytest.param(5000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("generation", isa.GENERATIONS)
def test_programs_of_settled_forms_do_the_same(generation, programs):
    rng, tail, ends = random.Random(programs), code_of("nop\n" * 12, generation), Counter[str]()
    for number in range(programs):
        end, found = disagreement(generation, program(generation, rng.randrange(1, 13), rng) + tail, rng)
        assert found == [], (number, end)
        ends[end.split(":")[0]] += 1
    assert ends["done"] > programs // 5, ends


WRONG_ROWS = {  # of a table: what is changed in a form's row, and the recorded case that it fails
    "a divisor for the rest": ("DIVS", {"inputs": "s1 s0 sd"}, "divs-step-3"),
    "a quotient for the rest": ("DIVS", {"outputs": "sd_out d0"}, "divs-step-1"),
    "no condition": ("REL_COND_mLockId_imm", {"request": "acquire"}, "cond-rel--1"),
    "the other half": ("VLDB_4x16_hi", {"access": "gather 16 32 0 src"}, "gather-aie2p-4x16-hi"),
    "AIE2's lines": ("VLDB_4x16_hi", {"access": "gather 16 16 4 src"}, "gather-aie2p-4x16-hi"),
    "elements of 64 bits": ("VLDB_4x16_hi", {"access": "gather 64 32 4 src"}, "gather-aie2p-4x16-hi"),
    "a fill that moves nothing": ("VLDA_FILL_512", {"operation": "none", "inputs": "", "outputs": ""}, "fifo-pop-8"),
    "bytes in order": ("VLDA_POP_576_normal_pop", {"access": "pop 64", "options": "64"}, "fifo-pop-8"),
    "a pop that counts otherwise": ("VLDA_POP_576_normal_pop", {"access": "pop 71"}, "fifo-pop-8"),
    "a push of less": ("VST_PUSH_576", {"access": "push 64"}, "fifo-push-8"),
    "a flush that stores nothing": ("VST_FLUSH_512_normal_flush", {"access": ""}, "fifo-push-8"),
    "a tangent": ("VEXP2", {"operation": "tanh"}, "exp2-0"),
}  # fmt: skip


@pytest.fixture
def forgetting():
    """Nothing is kept of what tables said."""

    def forget():
        for kept in (form_meanings._table, meaning_of, plan_of):
            kept.cache_clear()

    forget()
    yield
    forget()


@pytest.mark.parametrize("name", WRONG_ROWS)
def test_a_wrong_row_fails_a_recorded_case(monkeypatch, forgetting, name):
    form, changed, number = WRONG_ROWS[name]
    (case,) = (case for case in cases() if case["id"] == number)
    table = form_meanings._table("aie2p")
    monkeypatch.setattr(form_meanings, "_table", lambda _: {**table, form: {**table[form], **changed}})
    try:
        found = faults(Interpreter, case)
    except (IsaError, KeyError, ValueError, AssertionError) as error:
        found = [repr(error)]
    assert found != []
    monkeypatch.undo()
    meaning_of.cache_clear()
    plan_of.cache_clear()
    assert faults(Interpreter, case) == []


def wrong(operation):
    """The operation, whose first result has another lowest bit."""

    def made(*given):
        results = operation(*given)
        if isinstance(results, Partly):
            return results._replace(value=results.value ^ 1)
        return results ^ 1 if isinstance(results, int) else (results[0] ^ 1, *results[1:])

    return made


WRONG = (
    "divide_step", "vadd_or_subtract", "vshift_align", "vbroadcast_shuffle", "exp2", "tanh", "approximate", "fifo_pop",
    "fifo_push", "fifo_flush", "multiply", "faccumulate",
)  # fmt: skip


@pytest.mark.parametrize("operation", WRONG)
def test_a_wrong_operation_is_found_by_a_program_of_its_forms(monkeypatch, operation):
    rng, isa_, tail = random.Random(1), isa.load("aie2p"), code_of("nop\n" * 12)
    pool = [form for form in settled("aie2p") if meaning_of("aie2p", form).operation == operation]
    monkeypatch.setitem(OPERATIONS, operation, wrong(OPERATIONS[operation]))
    for _ in range(60):
        code = b""
        while not code:
            code = program_of(pool, rng)
        if disagreement(isa_.generation, code + tail, rng)[1]:
            return
    raise AssertionError(f"{operation} was wrong, and nobody saw it")


def program_of(pool, rng: random.Random) -> bytes:
    """A bundle of a form of a pool."""
    return isa.load("aie2p").encode([instruction(rng.choice(pool), rng)])
