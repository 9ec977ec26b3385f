"""Designs without a runtime sequence: they run until nothing moves, and tile memory is inspected by name."""

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import BudgetExceeded, LoadError
from support.differences import same
from support.two_devices import configuration

PIPE = """
  aie.device({device}) @{name} {{
    %m = aie.tile(1, 1)
    %c = aie.tile(1, 3)
    %source = aie.buffer(%m) {{sym_name = "source"}}
      : memref<2x6xi16> = dense<[[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]>
    %target = aie.buffer(%c) {{sym_name = "target"}} : memref<6x2xi16>
    %sum = aie.buffer(%c) {{sym_name = "sum"}} : memref<1xi32>
    %nameless = aie.buffer(%c) : memref<4xi8>
    %full = aie.lock(%c, 0) {{sym_name = "full"}}
    %free = aie.lock(%c, 1)
    aie.flow(%m, DMA : 2, %c, DMA : 1)
    %0 = aie.memtile_dma(%m) {{
      %1 = aie.dma_start(MM2S, 2, ^send, ^end)
    ^send:
      aie.dma_bd(%source : memref<2x6xi16>, 0, 12,
        [<size = 3, stride = 2>, <size = 2, stride = 6>, <size = 2, stride = 1>])
      aie.next_bd ^end
    ^end:
      aie.end
    }}
    %2 = aie.mem(%c) {{
      %3 = aie.dma_start(S2MM, 1, ^fill, ^end)
    ^fill:
      aie.use_lock(%free, Acquire, 0)
      aie.dma_bd(%target : memref<6x2xi16>)
      aie.use_lock(%full, Release, 1)
      aie.next_bd ^end
    ^end:
      aie.end
    }}
    %4 = aie.core(%c) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c6 = arith.constant 6 : index
      %zero = arith.constant {start} : i32
      aie.use_lock(%full, AcquireGreaterEqual, 1)
      %total = scf.for %i = %c0 to %c6 step %c1 iter_args(%t = %zero) -> (i32) {{
        %v = memref.load %target[%i, %c1] : memref<6x2xi16>
        %w = arith.extsi %v : i16 to i32
        %n = arith.addi %t, %w : i32
        scf.yield %n : i32
      }}
      memref.store %total, %sum[%c0] : memref<1xi32>
      aie.end
    }}
  }}"""


def pipe(device: str = "npu2", name: str = "pipe", start: int = 0) -> str:
    """Pairs of columns of a 2 x 6 matrix, sent to a core that adds up the second column of what arrives."""
    return PIPE.format(device=device, name=name, start=start)


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
    text = pipe().replace(
        "aie.use_lock(%full, Release, 1)\n      aie.next_bd ^end",
        "aie.use_lock(%full, Release, 0)\n      aie.next_bd ^fill",
    )
    text = text.replace(
        "<size = 2, stride = 1>])\n      aie.next_bd ^end", "<size = 2, stride = 1>])\n      aie.next_bd ^send"
    )
    with pytest.raises(BudgetExceeded, match="no end after 5000 steps"):
        bdforge.emulate(text, budget=5000)


def test_a_module_without_a_device_is_refused():
    with pytest.raises(LoadError, match=r"empty\.mlir: there is no aie.device"):
        bdforge.emulate("module {}", file="empty.mlir")


def test_a_party_that_waits_when_nothing_moves_is_no_fault():
    """Without a sequence nobody awaits anything: the core simply stays in its acquire."""
    text = pipe().replace("aie.use_lock(%full, Release, 1)", "aie.use_lock(%full, Release, 0)")
    assert bdforge.emulate(text).buffers["sum"] == [0]
