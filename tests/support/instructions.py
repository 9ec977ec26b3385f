"""Random instructions."""

import random

from bdforge.core.isa import Form, Instruction
from bdforge.core.isa.operand_kinds import RegisterClass


def draw(form: Form, rng: random.Random) -> Instruction:
    """The form with random legal operands."""
    values: list[int | str] = []
    for f in form.fields:
        kind = f.kind
        choices = list(kind.codes) if isinstance(kind, RegisterClass) else range(kind.low, kind.high + 1, kind.step)
        values.append(rng.choice(choices))
    return Instruction(form, tuple(values))
