"""Kernels in Python that wait: generators that ask for locks, cascade and streams."""

import inspect
import re
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import BudgetExceeded, Deadlock, KernelError, LockError, PoisonError, Result, TimingOptions
from bdforge.array.emulator.errors import CoreError, EmulationError
from bdforge.array.mlir import MlirError
from bdforge.core.python_kernel import acquire, acquire_equal, get_cascade, get_stream, put_cascade, put_stream, release
from bdforge.devices.timing import STRIX_HALO
from support.array_text import Task, buffer, core, flow, lock, module, program, ring, tile
from support.array_text import acquire as acquires
from support.array_text import bd as bd_of
from support.array_text import release as releases

FULL, FREE = 48 + 3, 48 + 5
WORDS = np.arange(1, 25, dtype=np.int32)
SCHEDULES = [{}, *({"schedule": "random", "seed": seed} for seed in range(2))]


def through(call: str = "func.call @k(%in, %out) : (memref<8xi32>, memref<8xi32>) -> ()", declared: str = "") -> str:
    """Three rounds of 8 words from a memtile to a core and back, all of whose locks are the kernel's affair."""
    declared = declared or "(memref<8xi32>, memref<8xi32>)"
    return module(
        "npu2_1col", tile(0, 1), tile(0, 2), buffer("from", "01", 24, WORDS), buffer("to", "01", 24),
        buffer("in", "02", 8), buffer("out", "02", 8),
        lock("in_full", "02", 3), lock("in_free", "02", 5, 1), lock("out_full", "02", 6), lock("out_free", "02", 7, 1),
        flow("01 DMA : 0", "02 DMA : 0"), flow("02 DMA : 0", "01 DMA : 0"),
        f"func.func private @k{declared}",
        program("01", Task("MM2S", 0, [bd_of("from", 24)]), Task("S2MM", 0, [bd_of("to", 24)])),
        program(
            "02",
            ring("S2MM", 0, acquires("in_free"), bd_of("in", 8), releases("in_full")),
            ring("MM2S", 0, acquires("out_full"), bd_of("out", 8), releases("out_free")),
        ),
        core("02", call),
    )  # fmt: skip


def rounds(first, second, count: int = 3, step: int = 1):
    """What a C++ kernel with acquire_greater_equal and release does."""
    for _ in range(count):
        yield acquire(FULL)
        yield acquire(48 + 7)
        second[:] = first * 10
        yield release(FREE, step)
        yield release(48 + 6)


def run(text: str, kernel: Callable, **options) -> Result:
    return bdforge.emulate(text, kernels={"k": kernel}, **options)


@pytest.mark.parametrize("options", SCHEDULES)
def test_a_kernel_takes_and_gives_locks_under_every_schedule(options):
    assert run(through(), rounds, **options).buffers["to"].tolist() == (10 * WORDS).tolist()


def test_a_kernel_may_delegate_and_be_wrapped():
    def whole(first, second):
        yield from rounds(first, second)

    assert run(through(), partial(whole)).buffers["to"].tolist() == (10 * WORDS).tolist()
    assert run(through(), lambda a, b: rounds(a, b)).buffers["to"].tolist() == (10 * WORDS).tolist()


def test_values_do_not_change_with_timing_and_waiting_takes_time():
    def times(cycles: int) -> Result:
        return run(through(), rounds, timing=TimingOptions(STRIX_HALO, kernels={"k": cycles}))

    quick, slow = times(100), times(5000)
    assert quick.buffers["to"].tolist() == slow.buffers["to"].tolist() == (10 * WORDS).tolist()
    assert quick.timing is not None
    assert slow.timing is not None
    (party,) = slow.timing.cores
    assert party.busy["k"] == 5000
    assert "lock" in " ".join(quick.timing.cores[0].stalled)


def test_locks_arrive_as_the_numbers_of_the_core():
    """A lock of its own, one of the core to the south and one of the core to the east is no lock of this core."""
    seen = []

    def k(*numbers):
        seen.append(numbers)
        yield release(numbers[0], 2)
        yield acquire_equal(numbers[0], 2)

    kind = "(index, index, index)"
    parts = [tile(0, 2), tile(0, 3), tile(0, 4), tile(1, 3)]
    locks = [lock("own", "03", 4), lock("south", "02", 15), lock("north", "04", 1), lock("east", "13", 1)]
    call = f"func.call @k(%own, %south, %north) : {kind} -> ()"
    text = module("npu2_2col", *parts, *locks, f"func.func private @k{kind}", core("03", call))
    run(text, k)
    assert seen == [(48 + 4, 15, 32 + 1)]
    with pytest.raises(MlirError, match=r"this lock of tile \(1, 3\) is used by the aie.core of tile \(0, 3\)"):
        run(text.replace("%north) :", "%east) :"), k)


