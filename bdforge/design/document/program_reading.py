"""The sequence of any size in a document: `[sequence]` and `[[operand]]` as a sequence program."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from bdforge.common.messages import clip, form_fault, listed
from bdforge.design.document.document_values import (
    STRING,
    Faults,
    Scope,
    Wrong,
    described,
    flag,
    number,
    one_of,
    pair,
    pieces,
    plain,
    plain_number,
    refuse,
    text,
    value,
)
from bdforge.design.document.tables import Key, Table, first_key, many, told, turns
from bdforge.design.sequences import Axis, Builder, Dim, Program, ProgramError
from bdforge.design.sequences.expressions import expression
from bdforge.design.sequences.program_check import OperandFault
from bdforge.design.sequences.sequence_program import ProgramBd
from bdforge.devices.limits import GRANULE_BYTES, TASK_QUEUE_ENTRIES
from bdforge.devices.types import TYPES

_NAMED = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)(.*)", re.DOTALL)
_CHANNEL = re.compile(r"(S2MM|MM2S) (\d+)")
_WIDTH = re.compile(r"(?:u?i|bf|f)([1-9]\d?)")


@dataclass(frozen=True, slots=True)
class Surrounding:
    """What a program may name of the design around it.

    `channels` (direction, channel, column) by the allocation's name; full addresses of buffers, of words that have a
    name ("core_0_2_rtp.k_steps") and of locks by theirs.
    """

    channels: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    buffers: dict[str, int] = field(default_factory=dict)
    locks: dict[str, int] = field(default_factory=dict)


def program_of(
    tables: Mapping[str, Any],
    content: str,
    where: str,
    names: Mapping[str, int] | None = None,
    around: Callable[[], Surrounding] = Surrounding,
) -> Program:
    """The program that `sequence` and `operand` among a TOML text's tables say; DocumentError lists every reason.

    `content` is the text, `where` names it in messages; expressions may use numbers by `names`, and tasks and writes
    what is `around` them, which is asked for once they do.
    """
    faults = Faults()
    found = read_program(tables, Scope(names or {}, faults), around)
    refuse(faults, content, where)
    assert found is not None
    return found


def read_program(tables: Mapping[str, Any], scope: Scope, around: Callable[[], Surrounding]) -> Program | None:
    """As `program_of`, with what is wrong told to the scope's faults; None where something is."""
    inside = scope.at("sequence")
    head = told(SEQUENCE, tables.get("sequence", {}), inside)
    if head is None:
        return None
    reading = _Reading(Builder(head["sizes"], head["in_flight"], head["in_flight_max"]), around)
    for name in (size for size in head["sizes"] if size in scope.names):
        inside.at("sizes").tell(f"{clip(name)} is a number of the document already; call the size otherwise")
    names = {**scope.names, **{name: reading.build.parameter(name) for name in head["sizes"]}}
    try:
        known = reading.assignments(head["let"], Scope(names, scope.faults, inside.at("let").path)).names
        block = Scope(known, scope.faults, inside.path)
        reading.head(tables["sequence"], block)
        if "operand" in tables:
            many(reading.operand)(tables["operand"], Scope(known, scope.faults, ("operand",)))
        reading.block(tables["sequence"].get("body", []), block.at("body"))
        reading.check_tokens()
        return None if scope.faults.reasons else reading.build.program
    except OperandFault as error:
        reading.operands[error.place].tell(error)
    except (Wrong, ProgramError) as error:
        inside.tell(error)
    except ValidationError as error:
        inside.tell(_form(error))
    return None


def _form(error: ValidationError) -> str:
    """What the form of programs refuses: such as a BD of five dimensions."""
    fault = error.errors()[0]
    return form_fault(fault, ".".join(map(str, fault["loc"])))


