"""What the controller reads and writes at the offsets of one tile: memory, BDs, channels, locks, and the rest.

Modelled: data memory, program memory and core control, BD words, task queues, channel control (reset) and status, lock
values, padding values, stream switches, shim muxes and cascades. Writes to trace, event, port-selection and timer
registers are kept for reading back and have no effect. Control of a core that runs a body of the text is kept with a
warning.
"""

from typing import TYPE_CHECKING

from bdforge.array.emulator.dma import DmaChannel
from bdforge.array.emulator.errors import DmaError, LoadError, RegisterAccessError
from bdforge.array.emulator.lock import EmulatedLock, LockWait
from bdforge.array.emulator.silicon_rules import check_enabled
from bdforge.devices import AIE2, TileKind
from bdforge.devices.limits import GRANULE_BYTES, TASK_QUEUE_ENTRIES, TASK_REPEAT_MAX
from bdforge.devices.register_names import What, what_at
from bdforge.devices.registers import address

if TYPE_CHECKING:
    from bdforge.array.emulator.cores.load_machine_code import ProgramMemories
    from bdforge.array.emulator.tile import EmulatedTile

_UNSUPPORTED = ("compression", "out_of_order")
_IDLE, _RUNNING = 0, 2
_SWITCHES = (What.MASTER, What.SLAVE, What.RULE, What.MUX, What.DEMUX, What.CASCADE)


