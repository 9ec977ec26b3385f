"""A slow, obvious interpreter of array designs: the oracle for random designs.

Everything advances word by word (DMA) or statement by statement (cores, host), one party at a time in a seeded random
order. It reads the description of a design, never its text, and shares nothing with the emulator. Meanings are taken
from mlir-aie's dialect and the AIE-ML architecture manual:

- A sink is one FIFO; a source advances only when every sink has room.
- A BD acquires, moves its words, releases. Words are gathered in the order of nested loops over the dimensions,
  the first outermost; padding widens each loop with zeros.
- A BD with a packet id sends one packet, to the flows of its channel with that id. Sinks have one
  source each: no packet waits for another.
- A task runs its chain of BDs so many times; each run of a BD moves its iteration on. Tasks of a channel run in order.
"""

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from oracle.array_design import (
    ELEMENT_BYTES,
    WORD_BYTES,
    Await,
    Bd,
    Chain,
    Configure,
    Design,
    Dim,
    Flow,
    Free,
    Memcpy,
    Port,
    SetLock,
    Start,
    WaitToken,
    WriteWords,
)
from oracle.slow_cores import MOVED, WAITS, Outcome, SlowCores, Stopped

QUEUE_MAX = 4
TURNS = 3_000_000  # of all parties, after which a run counts as endless


@dataclass
class Task:
    bds: tuple[Bd, ...]
    runs: int
    loops: bool
    token: bool
    executions: dict[int, int] = field(default_factory=dict)  # BD position -> runs so far


def word_offsets(bd: Bd, run: int = 0) -> list[int | None]:
    """Byte offset of every word that a BD moves in its `run`-th execution; None is a word of padding."""
    size = ELEMENT_BYTES[bd.element]
    start = bd.offset
    if bd.iteration is not None:
        start += run % bd.iteration[0] * bd.iteration[1]
    elements = [None if index is None else start + index for index in element_indices(bd.dims, bd.length)]
    per_word = WORD_BYTES // size
    words = [elements[i : i + per_word] for i in range(0, len(elements), per_word)]
    for word in words:
        together = all(e is None for e in word) or word == list(range(word[0] or 0, (word[0] or 0) + per_word))
        assert together, f"{bd} splits a word: {word}"
    return [None if word[0] is None else word[0] * size for word in words]


def element_indices(dims: tuple[Dim, ...], length: int) -> list[int | None]:
    """Index of each element in order, None for padding."""
    if not dims:
        return list(range(length))
    result: list[int | None] = []
    for position in product(*(range(-d.before, d.size + d.after) for d in dims)):
        inside = all(0 <= p < d.size for p, d in zip(position, dims, strict=True))
        result.append(sum(p * d.stride for p, d in zip(position, dims, strict=True)) if inside else None)
    assert len(result) == length, f"dimensions {dims} visit {len(result)} elements, the length is {length}"
    return result


def packet_header(source: Port, kind: int, number: int) -> int:
    """Header word: odd parity 31, source column 27:21, source row 20:16, type 14:12, id 4:0."""
    word = source.tile.column << 21 | source.tile.row << 16 | kind << 12 | number
    return word | (1 - word.bit_count() % 2) << 31


