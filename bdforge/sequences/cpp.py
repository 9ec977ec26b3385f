"""A sequence as a C++ initialiser, for hosts that compile it in instead of reading a manifest.

The structs are those of `host/include/bdforge/program.hpp`, where a program's nested lists are tables.
"""

import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bdforge.sequences.program import (
    Argument,
    Bd,
    For,
    If,
    Note,
    Operand,
    Program,
    Requirement,
    Step,
    Task,
    Tokens,
    Write,
)  # fmt: skip
from bdforge.txn.operations import DIRECTIONS

# `Target` and the structs in it, member by member, by the manifest's names.
_TARGET = (
    "header", "columns", "column_stride", "bds", "wraps", "step_max", "iteration_max", "length_max", "repeat_max",
    "queue_entries", "bd_address", "bd_stride_bytes", "bd_constant", ("bd_fields", ("length", "d0_wrap", "d0_step",
    "d1_wrap", "d1_step", "d2_step", "iteration_wrap", "iteration_step", "next", "use_next")), "patched_word",
    ("queues", DIRECTIONS), ("queue_fields", ("token", "repeat", "bd")), ("controls", DIRECTIONS), "control_value",
    "control_mask",
)  # fmt: skip
_ARRAYS_OF_LISTS = ("queues", "controls")  # which take braces of their own
_NAMESPACE = "bdforge::generator"
_KINDS = {"for": "loop", "if": "choice"}  # of statements that C++ calls otherwise
_NONE = f"{_NAMESPACE}::none"
_RANK, _OPERANDS = 4, 3  # of the structs' arrays
_SMALLEST = -(1 << 63)  # which no literal says
_PLAIN_CHARACTERS = set(string.ascii_letters + string.digits + " _-+*/=.,:;()[]{}<>")


def cpp_sequence(facts: Mapping[str, Any], wide: bool = False) -> str:
    """`bdforge::generator::Design{...}` from a manifest's `sequence`; `wide`: one wait for all columns' tokens."""
    program = _Tables(Program.model_validate(facts["program"])).text()
    return f"{_NAMESPACE}::Design{{{program}, {_members(facts['target'], _TARGET)}, {_truth(wide)}}}"


def _members(values: Mapping[str, Any], members: Iterable[Any]) -> str:
    parts = []
    for member in members:
        name, inner = member if isinstance(member, tuple) else (member, ())
        part = _members(values[name], inner) if inner else _plain(values[name])
        parts.append(_list([part]) if name in _ARRAYS_OF_LISTS else part)
    return _list(parts)


def _list(parts: Iterable[Any]) -> str:
    return "{" + ", ".join(map(str, parts)) + "}"


def _plain(value: Any) -> str:
    return _list(map(_plain, value)) if isinstance(value, list) else str(value)


def _filled(places: Sequence[int], length: int) -> str:
    return _list([*places, *[0] * (length - len(places))])


def _truth(value: bool) -> str:
    return str(value).lower()


def _text(text: str) -> str:
    return '"' + "".join(chr(b) if chr(b) in _PLAIN_CHARACTERS else f"\\{b:03o}" for b in text.encode()) + '"'


def _note(note: Note) -> str:
    return _list([_text(note.text), _list(note.values)])


def _argument(argument: Argument) -> str:
    return _list([_text(argument.name), _text(argument.type), argument.bits, argument.elements])


def _or_none(value: int | None) -> int | str:
    return _NONE if value is None else value


def _range(values: Sequence[int] | None) -> str:
    return "std::nullopt" if values is None else f"std::pair<std::int64_t, std::int64_t>{_list(values)}"


def _operand(operand: Operand, parameters: Sequence[str]) -> str:
    axes = [[axis.size, axis.walked, _or_none(axis.tile), _truth(axis.once)] for axis in operand.axes]
    loops = [[dim.axis, dim.count, dim.step, dim.stride] for dim in operand.dims]
    blocked = f"{_NAMESPACE}::Blocked::{operand.blocked or 'no'}"
    missing = "std::nullopt" if operand.missing is None else operand.missing
    leading = _NONE if operand.leading is None else parameters.index(operand.leading)
    return _list(
        [
            _text(operand.name), operand.argument, _truth(operand.direction == "out"), _text(operand.type),
            operand.bits, _range(operand.values), operand.bias, blocked, missing, _truth(operand.order == "column"),
            leading, operand.staged, _list(map(_list, axes)), operand.offset, _list(map(_list, loops)),
        ]
    )  # fmt: skip


