"""What the channels of a tile take from one configuration to the next: which stop, which stay, and which start when."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from bdforge.array.lower.array_state import ChannelKey, ChannelWait, PushedTask, TileState
from bdforge.array.lower.channel_waits import disturbed, sends_nothing, tasks_of, wait_of
from bdforge.array.lower.tile_use import Busy, Used
from bdforge.devices import AIE2, TileKind
from bdforge.devices.register_names import What
from bdforge.devices.registers import CORE_ENABLE, TILE_REGISTERS, TileRegisters, address
from bdforge.devices.txn_format.operations import Write


@dataclass(frozen=True)
class ChannelChange:
    """The channels of a tile as of `TileChange`; `locks` are all that what is wanted sets."""

    old: TileState
    new: TileState
    uses: Used | None
    busy: Busy | None
    locks: Collection[int]

    @property
    def _at(self) -> TileRegisters:
        return TILE_REGISTERS[self.old.kind]

    def _write(self, offset: int, value: int) -> Write:
        return Write(address(self.old.column, self.old.row, offset), value)

    @cached_property
    def left(self) -> dict[ChannelKey, ChannelWait]:
        """Channels that stay as they wait: nothing wanted uses them, or writes their BDs or locks."""
        if self.uses is None or self.old.kind is TileKind.SHIM:
            return {}
        known = {channel: wait_of(self.old, channel) for channel in tasks_of(self.old) - self.old.pushed}
        return {
            channel: wait
            for channel, wait in (self.old.waits | known).items()
            if channel not in self.uses.channels and wait and not disturbed(wait, self.uses.bds, self.locks)
        }

    @cached_property
    def stopped(self) -> list[ChannelKey]:
        """Channels that had tasks; a shim's have no reset, and nothing to do once their tokens came."""
        if self.old.kind is TileKind.SHIM:
            return []
        return sorted({*tasks_of(self.old), *self.old.pushed, *self.old.waits} - self.left.keys())

    def stops(self, ahead: bool) -> Iterator[Write]:
        """Hold in reset what had tasks and does not stay."""
        for direction, channel in self.stopped:
            if ahead is self._free((direction, channel)):
                yield self._write(self._at.control_offset(direction, channel), self._at.control.fields["reset"].mask)

    def _free(self, channel: ChannelKey) -> bool:
        """Whether nothing that runs uses a channel."""
        return self.busy is not None and channel not in self.busy.used.channels

    def _control(self, tile: TileState, direction: str, channel: int) -> int:
        """A channel's control register: of a core tile's that has tasks the bit is set without which none starts."""
        value = tile.registers.get((What.CONTROL, direction, (channel,)), 0)
        starts = tile.kind is TileKind.CORE and (direction, channel) in tasks_of(tile)
        return value | CORE_ENABLE if starts else value

    def starts(self, ahead: bool, direction: str) -> Iterator[Write]:
        """Let go of those of a direction that are wanted, each with the tasks that it runs from the start."""
        if self.old.kind is TileKind.SHIM:
            return
        channels = range(AIE2.limits(self.old.kind).channels)
        wanted = [one for one in channels if self.uses is None or (direction, one) in self.uses.channels]
        late = self._late(direction, wanted)
        for channel in wanted:
            if (channel in late) is not ahead:
                yield from self._start(direction, channel)

    def _late(self, direction: str, wanted: Iterable[int]) -> set[int]:
        """Channels that must not start ahead, and those with tasks between two: registers in a row are one write."""
        late = [channel for channel in wanted if not self._may_wait((direction, channel))]
        with_tasks = {channel for way, channel in tasks_of(self.new) if way == direction}
        spans = (range(first, last + 1) for first, last in pairwise(late))
        return {*late, *(one for span in spans if with_tasks.issuperset(span) for one in span)}

    def _may_wait(self, channel: ChannelKey) -> bool:
        """Whether a channel may start before what runs has ended: it moves nothing until then."""
        if not self._free(channel):
            return False
        if channel not in tasks_of(self.new):
            return True
        busy, wait = self.busy, wait_of(self.new, channel)
        if busy is None or wait is None or disturbed(wait, busy.used.bds, busy.locks):
            return False
        return channel[0] == "S2MM" or sends_nothing(self.new, channel)

    def _start(self, direction: str, channel: int) -> Iterator[Write]:
        tasks = [task for task in self.new.tasks if (task.direction, task.channel) == (direction, channel)]
        control = self._control(self.new, direction, channel)
        held = (direction, channel) in self.stopped or control != self._control(self.old, direction, channel)
        if tasks or held:
            yield self._write(self._at.control_offset(direction, channel), control)
        for task in tasks:
            yield self._write(self._at.queue_offset(direction, channel), self._entry(task))

    def _entry(self, task: PushedTask) -> int:
        return self._at.queue.encode({"bd": task.bd, "repeat": task.repeat, "token": int(task.token)})[0]
