"""What the words of a stream do to host memory, read from nothing but the words.

Fields stand where the register lists have them (word, highest and lowest bit); nothing here comes from the generator.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from bdforge.devices.txn_format.codec import InstructionStream, decode
from bdforge.devices.txn_format.operations import BlockWrite, MaskWrite, Patch, Sync, Write

QUEUES = {0x1D214: "A", 0x1D21C: "B", 0x1D204: "C"}  # MM2S 0, MM2S 1, S2MM 0
ARGUMENTS = {"A": 0, "B": 1, "C": 2}
BDS, BD_BYTES, FIRST_BD = 16, 0x20, 0x1D000
TASKS_IN_FLIGHT = 4
C_CONTROL, CONTROLLER_ID = 0x1D200, (0xF00, 0x1F00)  # S2MM 0: tokens go to controller 15, bits 12:8


@dataclass(frozen=True)
class Moved:
    """Contiguous stretches of `length` bytes at `starts` (bytes in the argument), in stream order."""

    argument: int
    starts: np.ndarray
    length: int


@dataclass
class Replay:
    """Traffic of every channel, and what the cores were told."""

    moved: dict[tuple[str, int], list[Moved]] = field(default_factory=lambda: defaultdict(list))
    cores: dict[int, int] = field(default_factory=dict)
    tasks: int = 0

    def of(self, operand: str, column: int, argument: int) -> list[Moved]:
        """What one channel moves of one argument."""
        return [moved for moved in self.moved[operand, column] if moved.argument == argument]

    def starts(self, operand: str, column: int, length: int) -> np.ndarray:
        """Starts of the stretches of one channel, which must all be `length` long and of the operand's argument."""
        parts = self.moved[operand, column]
        assert {(moved.argument, moved.length) for moved in parts} == {(ARGUMENTS[operand], length)}
        return np.concatenate([moved.starts for moved in parts])

    def visits(self, argument: int, argument_bytes: int) -> tuple[np.ndarray, int]:
        """How often each unit of an argument is visited, and the bytes of a unit: as large as all stretches allow."""
        by_length: dict[int, list[np.ndarray]] = defaultdict(list)
        for moved in (m for parts in self.moved.values() for m in parts if m.argument == argument):
            by_length[moved.length].append(moved.starts)
        stretches = {length: np.concatenate(starts) for length, starts in by_length.items()}
        for length, starts in stretches.items():
            assert starts.min() >= 0
            assert starts.max() + length <= argument_bytes
        unit = int(np.gcd.reduce([argument_bytes, *stretches, *(np.gcd.reduce(s) for s in stretches.values())]))
        change = np.zeros(argument_bytes // unit + 1, np.int64)
        for length, starts in stretches.items():
            change += np.bincount(starts // unit, minlength=len(change))
            change -= np.bincount((starts + length) // unit, minlength=len(change))
        return np.cumsum(change)[:-1], unit


def replay(words: np.ndarray) -> Replay:
    """Run the stream; AssertionError for a BD rewritten in flight, an overfull queue, a BD without an address."""
    return _Shims(decode(words)).run()


class _Shims:
    def __init__(self, stream: InstructionStream):
        self.stream, self.result = stream, Replay()
        self.bds: dict[tuple[int, int], tuple[int, ...]] = {}
        self.patched: dict[tuple[int, int], tuple[int, int]] = {}
        self.flying: dict[tuple[str, int], list[tuple[bool, list[int]]]] = defaultdict(list)
        self.routed: set[int] = set()

    def run(self) -> Replay:
        for operation in self.stream.operations:
            match operation:
                case BlockWrite(address, words):
                    self.write_bd(address >> 25, (address & 0xFFFFF) - FIRST_BD, words)
                case Patch(register, argument, plus):
                    bd, at = divmod((register & 0xFFFFF) - FIRST_BD, BD_BYTES)
                    assert at == 4
                    self.patched[register >> 25, bd] = (argument, plus)
                case MaskWrite(address, value, mask):
                    assert (address & 0x1FFFFFF, (value, mask)) == (C_CONTROL, CONTROLLER_ID)
                    self.routed.add(address >> 25)
                case Write(address, value) if (address & 0xFFFFF) in QUEUES and not address >> 20 & 0x1F:
                    self.push(address >> 25, QUEUES[address & 0xFFFFF], value)
                case Write(address, value):
                    assert address not in self.result.cores
                    assert {operand for operand, _ in self.flying} == {"A", "B"}, "cores begin between B and C"
                    self.result.cores[address] = value
                case Sync(direction, row, column, rows, columns, channel):
                    assert (direction, row, rows, channel) == (0, 0, 1, 0)
                    self.settled(column, columns)
                    for waiting in range(column, column + columns):
                        self.token(waiting)
                case _:
                    raise AssertionError(operation)
        assert not any(self.flying.values())
        return self.result

    def write_bd(self, column: int, offset: int, words: tuple[int, ...]) -> None:
        bd, rest = divmod(offset, BD_BYTES)
        assert (rest, len(words)) == (0, 8)
        assert 0 <= bd < BDS
        users = [ids for (_, at), tasks in self.flying.items() if at == column for _, ids in tasks]
        assert not any(bd in ids for ids in users), f"BD {bd} of column {column} is rewritten in flight"
        self.bds[column, bd] = words
        self.patched.pop((column, bd), None)

    def push(self, column: int, operand: str, value: int) -> None:
        token, runs, first = bool(value >> 31), (value >> 16 & 0xFF) + 1, value & 0xF
        assert token == (operand == "C")
        assert not token or column in self.routed
        ids = list(self.chain(column, first))
        queue = self.flying[operand, column]
        queue.append((token, ids))
        assert len(queue) <= TASKS_IN_FLIGHT
        self.result.tasks += 1
        turns: dict[int, int] = defaultdict(int)
        for _ in range(runs):
            for bd in ids:
                self.result.moved[operand, column].append(self.move(column, bd, turns))

    def chain(self, column: int, bd: int) -> Iterator[int]:
        while True:
            yield bd
            word = self.bds[column, bd][7]
            assert word >> 25 & 1, "the BD is not valid"
            if not word >> 26 & 1:
                return
            bd = word >> 27 & 0xF

    def move(self, column: int, bd: int, turns: dict[int, int]) -> Moved:
        w = self.bds[column, bd]
        argument, plus = self.patched[column, bd]
        wrap0, step0 = w[3] >> 20 & 0x3FF, (w[3] & 0xFFFFF) + 1
        wrap1, step1 = w[4] >> 20 & 0x3FF, (w[4] & 0xFFFFF) + 1
        step2 = (w[5] & 0xFFFFF) + 1
        iterations, iteration_step = (w[6] >> 20 & 0x3F) + 1, (w[6] & 0xFFFFF) + 1
        assert step0 == 1, "stretches are contiguous"
        length = wrap0 or w[0]
        assert w[0] % length == 0
        index = np.arange(w[0] // length, dtype=np.int64)
        offsets = index % wrap1 * step1 + index // wrap1 * step2 if wrap1 else index * step1
        turn = turns[bd] % iterations
        turns[bd] += 1
        return Moved(argument, plus + 4 * (offsets + turn * iteration_step), 4 * length)

    def settled(self, first: int, columns: int) -> None:
        """A wait for several columns must not be able to take two tokens of one of them."""
        outstanding = [len(self.flying["C", column]) for column in range(first, first + columns)]
        assert columns == 1 or max(outstanding) == 1, f"a wait for {columns} columns with {outstanding} tokens to come"

    def token(self, column: int) -> None:
        """A step is complete: the oldest C task, and with it the A and B that it was made of."""
        self.flying["C", column].pop(0)
        self.flying["B", column].pop(0)
        if self.flying["A", column]:
            self.flying["A", column].pop(0)
