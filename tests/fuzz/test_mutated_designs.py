"""Mutated designs: documented exceptions only, never a traceback, a hang or unbounded memory."""

from collections.abc import Iterator
from difflib import unified_diff
from random import Random

import pytest

from fuzz.corpus import Sample, samples
from fuzz.mutations import mutated
from fuzz.worker import Report, Worker

CASES = 20  # texts per test
STARTS = range(0, 120, CASES)
SWEEP = range(100_000, 108_000, CASES)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker()
    yield worker
    worker.close()


def case(seed: int) -> tuple[Sample, str]:
    sample = samples()[seed % len(samples())]
    return sample, mutated(Random(seed), sample.text)


def fault_text(seed: int, sample: Sample, text: str, report: Report) -> str:
    """The fault, and the lines of the sample that the mutation changed."""
    lines = unified_diff(sample.text.splitlines(), text.splitlines(), sample.name, f"seed {seed}", n=1, lineterm="")
    return "\n".join([f"seed {seed}, from {sample.name}: {report.outcome}: {report.detail}", *lines])


def check(worker: Worker, start: int) -> None:
    faults = []
    for seed in range(start, start + CASES):
        sample, text = case(seed)
        report = worker.run(text, sample.arguments, seed)
        if report.is_fault:
            faults.append(fault_text(seed, sample, text, report))
    if faults:
        pytest.fail(f"{len(faults)} of {CASES} mutated designs\n" + "\n\n".join(faults), pytrace=False)


@pytest.mark.parametrize("start", STARTS)
def test_a_mutated_design_runs_or_is_refused_by_name(worker, start):
    check(worker, start)


@pytest.mark.slow
@pytest.mark.parametrize("start", SWEEP)
def test_many_mutated_designs_run_or_are_refused_by_name(worker, start):
    check(worker, start)


@pytest.mark.parametrize("sample", samples(), ids=lambda s: s.name)
def test_the_designs_are_valid_before_their_mutation(worker, sample):
    """Otherwise every mutant would stop at the same place. `packets_pad` has a sink without a program, and waits."""
    expected = Report("refused", "Deadlock") if sample.name == "packets_pad" else Report("accepted", "")
    report = worker.run(sample.text, sample.arguments)
    if report != expected:
        pytest.fail(f"{sample.name}: {report.outcome} {report.detail}: {report.message}", pytrace=False)


def test_a_fault_is_told_with_what_was_changed():
    sample, text = case(7)
    told = fault_text(7, sample, text, Report("escaped", "KeyError: 3 at verify_dma.py:9 rule"))
    assert told.startswith(f"seed 7, from {sample.name}: escaped: KeyError: 3 at verify_dma.py:9 rule\n---")
    changed = [line[1:] for line in told.splitlines()[3:] if line.startswith("+")]
    assert changed
    assert set(changed) <= set(text.splitlines())
    assert len(told.splitlines()) < len(text.splitlines())


def test_mutants_stop_in_the_parser_and_in_the_array_and_nowhere(worker):
    reports = {worker.run(text, sample.arguments) for sample, text in map(case, range(500, 540))}
    kinds = {r.detail or r.outcome for r in reports}
    assert {"MlirError", "accepted"} <= kinds
    assert len(kinds) > 2


def test_the_worker_names_what_escapes_hangs_and_crashes(monkeypatch):
    worker = Worker(seconds=0.001)
    try:
        [sample] = [s for s in samples() if s.name == "chain"]
        assert worker.run(sample.text, sample.arguments).outcome == "hung"
        worker.seconds = 10
        assert worker.run(sample.text, [("f8", 1)]).outcome in ("escaped", "crashed")
    finally:
        worker.close()