class SlowArray(SlowCores):
    """One run of a design. After `run`, `memory` holds the bytes of every buffer and argument."""

    def __init__(self, design: Design, seed: int = 0, fifo_words: int = 4, turns: int = TURNS):
        super().__init__(design)
        self.random = random.Random(seed)
        self.fifo_words = fifo_words
        self.turns = turns
        self.fifos: dict[Port, deque[int]] = {sink: deque() for flow in design.flows for sink in flow.sinks}
        self.queues: dict[Port, deque[Task]] = {p: deque() for p in self.ports()}
        self.tokens = dict.fromkeys(self.queues, 0)
        self.tasks: dict[str, tuple[Port, Task]] = {}
        for program in design.programs:
            self.queues[program.port] += [Task(c.bds, c.runs, c.loops, False) for c in program.tasks]

    def ports(self) -> list[Port]:
        """Every channel, in order."""
        ends = {p for f in self.design.flows for p in (f.source, *f.sinks)}
        return sorted(ends | {p.port for p in self.design.programs})

    def run(self) -> Outcome:
        """Everything in random order until nothing moves."""
        host = self.host()
        parties = [self.channel(p) for p in self.queues] + [self.core(c) for c in self.design.cores] + [host]
        ended = False
        try:
            while True:
                self.random.shuffle(parties)
                moved = False
                for party in list(parties):
                    for _ in range(self.random.choice((1, 1, 2, 8))):
                        report = next(party, None)
                        self.turns -= 1
                        if report is None:
                            parties.remove(party)
                            ended = ended or party is host
                            moved = True
                        moved = moved or bool(report)
                        if not report:
                            break
                if not moved:
                    return self.end() if ended else Outcome.DEADLOCK
                if self.turns < 0:
                    return Outcome.ENDLESS
        except Stopped as stopped:
            return stopped.outcome

    def end(self) -> Outcome:
        """How a run ends in which the host's program came to its end."""
        waiting = any(not task.loops for queue in self.queues.values() for task in queue)
        return Outcome.STUCK if waiting or any(self.fifos.values()) else Outcome.DONE

    # Channels.

    def channel(self, port: Port) -> Iterator[bool]:
        while True:
            while not self.queues[port]:
                yield WAITS
            task = self.queues[port][0]
            runs = 0
            while task.loops or runs < task.runs:
                for position, bd in enumerate(task.bds):
                    run = task.executions.get(position, 0)
                    task.executions[position] = run + 1
                    yield from self.bd(port, bd, run)
                runs += 1
            self.queues[port].popleft()
            self.tokens[port] += task.token
            yield MOVED

    def bd(self, port: Port, bd: Bd, run: int) -> Iterator[bool]:
        yield from self.use(bd.acquire)
        offsets = word_offsets(bd, run)
        if port.direction == "MM2S":
            yield from self.send_all(port, bd, offsets)
        else:
            for offset in offsets:
                assert offset is not None, "padding on S2MM"
                word = yield from self.receive(port)
                self.put_word(bd.memory, offset, word)
        yield from self.use(bd.release)

    def send_all(self, port: Port, bd: Bd, offsets: list[int | None]) -> Iterator[bool]:
        """The words of a BD, as a packet if it says so: a header where it is kept."""
        number = bd.packet[1] if bd.packet else None
        flows = [f for f in self.design.flows if f.source == port and f.packet_id == number]
        assert flows, f"{port} sends words nowhere"
        if bd.packet is not None:
            yield from self.send([f for f in flows if f.keep_header], packet_header(port, *bd.packet))
        for offset in offsets:
            yield from self.send(flows, 0 if offset is None else self.get_word(bd.memory, offset))

    def send(self, flows: list[Flow], word: int) -> Iterator[bool]:
        fifos = [self.fifos[sink] for flow in flows for sink in flow.sinks]
        while any(len(fifo) >= self.fifo_words for fifo in fifos):
            yield WAITS
        for fifo in fifos:
            fifo.append(word)
        yield MOVED

    def receive(self, port: Port):
        fifo = self.fifos.get(port, deque())
        while not fifo:
            yield WAITS
        word = fifo.popleft()
        yield MOVED
        return word

    # The host's program.

    def host(self) -> Iterator[bool]:
        for operation in self.design.sequence:
            match operation:
                case Memcpy():
                    self.push(operation.port, self.transfer(operation))
                case Configure(name, port, chain, token):
                    self.tasks[name] = port, self.task(chain, token)
                case Start(name):
                    self.push(*self.tasks[name])
                case Await(name):
                    yield from self.await_token(self.tasks[name][0])
                case WaitToken(port):
                    yield from self.await_token(port)
                case WriteWords():
                    self.write_words(operation)
                case SetLock(lock, value):
                    self.set_lock(lock, value)
                case Free():
                    pass
            yield MOVED

    @staticmethod
    def task(chain: Chain, token: bool) -> Task:
        return Task(chain.bds, chain.runs, chain.loops, token)

    @staticmethod
    def transfer(op: Memcpy) -> Task:
        """The outermost size counts runs, each moved by the outermost stride."""
        runs, *sizes = op.sizes
        step, *strides = op.strides
        start = sum(o * s for o, s in zip(op.offsets, op.strides, strict=True))
        dims = tuple(Dim(n, s) for n, s in zip(sizes, strides, strict=True))
        length = sizes[0] * sizes[1] * sizes[2]
        bd = Bd(op.argument, op.element, start, length, dims, packet=op.packet, iteration=(runs, step))
        return Task((bd,), runs, False, op.token or op.port.direction == "S2MM")

    def push(self, port: Port, task: Task) -> None:
        if len(self.queues[port]) == QUEUE_MAX:
            raise Stopped(Outcome.QUEUE_FULL, str(port))
        self.queues[port].append(task)

    def await_token(self, port: Port) -> Iterator[bool]:
        while not self.tokens[port]:
            yield WAITS
        self.tokens[port] -= 1
        yield MOVED

    def write_words(self, op: WriteWords) -> None:
        for i, value in enumerate(op.values):
            byte = WORD_BYTES * (op.index + i)
            word = value % (1 << 32)
            if op.form == "mask":
                word = self.get_word(op.buffer, byte) & 0xFFFF0000 | word & 0xFFFF
            self.put_word(op.buffer, byte, word)
