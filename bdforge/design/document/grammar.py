"""The grammar of a descriptor document, from which its JSON Schema is made.

Numbers may be expressions ("128 * i"), texts may hold some in braces ("mem_{2 * c}"); `for` repeats what it stands in.
Defaults are what is meant where a key is missing, and what a written document leaves out.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from bdforge.devices.limits import DEFAULT_STACK_BYTES


def _number(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError('should be an integer, or an expression of them such as "128 * i"')
    return value


Number = Annotated[int | str, BeforeValidator(_number)]
"""An integer or an expression of integers."""
Text = Annotated[str, Field(max_length=1000)]
Type = Annotated[str, Field(pattern=r"^(u?i|bf|f)[1-9][0-9]?$")]
"""What MLIR calls the elements of a buffer: i8, bf16."""
Ranges = Annotated[dict[str, str], Field(alias="for", default_factory=dict, max_length=6)]
"""Ranges by variable, the first one outermost: { c = "0..8", r = "2..6" }."""
Pairs = list[Annotated[list[Number], Field(min_length=2, max_length=2)]]


class Form(BaseModel):
    """A table."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Repeated(Form):
    """A table that may stand for many."""

    ranges: Ranges


def _by_key(value: Any) -> str | None:
    """What an item is: a table is told by the first of its keys that is no `for`. Tags end with : to be no keys."""
    return next((f"{key}:" for key in value if key != "for"), None) if isinstance(value, dict) else None


def _by_do(other: str) -> Callable[[Any], str]:
    """What an item is that need not begin with a certain key."""
    return lambda value: "do:" if isinstance(value, dict) and "do" in value else f"{other}:"


class Ring(Repeated):
    """Buffers that take turns between two locks, `ring`_free (which starts at `room`) and `ring`_full.

    They are called ping and pong, three or more by numbers. `counts`: what the locks count, if not `role`.
    """

    ring: Text
    elements: Number
    type: Type
    slots: Number = 2
    room: Number | None = None
    role: Text = ""
    counts: Text | None = None
    addresses: list[Number] | None = None


class Buffer(Repeated):
    """A buffer; its memory starts as `values`, one for all or one each."""

    buffer: Text
    elements: Number
    type: Type
    role: Text = ""
    address: Number | None = None
    values: Number | float | list[Number | float] | None = None


class Lock(Repeated):
    """A lock; by default its number is its place among its tile's."""

    lock: Text
    init: Number = 0
    role: Text = ""
    id: Number | None = None


class HeldTogether(Repeated):
    """What repeats together."""

    do: list["Held"]


Held = Annotated[
    Annotated[Ring, Tag("ring:")]
    | Annotated[Buffer, Tag("buffer:")]
    | Annotated[Lock, Tag("lock:")]
    | Annotated[HeldTogether, Tag("do:")],
    Discriminator(_by_key),
]


class Transfer(Repeated):
    """What every BD may say. `dims` are (size, stride) pairs in elements, outermost first; without, all of it."""

    offset: Number = 0
    dims: Pairs | None = None
    padding: Pairs = Field(default_factory=list)
    packet: Number | None = None
    packet_type: Number = 0
    id: Number | None = None


class Fill(Transfer):
    """Fill a slot of a ring, without `slot` each in turn; the locks move by `acquire` and `release`."""

    fill: Text
    slot: Number | None = None
    acquire: Number = 1
    release: Number = 1


class Send(Transfer):
    """Send a slot of a ring, without `slot` each in turn; the locks move by `acquire` and `release`."""

    send: Text
    slot: Number | None = None
    acquire: Number = 1
    release: Number = 1


class Guard(Form):
    """A lock with the number by which it moves; `equal`: it must hold exactly that."""

    lock: Text
    count: Number = 1
    equal: Number | None = None


class Move(Transfer):
    """Move a buffer, between any locks or none."""

    move: Text
    acquire: Text | Guard | None = None
    release: Text | Guard | None = None


class BdsTogether(Repeated):
    """What repeats together."""

    do: list["Bd"]