def _requirement(requirement: Requirement) -> str:
    return _list([requirement.when, _note(requirement.otherwise)])


def _direction(name: str) -> str:
    return f"{_NAMESPACE}::Direction::{name.lower()}"


def _bd(bd: Bd) -> str:
    sizes, strides = _filled(bd.sizes, _RANK), _filled(bd.strides, _RANK)
    runs = _list(bd.runs or (_NONE, _NONE))
    return _list([bd.argument, len(bd.sizes), bd.offset, sizes, strides, runs, _or_none(bd.when)])


def _tokens(tokens: Tokens) -> str:
    return _list([_direction(tokens.direction), tokens.channel, tokens.column, tokens.columns])


class _Tables:
    """A program's statements, table by table; blocks are contiguous, and stand behind what holds them."""

    def __init__(self, program: Program):
        self.program = program
        names = ("statement", "for", "if", "step", "task", "write", "bd", "tokens", "note")  # as `Program` lists them
        self.tables: dict[str, list[str]] = {name: [] for name in names}
        self.loops: dict[int, int] = {}
        self.body = self.block(program.do)

    def text(self) -> str:
        """The initialiser of a `Program`."""
        program = self.program
        lists = (
            map(_text, program.parameters),
            map(self.value, program.values),
            map(_argument, program.arguments),
            (_operand(operand, program.parameters) for operand in program.operands),
            map(_requirement, program.requires),
            *self.tables.values(),
        )
        return _list([*map(_list, lists), self.body, program.in_flight])

    def value(self, value: int | str | list[str | int]) -> str:
        """A value; loops and parameters by their place."""
        match value:
            case str():
                return self.operation("parameter", self.program.parameters.index(value))
            case int():
                return self.operation("constant", f"{value + 1} - 1" if value == _SMALLEST else value)
            case ["index", int(loop)]:
                return self.operation("index", self.loops[loop])
        return self.operation(str(value[0]), 0, [int(operand) for operand in value[1:]])

    def operation(self, name: str, number: int | str, operands: Sequence[int] = ()) -> str:
        return _list([f"{_NAMESPACE}::Operation::{name}", number, _filled(operands, _OPERANDS)])

    def block(self, statements: Sequence[Any]) -> str:
        found = self.range("statement", [""] * len(statements))
        for at, statement in enumerate(statements, start=found[0]):
            self.tables["statement"][at] = self.statement(statement)
        return _list(found)

    def statement(self, statement: Any) -> str:
        table = self.tables[statement.kind]
        table.append("")
        index = len(table) - 1
        table[index] = getattr(self, f"make_{statement.kind}")(statement)
        return _list([f"{_NAMESPACE}::Kind::{_KINDS.get(statement.kind, statement.kind)}", index])

    def range(self, name: str, entries: Sequence[str]) -> tuple[int, int]:
        """Where new entries stand in their table: from the first to before the second."""
        table = self.tables[name]
        table += entries
        return len(table) - len(entries), len(table)

    def make_for(self, loop: For) -> str:
        self.loops[loop.loop] = len(self.tables["for"]) - 1
        return _list([loop.loop, loop.count, self.block(loop.do)])

    def make_if(self, choice: If) -> str:
        return _list([choice.when, self.block(choice.do), self.block(choice.otherwise)])

    def make_step(self, step: Step) -> str:
        awaits = _list(self.range("tokens", [*map(_tokens, step.awaits)]))
        note = _NONE if step.note is None else self.range("note", [_note(step.note)])[0]
        return _list([self.block(step.do), awaits, note])

    def make_task(self, task: Task) -> str:
        bds = _list(self.range("bd", [*map(_bd, task.bds)]))
        return _list([_direction(task.direction), task.channel, task.column, task.runs, _truth(task.token), bds])

    def make_write(self, write: Write) -> str:
        return _list([write.address, _list(write.values)])
