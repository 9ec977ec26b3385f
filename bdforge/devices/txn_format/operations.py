"""The operations of an instruction stream, as mlir-aie numbers them.

Sources: mlir-aie 5ff2ab97, `AIETargetNPU.cpp` (encoder), `AIEToConfiguration.cpp` (decoder); aiebu, `transaction.cpp`.
Addresses are full register addresses (`bdforge.devices.registers.address`); values, masks and data are 32-bit words.
Every operation may carry where it came from: the `location` and the name (`origin`) of an MLIR operation; comparisons
leave both out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bdforge.common.messages import Location

S2MM, MM2S = 0, 1
"""Directions in `Sync`."""

DIRECTIONS = ("S2MM", "MM2S")
PREEMPT_LEVELS = ("none", "memtile", "core tile", "registers")


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of an instruction stream."""

    location: Location | None = field(default=None, compare=False, repr=False, kw_only=True)
    origin: str | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Write(Operation):
    """Register at `address` becomes `value`."""

    address: int
    value: int


@dataclass(frozen=True, slots=True)
class MaskWrite(Operation):
    """Register becomes `register & ~mask | value & mask`."""

    address: int
    value: int
    mask: int


@dataclass(frozen=True, slots=True)
class BlockWrite(Operation):
    """Consecutive registers from `address` on become `words`.

    `hint` is the second word, which readers ignore: column [7:0] and row [15:8] of an `npu.blockwrite` that names them.
    """

    address: int
    words: tuple[int, ...]
    hint: int = 0


@dataclass(frozen=True, slots=True)
class MaskPoll(Operation):
    """Wait until `register & mask == value`."""

    address: int
    value: int
    mask: int


@dataclass(frozen=True, slots=True)
class MaskPollBusy(Operation):
    """MaskPoll that keeps the controller busy while it waits."""

    address: int
    value: int
    mask: int


@dataclass(frozen=True, slots=True)
class Noop(Operation):
    """Nothing."""


@dataclass(frozen=True, slots=True)
class Preempt(Operation):
    """A point where the firmware may switch contexts; PREEMPT_LEVELS names the levels that are known."""

    level: int


@dataclass(frozen=True, slots=True)
class LoadPdi(Operation):
    """Load another array configuration of `size` bytes; `device` is its `aie.device`, known only when lowered here.

    With `expanded` it stands for the writes or control packets that the text wants instead (write32, ctrlpkt), and has
    no words.
    """

    id: int
    size: int
    address: int
    device: str | None = field(default=None, compare=False, kw_only=True)
    expanded: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class Sync(Operation):
    """Wait for one token (TCT) from `channel` of each tile of `columns` x `rows` tiles from (`column`, `row`) on."""

    direction: int
    row: int
    column: int
    rows: int
    columns: int
    channel: int


@dataclass(frozen=True, slots=True)
class Patch(Operation):
    """DDR_PATCH: host address of `argument` plus `plus` bytes goes to the shim BD whose word 1 is at `register`."""

    register: int
    argument: int
    plus: int


@dataclass(frozen=True, slots=True)
class Unknown(Operation):
    """An operation of code 128 or more that only its writer knows: `payload` words after the size word.

    `extra` holds bits [31:8] of the first word.
    """

    opcode: int
    payload: tuple[int, ...]
    extra: int = 0