@dataclass
class _Reading:
    build: Builder
    surround: Callable[[], Surrounding]
    arguments: dict[str, int] = field(default_factory=dict)
    started: list[tuple[str, int, int | None]] = field(default_factory=list)
    """(direction, channel, column) of tasks with a token; None for a column that follows from something."""
    awaited: list[tuple[dict[str, Any], Scope]] = field(default_factory=list)
    writes: bool = False
    operands: list[Scope] = field(default_factory=list)

    @cached_property
    def around(self) -> Surrounding:
        return self.surround()

    def head(self, found: dict[str, Any], scope: Scope) -> None:
        """What stands before the statements: arguments and requirements."""
        many(self.argument)(found.get("arguments", []), scope.at("arguments"))
        many(self.requirement)(found.get("requires", []), scope.at("requires"))

    def argument(self, found: Any, scope: Scope) -> bool:
        given = ARGUMENT(found, scope)
        width = _WIDTH.fullmatch(given["type"])
        if given["bits"] is None and width is None:
            raise Wrong(f"type: {clip(given['type'])} does not tell its width; add bits")
        bits = given["bits"] or int(width[1])  # type: ignore[index]
        if given["name"] in self.arguments:
            raise Wrong(f"name: there is an argument {clip(given['name'])} already")
        index = self.build.argument(given["name"], given["type"], bits, given["elements"], given["role"])
        self.arguments[given["name"]] = index
        return True

    def requirement(self, found: Any, scope: Scope) -> bool:
        given = REQUIREMENT(found, scope)
        self.build.require(given["that"], given["otherwise"][0], *given["otherwise"][1])
        return True

    def operand(self, found: Any, scope: Scope) -> bool:
        given = OPERAND(found, scope)
        if given["type"] not in TYPES:
            raise Wrong(f"type: unknown element type {clip(given['type'])}; known: {', '.join(TYPES)}")
        bits = given["bits"] or TYPES[given["type"]].bits
        axes, dims = [Axis(**axis) for axis in given["axes"]], [Dim(**dim) for dim in given["dims"]]
        facts = {key: given[key] for key in ("values", "bias", "blocked", "missing", "order", "parallel", "leading")}
        argument = self.index(given["argument"] or given["name"])
        self.build.operand(
            given["name"], argument, given["direction"], given["type"], bits, axes, dims,
            staged=given["staged"], offset=given["offset"], **facts,
        )  # fmt: skip
        self.operands.append(scope)
        return True

    def index(self, name: str) -> int:
        if name not in self.arguments:
            raise Wrong(f"argument: there is no {clip(name)}; there is {listed(self.arguments) or 'none'}")
        return self.arguments[name]

    def assignments(self, lines: list[Any], scope: Scope) -> Scope:
        """Names for values, line by line."""
        for place, line in enumerate(lines):
            scope = scope.naming(self.assigned(line, scope.at(place)))
        return scope

    def assigned(self, line: Any, scope: Scope) -> dict[str, Any]:
        found = _NAMED.fullmatch(line) if isinstance(line, str) else None
        if found is None:
            scope.tell(f"{clip(repr(line))} names no value; write name = expression")
            return {}
        if found[1] in scope.names:
            scope.tell(f"{clip(found[1])} stands for a value already; use another name")
            return {}
        made = told(value, found[2], scope)
        if made is None:
            return {found[1]: 1}  # so that nothing else is told of it
        return {found[1]: self.build.named(found[1], made)}

    def block(self, items: Any, scope: Scope) -> None:
        """Statements in order; names hold from where they are given to the end of the block."""
        if not isinstance(items, list):
            raise Wrong(f"should be a list of statements, got {clip(repr(items))}")
        names = dict(scope.names)
        for place, item in enumerate(items):
            here = Scope(names, scope.faults, (*scope.path, place))
            if isinstance(item, str):
                names |= self.assigned(item, here)
                continue
            try:
                for turn in turns(item, here):
                    self.statement(item, here.naming(turn))
            except (Wrong, ProgramError) as wrong:
                here.tell(wrong)
            except ValidationError as error:
                here.tell(_form(error))

    def statement(self, item: Any, scope: Scope) -> None:
        key = first_key(item, STATEMENTS)
        getattr(self, f"read_{key}")(STATEMENTS[key](item, scope), scope)

    def read_do(self, given: dict[str, Any], scope: Scope) -> None:
        self.block(given["do"], scope.at("do"))

    def read_loop(self, given: dict[str, Any], scope: Scope) -> None:
        name = given["index"]
        if name in scope.names:
            raise Wrong(f"index: {clip(name)} stands for a value already; use another name")
        if not name.isidentifier():
            raise Wrong(f"index: {clip(repr(name))} is no name")
        with self.build.loop(given["loop"], name) as counter:
            self.block(given["body"], scope.naming({name: counter}).at("body"))

    def read_if(self, given: dict[str, Any], scope: Scope) -> None:
        known = given["if"].constant
        if known is not None:
            way = "body" if known else "else"
            self.block(given[way], scope.at(way))
            return
        with self.build.when(given["if"]):
            self.block(given["body"], scope.at("body"))
        if given["else"]:
            with self.build.otherwise():
                self.block(given["else"], scope.at("else"))

    def read_step(self, given: dict[str, Any], scope: Scope) -> None:
        note, values = given["step"]
        awaits = [(*self.channel(wait["token"])[:2], wait["column"], wait["columns"]) for wait in given["awaits"]]
        self.awaited += [(wait, scope.at("awaits")) for wait in given["awaits"]]
        with self.build.step(awaits, note, values):
            self.block(given["body"], scope.at("body"))

    def check_tokens(self) -> None:
        """Tell what is awaited though no task gives its token; registers that a program writes may start any."""
        for wait, scope in self.awaited:
            channel = self.channel(wait["token"])[:2]
            columns = [at for *started, at in self.started if tuple(started) == channel]
            first, count = wait["column"].constant, wait["columns"].constant
            awaited = () if first is None or count is None else range(first, first + count)
            missing = next((at for at in awaited if at not in columns), None)
            if None not in columns and not self.writes and (missing is not None or not columns):
                where = "" if missing is None else f" in column {missing}"
                scope.tell(f"no task of {channel[0]} {channel[1]}{where} has `token = true`")

    def read_task(self, given: dict[str, Any], scope: Scope) -> None:
        direction, channel, column = self.channel(given["task"])
        if (column is None) == (given["column"] is None):
            raise Wrong(
                "column: missing; add it" if column is None else "column beside a channel with a name; leave it"
            )
        bds = map(self.bd, given["bds"])
        at = given["column"] if column is None else column
        self.build.task(direction, channel, at, *bds, runs=given["runs"], token=given["token"])
        if given["token"]:
            self.started.append((direction, channel, expression(at).constant))

    def bd(self, given: dict[str, Any]) -> ProgramBd | None:
        sizes, strides = zip(*given["dims"], strict=True)
        when = 1 if given["when"] is None else given["when"]
        return self.build.bd(self.index(given["argument"]), given["offset"], sizes, strides, given["runs"], when)

    def channel(self, name: str) -> tuple[str, int, int | None]:
        """(direction, channel, column) of a channel by name, or of "S2MM 0" without column."""
        if found := _CHANNEL.fullmatch(name):
            return found[1], int(found[2]), None
        if name not in self.around.channels:
            raise Wrong(
                f"there is no channel {clip(name)}; write S2MM or MM2S and its number, or one of "
                f"{listed(self.around.channels) or 'none'}"
            )
        return self.around.channels[name]

    def read_write(self, given: dict[str, Any], scope: Scope) -> None:
        self.build.write(given["write"], *given["values"])
        self.writes = True

    def read_rtp(self, given: dict[str, Any], scope: Scope) -> None:
        address = self.held(self.around.buffers, given["rtp"], "buffer")
        if "." in given["rtp"] and given["slot"]:
            raise Wrong("slot beside the name of a word; leave it")
        self.build.write(address + GRANULE_BYTES * given["slot"], given["value"])

    def read_lock(self, given: dict[str, Any], scope: Scope) -> None:
        self.build.write(self.held(self.around.locks, given["lock"], "lock"), given["value"])

    def held(self, known: Mapping[str, int], name: str, what: str) -> int:
        if name not in known:
            held, dot, word = name.partition(".")
            if dot and held in known:
                words = [one.removeprefix(f"{held}.") for one in known if one.startswith(f"{held}.")]
                raise Wrong(f"{clip(held)} has no word {clip(word)}; there is {listed(words) or 'none'}")
            raise Wrong(f"no tile has a {what} {clip(name)}; give its whole name")
        return known[name]