Bd = Annotated[
    Annotated[Fill, Tag("fill:")]
    | Annotated[Send, Tag("send:")]
    | Annotated[Move, Tag("move:")]
    | Annotated[BdsTogether, Tag("do:")],
    Discriminator(_by_key),
]


class Channel(Repeated):
    """A chain of BDs on a DMA channel ("S2MM 0"), that goes on with BD `back`, or ends after `runs` rounds."""

    dma: Text
    role: Text = ""
    back: Number | Literal["end"] = 0
    runs: Number = 1
    bds: Annotated[list[Bd], Field(min_length=1)]


class ChannelsTogether(Repeated):
    """What repeats together."""

    do: list["AnyChannel"]


AnyChannel = Annotated[
    Annotated[Channel, Tag("dma:")] | Annotated[ChannelsTogether, Tag("do:")], Discriminator(_by_key)
]


class Tile(Repeated):
    """A tile at (column, row). Inside, `a_full` is short for the tile's own `name`_a_full, `@name` is any other."""

    name: Text
    at: Annotated[list[Number], Field(min_length=2, max_length=2)]
    reserved_bds: Annotated[list[Number], Field(min_length=2, max_length=2)] | None = None
    core: Text | None = None
    holds: list[Held] = Field(default_factory=list)
    channels: list[AnyChannel] = Field(default_factory=list)


class Names(Repeated):
    """Names that repeat."""

    name: Text


SomeNames = Text | Names | list[Text | Names]


class Flow(Repeated):
    """A way from a port ("mem_0 DMA 1") to others: a circuit, or for packets with an id."""

    role: Text = ""
    source: Annotated[Text, Field(alias="from")]
    to: SomeNames
    packet: Number | None = None
    keep_header: bool = False


class FlowsTogether(Repeated):
    """What repeats together."""

    do: list["AnyFlow"]


AnyFlow = Annotated[
    Annotated[Flow, Tag("flow:")] | Annotated[FlowsTogether, Tag("do:")],
    Discriminator(_by_do("flow")),
]


class Cascade(Repeated):
    """A cascade between neighbours."""

    source: Annotated[Text, Field(alias="from")]
    to: Text


class Allocation(Repeated):
    """A name for a shim's channel ("shim_0 MM2S 1"), as sequences use it."""

    name: Text
    channel: Text


class AllocationsTogether(Repeated):
    """What repeats together."""

    do: list["AnyAllocation"]


AnyAllocation = Annotated[
    Annotated[Allocation, Tag("name:")] | Annotated[AllocationsTogether, Tag("do:")], Discriminator(_by_key)
]


class Acquire(Form):
    """Wait for a lock and take from it; `equal`: it must hold exactly that."""

    acquire: Text
    count: Number = 1
    equal: Number | None = None


class Release(Form):
    """Give to a lock."""

    release: Text
    count: Number = 1


class Advance(Form):
    """The next turn of a rotation of so many turns."""

    advance: Text
    turns: Number = 2


class Rotating(Form):
    """Of these buffers the one whose turn it is. For a ring's: "a[turn]", "a[turn + 1]"."""

    turn: Text
    turns: Number = 2
    of: list[Text]


class Call(Form):
    """Call a kernel with buffers, slots of rings by rotation, numbers, and integers by name ("%tiles")."""

    call: Text
    arguments: Annotated[list[Text | int | Rotating], Field(alias="with", default_factory=list)]


class Load(Form):
    """Name an element of a buffer."""

    load: Text
    source: Annotated[Text, Field(alias="from")]
    index: Number = 0


class Store(Form):
    """Write a number, or an integer by name, to an element of a buffer."""

    store: int | float | Text
    to: Text
    index: Number = 0


class Loop(Form):
    """Repeat `body`: a number of times, "%name" times or "forever"; `index` names the round."""

    loop: Number
    index: Text = "round"
    body: list["Statement"]


Statement = Annotated[
    Annotated[Acquire, Tag("acquire:")]
    | Annotated[Release, Tag("release:")]
    | Annotated[Advance, Tag("advance:")]
    | Annotated[Call, Tag("call:")]
    | Annotated[Load, Tag("load:")]
    | Annotated[Store, Tag("store:")]
    | Annotated[Loop, Tag("loop:")],
    Discriminator(_by_key),
]


