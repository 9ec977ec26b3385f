"""What a core runs, as data: loops, switches, locks, calls of kernels with buffers in turns, run-time parameters.

Names stand for integers: of a `Load`, or of the index of a `Loop` around. A `Rotation` is a counter that each `Advance`
moves on by one; buffers that rotate follow it, from one round of a loop to the next and beyond its end.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bdforge.design.tile_memory import Acquire, Buffer, Release
from bdforge.devices.limits import DEFAULT_STACK_BYTES


@dataclass(frozen=True, slots=True)
class Rotation:
    """A counter from 0 to `turns` - 1 and around; 0 when the core starts. Equal ones are one and the same."""

    name: str
    turns: int = 2

    def of(self, buffers: Iterable[Buffer]) -> "Rotating":
        """Of as many buffers as turns, the one whose turn it is."""
        return Rotating(self, tuple(buffers))


@dataclass(frozen=True, slots=True)
class Rotating:
    """The buffer whose turn it is; `ahead(1)` is the one whose turn comes next."""

    rotation: Rotation
    buffers: tuple[Buffer, ...]

    def ahead(self, turns: int) -> "Rotating":
        """The buffer whose turn it is so many turns later."""
        turns %= len(self.buffers)
        return Rotating(self.rotation, self.buffers[turns:] + self.buffers[:turns])


@dataclass(frozen=True, slots=True)
class Advance:
    """The next turn of a rotation."""

    rotation: Rotation


Argument = Buffer | Rotating | int | str


@dataclass(frozen=True, slots=True)
class Call:
    """Call a kernel with buffers, numbers (32 bit) and named integers (32 bit, loaded ones as they are)."""

    function: str
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Load:
    """Read an element of a buffer, such as a run-time parameter, and call it `name`."""

    name: str
    buffer: Buffer
    index: int | str = 0


@dataclass(frozen=True, slots=True)
class Store:
    """Write a number or a loaded integer to an element of a buffer."""

    value: float | str
    buffer: Buffer
    index: int | str = 0


@dataclass(frozen=True, slots=True)
class Loop:
    """Run `body` `count` times: a number, a loaded integer, or None for ever; `index` names the round, from 0."""

    count: int | str | None
    body: tuple["Statement", ...]
    index: str = "round"


@dataclass(frozen=True, slots=True)
class SwitchOn:
    """Run the body of the case whose number the integer called `name` is, else `default`."""

    name: str
    cases: tuple[tuple[int, tuple["Statement", ...]], ...]
    default: tuple["Statement", ...] = ()


Statement = Acquire | Release | Advance | Call | Load | Store | Loop | SwitchOn


@dataclass(frozen=True, slots=True)
class Core:
    """The program of a core, its stack, and the object file with the kernels that it calls."""

    body: tuple[Statement, ...]
    stack_bytes: int = DEFAULT_STACK_BYTES
    link_with: str = ""


def statements(body: Iterable[Statement]) -> Iterator[Statement]:
    """All statements, those in loops and switches included, in the order of the text."""
    for statement in body:
        yield statement
        for inner in _bodies(statement):
            yield from statements(inner)


def _bodies(statement: Statement) -> tuple[tuple[Statement, ...], ...]:
    match statement:
        case Loop(_, body):
            return (body,)
        case SwitchOn(_, cases, default):
            return (*(body for _, body in cases), default)
    return ()


def rotations(body: Iterable[Statement]) -> tuple[Rotation, ...]:
    """Rotations that `body` moves on, in order of their first advance."""
    return tuple(dict.fromkeys(s.rotation for s in statements(body) if isinstance(s, Advance)))


def buffers(call: Call) -> Iterator[Buffer]:
    """Every buffer that a call may get."""
    for argument in call.arguments:
        if isinstance(argument, Buffer):
            yield argument
        elif isinstance(argument, Rotating):
            yield from argument.buffers
