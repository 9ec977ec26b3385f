"""Arrays of a host: which fit an argument, how odd ones come back, and how their addresses get into BDs."""

from typing import Any

import numpy as np
import pytest

from bdforge.array.emulator.array import Array
from bdforge.array.emulator.bd_access import Order
from bdforge.array.emulator.boot import set_dmas
from bdforge.array.emulator.controller import _patch
from bdforge.array.emulator.errors import ArgumentError, LoadError, RegisterAccessError
from bdforge.array.emulator.host import FIRST_ADDRESS, HostBuffers
from bdforge.array.emulator.module_choice import choose, host_arrays
from bdforge.array.emulator.scheduler import Scheduler
from bdforge.array.emulator.strictness import Strictness
from bdforge.array.lower.array_state import PushedTask, TileState
from bdforge.array.mlir import parse
from bdforge.devices import mlir_device_named
from bdforge.devices.txn_format.operations import Operation, Patch, Write
from support.differences import same

TEXT = """aie.device(npu2_1col) {{
  aie.runtime_sequence @go(%x: memref<{type}>) {{
  }}
}}
"""


def given(type_: str, *arrays: Any, permitted: str = "", any_type: bool = False) -> Strictness:
    """The rules after arrays were taken for a sequence of one argument; ArgumentError for those that do not fit."""
    _, entry = choose(parse(TEXT.format(type=type_), "d.mlir"), None, None, "d.mlir")
    rules = Strictness.without([permitted] if permitted else [])
    found = host_arrays(entry, arrays, any_type, rules)
    assert [name for name, _ in found] == [str(i) if any_type else "x" for i in range(len(arrays))]
    assert all(array is wanted for (_, array), wanted in zip(found, arrays, strict=True))
    return rules


I32 = np.zeros(6, np.int32)
FITTING = {
    "the type itself": ("6xi32", I32), "unsigned": ("6xi32", I32.view(np.uint32)), "another shape": ("2x3xi32", I32),
    "a scalar shape": ("i32", np.zeros((), np.int32)), "floats": ("6xf32", I32.view(np.float32)),
    "halves": ("6xf16", np.zeros(6, np.float16)), "bytes": ("6xi8", np.zeros((3, 2), np.uint8)),
    "none": ("0xi32", np.zeros(0, np.int32)),
}  # fmt: skip


@pytest.mark.parametrize(("type_", "array"), FITTING.values(), ids=FITTING)
def test_an_array_of_its_argument_s_elements_fits_in_any_shape(type_: str, array: np.ndarray):
    assert given(type_, array).warnings == []


GRID = np.zeros((4, 6), np.int32)
REFUSED = {
    "floats for integers": ("6xi32", I32.view(np.float32), "must hold int32 elements .*, got float32"),
    "integers for floats": ("6xf32", I32, "must hold float32 elements .*, got int32"),
    "wider elements": ("6xi32", np.zeros(6, np.int64), "must hold int32 elements .*, got int64"),
    "narrower elements of the same size": ("6xi32", np.zeros(12, np.int16), "must hold int32 elements .*, got int16"),
    "one element less": ("6xi32", I32[:5], "must have 6 elements .*, got 5, shape"),
    "one element more": ("6xi32", np.zeros(7, np.int32), "must have 6 elements .*, got 7, shape"),
    "every other one": ("6xi32", np.zeros(12, np.int32)[::2], "is not C-contiguous; pass np.ascontiguousarray"),
    "columns first": ("4x6xi32", np.asfortranarray(GRID), "is not C-contiguous"),
    "a part of columns": ("4x3xi32", GRID[:, :3], "is not C-contiguous"),
    "a list": ("6xi32", [0] * 6, "must be a numpy array, got list"),
}


@pytest.mark.parametrize(("type_", "array", "message"), REFUSED.values(), ids=REFUSED)
def test_an_array_that_does_not_fit_is_refused(type_: str, array: Any, message: str):
    with pytest.raises(ArgumentError, match=f"argument x {message}"):
        given(type_, array)
    sized = "elements" in message and "must have" in message
    if sized:
        (warning,) = given(type_, array, permitted="argument-size").warnings
        assert warning.startswith("argument-size (permitted): argument x must have 6")
    if isinstance(array, np.ndarray) and "contiguous" not in message:
        assert given(type_, array, any_type=True).warnings == []
    elif not sized:
        with pytest.raises(ArgumentError, match=f"argument 0 {message}"):
            given(type_, array, any_type=True)


@pytest.mark.parametrize("count", [0, 2])
def test_as_many_arrays_are_wanted_as_the_sequence_has_arguments(count: int):
    with pytest.raises(ArgumentError, match=f"{count} arrays were given, but @go takes 1"):
        given("6xi32", *[I32] * count)
    with pytest.raises(ArgumentError, match="1 arrays were given, but the design has no runtime sequence"):
        host_arrays(None, [I32], False, Strictness())


def odd(size: int, shift: int = 0) -> np.ndarray:
    """Bytes that begin `shift` behind a word."""
    raw = np.zeros(size + 8, np.uint8)
    start = -raw.ctypes.data % 4 + shift
    return raw[start : start + size]


