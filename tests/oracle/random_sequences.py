"""Random runtime sequences: each round moves the same number of words over every channel of the host."""

from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING

from bdforge.devices.limits import SHIM, TASK_QUEUE_ENTRIES
from oracle.array_design import (
    Argument,
    Await,
    Bd,
    Chain,
    Configure,
    Dim,
    Free,
    Memcpy,
    Operation,
    Port,
    SetLock,
    Start,
    Tile,
    WaitToken,
    WriteWords,
)
from oracle.random_patterns import Pattern, divisors, per_word, random_pattern, random_split

if TYPE_CHECKING:
    from oracle.random_cores import CorePlan


@dataclass(frozen=True, slots=True)
class HostStream:
    """A shim channel and the words that it moves per round."""

    port: Port
    words: int
    packet: tuple[int, int] | None = None  # type and id, where the channel sends packets


@dataclass
class Piece:
    """Some words of one round: what starts their transfer, and what takes its tokens and BDs back."""

    setup: list[Operation] = field(default_factory=list)
    starts: list[Operation] = field(default_factory=list)
    completion: list[Operation] = field(default_factory=list)
    frees: list[Operation] = field(default_factory=list)
    bds: int = 1


class SequenceWriter:
    """Writes the sequence and sizes its arguments."""

    def __init__(self, random: Random, rounds: int):
        self.random = random
        self.rounds = rounds
        self.tasks = 0
        self.sizes: dict[str, int] = {}
        self.elements: dict[str, str] = {}
        self.ids: dict[Tile, int] = {}

    def argument(self, port: Port) -> str:
        name = f"arg_{port.allocation}"
        if name not in self.elements:
            self.elements[name] = self.random.choice(("i8", "i16", "i32", "i32"))
            self.sizes[name] = 0
        return name

    def needs(self, name: str, elements: int) -> None:
        self.sizes[name] = max(self.sizes[name], elements)

    def pieces(self, stream: HostStream, last_round: bool) -> list[Piece]:
        """A round of one channel, with no more tasks than its queue holds and few BDs."""
        amounts = random_split(self.random, stream.words, 3)
        found: list[Piece] = []
        entries = TASK_QUEUE_ENTRIES
        for i, words in enumerate(amounts):
            left = entries - sum(len(p.starts) for p in found) - (len(amounts) - 1 - i)
            token = i == len(amounts) - 1 and (stream.port.direction == "S2MM" or not last_round)
            found.append(self.piece(stream, words, token, left))
        return found

    def piece(self, stream: HostStream, words: int, must_tell: bool, entries: int) -> Piece:
        token = must_tell or self.random.random() < 0.3
        if self.random.random() < 0.5:
            return self.memcpy(stream, words, token)
        return self.task(stream, words, token, entries)

    def memcpy(self, stream: HostStream, words: int, token: bool) -> Piece:
        port = stream.port
        name = self.argument(port)
        element = self.elements[name]
        per = per_word(element)
        runs = self.random.choice([d for d in divisors(words) if d <= SHIM.iteration_wrap_max])
        pattern = random_pattern(self.random, "shim", element, words // runs, 3)
        dims, start = list(pattern.dims), pattern.offset
        if self.random.random() < 0.3:
            dims = [Dim(1, 0), Dim(1, 0), Dim(words // runs * per, 1)]
        step = per * self.random.choice((0, 1, words // runs, words // runs + 1)) if runs > 1 else 0
        strides = (step, *(d.stride if d.size > 1 or d is dims[-1] else 0 for d in dims))
        offsets = self.offsets(start, strides)
        last = sum((d.size - 1) * d.stride for d in dims) + start + (runs - 1) * step
        self.needs(name, last + 1)
        sizes = (runs, *(d.size for d in dims))
        number = self.memcpy_id(port.tile)
        op = Memcpy(
            port, name, element, offsets, sizes, strides, number, token, stream.packet, self.random.random() < 0.2
        )
        tells = token or port.direction == "S2MM"
        return Piece(starts=[op], completion=[self.wait(port)] if tells else [])

    def offsets(self, start: int, strides: tuple[int, ...]) -> tuple[int, ...]:
        """Some offsets whose sum, each times its stride, is `start`."""
        offsets = [0, 0, 0, 0]
        for axis in (2, 3):
            if (strides[axis] and self.random.random() < 0.7) or axis == 3:
                offsets[axis], start = start // max(1, strides[axis]), start % max(1, strides[axis])
        return tuple(offsets)

    def memcpy_id(self, tile: Tile) -> int:
        """BD ids from above; tasks get theirs from below."""
        self.ids[tile] = self.ids.get(tile, SHIM.bds) - 1
        return self.ids[tile]

    def wait(self, port: Port) -> WaitToken:
        return WaitToken(port, self.random.random() < 0.7)

    def task(self, stream: HostStream, words: int, token: bool, entries: int) -> Piece:
        """A task of one to three BDs, run a few times; it may be pushed twice."""
        port = stream.port
        pushes = 2 if words % 2 == 0 and entries >= 2 and self.random.random() < 0.15 else 1
        runs = self.random.choice([d for d in divisors(words // pushes) if d <= 64])
        name = f"task{self.tasks}"
        self.tasks += 1
        amounts = random_split(self.random, words // pushes // runs, 3)
        bds = tuple(replace(self.task_bd(port, n, runs), packet=stream.packet) for n in amounts)
        configure = Configure(name, port, Chain(bds, runs), token, self.random.random() < 0.6)
        piece = Piece([configure], [Start(name)] * pushes, bds=len(bds))
        if token:
            piece.completion = [*[self.wait(port)] * (pushes - 1), Await(name)]
        else:
            piece.frees = [Free(name)]
        return piece

    def task_bd(self, port: Port, words: int, runs: int) -> Bd:
        """A BD of a task; where the task runs more than once, each run may move on."""
        name = self.argument(port)
        element = self.elements[name]
        per = per_word(element)
        iteration = None
        pattern = random_pattern(self.random, "shim", element, words)
        periods = [d for d in divisors(runs) if d > 1]
        if periods and self.random.random() < 0.6:
            iteration = self.random.choice(periods), per * self.random.choice((1, words, words + 1))
            pattern = self.three_dims(element, words)
        reach = (iteration[0] - 1) * iteration[1] if iteration else 0
        self.needs(name, pattern.elements + reach)
        return Bd(name, element, pattern.offset, pattern.length, pattern.dims, iteration=iteration)

    def three_dims(self, element: str, words: int) -> Pattern:
        return random_pattern(self.random, "shim", element, words, 3)

    def arguments(self) -> tuple[Argument, ...]:
        made = []
        for name, element in self.elements.items():
            per = per_word(element)
            elements = -(-self.sizes[name] // per) * per + per * self.random.choice((0, 1, 4))
            half = 1 << (32 // per - 1)
            values = tuple(self.random.randrange(-half, half) for _ in range(elements))
            made.append(Argument(name, element, elements, values))
        return tuple(made)


def parameter_writes(random: Random, plan: "CorePlan", first: bool) -> list[Operation]:
    """Writes a core's parameters and opens its gate."""
    if not plan.gate or not (first or plan.gated_per_round):
        return []
    writes: list[Operation] = []
    for index in range(2):
        form = random.choice(("rtp", "rtp", "buffer", "tile", "full", "mask"))
        writes.append(WriteWords(form, plan.parameters, index, (random.randrange(-(2**31), 2**31),)))
    if random.random() < 0.3:
        values = tuple(random.randrange(-(2**31), 2**31) for _ in range(random.randint(1, 4)))
        writes.append(WriteWords(random.choice(("block", "block_tile")), plan.parameters, 0, values))
    return [*writes, SetLock(plan.gate, 1)]


def fitting_pieces(writer: SequenceWriter, streams: list[HostStream], last: bool) -> list[list[Piece]]:
    """Pieces of every stream such that no shim needs more BDs than it has."""
    while True:
        writer.ids.clear()
        found = [writer.pieces(s, last) for s in streams]
        counts: dict[Tile, int] = {}
        for stream, pieces in zip(streams, found, strict=True):
            counts[stream.port.tile] = counts.get(stream.port.tile, 0) + sum(p.bds for p in pieces)
        if all(n <= SHIM.bds for n in counts.values()):
            return found


def merged(random: Random, lists: list[list[Operation]]) -> list[Operation]:
    """All lists in one, each in its own order."""
    lists = [list(ops) for ops in lists if ops]
    result: list[Operation] = []
    while lists:
        chosen = random.choice(lists)
        result.append(chosen.pop(0))
        lists = [ops for ops in lists if ops]
    return result


def random_sequence(
    random: Random, inputs: list[HostStream], outputs: list[HostStream], plans: "list[CorePlan]", rounds: int
) -> tuple[tuple[Argument, ...], tuple[Operation, ...]]:
    """Arguments and operations of `rounds` rounds; each ends when all its tokens are taken."""
    writer = SequenceWriter(random, rounds)
    operations: list[Operation] = []
    for number in range(rounds):
        last = number == rounds - 1
        pieces = fitting_pieces(writer, [*outputs, *inputs], last)
        starts = [[op for p in stream for op in (*p.setup, *p.starts)] for stream in pieces]
        starts += [parameter_writes(random, plan, number == 0) for plan in plans]
        operations += merged(random, starts)
        operations += merged(random, [[op for p in stream for op in p.completion] for stream in pieces])
        if not last:
            operations += [op for stream in pieces for p in stream for op in p.frees]
    return writer.arguments(), tuple(operations)