class Program(Form):
    """What a core runs."""

    stack_bytes: Number = DEFAULT_STACK_BYTES
    link_with: Text = ""
    body: list[Statement]


class Argument(Form):
    """A buffer of the host."""

    name: Text
    elements: Number
    type: Type
    role: Text = ""


class TaskBd(Form):
    """A BD of a task: `argument` from element `offset` on."""

    argument: Text
    offset: Number = 0
    dims: Pairs | None = None
    label: Text = ""
    packet: Number | None = None
    packet_type: Number = 0
    id: Number


class Task(Repeated):
    """A task of a shim's channel: one BD, or a chain of `bds`; it runs repeat_count + 1 times."""

    task: Text
    on: Text
    argument: Text | None = None
    offset: Number = 0
    dims: Pairs | None = None
    label: Text = ""
    packet: Number | None = None
    packet_type: Number = 0
    id: Number | None = None
    bds: Annotated[list[TaskBd], Field(min_length=1)] | None = None
    repeat_count: Number = 0
    token: bool = False


class TasksTogether(Repeated):
    """What repeats together."""

    do: list["AnyTask"]


AnyTask = Annotated[Annotated[Task, Tag("task:")] | Annotated[TasksTogether, Tag("do:")], Discriminator(_by_key)]


class Rtp(Repeated):
    """Word `slot` of a core's run-time parameters becomes `value`."""

    rtp: Text
    slot: Number
    value: Number


class SetLock(Repeated):
    """A lock becomes `value`."""

    lock: Text
    value: Number


class Registers(Repeated):
    """Registers from full address `address` on; several are a constant with a name."""

    address: Number
    values: list[Number]
    name: Text = ""


class WritesTogether(Repeated):
    """What repeats together."""

    do: list["Write"]


Write = Annotated[
    Annotated[Rtp, Tag("rtp:")]
    | Annotated[SetLock, Tag("lock:")]
    | Annotated[Registers, Tag("address:")]
    | Annotated[WritesTogether, Tag("do:")],
    Discriminator(_by_key),
]


class Wait(Repeated):
    """A token of a channel ("S2MM 0") of each of `columns` shims, from `column` on."""

    token: Text
    column: Number
    columns: Number = 1


class Event(Repeated):
    """What a sequence does in a row: tasks, writes, waits, BDs that are free again."""

    comment: Text = ""
    tasks: list[AnyTask] = Field(default_factory=list)
    writes: list[Write] = Field(default_factory=list)
    waits: list[Wait] = Field(default_factory=list)
    free: SomeNames = Field(default_factory=list)


class EventsTogether(Repeated):
    """What repeats together."""

    do: list["AnyEvent"]


AnyEvent = Annotated[
    Annotated[Event, Tag("event:")] | Annotated[EventsTogether, Tag("do:")], Discriminator(_by_do("event"))
]


class Sequence(Form):
    """A runtime sequence."""

    name: Text
    comment: Text = ""
    arguments: list[Argument]
    events: list[AnyEvent]


class Document(Form):
    """A whole design. `let` are numbers by name, of those before them."""

    kind: Literal["design"]
    name: Text
    device: Text
    comments: list[Text] = Field(default_factory=list)
    let: dict[str, Number] = Field(default_factory=dict)
    allocations: list[AnyAllocation] = Field(default_factory=list)
    tile: list[Tile]
    flow: list[AnyFlow] = Field(default_factory=list)
    cascade: list[Cascade] = Field(default_factory=list)
    program: dict[str, Program] = Field(default_factory=dict)
    runtime_sequence: list[Sequence] = Field(default_factory=list)
    reference: Text = ""
    made_from: dict[str, Any] | None = None
    kernels: list[Text] = Field(default_factory=list)
    macros: list[Text] = Field(default_factory=list)


DEFAULTS: dict[str, int] = {
    name: field.default
    for form in (Ring, Lock, Send, Channel, Advance, Task, Wait, Load)
    for name, field in form.model_fields.items()
    if type(field.default) is int
}
"""Numbers that are left out, by key: no key has two."""
