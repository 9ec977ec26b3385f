"""Runtime sequences as data: checked integer programs that yield a design's instruction stream for any problem.

A program knows loops, steps, tasks and waits, and no operator. `build` writes one, `interpret` runs one; hosts in C++
run the same JSON from the manifest.
"""

from bdforge.sequences.build import Builder
from bdforge.sequences.expressions import Expr, all_of, any_of, ceildiv, divisor, largest, least, select
from bdforge.sequences.interpret import Await, Event, Start, StartedTask, Stored, TaskBd, interpret
from bdforge.sequences.program import Program, ProgramError

__all__ = [
    "Await",
    "Builder",
    "Event",
    "Expr",
    "Program",
    "ProgramError",
    "Start",
    "StartedTask",
    "Stored",
    "TaskBd",
    "all_of",
    "any_of",
    "ceildiv",
    "divisor",
    "interpret",
    "largest",
    "least",
    "select",
]