@pytest.mark.parametrize(("size", "shift", "copied"), [(8, 0, False), (8, 1, True), (7, 0, True), (9, 2, True)])
def test_arrays_that_are_not_of_whole_words_are_copied_and_come_back(size: int, shift: int, copied: bool):
    array = odd(size, shift)
    array[:] = range(1, size + 1)
    memory = HostBuffers([("x", array)])
    words, index = memory.locate(memory.address_of(0), Order(2, None, 0, 1), True, "here")
    assert (index, memory.buffers[0].copied, len(words)) == (0, copied, -(-size // 4))
    same(words.view(np.uint8)[:size], np.arange(1, size + 1, dtype=np.uint8))
    words[:2] = 0x0D0C0B0A, 0x04030201
    memory.write_back()
    same(array[:7].tolist(), [10, 11, 12, 13, 1, 2, 3])
    assert size < 9 or array[8] == 9


BD = 0x1D000 + 2 * 0x20  # words of BD 2 of the shim of column 0
HIGH = 0xFFFF


@pytest.mark.parametrize(("plus", "low", "high"), [(0, 0, 1), (20, 20, 1), (-4, 0xFFFFFFFC, 0), (3 << 32, 0, 4)])
def test_a_patch_puts_an_address_of_48_bits_beside_what_else_its_word_holds(plus: int, low: int, high: int):
    assert FIRST_ADDRESS == 1 << 32
    array = Array(mlir_device_named("npu2"), HostBuffers([("x", I32)]), Scheduler(), Strictness())
    for place, word in ((BD + 4, 77), (BD + 8, 0xABCD_5555), (BD + 12, 9)):
        array.write(place, word)
    _patch(array, Patch(BD + 4, 0, plus), "")
    assert [array.read(BD + 4 * i) for i in (1, 2, 3)] == [low, 0xABCD_0000 | high, 9]


@pytest.mark.parametrize(
    ("register", "argument", "error", "message"),
    [
        (BD, 0, RegisterAccessError, r"is patched into word 0 of BD 2 of shim \(0, 0\); only word 1 .* \(here\)"),
        (BD + 8, 0, RegisterAccessError, "is patched into word 2 of BD 2"),
        (0x1D200, 0, RegisterAccessError, "is patched into register 0x1d200 of shim"),
        ((1 << 20) + 0xA0004, 0, RegisterAccessError, r"word 1 of BD 0 of memtile \(0, 1\)"),
        (BD + 4, 4, ArgumentError, r"argument 4 is patched in, but the run was given 1 arrays \(here\)"),
        (BD + 4, 5, LoadError, "buffer argument 5 .* is used, but NPUs translate"),
    ],
)
def test_a_patch_of_another_word_or_argument_is_refused(register, argument, error, message):
    array = Array(mlir_device_named("npu2"), HostBuffers([("x", I32)]), Scheduler(), Strictness())
    with pytest.raises(error, match=message):
        _patch(array, Patch(register, argument, 0), " (here)")


@pytest.mark.parametrize("task", [PushedTask("MM2S", 1, 5, 7, True), PushedTask("S2MM", 0, 9, 0, False)], ids=str)
def test_tasks_of_an_image_are_pushed_as_it_says(task: PushedTask):
    tile = Array(mlir_device_named("npu2"), HostBuffers(), Scheduler(), Strictness()).tile(0, 2)
    for bd in (5, 9):
        tile.write(tile.registers.bd_offset(bd) + 4 * (tile.registers.bd.words - 1), 1 << 25)  # valid
    written = TileState.__new__(TileState)
    written.bds, written.registers, written.tasks, written.pushes = {}, {}, [task], list[Operation]([Write(0, 0)])
    set_dmas(tile, written)
    (queued,) = tile.channels[task.direction, task.channel].tasks
    assert (queued.bd, queued.runs, queued.token) == (task.bd, task.repeat + 1, task.token)


@pytest.mark.parametrize(
    ("length", "taken", "held", "told"),
    [
        (4, 0, 0, []), (4, 4, 0, []), (4, 1, 0, ["stopped in the middle of BD 3, 3 words are missing"]),
        (4, 3, 0, ["stopped in the middle of BD 3, 1 words are missing"]),
        (0, 0, 2, ["2 words were left in the input of"]),
    ],
)  # fmt: skip
def test_words_that_never_came_and_those_that_nobody_took_are_told(length: int, taken: int, held: int, told: list[str]):
    """A BD that has got none of its words has not begun."""
    array = Array(mlir_device_named("npu2"), HostBuffers(), Scheduler(), Strictness())
    channel = array.tile(0, 2).channels["S2MM", 1]
    channel.bd, sink = 3, channel.sink
    assert sink is not None
    channel._memory = np.zeros(8, np.uint32)
    sink.demand = length
    sink.deliver(np.zeros(taken + held, np.uint32), array.scheduler, last=False)
    found = list(array.left_over())
    assert [part in line and "core (0, 2) S2MM 1" in line for part, line in zip(told, found, strict=True)] == [
        True
    ] * len(told)
