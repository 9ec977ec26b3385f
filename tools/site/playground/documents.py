"""Documents in the playground: the MLIR that `bdforge render` makes of one, with a sequence of some sizes."""

import re
from contextlib import suppress
from itertools import product
from math import prod
from pathlib import Path

from bdforge.common.files import parsed_toml
from bdforge.common.messages import InputError, clip
from bdforge.design import render
from bdforge.design.document import design_of
from bdforge.devices import DEVICES
from bdforge.operators import built
from bdforge.operators.operator_api import Operator
from bdforge.operators.specs import Problem
from bdforge.operators.written import DOCUMENT, WrittenPlan, WrittenSpec

_MANY = 4
_POWERS, _POWERS_OF_MANY = 13, 8  # of two that are tried as sizes: some thousand, with many axes, too


class NoDocumentError(InputError):
    """A text that is no document, or one that has no such sizes."""


def rendered(text: str, file: str, shape: str = "") -> tuple[str, str]:
    """The MLIR of a document's text, and the shape ("32x64") of its sequence, "" of one whose sizes stand in it.

    A sequence of any size is that of `shape`; without, of the first problem, or of the smallest powers of two that it
    takes. InputErrors say what is wrong, with lines of the file where they are known.
    """
    tables = parsed_toml(text, file, NoDocumentError)
    if tables.get("kind") != DOCUMENT:
        raise NoDocumentError(
            f'{file}: is no document, whose kind = "{DOCUMENT}"; open what bdforge render {file} writes on your machine'
        )
    made = design_of(text, file)
    if made.program is None or (made.sequences and not shape):
        return render(made), ""
    spec = WrittenSpec.of(Path(file).stem, made, tables, Path(), file)
    plan = WrittenPlan(spec, next(filter(spec.fits, DEVICES.values())))
    problem = _asked(spec.operator, shape) if shape else plan.problems[0] if plan.problems else _smallest(plan)
    return built.render(plan, [problem]), str(problem)


def _asked(operator: Operator, shape: str) -> Problem:
    if not re.fullmatch(r"\d{1,9}([xX]\d{1,9})*", shape):
        wanted = "x".join(operator.axes)
        raise NoDocumentError(f"sizes: {clip(repr(shape))} is no {wanted}; write numbers with x between, such as 32x64")
    return operator.problem([int(size) for size in shape.lower().split("x")])


def _smallest(plan: WrittenPlan) -> Problem:
    operator = plan.spec.operator
    powers = [1 << power for power in range(_POWERS if len(operator.axes) < _MANY else _POWERS_OF_MANY)]
    for sizes in sorted(product(powers, repeat=len(operator.axes)), key=lambda sizes: (prod(sizes), sizes)):
        with suppress(InputError):
            plan.sequence(problem := operator.problem(sizes))
            return problem
    raise NoDocumentError(f"sizes: no small powers of two are this design's; write {'x'.join(operator.axes)} of a run")
