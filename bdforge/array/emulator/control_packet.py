"""Control packets: a tile's control port writes and reads the tile's registers and memory for whoever sends to it.

A control packet is the header of its stream packet, a control word and, for writes, one to four words (hardware facts
1.7). Several may follow one another behind each other's last word. All three kinds of write store their words at
consecutive addresses. A read is answered by a packet from the same port whose id is the response id.
"""

from collections.abc import Generator, Iterator

import numpy as np

from bdforge.array.emulator.errors import RegisterAccessError
from bdforge.array.emulator.scheduler import Agent
from bdforge.array.emulator.silicon_rules import check_control_columns
from bdforge.array.emulator.stream import Sink, Stream
from bdforge.array.emulator.tile import EmulatedTile
from bdforge.devices.limits import GRANULE_BYTES, PACKET_IDS
from bdforge.devices.registers import CONTROL_PACKET, packet_header

READ = 1
OPERATIONS = ("write", "read", "write with increment", "block write")


class ControlPort(Agent):
    """TileControl : 0 of one tile. `controlled` are the columns of all tiles that control packets wrote to."""

    kind = "control port"

    def __init__(self, tile: EmulatedTile, controlled: set[int]):
        super().__init__(f"control port of {tile.name}", tile.array.scheduler)
        self.tile, self.place = tile, (tile.column, tile.row)
        self._controlled = controlled
        self.sink = Sink(self, self._receive, tile.array.capacities, finishes=True)
        self.stream = Stream(self, tile.array.scheduler)
        self._words: list[int] = []
        tile.array.scheduler.wake(self)

    def run(self) -> Generator[None, None, None]:
        while True:
            yield from self._control_packet()

    def _control_packet(self) -> Iterator[None]:
        yield from self._take(1)
        header = self._odd(self._words[0], "the packet header")
        if self.sink.over:
            raise RegisterAccessError(f"{self.name}: the packet with header {header:#010x} ends without a control word")
        yield from self._take(1)
        control = self._odd(self._words[0], "the control word")
        fields = CONTROL_PACKET.decode([control])
        what, words, offset = OPERATIONS[fields["operation"]], fields["words"] + 1, fields["offset"]
        self.note("begin", f"{what} of {words} words at {offset:#x}")
        if fields["operation"] == READ:
            yield from self._answer(fields["response_id"], words, offset)
        else:
            yield from self._write(control, words, offset)
        self.note("end", f"{what} of {words} words at {offset:#x}")

    def _write(self, control: int, words: int, offset: int) -> Iterator[None]:
        if not self.sink.over:
            yield from self._take(words)
        else:
            self._words = []
        if len(self._words) < words:
            raise RegisterAccessError(
                f"{self.name}: control word {control:#010x} announces {words} words, but its packet ends after "
                f"{len(self._words)}"
            )
        self._controlled.add(self.tile.column)
        check_control_columns(self._controlled, self.tile.array.strictness)
        for place, word in enumerate(self._words):
            self.tile.write(offset + GRANULE_BYTES * place, word, f" (control packet {control:#010x})")

    def _answer(self, response_id: int, words: int, offset: int) -> Iterator[None]:
        if response_id >= PACKET_IDS:
            raise RegisterAccessError(
                f"{self.name}: response id {response_id} is outside 0 to {PACKET_IDS - 1}, what a packet header holds"
            )
        stream = self.stream
        if stream.packets is None and not stream.sinks:
            raise RegisterAccessError(
                f"{self.name}: a read at {offset:#x} has no way back; add an aie.packet_flow from this TileControl : 0"
            )
        values = [self.tile.read(offset + GRANULE_BYTES * place) for place in range(words)]
        header = packet_header(self.tile.column, self.tile.row, 0, response_id)
        if stream.packets is None:
            values.insert(0, header)
        else:
            yield from stream.packets.start(header, lambda: f"{self.name}, answer to a read at {offset:#x}")
        yield from stream.push(np.array(values, np.uint32), str, last=True)
        if stream.packets is not None:
            yield from stream.packets.end()

    def _take(self, count: int) -> Iterator[None]:
        """Steps until `count` words are in `_words`, or fewer where the packet ends before."""
        self._words = []
        self.notify("receive", count, None)
        yield from self.sink.fill(count, str)

    def _receive(self, words: np.ndarray) -> None:
        self._words.extend(int(word) for word in words)

    def _odd(self, word: int, what: str) -> int:
        if word.bit_count() % 2:
            return word
        raise RegisterAccessError(
            f"{self.name}: {what} {word:#010x} has an even number of ones; bit 31 is to make it odd"
        )
