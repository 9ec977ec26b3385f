"""Limits of tiles, channels and host memory, each with the last that is taken and the first that is refused."""

from collections import deque
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bdforge.array.emulator import ArgumentError, DmaError
from bdforge.array.emulator.bd_access import Order
from bdforge.array.emulator.controller import _notify_poll
from bdforge.array.emulator.dma import DmaChannel
from bdforge.array.emulator.errors import UnpatchedError
from bdforge.array.emulator.host import FIRST_ADDRESS, GUARD_BYTES, SPARE_BYTES, HostBuffers
from bdforge.array.emulator.lock import EmulatedLock, LockWait
from bdforge.array.emulator.register_space import RegisterMap
from bdforge.array.emulator.stream import Sink, Stream
from bdforge.array.emulator.tile import EmulatedTile
from bdforge.devices import AIE2, AIE2P, TileKind, mlir_device_named
from bdforge.devices.capacities import StreamCapacities
from bdforge.devices.limits import MEMTILE_NEIGHBOUR_CHANNELS, TASK_QUEUE_ENTRIES
from bdforge.devices.registers import TILE_REGISTERS

MIB = 1 << 20


class Faults:
    """What a rule of strictness was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def fault(self, name: str, _: Exception) -> None:
        self.told.append(name)

    def caution(self, name: str, _: str) -> None:
        self.told.append(name)


def memory(*sizes: int, **options: Any) -> HostBuffers:
    return HostBuffers([(f"x{i}", np.zeros(size, np.uint8)) for i, size in enumerate(sizes)], **options)


def test_arguments_lie_a_guard_apart_whatever_their_size():
    found = memory(4, MIB - 4, MIB, MIB + 4, 4)
    assert [found.address_of(i) - FIRST_ADDRESS for i in range(5)] == [0, 2 * MIB, 4 * MIB, 6 * MIB, 9 * MIB]
    assert GUARD_BYTES == MIB
    for argument in (-1, 5):
        with pytest.raises(ArgumentError, match=f"argument {argument} is patched in, but the run was given 5 arrays"):
            found.address_of(argument)


RUN = Order(4, None, 0, 3)


@pytest.mark.parametrize(("size", "last"), [(64, 48), (62, 48), (61, 48)])
def test_a_transfer_ends_with_the_last_word_of_its_argument(size: int, last: int):
    found = memory(size)
    base = found.address_of(0)
    assert found.locate(base + last, RUN, False, "here")[1] == last // 4
    with pytest.raises(DmaError, match=f"touches bytes {last + 4} to {last + 19} of argument x0, which has {size}"):
        found.locate(base + last + 4, RUN, False, "here")
    with pytest.raises(DmaError, match="here touches bytes -4 to 11 of argument x0"):
        found.locate(base, Order(4, None, -1, 2), False, "here")


def test_addresses_of_no_argument_were_never_patched():
    found = memory(64)
    base = found.address_of(0)
    with pytest.raises(DmaError, match="touches bytes"):
        found.locate(base + 63 + SPARE_BYTES, RUN, False, "here")
    for address in (base - 4, base + 64 + SPARE_BYTES):
        with pytest.raises(UnpatchedError, match=f"host address {address:#x}, which belongs to no argument"):
            found.locate(address, RUN, False, "here")


def test_spare_bytes_are_there_where_they_are_permitted():
    faults: list[DmaError] = []
    found = memory(64, beyond=faults.append)
    base = found.address_of(0)
    found.locate(base + 64 + SPARE_BYTES - 16, RUN, True, "here")
    assert len(faults) == 1
    with pytest.raises(DmaError, match="touches bytes"):
        found.locate(base + 64 + SPARE_BYTES - 12, RUN, True, "here")


def test_an_argument_that_is_read_only_may_be_read():
    array = np.zeros(64, np.uint8)
    array.flags.writeable = False
    found = HostBuffers([("x", array)])
    assert found.locate(found.address_of(0) + 16, RUN, False, "here")[1] == 4
    with pytest.raises(DmaError, match="here writes to argument x, which is read-only"):
        found.locate(found.address_of(0) + 16, RUN, True, "here")


def test_who_wrote_is_known_by_word_and_column():
    found = memory(64, 64)
    words = found.buffers[1].words
    assert found.writer(words, slice(0, 16), 0) is None
    found.wrote(words, np.array([3, 5]), 2)
    assert found.writer(words, slice(0, 3), 0) is None
    assert found.writer(words, slice(0, 4), 0) == ("x1", 2)
    assert found.writer(words, slice(0, 4), 2) is None
    assert found.writer(words, np.array([4, 6]), 0) is None
    assert found.writer(found.buffers[0].words, slice(0, 16), 0) is None


@pytest.mark.parametrize(("index", "faults"), [(3, []), (4, ["neighbour-channel"])])
def test_four_channels_of_a_memtile_reach_its_neighbours(index: int, faults: list[str]):
    assert MEMTILE_NEIGHBOUR_CHANNELS == 4
    rules = Faults()
    array = SimpleNamespace(device=mlir_device_named("npu2"), strictness=rules, tile=lambda *place: place)
    tile: Any = SimpleNamespace(column=1, row=1, array=array)
    channel: Any = SimpleNamespace(index=index, where=lambda: "here")
    assert [EmulatedTile._neighbour(tile, side, channel, "memory") for side in (0, 1, 2)] == [(0, 1), tile, (2, 1)]
    assert rules.told == faults * 2
    with pytest.raises(DmaError, match="here reaches memory beyond the array's edge"):
        EmulatedTile._neighbour(tile, 3, channel, "memory")


@pytest.mark.parametrize(("column", "side"), [(0, 0), (7, 2)])
def test_an_array_ends_with_its_columns(column: int, side: int):
    array = SimpleNamespace(device=mlir_device_named("npu2"), strictness=Faults(), tile=lambda *place: place)
    tile: Any = SimpleNamespace(column=column, row=1, array=array)
    channel: Any = SimpleNamespace(index=0, where=lambda: "here")
    with pytest.raises(DmaError, match="beyond the array's edge"):
        EmulatedTile._neighbour(tile, side, channel, "memory")
    assert EmulatedTile._neighbour(tile, 2 - side, channel, "memory") == (column + 1 - side, 1)


PAIR = (3, -1), (4, 1)


@pytest.mark.parametrize(
    ("kind", "generation", "locks", "joined"),
    [
        (TileKind.MEMTILE, AIE2P, PAIR, {(3, 4): {2}}), (TileKind.CORE, AIE2P, PAIR, {}),
        (TileKind.SHIM, AIE2P, PAIR, {}), (TileKind.MEMTILE, AIE2, PAIR, {}),
        (TileKind.MEMTILE, AIE2P, ((3, -1), None), {}), (TileKind.MEMTILE, AIE2P, ((3, -1), (3, 1)), {}),
    ],
    ids=["memtile", "core", "shim", "AIE2", "no release", "one lock"],
)  # fmt: skip
def test_joins_are_of_memtiles_of_aie2p_between_two_locks(kind, generation, locks, joined):
    tile = SimpleNamespace(kind=kind, fills={}, name="tile")
    array = SimpleNamespace(device=SimpleNamespace(generation=generation), strictness=Faults())
    channel: Any = SimpleNamespace(sink=object(), tile=tile, index=2, array=array)
    bd: Any = SimpleNamespace(acquire=locks[0], release=locks[1])
    DmaChannel.check_join(channel, bd)
    assert tile.fills == joined
    channel.sink = None  # an MM2S
    tile.fills.clear()
    DmaChannel.check_join(channel, bd)
    assert tile.fills == {}


def test_a_channel_that_was_reset_takes_no_words_and_sends_none():
    """What arrives later is held for whoever asks next; nobody is woken for a transfer that is gone."""
    received, woken = [], []
    scheduler: Any = SimpleNamespace(notify=lambda *_: None, wake=woken.append, wake_when_idle=woken.append)
    owner: Any = SimpleNamespace()
    holds = StreamCapacities.uniform(16)
    sink = Sink(owner, received.append, holds, demand=5)
    stream = Stream(owner, scheduler, sinks=[Sink(owner, received.append, holds, demand=9)], blocked=True)
    channel: Any = SimpleNamespace(
        array=SimpleNamespace(scheduler=scheduler), notify=lambda *_: None, tasks=deque(), waiting=None, steps=iter(()),
        sink=sink, stream=stream,
    )  # fmt: skip
    DmaChannel.reset(channel)
    assert channel.steps is None
    sink.deliver(np.arange(3, dtype=np.uint32), scheduler, last=False)
    stream.changed()
    assert (received, woken, sink.held) == ([], [], 3)


LOCK_WAIT = LockWait(None, 1, False, str)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tasks", "waiting", "overflowed", "fields"),
    [
        (0, None, False, {}),
        (1, None, False, {"bd": 7, "queue_size": 1, "running": 1, "state": 2}),
        (TASK_QUEUE_ENTRIES, LOCK_WAIT, True, {"bd": 7, "queue_size": TASK_QUEUE_ENTRIES, "running": 1, "state": 2,
                                               "acquire_stall": 1, "queue_overflow": 1}),
        (2, object(), False, {"bd": 7, "queue_size": 2, "running": 1, "state": 2, "stream_stall": 1}),
        (0, object(), True, {"queue_overflow": 1}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", [TileKind.SHIM, TileKind.MEMTILE, TileKind.CORE])
def test_a_status_register_tells_what_its_channel_does(kind, tasks, waiting, overflowed, fields):
    channel: Any = SimpleNamespace(tasks=[None] * tasks, waiting=waiting, bd=7)
    layout = TILE_REGISTERS[kind]
    registers: Any = SimpleNamespace(layout=layout, _overflowed=[channel] * overflowed)
    word = RegisterMap._status(registers, channel)
    found = {name: value for name, value in layout.status.decode([word]).items() if value}
    assert found == {name: value for name, value in fields.items() if name in layout.status.fields}


@pytest.mark.parametrize(
    ("mask", "value", "expected"), [(63, 63, {63}), (63, 0, {0}), (62, 2, {2, 3}), (63, 64, set())]
)
def test_a_poll_of_a_lock_is_told_with_every_value_that_ends_it(mask: int, value: int, expected: set[int]):
    lock = EmulatedLock("gate", 63, lambda _: None)
    layout: Any = SimpleNamespace(lock_at=lambda _: lock, channel_at=lambda _: None)
    array = SimpleNamespace(at=lambda _: (SimpleNamespace(map=layout), 0))
    told: list[tuple] = []
    scheduler: Any = SimpleNamespace(notify=lambda *event: told.append(event))
    _notify_poll(scheduler, SimpleNamespace(poll=SimpleNamespace(address=0, mask=mask, value=value), array=array))  # type: ignore[arg-type]
    assert told == [("poll lock", lock, frozenset(expected))]


@pytest.mark.parametrize("kind", [TileKind.SHIM, TileKind.MEMTILE, TileKind.CORE])
def test_a_bd_s_registers_are_its_words_and_not_the_gaps_between(kind: TileKind):
    layout = TILE_REGISTERS[kind]
    registers: Any = SimpleNamespace(layout=layout, tile=SimpleNamespace(limits=SimpleNamespace(bds=4)))
    words, stride = layout.bd.words, layout.bd_stride
    assert [RegisterMap.bd_place(registers, layout.bd_base + 4 * i) for i in range(stride // 4)] == [
        (0, i) if i < words else None for i in range(stride // 4)
    ]
    assert RegisterMap.bd_place(registers, layout.bd_base + 3 * stride) == (3, 0)
    for outside in (-4, 4 * stride):
        assert RegisterMap.bd_place(registers, layout.bd_base + outside) is None
