"""Random small designs on the emulated array against the slow interpreter: all arrays and buffers, byte for byte."""

import pytest

from bdforge.array.emulator import Deadlock, DmaError, LockError
from oracle.array_text import mlir
from oracle.comparison import disagreement, emulated, expected_of, explanation, kind_of
from oracle.faulty_designs import FAULTS, faulty_design
from oracle.neutral import neutral_text
from oracle.slow_cores import Outcome
from support.physical_form import physical_form

SEEDS = range(12)
SWEEP = [range(start, start + 50) for start in range(16, 3516, 50)]
FAULTY_SEEDS = range(len(FAULTS))
FAULTY_SWEEP = range(100, 100 + 40 * len(FAULTS))
ERRORS = {Outcome.DEADLOCK: Deadlock, Outcome.LOCK_RANGE: LockError, Outcome.QUEUE_FULL: DmaError}


def check(seed: int) -> None:
    expected = expected_of(seed)
    if text := disagreement(expected.design, expected.memory, seed):
        pytest.fail(explanation(seed, expected, text), pytrace=False)


@pytest.mark.daily(every=4)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_design_leaves_the_memory_that_the_slow_interpreter_leaves(seed):
    check(seed)


@pytest.mark.daily(every=4)
@pytest.mark.parametrize("seed", SEEDS[::6])
def test_a_random_design_with_its_switches_set_leaves_the_same_memory(seed):
    expected = expected_of(seed)
    assert emulated(expected.design, seed, physical_form).memory == expected.memory


@pytest.mark.daily(every=4)
@pytest.mark.parametrize("seed", SEEDS[1::4])
def test_a_random_design_written_by_the_neutral_model_leaves_the_same_memory(seed):
    expected = expected_of(seed)
    assert emulated(expected.design, seed, lambda _: neutral_text(expected.design)).memory == expected.memory


@pytest.mark.slow
@pytest.mark.parametrize("seeds", SWEEP, ids=lambda seeds: f"from_{seeds.start}")
def test_many_random_designs_leave_the_memory_that_the_slow_interpreter_leaves(seeds):
    for seed in seeds:
        check(seed)


def check_fault(seed: int) -> None:
    faulty = faulty_design(seed)
    ended = disagreement(faulty.design, {}, seed)
    if kind_of(ended) != ERRORS[faulty.outcome].__name__:
        what = ended or "it ends well"
        text = f"seed {seed}, {faulty.fault}: {what}; expected: {faulty.outcome}\n{mlir(faulty.design)}"
        pytest.fail(text, pytrace=False)


@pytest.mark.daily(every=4)
@pytest.mark.parametrize("seed", FAULTY_SEEDS)
def test_a_deliberate_fault_ends_with_its_named_error(seed):
    check_fault(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", FAULTY_SWEEP)
def test_many_deliberate_faults_end_with_their_named_errors(seed):
    check_fault(seed)
