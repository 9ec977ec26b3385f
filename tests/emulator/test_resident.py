"""Designs that stay on the array from run to run."""

import numpy as np
import pytest

from bdforge.array.emulator import BudgetExceeded, DmaError, emulate
from bdforge.array.emulator.resident_design import Resident
from bdforge.design.sequences.buffers import fetched
from support.built_designs import PlannedDesign
from support.differences import same
from support.gemm_problems import filled


def test_runs_one_after_another_give_what_each_gives_alone(small: PlannedDesign):
    resident = Resident(small.mlir, small.kernels)
    for seed, sizes in enumerate([(33, 40, 70), (1, 1, 1), (40, 96, 20), (33, 40, 70)]):
        planned, arguments, product = filled(small, *sizes, seed)
        alone = [array.copy() for array in arguments]
        warnings = resident.run(planned.words(), arguments)
        assert warnings == emulate(small.mlir, alone, small.kernels, instructions=planned.words()).warnings
        same(fetched(planned, arguments)["C"], product)
        same(arguments[2], alone[2])


def test_a_run_that_failed_leaves_nothing_to_the_next(small: PlannedDesign):
    resident = Resident(small.mlir, small.kernels)
    planned, arguments, product = filled(small, 20, 40, 60)
    with pytest.raises(DmaError, match="argument 2, which has 256"):
        resident.run(planned.words(), [*arguments[:2], np.zeros(64, np.int32)])
    resident.run(planned.words(), arguments)
    same(fetched(planned, arguments)["C"], product)


def test_each_run_has_the_whole_budget_and_warnings_of_its_own(small: PlannedDesign):
    """What two runs would exceed together is enough for any number of them, half of what one takes is not."""
    planned, arguments, _ = filled(small, 20, 40, 60)
    first = Resident(small.mlir, small.kernels)
    first.run(planned.words(), arguments)
    assert first._machine is not None
    steps, strictness = first._machine.array.scheduler.steps, first._machine.array.strictness
    strictness.warn("of the run before")
    assert first.run(planned.words(), arguments) == ()
    enough = Resident(small.mlir, small.kernels, budget=steps * 3 // 2)
    for _ in range(3):
        enough.run(planned.words(), arguments)
    with pytest.raises(BudgetExceeded):
        Resident(small.mlir, small.kernels, budget=steps // 2).run(planned.words(), arguments)
