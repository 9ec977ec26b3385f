"""Runtime sequences as data: checked integer programs that yield a design's instruction stream for any problem.

A program knows loops, steps, tasks and waits, and no operator. `build` writes one, `interpret` runs one; hosts in C++
run the same JSON from the manifest.
"""

from bdforge.design.sequences.builder import Axis, Builder, Dim
from bdforge.design.sequences.expressions import (
    Expr,
    all_of,
    any_of,
    ceildiv,
    divisor,
    evaluate,
    largest,
    least,
    select,
)
from bdforge.design.sequences.interpret import Await, Event, NumberedBd, Start, StartedTask, Stored, interpret
from bdforge.design.sequences.operands import OperandError, fetch, place
from bdforge.design.sequences.planned import PlannedSequence, WalkError, planned
from bdforge.design.sequences.sequence_options import DEFAULT_OPTIONS, SequenceOptionError, SequenceOptions
from bdforge.design.sequences.sequence_program import Program, ProgramError

__all__ = [
    "DEFAULT_OPTIONS", "Await", "Axis", "Builder", "Dim", "Event", "Expr", "NumberedBd", "OperandError",
    "PlannedSequence", "Program", "ProgramError", "SequenceOptionError", "SequenceOptions", "Start", "StartedTask",
    "Stored", "WalkError", "all_of", "any_of", "ceildiv", "divisor", "evaluate", "fetch", "interpret", "largest",
    "least", "place", "planned", "select",
]  # fmt: skip
