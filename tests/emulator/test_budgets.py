"""How long a run may take: one figure for all steps and for each core, whatever the core runs."""

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import ArgumentError, BudgetExceeded
from bdforge.array.emulator.array import Array
from bdforge.array.emulator.cores.machine_code_core import MachineCode
from bdforge.array.emulator.host import HostBuffers
from bdforge.array.emulator.scheduler import Scheduler
from bdforge.array.emulator.strictness import Strictness
from bdforge.core import isa
from bdforge.core.isa.assembler import assemble
from bdforge.devices import mlir_device_named
from support.small_designs import core

ENDLESS = "cf.br ^again\n^again:\ncf.br ^again\n^never:\naie.end"


def array_of(budget: int) -> Array:
    return Array(mlir_device_named("npu2"), HostBuffers(), Scheduler(budget), Strictness())


@pytest.mark.parametrize("budget", [1, 1 << 28, (1 << 28) + 1, 10**12, 10**18])
def test_a_core_may_take_all_that_a_run_may(budget):
    assert array_of(budget).core(0, 2).budget == budget


@pytest.mark.parametrize("budget", [10, np.int64(10), np.uint8(10)])
def test_a_budget_is_any_whole_number(budget):
    with pytest.raises(BudgetExceeded, match="no end after 10 "):
        bdforge.emulate(core(ENDLESS), budget=budget)


HUGE = [pytest.param(sign * 10**5000, id=f"{sign}e5000") for sign in (1, -1)]


@pytest.mark.parametrize("budget", [0, -1, 1.0, float("inf"), float("nan"), "10", None, True, 10**18 + 1, *HUGE])
def test_a_budget_that_is_none_is_refused(budget):
    with pytest.raises(ArgumentError, match="budget must be a whole number"):
        bdforge.emulate(core("aie.end"), budget=budget)


TURN = "again: acq #48, r1\n{nops}j #again\n{nops}".format(nops="nop\n" * 6)


@pytest.mark.parametrize("turns", [1, 7])
def test_a_core_of_machine_code_has_the_whole_budget_in_each_run_of_an_array(turns):
    """A turn of its endless loop is 14 bundles, and a run lets it take one."""
    array = array_of(30)
    endless = array.core(0, 2)
    endless.take(MachineCode(isa.load("aie2p"), assemble("mova r1, #-1\n.p2align 4\n" + TURN).code[0][1], {}, "loop.s"))
    array.scheduler.wake(endless)
    for _ in range(turns):
        array.refill()
        array.tile(0, 2).locks[0].add(1, str)
        array.scheduler.run()
    array.tile(0, 2).locks[0].add(9, str)
    with pytest.raises(BudgetExceeded, match="no end after 30 bundles"):
        array.scheduler.run()


def test_a_core_of_a_text_has_the_whole_budget_in_each_run_of_an_array():
    array = array_of(30)
    spent = array.core(0, 2)
    spent.fuel = 3
    array.refill()
    assert spent.fuel == 30
