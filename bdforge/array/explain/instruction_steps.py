"""What an instruction stream does, by steps that end with waits, and which bytes of its arguments it moves."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from bdforge.array.emulator.array import Array
from bdforge.array.emulator.dma import DmaChannel
from bdforge.array.emulator.dram_order import DramOrder, DramPass
from bdforge.array.emulator.host import HostBuffers
from bdforge.array.emulator.order_verification import REACH_BYTES, skim
from bdforge.array.emulator.silicon_rules import TokenKey
from bdforge.array.emulator.strictness import Strictness
from bdforge.devices import Device
from bdforge.devices.limits import GRANULE_BYTES
from bdforge.devices.register_names import What, register_at
from bdforge.devices.txn_format.operations import (
    DIRECTIONS,
    BlockWrite,
    LoadPdi,
    MaskWrite,
    Operation,
    Patch,
    Sync,
    Write,
)


@dataclass(frozen=True, slots=True)
class SequenceStep:
    """Alike steps, one after the other: what each pushes, writes and awaits, with how often."""

    first: int
    count: int
    pushes: tuple[tuple[str, int], ...]
    writes: tuple[tuple[str, int], ...]
    awaits: tuple[tuple[str, int], ...]


_Did = tuple[str, str]
"""Which of a step's counts, and of what."""


def steps_of(operations: Sequence[Operation]) -> list[SequenceStep]:
    """Steps of a stream; each ends with the last of waits that follow each other."""
    steps: list[Counter[_Did]] = [Counter()]
    for waits, group in groupby(operations, lambda operation: isinstance(operation, Sync)):
        for operation in group:
            steps[-1].update(_done(operation))
        if waits:
            steps.append(Counter())
    found, number = [], 1
    for did, alike in groupby(step for step in steps if step):
        count = sum(1 for _ in alike)
        kinds = (tuple((what, n) for (of, what), n in sorted(did.items()) if of == kind) for kind in _KINDS)
        found.append(SequenceStep(number, count, *kinds))
        number += count
    return found


_KINDS = ("push", "write", "await")


def _done(operation: Operation) -> Iterator[_Did]:
    match operation:
        case Sync():
            kind = register_at(operation.row << 20).kind
            tiles = operation.columns * operation.rows
            yield from [("await", f"{kind} {DIRECTIONS[operation.direction]} {operation.channel}")] * tiles
        case Write(address) | MaskWrite(address) | BlockWrite(address):
            register = register_at(address)
            if register.what is What.QUEUE:
                yield "push", f"{register.kind} {register.direction} {register.index[0]}"
            elif register.what is not What.BD:
                yield "write", f"{register.kind} {register.what}"
        case LoadPdi():
            yield "write", f"configuration {operation.id}"


@dataclass(frozen=True, slots=True)
class ArgumentUse:
    """What tasks move of an argument, each pass over a BD counted once where it repeats in place: bytes up to `end`."""

    number: int
    read_bytes: int
    written_bytes: int
    end: int


class _Lenient(Strictness):
    """Lets everything pass: a run tells what is wrong."""

    def fault(self, name: str, error: Exception) -> None:
        pass


class _NotedPasses(DramOrder):
    """Notes what passes over DRAM, and has nothing against it."""

    def __init__(self, array: Array) -> None:
        super().__init__(array)
        self.noted: list[tuple[bool, DramPass]] = []

    def start(self, channel: DmaChannel, passes: Sequence[DramPass], token: bool, source: str) -> None:
        self.noted += ((channel.sink is not None, each) for each in passes)

    def awaited(self, key: TokenKey) -> None:
        """Whose token it is does not matter here."""


def arguments_of(operations: Sequence[Operation], device: Device) -> list[ArgumentUse]:
    """The arguments of a stream, up to the highest that it names; those that shims never move have no bytes."""
    count = 1 + max((op.argument for op in operations if isinstance(op, Patch)), default=-1)
    host = HostBuffers.unmoved((str(number), REACH_BYTES) for number in range(count))
    noted = skim(device, host, _Lenient(), operations, _NotedPasses)
    assert isinstance(noted, _NotedPasses)
    return [
        _use(number, [one for one in noted.noted if one[1].buffer is host.buffers[number]]) for number in range(count)
    ]


def _use(number: int, passes: Sequence[tuple[bool, DramPass]]) -> ArgumentUse:
    moved = [(writes, GRANULE_BYTES * each.order.length) for writes, each in passes]
    end = max((GRANULE_BYTES * each.end - each.buffer.address for _, each in passes), default=0)
    read, written = (sum(size for writes, size in moved if writes is way) for way in (False, True))
    return ArgumentUse(number, read, written, end)
