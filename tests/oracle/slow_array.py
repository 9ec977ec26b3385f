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
from enum import StrEnum
from itertools import product

from oracle.array_design import (
    ELEMENT_BYTES,
    WORD_BYTES,
    Access,
    Alternate,
    Await,
    Bd,
    Call,
    Chain,
    Combine,
    Configure,
    Copy,
    Core,
    Design,
    Dim,
    Fetch,
    Flow,
    Free,
    Memcpy,
    Port,
    SetLock,
    Start,
    Statement,
    Sum,
    Times,
    UseLock,
    WaitToken,
    WriteWords,
)

LOCK_MAX = 63
QUEUE_MAX = 4
TURNS = 3_000_000  # of all parties, after which a run counts as endless
MOVED, WAITS = True, False  # what a party tells after each turn


class Outcome(StrEnum):
    """How a run ends."""

    DONE = "done"  # the sequence ended, or there is none, and nothing that has an end is left
    STUCK = "stuck"  # the sequence ended, or there is none, yet words or finite tasks are left
    DEADLOCK = "deadlock"  # nothing moves and the sequence has not ended
    LOCK_RANGE = "lock leaves its range"
    QUEUE_FULL = "push to a full queue"
    ENDLESS = "takes more turns than allowed"


class Stopped(Exception):
    """A fault that ends a run."""

    def __init__(self, outcome: Outcome, place: str):
        super().__init__(f"{outcome}: {place}")
        self.outcome = outcome


@dataclass
class Task:
    bds: tuple[Bd, ...]
    runs: int
    loops: bool
    token: bool
    executions: dict[int, int] = field(default_factory=dict)  # BD position -> runs so far


def wrapped(value: int, element: str) -> int:
    """`value` as a signed integer of the element's width."""
    half = 1 << (8 * ELEMENT_BYTES[element] - 1)
    return (value + half) % (2 * half) - half


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


class SlowArray:
    """One run of a design. After `run`, `memory` holds the bytes of every buffer and argument."""

    def __init__(self, design: Design, seed: int = 0, fifo_words: int = 4, turns: int = TURNS):
        self.design = design
        self.random = random.Random(seed)
        self.fifo_words = fifo_words
        self.turns = turns
        self.element = {m.name: m.element for m in (*design.buffers, *design.arguments)}
        self.memory = {
            m.name: self.initial(m.elements, m.element, m.values) for m in (*design.buffers, *design.arguments)
        }
        self.locks = {lock.name: lock.init for lock in design.locks}
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

    @staticmethod
    def initial(elements: int, element: str, values: tuple[int, ...] | None) -> bytearray:
        size = ELEMENT_BYTES[element]
        numbers = values if values is not None else (0,) * elements
        return bytearray(b"".join(wrapped(v, element).to_bytes(size, "little", signed=True) for v in numbers))

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

    # Memory and locks.

    def get(self, name: str, index: int) -> int:
        size = ELEMENT_BYTES[self.element[name]]
        assert 0 <= index < len(self.memory[name]) // size, f"{name}[{index}]"
        return int.from_bytes(self.memory[name][index * size : (index + 1) * size], "little", signed=True)

    def put(self, name: str, index: int, value: int) -> None:
        element = self.element[name]
        size = ELEMENT_BYTES[element]
        assert 0 <= index < len(self.memory[name]) // size, f"{name}[{index}]"
        self.memory[name][index * size : (index + 1) * size] = wrapped(value, element).to_bytes(
            size, "little", signed=True
        )

    def get_word(self, name: str, byte: int) -> int:
        assert 0 <= byte <= len(self.memory[name]) - WORD_BYTES, f"{name} byte {byte}"
        assert byte % WORD_BYTES == 0
        return int.from_bytes(self.memory[name][byte : byte + WORD_BYTES], "little")

    def put_word(self, name: str, byte: int, word: int) -> None:
        assert 0 <= byte <= len(self.memory[name]) - WORD_BYTES, f"{name} byte {byte}"
        assert byte % WORD_BYTES == 0
        self.memory[name][byte : byte + WORD_BYTES] = word.to_bytes(WORD_BYTES, "little")

    def use(self, use: UseLock | None) -> Iterator[bool]:
        if use is None:
            return
        if use.action == "Release":
            self.set_lock(use.lock, self.locks[use.lock] + use.value)
            yield MOVED
            return
        equal = use.action == "Acquire"
        while not (self.locks[use.lock] == use.value if equal else self.locks[use.lock] >= use.value):
            yield WAITS
        self.set_lock(use.lock, self.locks[use.lock] - use.value)
        yield MOVED

    def set_lock(self, name: str, value: int) -> None:
        if not 0 <= value <= LOCK_MAX:
            raise Stopped(Outcome.LOCK_RANGE, f"{name} would be {value}")
        self.locks[name] = value

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

    # Cores.

    def core(self, core: Core) -> Iterator[bool]:
        yield from self.body(core.body, {}, 0)

    def body(self, body: tuple[Statement, ...], values: dict[str, int], index: int) -> Iterator[bool]:
        for statement in body:
            yield from self.statement(statement, values, index)

    def statement(self, statement: Statement, values: dict[str, int], index: int) -> Iterator[bool]:
        match statement:
            case UseLock():
                yield from self.use(statement)
            case Times(count, inner):
                turn = 0
                while count is None or turn < count:
                    yield from self.body(inner, values, turn)
                    turn += 1
            case Alternate(bodies):
                yield from self.body(bodies[index % len(bodies)], values, index)
            case Combine():
                yield from self.combine(statement, values)
            case Sum(count, target, source):
                total = sum(self.converted(source, (i,), target) for i in range(count))
                self.put(target.buffer, target.offset, total)
                yield MOVED
            case Copy(source, target):
                self.memory[target][:] = self.memory[source]
                yield MOVED
            case Fetch(value, buffer, position):
                values[value] = self.get(buffer, position)
                yield MOVED
            case Call(_, source, target, factor, value):
                number = values[value] if isinstance(value, str) else value
                lengths = [len(self.memory[m]) // ELEMENT_BYTES[self.element[m]] for m in (source, target)]
                for i in range(lengths[1]):
                    self.put(target, i, self.get(source, i % lengths[0]) * factor + number)
                yield MOVED

    def converted(self, access: Access, position: tuple[int, ...], target: Access) -> int:
        """One element, sign-extended or cut to the type of the target."""
        index = access.offset + sum(p * s for p, s in zip(position, access.strides, strict=bool(access.strides)))
        return wrapped(self.get(access.buffer, index), self.element[target.buffer])

    def combine(self, combine: Combine, values: dict[str, int]) -> Iterator[bool]:
        element = self.element[combine.target.buffer]
        for position in product(*map(range, combine.loops)):
            left = self.converted(combine.source, position, combine.target)
            match combine.operand:
                case Access() as access:
                    right = self.converted(access, position, combine.target)
                case str() as name:
                    right = wrapped(values[name], element)
                case int() as number:
                    right = wrapped(number, element)
            result = {
                "copy": left,
                "addi": left + right,
                "subi": left - right,
                "muli": left * right,
                "xori": left ^ right,
                "maxsi": max(left, right),
                "minsi": min(left, right),
            }[combine.operation]
            strides = combine.target.strides
            index = combine.target.offset + sum(p * s for p, s in zip(position, strides, strict=bool(strides)))
            self.put(combine.target.buffer, index, result)
            yield MOVED

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
