"""Executors against recorded cases."""

import pytest

from support.machine_code import EXECUTORS
from support.recorded_cases import cases, faults


@pytest.mark.parametrize("executor", EXECUTORS)
def test_every_recorded_case_holds(executor):
    assert len(cases()) == 257
    assert {case["id"]: found for case in cases() if (found := faults(executor, case))} == {}
