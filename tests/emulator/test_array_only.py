"""Designs without a runtime sequence: they run until nothing moves, and tile memory is inspected by name."""

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import BudgetExceeded, LoadError
from support.array_text import Task, acquire, bd, buffer, core, flow, lock, module, program, release, tile
from support.differences import same
from support.two_devices import configuration

SENT = "0, 12, [<size = 3, stride = 2>, <size = 2, stride = 6>, <size = 2, stride = 1>]"
ADDS = """%zero = arith.constant START : i32
      %c6 = arith.constant 6 : index
      %total = scf.for %i = %c0 to %c6 step %c1 iter_args(%t = %zero) -> (i32) {
        %v = memref.load %target[%i, %c1] : memref<6x2xi16>
        %w = arith.extsi %v : i16 to i32
        %n = arith.addi %t, %w : i32
        scf.yield %n : i32
      }
      memref.store %total, %sum[%c0] : memref<1xi32>"""


def pipe(device: str = "npu2", name: str = "pipe", start: int = 0, full: int = 1, loop: bool = False) -> str:
    """Pairs of columns of a 2 x 6 matrix, sent to a core that adds up the second column of what arrives."""
    fill = f"aie.use_lock(%free, Acquire, 0)\n{bd('target', '6x2', element='i16')}\n{release('full', full)}"
    return module(
        device, tile(1, 1), tile(1, 3), buffer("target", "13", "6x2", element="i16"), buffer("sum", "13", 1),
        '%source = aie.buffer(%t11) {sym_name = "source"} : memref<2x6xi16> '
        "= dense<[[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]>", "%nameless = aie.buffer(%t13) : memref<4xi8>",
        lock("full", "13", 0), "%free = aie.lock(%t13, 1)", flow("11 DMA : 2", "13 DMA : 1"),
        program("11", Task("MM2S", 2, [bd("source", "2x6", SENT, element="i16")], loop)),
        program("13", Task("S2MM", 1, [fill], loop)), core("13", acquire("full"), ADDS.replace("START", str(start))),
    ).replace(f"aie.device({device})", f"aie.device({device}) @{name}")  # fmt: skip


EXPECTED = np.arange(12, dtype=np.int16).reshape(2, 3, 2).transpose(1, 0, 2).reshape(6, 2)


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize("schedule", ["in-order", "random"])
def test_a_design_without_a_sequence_runs_until_nothing_moves(device, schedule):
    result = bdforge.emulate(pipe(device), schedule=schedule, seed=3)
    same(result.buffers["target"], EXPECTED)
    assert result.buffers["target"].dtype == np.int16
    assert result.buffers["sum"] == [EXPECTED[:, 1].sum()]
    assert result.buffers.keys() == {"source", "target", "sum"}
    assert (result.arguments, result.warnings) == ((), ())


def test_one_of_several_devices_is_chosen_by_name():
    text = pipe(name="one") + pipe(name="other", start=1000)
    one, other = (bdforge.emulate(text, device=name).buffers["sum"].item() for name in ("one", "other"))
    assert other == one + 1000


def test_several_devices_without_a_choice_are_refused():
    with pytest.raises(LoadError, match="choose one of the devices one, other"):
        bdforge.emulate(pipe(name="one") + pipe(name="other"))


def test_a_device_with_a_sequence_is_preferred_to_one_without():
    a, b = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    result = bdforge.emulate(pipe() + configuration("adder", "addi", 4), [a, b])
    same(b, a + 4)
    assert "x" in result.buffers


def test_a_design_that_moves_for_ever_ends_by_its_budget():
    with pytest.raises(BudgetExceeded, match="no end after 5000 steps"):
        bdforge.emulate(pipe(full=0, loop=True), budget=5000)


def test_a_module_without_a_device_is_refused():
    with pytest.raises(LoadError, match=r"empty\.mlir: there is no aie.device"):
        bdforge.emulate("module {}", file="empty.mlir")


def test_a_party_that_waits_when_nothing_moves_is_no_fault():
    """Without a sequence nobody awaits anything: the core simply stays in its acquire."""
    assert bdforge.emulate(pipe(full=0)).buffers["sum"] == [0]
