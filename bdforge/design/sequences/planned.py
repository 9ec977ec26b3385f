"""A sequence program run for given sizes: its events, its host buffers, and the words of its instruction stream."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np

from bd_patterns import Pattern
from bdforge.common.messages import InputError
from bdforge.design.sequences.instruction_words import illegal, operations
from bdforge.design.sequences.interpret import Event, Reconfigure, Start, StartedTask, interpret, values_of
from bdforge.design.sequences.operand_places import check_places
from bdforge.design.sequences.sequence_options import SequenceOptions
from bdforge.design.sequences.sequence_program import Program
from bdforge.devices import Device, TileKind
from bdforge.devices.limits import BYTE_BITS, SHIM
from bdforge.devices.txn_format.codec import encode
from bdforge.devices.txn_format.operations import Operation


class WalkError(InputError):
    """Sizes for which the shims cannot move the operands; the message lists every reason."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that shims move: reads from DRAM, writes to it, those of the busiest channel; the shortest run in DRAM."""

    read_bytes: int
    write_bytes: int
    channel_bytes: int
    run_bytes: int


@dataclass(frozen=True)
class PlannedSequence:
    """What the controller does for one set of sizes, on an array; `planned` makes it.

    `parameters` are all of the program's, leading dimensions included; with `wide` one operation awaits the tokens of
    several columns. `configurations` are the operations that change the array's, by number.
    """

    program: Program
    parameters: Mapping[str, int]
    device: Device
    wide: bool
    events: tuple[Event, ...]
    configurations: tuple[tuple[Operation, ...], ...] = field(default=(), kw_only=True)

    @cached_property
    def values(self) -> list[int]:
        """Every value of the program that depends on no loop, by its place."""
        return values_of(self.program, self.parameters)

    @property
    def shape(self) -> str:
        """Its sizes as shapes are written, such as 256x2560x640."""
        return "x".join(str(self.parameters[name]) for name in self.program.sizes)

    @property
    def elements(self) -> list[int]:
        """Memory elements of each host buffer."""
        return [self.values[argument.elements] for argument in self.program.arguments]

    @property
    def argument_bytes(self) -> list[int]:
        """Size of every host buffer."""
        pairs = zip(self.elements, self.program.arguments, strict=True)
        return [count * argument.bits // BYTE_BITS for count, argument in pairs]

    def operations(self) -> list[Operation]:
        """The operations of the instruction stream."""
        bits = [argument.bits for argument in self.program.arguments]
        return list(operations(self.events, bits, self.device.generation, self.wide, self.configurations))

    def step_starts(self) -> list[tuple[int, int]]:
        """Of each step of a composition, and what ends a run: how many operations come before the change of the array's
        configuration, and before what follows that change."""
        bits, found, count = [argument.bits for argument in self.program.arguments], [], 0
        for event in self.events:
            before = count
            made = operations([event], bits, self.device.generation, self.wide, self.configurations)
            count += sum(1 for _ in made)
            if isinstance(event, Reconfigure) and not event.ahead:
                found.append((before, count))
        return found

    def words(self) -> np.ndarray:
        """The instruction stream, uint32."""
        return encode(self.operations(), self.device)

    def traffic(self) -> Traffic:
        """What the shims move, as the BDs say it."""
        channels: Counter[tuple[str, int, int]] = Counter()
        shortest = 1 << 62
        for task in self.tasks():
            for bd in task.bds:
                bits = bd.bits or self.program.arguments[bd.argument].bits
                run_elements = prod(bd.pattern.sizes[-SHIM.dims :])
                channels[task.direction, task.channel, task.column] += task.runs * run_elements * bits // BYTE_BITS
                shortest = min(shortest, contiguous(bd.pattern) * bits // BYTE_BITS)
        read, write = (sum(n for key, n in channels.items() if key[0] == way) for way in ("MM2S", "S2MM"))
        return Traffic(read, write, max(channels.values(), default=0), shortest if channels else 0)

    def tasks(self) -> Iterator[StartedTask]:
        """The tasks of all shims, in order."""
        items = (item for event in self.events if isinstance(event, Start) for item in event.items)
        return (item for item in items if isinstance(item, StartedTask))


def contiguous(pattern: Pattern) -> int:
    """Elements that follow one another in memory, of one run of a BD."""
    length = 1
    dims = list(zip(pattern.sizes[-SHIM.dims :], pattern.strides[-SHIM.dims :], strict=True))
    for size, stride in reversed(dims):
        if size > 1 and stride != length:
            break
        length *= size
    return length


def planned(
    program: Program, parameters: Mapping[str, int], device: Device, options: SequenceOptions | None = None,
    configurations: tuple[tuple[Operation, ...], ...] = (),
) -> PlannedSequence:  # fmt: skip
    """Run `program` for `parameters` on an array; those that are no size may be left out: 0, lines without gaps.

    `options` say how it waits, as the program does by default; `configurations` are those that it changes to.
    ProgramError lists the requirements that do not hold, or
    says which operand gives an element no place or several; WalkError says why the array cannot do what it is told.
    """
    limits = device.generation.limits(TileKind.SHIM)
    given = {name: 0 for name in program.parameters if name not in program.sizes} | dict(parameters)
    events = tuple(interpret(program, given, limits, options.steps if options else None))
    if faults := illegal(program, events, device):
        raise WalkError("\n  - ".join(["cannot be walked:", *faults]))
    wide = options.wide if options else False
    made = PlannedSequence(program, given, device, wide, events, configurations=configurations)
    for operand in program.operands:
        check_places(operand, made.values)
    return made
