"""What notebooks show of a design's or a problem's operands."""

from collections.abc import Iterable
from html import escape

import numpy as np

from bdforge.design.sequences import Program


def operand_table(title: str, program: Program, arrays: Iterable[tuple[str, np.ndarray]] | None = None) -> str:
    """HTML with a line for each operand: of `arrays` by name, else all, with the parameters that are their sizes."""
    given = None if arrays is None else dict(arrays)
    lines = []
    for operand in program.operands:
        if given is not None and operand.name not in given:
            continue
        values = (program.values[axis.size] for axis in operand.axes)
        names = [value if isinstance(value, (str, int)) else "…" for value in values]
        shape = names if given is None else given[operand.name].shape
        order = "" if len(names) < 2 else f"{operand.order} by {operand.order}"
        way = (
            "output" if operand.direction == "out" else "input" if operand.missing is None else "input, may be missing"
        )
        lines.append((operand.name, way, operand.type, " x ".join(map(str, shape)), order))
    head = _line("th", ("operand", "", "type", "shape", "order"))
    return f"<table><caption>{escape(title)}</caption>{head}{''.join(_line('td', line) for line in lines)}</table>"


def _line(cell: str, words: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{cell}>{escape(word)}</{cell}>' for word in words)}</tr>"
