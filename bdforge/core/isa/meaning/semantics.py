"""What a form does, as data: an operation on operands, a memory access, a walk of an address."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, TypeVar

from bdforge.core.isa.errors import OpenError

DATA = "data"
"""The operand that a load or a request brings or a store writes."""
ADDRESS = "address"
"""The operand of a request that is the form's address."""
APPROXIMATION = "approximation"
"""The operand that says what becomes of an approximation, as a number: who runs the program chooses it."""


class MeaningKind(Enum):
    """How an instruction touches what is outside of registers and memory."""

    COMPUTE = "compute"
    BRANCH = "branch"
    REQUEST = "request"


class AddressWalk(Enum):
    """How an address is made and stepped."""

    NONE = "none"
    INDEX = "index"
    POST = "post"
    WALK_2D = "2d"
    WALK_3D = "3d"
    STACK = "stack"
    STACK_STEP = "stack step"


_BRANCHES = ("always", "zero", "nonzero", "decrement")


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """A load or store of `size_bytes`, to which its address must be aligned.

    Other kinds than `plain` make their addresses otherwise: those of FIFOs by steps of `amount` bytes
    (`bdforge.core.isa.meaning.fifo`); a `gather` loads four elements of `amount` bits, each from half a line, which has
    `size_bytes`, at the addresses that are the words from number `first` on of the operand `addresses`.
    """

    store: bool
    size_bytes: int
    kind: str = "plain"
    amount: int = 0
    first: int = 0
    addresses: str = ""

    @property
    def counter(self) -> str:
        """The operand that counts the bytes of a FIFO, "" for others."""
        return {"fill": "pos", "pop": "pos", "push": "avail", "flush": "avail"}.get(self.kind, "")


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a form does.

    `operation` names a function of `OPERATIONS` that makes `outputs` of `inputs`. Operands are those of the form's
    timing; a number is a constant and `DATA` what is loaded or stored. `options` are fixed by the form: lane widths,
    register widths, signs. A branch has the operands of what it does in `inputs`. `request` is what is asked of the
    array with the operands `asks`; what it answers is `DATA`. `offset` is the operand that an address is stepped or
    indexed by. `part` is which 512 bits of the result's register are written, if not all of it, as a number or an
    operand; the rest stays. `counts` are an operand that counts parts of the cascade, and what becomes of it. Of
    results in `doubtful` a part may be unknown (`Partly`). Of inputs only the lowest `low_bits` are used, if that
    is not 0. `note` says what sources leave open.
    """

    operation: str = ""
    inputs: tuple[str | int, ...] = ()
    outputs: tuple[str, ...] = ()
    options: tuple[int, ...] = ()
    request: str = ""
    asks: tuple[str | int, ...] = ()
    access: MemoryAccess | None = None
    walk: AddressWalk = AddressWalk.NONE
    offset: str = ""
    part: int | str | None = None
    counts: tuple[str, str] | None = None
    doubtful: tuple[str, ...] = ()
    low_bits: int = 0
    note: str = ""

    @property
    def steps(self) -> bool:
        """Whether it makes an address of a pointer."""
        return self.walk is not AddressWalk.NONE or bool(self.access and self.access.counter)

    @property
    def kind(self) -> MeaningKind:
        """What it touches outside of registers and memory."""
        if self.operation in _BRANCHES:
            return MeaningKind.BRANCH
        return MeaningKind.REQUEST if self.request else MeaningKind.COMPUTE


class Partly(NamedTuple):
    """A result of which no source tells the 16-byte pieces in the mask `unknown` (scalars are one); they are 0.

    `assumed` are reasons why the rest may be otherwise: whoever runs the program chooses whether it goes on.
    """

    value: int
    unknown: int
    assumed: tuple[str, ...] = ()


Result = int | Partly
Operation = Callable[..., Any]
"""Makes results, as bit patterns, of the options and the inputs."""

OPERATIONS: dict[str, Operation] = {}


_Made = TypeVar("_Made", bound=Operation)


def operation(name: str) -> Callable[[_Made], _Made]:
    """Enter a function under its name."""

    def enter(function: _Made) -> _Made:
        OPERATIONS[name] = function
        return function

    return enter


def compute(meaning: Meaning, values: Mapping[str, int]) -> dict[str, Result]:
    """Results by operand; OpenError where no source tells them."""
    inputs: list[Any] = [values[i] if isinstance(i, str) else i for i in meaning.inputs]
    results = OPERATIONS[meaning.operation](meaning.options, *inputs)
    if isinstance(results, int | Partly):
        results = (results,)
    return dict(zip(meaning.outputs, results, strict=True))


def open_if(condition: object, reason: str) -> None:
    """OpenError with the reason, if the condition holds."""
    if condition:
        raise OpenError(reason)


def signed(value: int, bits: int) -> int:
    """The low `bits` of a pattern as a two's complement number."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def lanes(value: int, bits: int, count: int, sign: object = False) -> list[int]:
    """The lowest `count` lanes of a register, lowest first."""
    mask = (1 << bits) - 1
    found = [value >> bits * i & mask for i in range(count)]
    return [signed(lane, bits) for lane in found] if sign else found


def joined(values: list[int], bits: int) -> int:
    """A register of lanes, lowest first; each is cut to its width."""
    mask, result = (1 << bits) - 1, 0
    for i, value in enumerate(values):
        result |= (value & mask) << bits * i
    return result