def neighbours(first: str, second: str, *more: str) -> str:
    """Core (0, 3) and the core south of it; each calls a kernel on its result."""
    kind = "(memref<16xi32>)"
    calls = [f"func.call @{name}(%d{name}) : {kind} -> ()" for name in (first, second)]
    return module(
        "npu2_1col", tile(0, 3), tile(0, 2), buffer(f"d{first}", "03", 16), buffer(f"d{second}", "02", 16), *more,
        *(f"func.func private @{name}{kind}" for name in (first, second)), core("03", calls[0]), core("02", calls[1]),
    )  # fmt: skip


@pytest.mark.parametrize("options", SCHEDULES)
def test_kernels_exchange_values_by_cascade(options):
    def above(data):
        for i in range(7):
            yield put_cascade(np.arange(16, dtype=np.int32) + i)

    def below(data):
        for i in range(7):
            values = yield get_cascade(np.int16 if i == 6 else np.int32)
            data[:] += values[::2] if i == 6 else values

    text = neighbours("above", "below", "aie.cascade_flow(%t03, %t02)")
    result = bdforge.emulate(text, kernels={"above": above, "below": below}, **options)
    assert result.buffers["dbelow"].tolist() == (7 * np.arange(16) + 21).tolist()


@pytest.mark.parametrize("options", SCHEDULES)
def test_kernels_exchange_words_by_stream(options):
    def above(data):
        for word in (-3, 0xFFFF0000, np.float32(1.5), np.uint32(7)):
            yield put_stream(0, word)

    def below(data):
        data[0] = yield get_stream()
        data[1] = np.uint32((yield get_stream(0, np.uint32))).view(np.int32)
        data[2] = 100 * (yield get_stream(0, np.float32))
        data[3] = yield get_stream(0)

    text = neighbours("above", "below", flow("03 Core : 0", "02 Core : 0"))
    result = bdforge.emulate(text, kernels={"above": above, "below": below}, **options)
    assert result.buffers["dbelow"].tolist() == [-3, -65536, 150, 7, *[0] * 12]


def test_a_waiting_kernel_may_return_a_number():
    def k(first, second):
        yield acquire(FULL)
        return int(first.sum())

    declared = "(memref<8xi32>, memref<8xi32>) -> i32"
    call = """%x = func.call @k(%in, %out) : (memref<8xi32>, memref<8xi32>) -> i32
    memref.store %x, %out[%c0] : memref<8xi32>"""
    assert run(through(call, declared), k).buffers["out"][0] == WORDS[:8].sum()


def line_of(function: Callable, text: str) -> str:
    lines, first = inspect.getsourcelines(function)
    return f"test_kernel_steps.py:{first + next(i for i, line in enumerate(lines) if text in line)}"


def lost(first, second):
    for _ in range(3):
        yield acquire(FULL)
        second[:] = first  # and `in_free` is never released


@pytest.mark.parametrize("options", SCHEDULES)
def test_a_deadlock_names_the_kernel_and_its_line(options):
    wait = """aie.runtime_sequence @s() {
    aiex.npu.sync {column = 0 : i32, row = 1 : i32, direction = 0 : i32, channel = 0 : i32,
      column_num = 1 : i32, row_num = 1 : i32}
    }
    """
    text = through().removesuffix("}\n}\n") + wait + "}\n}\n"
    with pytest.raises(Deadlock) as fault:
        run(text, lost, permissive=[], file="d.mlir", **options)
    where = re.escape(f"(k at {line_of(lost, 'yield acquire')}; d.mlir:")
    assert re.search(rf"core \(0, 2\) waits for lock in_full \(3 of core \(0, 2\)\) >= 1, which is 0 {where}\d+:\d+\)",
                     str(fault.value))  # fmt: skip
    assert "S2MM 0 waits for lock in_free (5 of core (0, 2)) >= 1, which is 0" in str(fault.value)


def test_a_blocked_kernel_of_an_array_without_a_sequence_is_listed():
    (warning,) = [w for w in run(through(), lost).warnings if "blocked-cores" in w]
    assert f"(k at {line_of(lost, 'yield acquire')}; " in warning


async def asynchronous(first, second):
    del first, second


def returns(value) -> Callable:
    return lambda first, second: value


def yields(value) -> Callable:
    def kernel(first, second):
        yield value

    return kernel


