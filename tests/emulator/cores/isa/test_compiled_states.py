"""Compiled states against the executors without them: data, faults, budgets that end midway, requests, poison."""

import random
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache

import numpy as np
import pytest

from bdforge.core import isa
from bdforge.core.exact import compiled_states, translated_program
from bdforge.core.exact.core_memory import WINDOW_BYTES, DataMemory
from bdforge.core.exact.interpreter import Interpreter
from bdforge.core.exact.profile import Parts
from bdforge.core.exact.translated import Translated
from bdforge.core.exact.translated_program import translated
from bdforge.core.isa.errors import IsaError, StepBudgetError
from support.random_programs import assembled, differences, looping, outcome, registers

pytestmark = pytest.mark.slow

DENSE = """
        movxm   ls, #loop
        movxm   le, #last
        movxm   r0, #0x308
        movx    lc, #20
        movx    r8, #50
        nop
        nop
        nop
        nop
        nop
        .p2align 4
loop:   vlda x0, [p0], #64 ; vldb x1, [p1], #64 ; vmac dm0, dm0, x4, x6, r0
        vlda x2, [p0], m0 ; vldb x3, [p1], #-64 ; vmac dm1, dm1, x0, x7, r0
        vst x2, [p2], #64 ; vmul dm2, x5, x1, r0
        acq r8, r9
        rel r8, r9
        add r1, r1, #1
        .p2align 4
last:   nopa ; nopb ; nops ; nopx ; mov r2, r1 ; vmac dm3, dm3, x5, x2, r0
        nop
        nop
        nop
        nop
        nop
        nop
        nop
        done
"""
NAMES = {0: "start", 0x60: "loop"}


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """Runs a program, and lets its states be compiled."""
    Translated(isa.load("aie2p"), assembled("done", "aie2p"), DataMemory([None] * 4))
    monkeypatch.setattr(compiled_states, "folder", lambda: tmp_path)
    monkeypatch.setattr(translated_program, "_translation", lru_cache(translated_program.TranslatedProgram))

    def compile_states(generation, code, values, seed):
        isa_ = isa.load(generation)
        outcome(Translated, isa_, code, values, seed)
        states = translated(isa_, code).compiled
        states.start()
        states.wait()
        return states

    return compile_states


def dense_registers(p0=0x70400, m0=64):
    given = registers(isa.load("aie2p"), random.Random(5))
    return given | {"p0": p0, "p1": 0x70800, "p2": 0x74000, "m0": m0, "crSat": 0, "crRnd": 0}


def seen(executor, code, values, budgets, poison=False):
    """What a run in pieces shows: after each its counters, in the end registers and memory too."""
    rng = np.random.default_rng(3)
    windows = [rng.integers(0, 256, WINDOW_BYTES, np.uint8) for _ in range(4)]
    written = [np.arange(WINDOW_BYTES) < 0x4000 if poison else None for _ in range(4)]
    core = executor(isa.load("aie2p"), code, DataMemory(windows, written))
    for name, value in values.items():
        core.write(name, value)
    core.watch(Parts(NAMES))
    found = []
    for budget in budgets:
        try:
            found += [type(request).__name__ for request in core.run(budget)]
        except StepBudgetError as error:
            found.append(str(error))
        except IsaError as error:
            return [*found, f"{type(error).__name__}: {error}"]
        found += [(core.pc, core.cycle, core.bundles, core.conflicts), list(core.uses), core.pending_stores]
        found += [dict(core.counts), dict(core.macs), core.marks(), core.done]
    return [*found, {name: core.read(name) for name in values}, [window.tobytes() for window in windows]]


CASES = {
    "whole": {"budgets": [1000]},
    "budgets end in the middle": {"budgets": [*range(1, 30), 1000]},
    "a fault in the middle": {"budgets": [1000], "p0": 0x4FC00 - 0x10000 + 0x3FE80},
    "a fault in a later pass": {"budgets": [1000], "p0": 0x7FA00},
    "misaligned in a later pass": {"budgets": [7, 1000], "m0": 32},
    "poison": {"budgets": [1000], "poison": True, "p0": 0x73C00},
}


def runs(executor, code):
    """What each case shows."""
    found = {}
    for name, case in CASES.items():
        given = dense_registers(**{key: case[key] for key in ("p0", "m0") if key in case})
        found[name] = seen(executor, code, given, case["budgets"], case.get("poison", False))
    return found


def test_dense_loops_do_the_same(compiled):
    code = assembled(DENSE, "aie2p")
    before, plain = runs(Translated, code), runs(Interpreter, code)
    assert compiled("aie2p", code, dense_registers(), 1).attached
    assert runs(Translated, code) == before
    for name, shown in plain.items():
        assert [*differing(shown, before[name])] == [], name
    ends = [shown[-1] for shown in plain.values()]
    assert sum(isinstance(end, str) and "AccessError" in end for end in ends) == 4