@described({"$ref": "#/$defs/statements"})
def _statements(found: Any, scope: Scope) -> Any:
    """Statements as they are: they are read where those before them are known."""
    return found


@described({"type": "array"})
def _items(found: Any, scope: Scope) -> list[Any]:
    if not isinstance(found, list):
        raise Wrong(f"should be a list, got {clip(repr(found))}")
    return found


@described({"type": "array", "items": STRING})
def _texts(found: Any, scope: Scope) -> list[str]:
    return [plain(one, scope.at(place)) for place, one in enumerate(_items(found, scope))]


SEQUENCE = Table(
    "A sequence of any size: its `sizes` (leading dimensions included), names for values, arguments, statements.",
    {
        "sizes": Key(_texts),
        "in_flight": Key(number, TASK_QUEUE_ENTRIES),
        "in_flight_max": Key(number, TASK_QUEUE_ENTRIES),
        "let": Key(_texts, ()),
        "arguments": Key(_items, ()),
        "requires": Key(_items, ()),
        "body": Key(_statements, []),
    },
    "table",
)
ARGUMENT = Table(
    "A host buffer of so many `elements`; `bits` where its type does not tell them.",
    {
        "name": Key(text), "elements": Key(value), "type": Key(plain), "bits": Key(number, None), "role": Key(text, ""),
    },
)  # fmt: skip
REQUIREMENT = Table(
    "What must hold, and what is told where it does not.", {"that": Key(value), "otherwise": Key(pieces)}
)
AXIS = Table(
    "Positions of the user's along an axis: how many, and how tiles of them are walked.",
    {"size": Key(value), "walked": Key(value, None), "tile": Key(value, None), "once": Key(flag, False)},
)
DIM = Table(
    "A loop over places: `count` times `step` on along an axis, `stride` elements in the buffer.",
    {"axis": Key(number), "count": Key(value), "step": Key(value, expression(1)), "stride": Key(value, expression(1))},
)
OPERAND = Table(
    "An array of the user's in an argument's buffer, that of its name if none is said; without `dims` line by line.",
    {
        "name": Key(text), "argument": Key(text, ""), "direction": Key(one_of("in", "out")), "type": Key(plain),
        "bits": Key(number, None), "values": Key(many(number), None),
        "bias": Key(number, 0), "blocked": Key(one_of("across", "down"), None), "missing": Key(plain_number, None),
        "order": Key(one_of("row", "column"), "row"), "parallel": Key(flag, False), "leading": Key(plain, None),
        "staged": Key(value, expression(1)),
        "axes": Key(many(AXIS, 1)), "offset": Key(value, expression(0)), "dims": Key(many(DIM), ()),
    },
)  # fmt: skip
BD = Table(
    "A BD of a chain: it moves (size, stride) `dims` of an argument, and moves on by `runs` (count, stride).",
    {
        "argument": Key(text), "offset": Key(value, expression(0)), "dims": Key(many(pair, 1)),
        "runs": Key(pair, None), "when": Key(value, None),
    },
)  # fmt: skip
WAIT = Table(
    'A token of a channel ("S2MM 0") of each of `columns` shims, from `column` on.',
    {"token": Key(text), "column": Key(value, expression(0)), "columns": Key(value, expression(1))},
)
STATEMENTS: Mapping[str, Table] = {
    "do": Table("What repeats together.", {"do": Key(_statements)}),
    "loop": Table(
        "So many turns; `index` is the turn's number.",
        {"loop": Key(value), "index": Key(plain, "turn"), "body": Key(_statements)},
    ),
    "if": Table("Where a value is not 0.", {"if": Key(value), "body": Key(_statements), "else": Key(_statements, [])}),
    "step": Table(
        "Tasks and writes under way together, until the tokens of `awaits` came; `step` tells what they do.",
        {"step": Key(pieces), "awaits": Key(many(WAIT), ()), "body": Key(_statements)},
    ),
    "task": Table(
        'A chain of BDs on a channel by name, or on "MM2S 0" of a column; it runs so many times.',
        {
            "task": Key(text), "column": Key(value, None), "runs": Key(value, expression(1)), "token": Key(flag, False),
            "bds": Key(many(BD, 1)),
        },
    ),
    "rtp": Table(
        'Word `slot` of a core\'s run-time parameters; "core_0_2_rtp.k_steps" is one by its name.',
        {"rtp": Key(text), "slot": Key(number, 0), "value": Key(value)},
    ),
    "lock": Table("The value of a lock.", {"lock": Key(text), "value": Key(value)}),
    "write": Table(
        "Registers from a full address on.", {"write": Key(value), "values": Key(many(value, 1))},
    ),
}  # fmt: skip
"""Statements of a sequence of any size by their first key; a text among them names a value."""
