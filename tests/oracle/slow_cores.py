"""The slow interpreter's memory, locks and cores: a core's program statement by statement."""

from collections.abc import Iterator
from enum import StrEnum
from itertools import product

from oracle.array_design import (
    ELEMENT_BYTES,
    WORD_BYTES,
    Access,
    Alternate,
    Call,
    Combine,
    Copy,
    Core,
    Design,
    Fetch,
    Statement,
    Sum,
    Times,
    UseLock,
)

LOCK_MAX = 63
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


def wrapped(value: int, element: str) -> int:
    """`value` as a signed integer of the element's width."""
    half = 1 << (8 * ELEMENT_BYTES[element] - 1)
    return (value + half) % (2 * half) - half


class SlowCores:
    """Memory, locks and cores of a design."""

    def __init__(self, design: Design):
        self.design = design
        self.element = {m.name: m.element for m in (*design.buffers, *design.arguments)}
        self.memory = {
            m.name: self.initial(m.elements, m.element, m.values) for m in (*design.buffers, *design.arguments)
        }
        self.locks = {lock.name: lock.init for lock in design.locks}

    @staticmethod
    def initial(elements: int, element: str, values: tuple[int, ...] | None) -> bytearray:
        size = ELEMENT_BYTES[element]
        numbers = values if values is not None else (0,) * elements
        return bytearray(b"".join(wrapped(v, element).to_bytes(size, "little", signed=True) for v in numbers))

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
