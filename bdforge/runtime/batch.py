"""Several runs of designs on one array, handed over as one list."""

from collections.abc import Mapping, Sequence

from bdforge.design.sequences import OperandError
from bdforge.devices.timing import submissions
from bdforge.runtime.packed_operands import PackedOperands
from bdforge.runtime.prepared import Prepared, held, synchronised
from bdforge.runtime.run_queue import ListedRun, RunQueue, numbered

BatchedRun = tuple[Prepared, Mapping[str, PackedOperands]]
"""A prepared problem, and what is packed for this run of it, by name as in its call."""


def run_batch(queue: RunQueue, runs: Sequence[BatchedRun], timeout_seconds: float) -> int:
    """Run prepared problems of designs on one array in order; how many dispatches that takes on an NPU."""
    if not runs:
        raise OperandError(f"a batch of {queue.name} needs at least one run")
    for number, (problem, _) in enumerate(runs, 1):
        with numbered(number, len(runs)):
            problem.check_batched(queue)
    problems = [problem for problem, _ in runs]
    with held(problems):
        listed = [_listed(i, runs) for i in range(len(runs))]
        with synchronised(problems):
            queue.run_list(listed, timeout_seconds)
    return submissions(len(runs))


def _listed(index: int, runs: Sequence[BatchedRun]) -> ListedRun:
    problem, packed = runs[index]
    with numbered(index + 1, len(runs)):
        return problem.as_listed(packed)
