"""What the emulated array holds once a design is loaded, to compare with the state that register writes leave."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from bdforge.array.emulator.array import Array
from bdforge.array.emulator.device_load import LoadedDevice
from bdforge.array.emulator.host import HostBuffers
from bdforge.array.emulator.scheduler import Scheduler
from bdforge.array.emulator.strictness import Strictness
from bdforge.array.lower import configuration
from bdforge.array.lower.array_state import ArrayState, PushedTask
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.routing.nets import nets_of
from support.decoded import Ways, decoded_ways
from support.differences import same


class AnyKernel(Mapping[str, Callable]):
    """Every kernel, none of which is called: nothing runs here."""

    def __getitem__(self, name: str) -> Callable:
        return lambda *_: None

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def loaded(device: DeviceOp) -> Array:
    """The array with a design's configuration, before anything moves."""
    array = Array(device.device, HostBuffers(), Scheduler(), Strictness())
    LoadedDevice(device, array, AnyKernel())
    return array


def check_same_state(device: DeviceOp) -> int:
    """Locks, BDs, queues, memory and streams of a loaded design are those of its lowered writes; the number of them."""
    found = configuration(device, lambda *_: [])
    state, array = ArrayState(found.operations), loaded(device)
    for place, tile in array.tiles.items():
        written = state.tiles.get(place)
        locks, bds = (written.locks, written.bds) if written else ({}, {})
        assert {i: lock.value for i, lock in enumerate(tile.locks) if lock.value} == {
            k: v for k, v in locks.items() if v
        }
        loaded_bds = {
            i: [tile.read_bd(i, word) for word in range(tile.registers.bd.words)] for i in range(tile.limits.bds)
        }
        assert {i: bd for i, bd in loaded_bds.items() if any(bd)} == bds
        queued = [
            PushedTask(direction, channel.index, task.bd, task.runs - 1, task.token)
            for (direction, _), channel in tile.channels.items()
            for task in channel.tasks
        ]
        tasks = written.tasks if written else []
        assert sorted(queued) == sorted(tasks)
        memory = np.frombuffer(bytes(written.memory.data), np.uint8) if written else np.zeros(tile.bytes.size, np.uint8)
        same(tile.bytes, memory)
    assert _without_tokens(decoded_ways(found.operations)) == _without_tokens(
        {(net.source, net.packet_id): set(net.sinks) for net in nets_of(device)}
    )
    return len(found.operations)


def _without_tokens(ways: Ways) -> Ways:
    """Those of completion tokens follow from the shims, not from flows."""
    return {key: sinks for key, sinks in ways.items() if str(key[0].bundle) != "TileControl"}
