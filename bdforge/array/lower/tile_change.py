"""What one tile takes from one configuration to the next, part by part; `transition` puts the parts in order."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bdforge.array.lower.array_state import TileState
from bdforge.array.lower.channel_change import ChannelChange
from bdforge.array.lower.tile_use import Busy, Used
from bdforge.array.txn.writer import WORD_MASK
from bdforge.devices import AIE2, TileKind
from bdforge.devices.limits import GRANULE_BYTES
from bdforge.devices.register_names import What
from bdforge.devices.registers import CORE_ENABLE, CORE_RESET, TILE_REGISTERS, TileRegisters, address
from bdforge.devices.switch_registers import (
    CASCADE_OFFSET,
    SHIM_DEMUX_OFFSET,
    SHIM_MUX_OFFSET,
    master_offset,
    rule_offset,
    slave_offset,
)
from bdforge.devices.txn_format.operations import BlockWrite, MaskWrite, Write

BLOCK_WORDS = 1 << 12  # of a block write, so that no operation is longer than what streams of others hold
_GAP_MAX = 24  # ports between two that change: written as they are, they cost less than another operation
_PROGRAM_GAP_BYTES = 192  # the same of a program, whose words cost less each (`controller_bd_ns`)


@dataclass(frozen=True)
class TileChange:
    """One tile: what is there, and what is wanted.

    `locks` are all that what is wanted uses, and `uses` its BDs and channels; None: unknown. What `busy` leaves free
    is written `ahead`, before what runs has ended.
    """

    old: TileState
    new: TileState
    locks: Collection[int] | None
    uses: Used | None
    busy: Busy | None

    @property
    def idle(self) -> bool:
        return self.busy is not None and self.busy.idle

    @cached_property
    def channels(self) -> ChannelChange:
        return ChannelChange(self.old, self.new, self.uses, self.busy, self.used_locks)

    @property
    def at(self) -> TileRegisters:
        return TILE_REGISTERS[self.old.kind]

    def write(self, offset: int, value: int) -> Write:
        return Write(address(self.old.column, self.old.row, offset), value)

    def filled(self, offset: int, data: bytes) -> Iterator[BlockWrite | MaskWrite]:
        """Bytes of a memory from an offset on: whole words, and masked ones at ends that are none."""
        before, behind = offset % GRANULE_BYTES, -(offset + len(data)) % GRANULE_BYTES
        words = np.frombuffer(bytes(before) + data + bytes(behind), "<u4").tolist()
        masks = np.frombuffer(bytes(before) + b"\xff" * len(data) + bytes(behind), "<u4").tolist()
        start = address(self.old.column, self.old.row, offset - before)
        at, end = 0, len(words)
        if masks[0] != WORD_MASK:
            yield MaskWrite(start, words[0], masks[0])
            at = 1
        if end > at and masks[-1] != WORD_MASK:
            end -= 1
        for first in range(at, end, BLOCK_WORDS):
            yield BlockWrite(start + GRANULE_BYTES * first, tuple(words[first : min(first + BLOCK_WORDS, end)]))
        if end < len(words):
            yield MaskWrite(start + GRANULE_BYTES * end, words[end], masks[end])

    # what may be written ahead, where nothing that runs uses it

    def stops(self, ahead: bool) -> Iterator[Write]:
        """Stop the core, and hold channels in reset."""
        if ahead is self.idle and _runs(self.old):
            yield self.write(self.at.core_control or 0, CORE_RESET)
        yield from self.channels.stops(ahead)

    def memories(self, ahead: bool) -> Iterator[BlockWrite | MaskWrite]:
        """First values of buffers, and data of programs."""
        for start, data in self.new.memory.spans() if ahead is self.idle else ():
            yield from self.filled(start, data)

    def programs(self, ahead: bool) -> Iterator[BlockWrite | MaskWrite]:
        """What of a program is not there yet: designs that are alike have much of their code at the same places."""
        for start, data in self.new.program.spans():
            parts = [(True, start, data)] if self.busy is None else self.busy.lines(data, start)
            for used, at, piece in parts:
                for first, end in self._other_code(at, piece) if used is not ahead else ():
                    yield from self.filled(self.at.program_memory.start + at + first, piece[first:end])

    def _other_code(self, at: int, piece: bytes) -> Iterator[tuple[int, int]]:
        """Where code differs from what is there, from its start on: whole words, and short gaps between them too."""
        there, end = self.old.program, at + len(piece)
        same = np.frombuffer(there.data[at:end], np.uint8) == np.frombuffer(piece, np.uint8)
        same &= np.frombuffer(there.written[at:end], bool)
        words = np.unique((np.flatnonzero(~same) + at) // GRANULE_BYTES * GRANULE_BYTES)
        for run in np.split(words, np.flatnonzero(np.diff(words) > _PROGRAM_GAP_BYTES) + 1) if len(words) else ():
            yield max(int(run[0]) - at, 0), min(int(run[-1]) + GRANULE_BYTES - at, len(piece))

    def lock_values(self, ahead: bool) -> Iterator[Write]:
        """Values of the locks that a run may have changed, or that start with another one."""
        for lock in sorted(self.used_locks | {lock for lock, value in self.new.locks.items() if value}):
            if (self.busy is None or lock in self.busy.locks) is not ahead:
                yield self.write(self.at.lock_offset(lock), self.new.locks.get(lock, 0))

    @property
    def used_locks(self) -> set[int]:
        if self.locks is not None:
            return set(self.locks)
        count = AIE2.limits(self.old.kind).locks
        if _runs(self.old) or _runs(self.new):
            return set(range(count))
        tiles = (self.old, self.new)
        fields = [tile.fields(bd) for tile in tiles for bd in tile.bds]
        return {found.get(name, 0) % count for found in fields for name in ("acquire_id", "release_id")}

    def descriptors(self, ahead: bool) -> Iterator[BlockWrite]:
        """BDs that differ, those that runs may have written, and those whose iteration a run has moved on."""
        for bd, words in sorted(self.new.bds.items()):
            unknown = (
                self.old.kind is TileKind.SHIM or bd in self.old.rewritten or self.new.fields(bd)["iteration_wrap"]
            )
            waits = self.busy is None or bd in self.busy.used.bds
            if (unknown or self.old.bds.get(bd) != words) and waits is not ahead:
                yield BlockWrite(address(self.old.column, self.old.row, self.at.bd_offset(bd)), tuple(words))

    def lets_go(self, ahead: bool) -> Iterator[Write]:
        """Let go of the core, which then waits until it is enabled; values of padding."""
        if ahead is not self.idle:
            return
        if _runs(self.old):
            yield self.write(self.at.core_control or 0, 0)
        before, wanted = self.old.of(What.PAD_VALUE), self.new.of(What.PAD_VALUE)
        for (channel,) in sorted(before.keys() | wanted.keys()):
            if (value := wanted.get((channel,), 0)) != before.get((channel,), 0):
                yield self.write((self.at.pad_value_base or 0) + GRANULE_BYTES * channel, value)

    def starts(self, ahead: bool, direction: str) -> Iterator[Write]:
        """Let go of the channels of a direction that are wanted, each with the tasks that it runs from the start."""
        return self.channels.starts(ahead, direction)

    # what waits until all that ran has ended

    def switches(self, ahead: bool) -> Iterator[Write]:
        """Ports, rules, shim muxes and cascades; 0 where only the configuration before set one.

        Arbiters join packets of several tiles, so that switches with rules wait.
        """
        idle = self.busy is not None and self.busy.switch_idle
        if ahead is not (idle and not any(tile.of(What.RULE) for tile in (self.old, self.new))):
            return
        kind = self.old.kind
        offsets = {
            What.MASTER: lambda port: master_offset(kind, port),
            What.SLAVE: lambda port: slave_offset(kind, port),
            What.RULE: lambda port, rule: rule_offset(kind, port, rule),
            What.MUX: lambda: SHIM_MUX_OFFSET,
            What.DEMUX: lambda: SHIM_DEMUX_OFFSET,
            What.CASCADE: lambda: CASCADE_OFFSET,
        }
        for what, offset in offsets.items():
            before, wanted = self.old.of(what), self.new.of(what)
            changed = sorted(i for i in before.keys() | wanted.keys() if before.get(i, 0) != wanted.get(i, 0))
            if what in (What.MASTER, What.SLAVE):
                changed = _without_gaps(changed)
            for index in changed:
                yield self.write(offset(*index), wanted.get(index, 0))

    def enables(self) -> Iterator[Write]:
        """Let a core run from program address 0 on."""
        if _runs(self.new):
            yield self.write(self.at.core_control or 0, CORE_ENABLE)


def _runs(tile: TileState) -> bool:
    return bool(tile.of(What.CORE).get((), 0) & CORE_ENABLE)


def _without_gaps(ports: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Ports, with those between two that are near each other."""
    found: list[tuple[int, ...]] = []
    for (port,) in ports:
        last = found[-1][0] + 1 if found else port
        found += [(one,) for one in range(last if port - last <= _GAP_MAX else port, port + 1)]
    return found