def differing(one, other):
    """What two runs show differently, but stores that are pending: the plain executor counts those of a later cycle."""
    for mine, theirs in zip(one, other, strict=True):
        if mine != theirs and not isinstance(mine, int):
            yield mine, theirs


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("generation", isa.GENERATIONS)
def test_random_loops_calls_and_branches_do_the_same(compiled, generation, seed):
    rng = random.Random(100 + seed)
    code = looping(generation, rng)
    isa_ = isa.load(generation)
    assert compiled(generation, code, registers(isa_, rng), 1).attached
    for again in range(20):
        values = registers(isa_, rng)
        plain, fast = (outcome(executor, isa_, code, values, again) for executor in (Interpreter, Translated))
        assert differences(plain, fast) == []


def dense_loop(rng: random.Random) -> str:
    """A hardware loop of loads, stores, products and moves of few registers, perhaps in a loop that branches."""
    start, _, _ = DENSE.partition("        .p2align 4\nloop:")
    outer = "        movx r7, #3\n        .p2align 4\nagain:  movx lc, #9\n" + 6 * "        nop\n"
    lines = [" ; ".join(dense_bundle(rng)) or "nop" for _ in range(rng.randint(6, 18))]
    last = "last:   nopa ; nopb ; nops ; nopx ; mov r2, r1 ; vmac dm3, dm3, x5, x2, r0"
    body = ["        .p2align 4", "loop:", *lines, "        .p2align 4", last, *8 * ["nop"]]
    back = [".p2align 4", "jnz r7, #again", "add r7, r7, #-1", *12 * ["nop"]]
    nested = rng.random() < 0.5
    modes = "        movxm r4, #0x309\n        movxm r5, #0x108\n" + start.replace("lc, #20", "lc, #9")
    return "\n".join([modes + outer * nested, *body, *back * nested, "done", ""])


def dense_bundle(rng: random.Random) -> Iterator[str]:
    """Instructions for its slots, each of which may be left empty."""
    x, dm, r = (lambda: f"x{rng.randrange(8)}"), (lambda: f"dm{rng.randrange(4)}"), rng.choice("00045")
    for chance, text in ((0.6, "vlda {}, [p0]"), (0.5, "vldb {}, [p1]"), (0.2, "vst {}, [p2]")):
        if rng.random() < chance:
            yield f"{text.format(x())}, #{rng.choice((64, -64))}"
    summed = dm()
    products = (
        f"vmac {summed}, {rng.choice((summed, dm()))}, ", f"vmsc {summed}, {summed}, ", f"vmul {dm()}, ",
        f"vaddmac {dm()}, {dm()}, {dm()}, ",
    )  # fmt: skip
    if rng.random() < 0.75:
        yield f"{rng.choices(products, (5, 1, 1, 1))[0]}{x()}, {x()}, r{r}"
    if rng.random() < 0.4:
        yield rng.choice(
            (f"vadd.8 {x()}, {x()}, {x()}", f"vband {x()}, {x()}, {x()}", f"vbcst.8 {x()}, r1", "mov r2, r1")
        )


@pytest.mark.parametrize("seed", range(8))
def test_random_dense_loops_do_the_same(compiled, seed):
    rng, code = random.Random(seed), None
    while code is None:
        with suppress(IsaError):  # not every set of slots is a bundle
            code = assembled(dense_loop(rng), "aie2p")
    before, plain = runs(Translated, code), runs(Interpreter, code)
    assert compiled("aie2p", code, dense_registers(), 1).attached
    assert runs(Translated, code) == before
    for name, shown in plain.items():
        assert [*differing(shown, before[name])] == [], name


def test_a_program_that_is_translated_anew_does_the_same(compiled):
    """A load whose upper half is unknown, behind the loop: from then on all steps keep account of that."""
    nops, far = 5 * "        nop\n", 80 * "        nop\n"  # further than is translated ahead
    more = f"jnz r10, #more\n{nops}        done\n{far}        .p2align 4\nmore:   vldb.128 wl3, [p0, dj0]\n{nops}{nops}"
    code = assembled(DENSE.replace("done", f"{more}        movx lc, #20\n        j #loop\n{nops}"), "aie2p")
    ways = [dense_registers() | {"r10": again, "dj0": 0} for again in (0, 1)]
    plain = [seen(Interpreter, code, values, [200]) for values in ways]
    assert compiled("aie2p", code, ways[0], 1).attached
    states = translated(isa.load("aie2p"), code)
    for values, shown in zip(ways, plain, strict=True):
        assert not states.careful
        assert [*differing(shown, seen(Translated, code, values, [200]))] == []
    assert states.careful
    assert not states.compiled.attached
    assert compiled("aie2p", code, ways[1], 1).attached
    for values, shown in zip(ways, plain, strict=True):
        assert [*differing(shown, seen(Translated, code, values, [200]))] == []


def test_a_wrong_text_shows(compiled, monkeypatch):
    """Compiled states are what runs: one that counts at another address is seen."""
    code, make = assembled(DENSE, "aie2p"), compiled_states._compile
    before = runs(Translated, code)["whole"]
    wrong = ("count_bundle(core, parts, ", "count_bundle(core, parts, 64 + ")
    monkeypatch.setattr(compiled_states, "_compile", lambda text, path: make(text.replace(*wrong), path))
    assert compiled("aie2p", code, dense_registers(), 1).attached
    assert runs(Translated, code)["whole"] != before
