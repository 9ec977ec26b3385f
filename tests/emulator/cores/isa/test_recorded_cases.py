"""Executors against recorded cases, and tables that are wrong by one against the same."""

from dataclasses import replace

import pytest

from bdforge.core.exact import core_state as state
from bdforge.core.exact.interpreter import Interpreter
from bdforge.core.isa import Isa
from support.machine_code import EXECUTORS
from support.recorded_cases import cases, faults


@pytest.mark.parametrize("executor", EXECUTORS)
def test_every_recorded_case_holds(executor):
    assert len(cases()) == 243
    assert {case["id"]: found for case in cases() if (found := faults(executor, case))} == {}


PIPELINE = [case for case in cases() if case["id"].startswith(("pipeline", "loop"))]
WRONG = {
    "result of scalar loads": ("LDA_dms_lda_idx_imm", "defs", "dst"),
    "result of vector loads": ("VLDB_dmx_ldb_x_idx_imm", "defs", "dst"),
    "result of the multiplier": ("VMAC_vmul_cm_core_X_X", "defs", "dst"),
    "read of the accumulator": ("VMAC_vmul_cm_core_X_X", "uses", "acc1"),
    "delayed move": ("MOV_d4", "defs", "dst"),
}


def with_stage(form_name: str, kind: str, operand: str, by: int) -> Isa:
    """AIE2P with one stage changed."""
    changed = Isa("aie2p")
    form = changed.form(form_name)
    stages = dict(getattr(form.timing, kind))
    stages[operand] += by
    object.__setattr__(form, "timing", replace(form.timing, **{kind: stages}))
    return changed


@pytest.mark.parametrize("by", [-1, 1])
@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_stage_that_is_wrong_by_one_is_found(executor, what, by):
    changed = with_stage(*WRONG[what], by)
    assert any(faults(executor, case, changed) for case in PIPELINE)


@pytest.mark.parametrize("slots", [4, 6])
def test_delay_slots_that_are_wrong_by_one_are_found(monkeypatch, slots):
    monkeypatch.setattr(state, "DELAY_SLOTS", slots)
    assert any(faults(Interpreter, case) for case in PIPELINE)