class RegisterMap:
    """The registers of a tile, whose state lives in the tile, its channels and its locks."""

    def __init__(self, tile: "EmulatedTile"):
        self.tile, self.place = tile, (tile.column, tile.row)
        self.layout = layout = tile.registers
        self._statuses = {layout.status_offset(d, i): c for (d, i), c in tile.channels.items()}
        self._stored: dict[int, int] = {}
        self._overflowed: set[DmaChannel] = set()

    @property
    def _programs(self) -> "ProgramMemories":
        programs = self.tile.array.programs
        assert programs is not None  # every configuration brings them
        return programs

    def _at(self, offset: int) -> tuple[What, tuple[int, ...], str]:
        """What is at an offset beyond data memory, with its numbers and, of a channel, its direction."""
        found = what_at(self.tile.kind, offset)
        return (What.OTHER, (), "") if found is None else (found[0], found[3], found[4])

    def write(self, offset: int, value: int, source: str) -> None:
        """Store a word; RegisterAccessError where there is nothing to store it in."""
        tile = self.tile
        if offset % GRANULE_BYTES:
            raise RegisterAccessError(f"{tile.name}: offset {offset:#x} is not a multiple of {GRANULE_BYTES}{source}")
        if offset < tile.limits.memory_bytes:
            tile.store(offset // GRANULE_BYTES, value)
            return
        what, index, direction = self._at(offset)
        match what:
            case What.BD:
                tile.write_bd(index[0], index[1], [value], source)
            case What.QUEUE:
                tile.array.settle()
                self._push(tile.channels[direction, index[0]], value, source)
            case What.LOCK:
                tile.array.settle()
                self._set_lock(index[0], value, source)
            case What.CONTROL:
                self._control(tile.channels[direction, index[0]], offset, value, source)
            case What.PROGRAM:
                self.write_program(offset, value.to_bytes(GRANULE_BYTES, "little"), source)
            case _:
                self._store_other(what, index, offset, value, source)

    def write_program(self, offset: int, data: bytes, source: str) -> None:
        """Words for program memory at once."""
        self._programs.store_code(self.place, offset - self.layout.program_memory.start, data, source)

    def read(self, offset: int) -> int:
        """The word at an offset; what was last written for registers without effect, else 0."""
        tile = self.tile
        if offset < tile.limits.memory_bytes:
            return int(tile.memory[offset // GRANULE_BYTES])
        if (channel := self._statuses.get(offset)) is not None:
            return self._status(channel)
        what, index, _ = self._at(offset)
        match what:
            case What.BD:
                return tile.read_bd(index[0], index[1])
            case What.LOCK:
                return tile.locks[index[0]].value & tile.limits.lock_value_max  # below 0 if `lock-range` is permitted
            case What.PROGRAM:
                return self._programs.code_word(self.place, index[0])
        if what in _SWITCHES and tile.array.streams is not None:
            return tile.array.streams.read(address(tile.column, tile.row, offset))
        return self._stored.get(offset, 0)

    def controller_id(self, direction: str, channel: int) -> int:
        return self._control_of(self.tile.channels[direction, channel])["controller_id"]

    def channel_at(self, offset: int) -> DmaChannel | None:
        return self._statuses.get(offset)

    def lock_at(self, offset: int) -> EmulatedLock | None:
        what, index, _ = self._at(offset)
        return self.tile.locks[index[0]] if what is What.LOCK else None

    def name(self, offset: int) -> str:
        """An offset in words."""
        if offset < self.tile.limits.memory_bytes:
            return f"memory word at {offset:#x}"
        if (channel := self._statuses.get(offset)) is not None:
            return f"status of {channel.direction} {channel.index}"
        what, index, _ = self._at(offset)
        names = {What.BD: "word {1} of BD {0}", What.LOCK: "value of lock {0}"}
        return names[what].format(*index) if what in names else f"register {offset:#x}"

    def bd_place(self, offset: int) -> tuple[int, ...] | None:
        what, index, _ = self._at(offset)
        return index if what is What.BD else None

    def _set_lock(self, lock: int, value: int, source: str) -> None:
        most = self.tile.limits.lock_value_max
        if value > most:
            error = RegisterAccessError(
                f"{self.tile.name}: {value:#x} is written to the value of lock {lock}, which holds 0 to {most}{source}"
            )
            self.tile.array.strictness.fault("field-width", error)
        self.tile.locks[lock].released[None] += 1
        self.tile.locks[lock].set(value & most, lambda: source)

    def _push(self, channel: DmaChannel, value: int, source: str) -> None:
        fields = self.layout.queue.decode([value])
        if fields["bd"] >= self.tile.limits.bds:
            raise DmaError(
                f"{channel.name}: BD {fields['bd']} is pushed, but the tile has {self.tile.limits.bds}{source}"
            )
        array = self.tile.array
        if array.by_words and self.tile.kind is TileKind.CORE and not self._control_of(channel).get("enable"):
            check_enabled(channel.name, source, array.strictness)
        if self._control_of(channel).get("reset"):
            raise DmaError(
                f"{channel.name}: BD {fields['bd']} is pushed while the channel is held in reset{source}; "
                "write 0 to the reset bit of its control register first"
            )
        runs = fields["repeat"] + 1
        assert runs <= TASK_REPEAT_MAX
        if len(channel.tasks) >= TASK_QUEUE_ENTRIES:
            self._overflowed.add(channel)  # status tells it also where the fault is permitted
        channel.push(fields["bd"], runs, bool(fields["token"]), source)

    def start(self, channel: DmaChannel) -> None:
        """Enable a channel that the text starts, as aiecc does."""
        if "enable" in self.layout.control.fields:
            offset = self.layout.control_offset(channel.direction, channel.index)
            self._stored[offset] = self._stored.get(offset, 0) | self.layout.control.fields["enable"].mask

    def _control_of(self, channel: DmaChannel) -> dict[str, int]:
        stored = self._stored.get(self.layout.control_offset(channel.direction, channel.index), 0)
        return self.layout.control.decode([stored])

    def _control(self, channel: DmaChannel, offset: int, value: int, source: str) -> None:
        """A reset drops the channel's tasks; pausing a shim channel has no effect here and gives a warning."""
        fields = self.layout.control.decode([value])
        for name in _UNSUPPORTED:
            if fields.get(name):
                raise LoadError(
                    f"{channel.name}: {name} = {fields[name]} in its control register is not emulated{source}"
                )
        channel.finish_on_tlast(fields["finish_on_tlast"], source)
        self._stored[offset] = value
        if fields.get("reset"):
            channel.reset()
            self._overflowed.discard(channel)
        if fields.get("pause_stream") or fields.get("pause_memory"):
            self.tile.array.strictness.warn(f"{channel.name}: pausing a channel has no effect here{source}")

    def _store_other(self, what: What, index: tuple[int, ...], offset: int, value: int, source: str) -> None:
        tile, layout = self.tile, self.layout
        if any(offset in gap for gap in layout.gaps):
            memory = f"its data memory has {tile.limits.memory_bytes} bytes"
            raise RegisterAccessError(f"{tile.name}: nothing is at offset {offset:#x}; {memory}{source}")
        if what is What.PAD_VALUE and tile.array.device.generation is not AIE2:
            tile.channels["MM2S", index[0]].pad_value = value
        if what in _SWITCHES and tile.array.streams is not None:
            tile.array.streams.write(address(tile.column, tile.row, offset), value)
        if what is What.CORE:
            tile.array.settle()
            self._programs.control_core(self.place, value, source)
        self._stored[offset] = value

    def _status(self, channel: DmaChannel) -> int:
        """Status as far as it is modelled. The queue's size counts the running task: the safe reading."""
        busy, waits_for_lock = bool(channel.tasks), isinstance(channel.waiting, LockWait)
        values = {
            "bd": channel.bd if busy else 0,
            "queue_size": len(channel.tasks),
            "running": int(busy),
            "queue_overflow": int(channel in self._overflowed),
            "stream_stall": int(busy and channel.waiting is not None and not waits_for_lock),
            "acquire_stall": int(busy and waits_for_lock),
            "state": _RUNNING if busy else _IDLE,
        }
        return self.layout.status.encode(values)[0]

    def task_counts(self, mask: int, value: int) -> frozenset[int]:
        """Tasks in flight for which a channel's status is `value` under `mask`; none if the mask tells other things."""
        told = ("queue_size", "running", "state")
        fields = self.layout.status.fields
        if mask & ~sum(fields[name].mask for name in told):
            return frozenset()
        found = set()
        for tasks in range(TASK_QUEUE_ENTRIES + 1):
            values = {"queue_size": tasks, "running": int(tasks > 0), "state": _RUNNING if tasks else _IDLE}
            if self.layout.status.encode(values)[0] & mask == value:
                found.add(tasks)
        return frozenset(found)