def ends_with(value) -> Callable:
    def kernel(first, second):
        yield release(FREE)
        return value

    return kernel


def builds(make: Callable) -> Callable:
    def kernel(first, second):
        yield make()

    return kernel


def fails(first, second):
    raise ValueError("not today")


def endless(first, second):
    while True:
        yield release(48)
        yield acquire(48)


def reads(first, second):
    yield acquire(FULL)
    second[:] = np.int32(1) // np.int32(0) if first[99] else 0


REFUSED = {
    "one that fails": (fails, KernelError, r"k on core \(0, 2\): ValueError: not today"),
    "a returned value": (returns(3), KernelError, r"k on core \(0, 2\) returned 3, but the design declares it without"),
    "a long one": (returns(list(range(99))), KernelError, r"returned \[0, 1, .* \.\.\., but the design"),
    "a generator's value": (ends_with(4), KernelError, "returned 4, but the design declares it without results"),
    "an async function": (asynchronous, KernelError, "one that waits is a generator function"),
    "no request": (yields(None), KernelError, r"test_kernel_steps\.py:\d+: yielded None; a kernel yields requests of"),
    "a number": (
        yields(7),
        KernelError,
        r"yielded 7; a kernel yields requests of bdforge.core.python_kernel \(acquire, acquire_",
    ),
    "no such lock": (yields(acquire(64)), CoreError, "lock 64 is outside 0 to 63, a core's numbers"),
    "a memtile's lock": (yields(release(3)), CoreError, r"lock 3 would be in memtile \(0, 1\), whose locks a core"),
    "a lock outside": (yields(acquire(16)), EmulationError, "tile|column|outside"),
    "acquire zero": (yields(acquire(FULL, 0)), EmulationError, "AcquireGreaterEqual of 0 would be read as Acquire of"),
    "a lock too high": (yields(release(FREE, 64)), LockError, r"would become 6\d, .* \(k at test_kernel_steps\.py:\d+"),
    "no cascade in": (yields(get_cascade()), KernelError, r"no aie.cascade_flow leads to core \(0, 2\)"),
    "no cascade out": (yields(put_cascade(bytes(64))), KernelError, r"no aie.cascade_flow leads away from core \(0, 2"),
    "no port": (yields(get_stream(1)), KernelError, "a core has 1 stream port each way; there is no 1"),
    "no word": (yields(get_stream(0, np.int16)), KernelError, "a stream moves words of 4 bytes, not 2"),
    "a large word": (builds(lambda: put_stream(0, 1 << 32)), KernelError, "4294967296 is no word of 32 bits .*py:"),
    "an exception": (reads, KernelError, r"index 99 is out of bounds .* \(test_kernel_steps\.py:\d+\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_kernel_is_refused(name):
    kernel, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        run(through(), kernel)


@pytest.mark.parametrize("poison", [False, True])
def test_numpy_functions_that_return_the_array_they_wrote_are_kernels(poison):
    kind = "(memref<8xi32>, memref<8xi32>)"
    text = module(
        "npu2_1col", tile(0, 2), buffer("in", "02", 8, range(8)), buffer("out", "02", 8),
        f"func.func private @k{kind}", core("02", f"func.call @k(%in, %out) : {kind} -> ()"),
    )  # fmt: skip
    result = run(text, lambda first, second: np.multiply(first, 3, out=second), poison=poison)
    assert result.buffers["out"].tolist() == [0, 3, 6, 9, 12, 15, 18, 21]


def test_a_kernel_that_never_ends_is_stopped():
    with pytest.raises(BudgetExceeded, match=r"no end after 5000 loop .* \(k at test_kernel_steps\.py:\d+"):
        run(through(), endless, budget=5000)


def test_what_a_kernel_has_written_counts_when_it_releases():
    """The channel sends `out` while the kernel still runs; without a kernel it would send what nobody wrote."""
    assert run(through(), rounds, poison=True).buffers["to"].tolist() == (10 * WORDS).tolist()
    with pytest.raises(PoisonError, match="words that nobody wrote"):
        run(through("aie.use_lock(%out_full, Release, 1)"), rounds, poison=True)


def test_integers_that_are_passed_to_functions_are_no_locks():
    body = """func.func @f(%x: index) {
      func.return
    }"""
    call = """%c = arith.constant 100 : index
    func.call @f(%c) : (index) -> ()"""
    text = through(call).replace("func.func private @k(memref<8xi32>, memref<8xi32>)", body)
    assert "blocked" not in "".join(run(text, rounds).warnings)
