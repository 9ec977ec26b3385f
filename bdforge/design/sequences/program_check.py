"""The check of a sequence program: all that a run could trip over but values; and where each value is computed."""

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import ValidationError

from bdforge.design.sequences.expressions import LARGEST, LEAST, OPERATIONS
from bdforge.design.sequences.sequence_program import (
    Loops,
    Note,
    Operand,
    Program,
    ProgramError,
    ProgramPart,
    ProgramTask,
    Value,
    loops_of,
)


class OperandFault(ProgramError):
    """What is wrong with the operand at `place` of a program."""

    def __init__(self, place: int, message: str):
        super().__init__(message)
        self.place = place


def load_program(content: Any) -> Program:
    """A program from JSON content; ProgramError for the first fault."""
    try:
        program = Program.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        raise ProgramError(f"sequence program: {'.'.join(map(str, first['loc']))}: {first['msg'].lower()}") from None
    return checked(program)


def checked(program: Program) -> Program:
    """The program itself; ProgramError for a value, a loop or an argument that is not there where it is used."""
    loops = loops_of(program.do)
    for place, value in enumerate(program.values):
        _check_value(program, loops, place, value)
    reach = _Reach(program)
    reach.block(program.do, (), False)
    for requirement in program.requires:
        _check_note(requirement.otherwise)
        reach.part(requirement, (), "a requirement")
    for operand in program.operands:
        _check_operand(program, reach, operand)
    for argument in program.arguments:
        reach.part(argument, (), f"argument {argument.name}")
    return program


def _check_value(program: Program, loops: Loops, place: int, value: Value) -> None:
    what = f"sequence program: value {place}, {value},"
    if isinstance(value, int) and not LEAST <= value <= LARGEST:
        raise ProgramError(f"sequence program: value {place} needs more than 64 bits")
    if isinstance(value, str) and value not in program.parameters:
        raise ProgramError(f"{what} is no parameter; there are {', '.join(program.parameters)}")
    if not isinstance(value, list):
        return
    name, *operands = value or ["nothing"]
    name = str(name)
    if name == "index":
        if len(operands) != 1 or operands[0] not in loops:
            raise ProgramError(f"{what} is the counter of no loop")
        return
    if name not in OPERATIONS:
        raise ProgramError(f"{what} is no operation; there are {', '.join(OPERATIONS)}")
    if len(operands) != OPERATIONS[name][0]:
        raise ProgramError(f"{what} has {len(operands)} operands, {name} takes {OPERATIONS[name][0]}")
    if not all(isinstance(operand, int) and 0 <= operand < place for operand in operands):
        raise ProgramError(f"{what} names a value that does not stand before it")


def _check_operand(program: Program, reach: "_Reach", operand: Operand) -> None:
    what = f"operand {operand.name}"
    if operand.argument >= len(program.arguments):
        raise ProgramError(
            f"sequence program: {what} has argument {operand.argument}; there are {len(program.arguments)}"
        )
    if operand.leading is not None and operand.leading not in program.parameters:
        raise ProgramError(f"sequence program: {what} has leading dimension {operand.leading}, which is no parameter")
    if beyond := [dim.axis for dim in operand.dims if dim.axis >= len(operand.axes)]:
        raise ProgramError(f"sequence program: {what} has a loop over axis {beyond[0]} of {len(operand.axes)}")
    reach.part(operand, (), what)


def check_authored(program: Program) -> Program:
    """`checked`, and what hosts would run but no author means: operands of one name, outputs that nothing writes.

    OperandFault says which operand it is.
    """
    tasks = list(_tasks(checked(program).do))
    written = {bd.argument for task in tasks if task.direction == "S2MM" for bd in task.bds}
    names: set[str] = set()
    for place, operand in enumerate(program.operands):
        if operand.name in names:
            raise OperandFault(
                place, f"sequence program: there is an operand {operand.name} already; give each a name of its own"
            )
        names.add(operand.name)
        if operand.direction == "out" and tasks and operand.argument not in written:
            argument = program.arguments[operand.argument].name
            raise OperandFault(
                place,
                f"sequence program: operand {operand.name} is made by the array, but no S2MM task writes argument "
                f"{argument}",
            )
    return program


def _tasks(statements: Sequence[Any]) -> Iterator[ProgramTask]:
    for statement in statements:
        if statement.kind == "task":
            yield statement
        for block in statement.blocks:
            yield from _tasks(block)


def _check_note(note: Note) -> None:
    if (places := note.text.count("{}")) != len(note.values):
        raise ProgramError(f"sequence program: note {note.text!r} has {places} places for {len(note.values)} values")


class _Reach:
    """Whether statements find their values: within the loops whose counters these depend on."""

    def __init__(self, program: Program):
        self.program, self.needs = program, program.needs

    def part(self, part: ProgramPart, inside: Sequence[int], called: str = "") -> None:
        for inner, place in part.values_by_part():
            self.place(called or inner.CALLED, inside, place)

    def place(self, what: str, inside: Sequence[int], place: int) -> None:
        if place >= len(self.needs):
            raise ProgramError(f"sequence program: {what} names value {place}; there are {len(self.needs)}")
        if missing := self.needs[place].difference(inside, self.program.parameters):
            raise ProgramError(
                f"sequence program: {what} uses value {place}, "
                f"which needs the counter of loop {min(map(int, missing))}, outside of it"
            )

    def block(self, statements: Sequence[Any], inside: tuple[int, ...], in_step: bool) -> None:
        for statement in statements:
            if statement.kind == "step":
                _check_step(statement, in_step)
            if statement.kind == "configure":
                _check_configure(statement, in_step, self.program.configurations)
            if statement.kind == "task":
                _check_task(statement, in_step, len(self.program.arguments))
            self.part(statement, inside)
            within = (*inside, statement.loop) if statement.kind == "for" else inside
            for block in statement.blocks:
                self.block(block, within, in_step or statement.kind in ("step", "configure"))


def _check_step(step: Any, in_step: bool) -> None:
    if in_step:
        raise ProgramError("sequence program: a step stands in another; steps follow one another")
    if step.note is not None:
        _check_note(step.note)


def _check_configure(configure: Any, in_step: bool, configurations: int) -> None:
    if in_step:
        raise ProgramError("sequence program: a configuration changes in a step; it changes between steps")
    for number in (configure.configuration, configure.ahead):
        if number is not None and number >= configurations:
            raise ProgramError(f"sequence program: configuration {number} is wanted; there are {configurations}")


def _check_task(task: Any, in_step: bool, arguments: int) -> None:
    if not in_step:
        raise ProgramError("sequence program: a task stands in no step; nothing would say when its BDs are free")
    for bd in task.bds:
        if bd.argument >= arguments:
            raise ProgramError(f"sequence program: a BD's argument is {bd.argument}; there are {arguments}")
        if len(bd.sizes) != len(bd.strides):
            raise ProgramError(f"sequence program: a BD has {len(bd.sizes)} sizes and {len(bd.strides)} strides")
