"""Timing observes: values, faults and each party's order stay; the same trace can be timed again and again."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import EmulationError, Result, TimingOptions, replay
from bdforge.array.txn.lower import lower_module
from bdforge.devices.timing import STRIX_HALO
from bdforge.devices.txn_format.codec import encode
from bdforge.devices.txn_format.operations import MaskPoll
from oracle.array_text import mlir
from oracle.comparison import DTYPES, expected_of, kernels, mode_of
from support.differences import same
from support.distribute import distribute
from support.register_designs import column, push, writebd
from support.small_designs import core, loopback
from support.timed_designs import FREE, to_cores
from support.two_devices import module, run_of

SEEDS = [0, 3, 4, 6, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 5, *range(7, 12)))]
OPTIONS = TimingOptions(STRIX_HALO)


@cache
def timed_random(seed: int) -> tuple[dict[str, bytes], Result]:
    expected = expected_of(seed)
    design = expected.design
    arrays = {a.name: np.array(a.values, DTYPES[a.element]) for a in design.arguments}
    result = bdforge.emulate(mlir(design), list(arrays.values()), kernels(design), timing=OPTIONS, **mode_of(seed))
    found = {name: array.tobytes() for name, array in arrays.items()}
    found |= {b.name: result.buffers[b.name].tobytes() for b in design.buffers}
    assert found.keys() == expected.memory.keys()
    for name, value in expected.memory.items():
        assert found[name] == value, f"seed {seed}: {name} differs from the slow interpreter"
    return found, result


@pytest.mark.daily(every=2)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_designs_keep_their_values_and_their_time_is_all_accounted_for(seed):
    _, result = timed_random(seed)
    report = result.timing
    assert report is not None
    assert result.trace is not None
    assert report.cycles > 0
    for party in (*report.cores, *report.channels, report.controller):
        total = sum(party.busy.values()) + sum(party.stalled.values())
        assert total == pytest.approx(report.cycles, abs=0.01), party.name
    assert replay(result.trace, OPTIONS) == report


@pytest.mark.daily(every=3)
@pytest.mark.parametrize("seed", [0, 3, 6])
def test_a_faster_array_memory_or_controller_never_slows_these_designs(seed):
    trace = timed_random(seed)[1].trace
    assert trace is not None
    base = replay(trace, OPTIONS).seconds
    faster = [
        replace(STRIX_HALO, array_hz=2 * STRIX_HALO.array_hz),
        replace(STRIX_HALO, stream_bytes_per_cycle=2 * STRIX_HALO.stream_bytes_per_cycle),
        replace(STRIX_HALO, dram_read_gb_s=1e3, dram_gb_s=1e3, shim_request_ns=0, shim_byte_ns=0),
        replace(STRIX_HALO, controller_write_ns=0, controller_bd_ns=0, controller_transfer_ns=0),
        replace(STRIX_HALO, core_lock_cycles=0, done_to_resume_cycles=0, memtile_turn_cycles=0),
    ]
    for timing in faster:
        assert replay(trace, TimingOptions(timing)).seconds <= base * (1 + 1e-9)


def test_without_timing_nothing_is_recorded():
    a, b = np.arange(96, dtype=np.int32), np.zeros(96, np.int32)
    result = bdforge.emulate(loopback(), [a, b])
    assert (result.timing, result.trace) == (None, None)


def test_a_fault_is_the_same_with_timing():
    text = loopback(send_release="")
    messages = []
    for timing in (None, OPTIONS):
        with pytest.raises(EmulationError) as error:
            bdforge.emulate(text, [np.zeros(96, np.int32)] * 2, timing=timing)
        messages.append((type(error.value), str(error.value)))
    assert messages[0] == messages[1]


def test_four_channels_that_share_locks_end_in_time():
    a = np.arange(48, dtype=np.int32)
    result = bdforge.emulate(distribute(), [a], timing=OPTIONS)
    same(result.buffers["got2"], a.reshape(3, 4, 4)[:, 2].ravel())
    assert result.timing is not None
    assert len(result.timing.channels) == 10


def test_other_constants_and_kernel_costs_time_the_same_trace_again():
    text, a = to_cores(["work"], 100, 3, buffers=2), np.zeros(300, np.int32)
    trace = bdforge.emulate(text, [a], {"work": lambda x: None}, timing=TimingOptions(FREE, {"work": 10})).trace
    assert trace is not None
    assert trace.kernels() == {"work": 3}
    assert replay(trace, TimingOptions(FREE, {"work": 10})).cycles == pytest.approx(160)
    assert replay(trace, TimingOptions(FREE, {"work": 400})).cycles == pytest.approx(50 + 1200)
    assert replay(trace, TimingOptions(FREE, {"work": lambda elements: 2 * elements[0]})).cycles == pytest.approx(650)
    slow = replay(trace, TimingOptions(replace(FREE, stream_bytes_per_cycle=4), {"work": 10}))
    assert slow.cycles == pytest.approx(310)


def test_a_kernel_without_a_cost_is_named():
    result = bdforge.emulate(to_cores(["work"], 64, 2, 2), [np.zeros(128, np.int32)], {"work": lambda x: None},
                             timing=TimingOptions(FREE))  # fmt: skip
    assert result.warnings == ("no cost is known for work: one pass over the arrays is assumed; give cycles per call",)
    assert result.timing is not None
    assert result.timing.cores[0].busy["work"] == pytest.approx(2 * 64 * 4 / 64)


def test_operations_of_a_core_program_take_a_cycle_each():
    body = """scf.for %i = %c0 to %c8 step %c1 {
        %v = memref.load %data[%i] : memref<8xi32>
        %w = arith.addi %v, %v : i32
        memref.store %w, %data[%i] : memref<8xi32>
      }
      aie.end"""
    report = bdforge.emulate(core(body), timing=TimingOptions(FREE)).timing
    assert report is not None
    assert report.cores[0].busy == {"core program": 1 + 8 * 4}  # the loop; load, add, store and the way back


def test_a_reconfiguration_takes_its_time_and_stops_what_ran():
    a, b, c = np.arange(24, dtype=np.int32).reshape(3, 8)
    text = module(run_of("first", "a", "b"), run_of("second", "b", "c"))
    timing = replace(FREE, reconfiguration_ns=5000)
    result = bdforge.emulate(text, [a, b, c], sequence="whole", timing=TimingOptions(timing))
    same(c, (a + 1) * 3)
    assert result.warnings == ()
    assert result.timing is not None
    assert 2 * 5000 < result.timing.cycles < 2 * 5000 + 500
    assert {core.name for core in result.timing.cores} == {"core (0, 2)"}
    assert len(result.timing.cores) == 2


LOCK = (1 << 20) + 0xC0030  # lock 3 of the memtile


def test_a_poll_waits_in_time_until_a_lock_has_its_value():
    """The BD acquires 2 and releases 3 behind 64 words; the write behind the poll comes later."""
    lines = [
        writebd((0, 1), 0, 64, 0x20000 + 1024, lock_rel_val=1, lock_rel_id=67),
        push((0, 1), "S2MM : 0", 0),
        "aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 0][1, 1, 1, 64][0, 0, 0, 1]) {id = 0 : i64, metadata = @in}"
        " : memref<64xi32>",
    ]
    stream = lower_module(bdforge.array.mlir.parse(column(*lines)))[1]
    words = encode([*stream, MaskPoll(LOCK, 3, 0x3F)], bdforge.devices.mlir_device_named("npu2"))
    arrays = [np.zeros(64, np.int32), np.zeros(64, np.int32)]
    options = TimingOptions(replace(FREE, shim_mm2s_first_ns=700))
    report = bdforge.emulate(column(), arrays, instructions=words, timing=options).timing
    assert report is not None
    assert report.controller.stalled == pytest.approx({"lock ml": 700 + 32})
