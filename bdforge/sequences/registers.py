"""Words of registers from expressions, for what a sequence program writes beside its tasks on shims."""

from collections.abc import Mapping

from bdforge.devices.bd_registers import Layout
from bdforge.sequences.expressions import Expr, Operand, expression


def register_words(layout: Layout, values: Mapping[str, Operand]) -> list[Expr]:
    """The words of `layout` with `values` in its fields, others 0; each must fit its field: a program cannot mask it.

    Constants below 0 are two's complement of their field's width.
    """
    words = [expression(0)] * layout.words
    for name, value in values.items():
        field, found = layout.fields[name], expression(value)
        if found.constant is not None and found.constant < 0:
            found = found + (field.mask >> field.low) + 1
        words[field.word] = words[field.word] + found * (1 << field.low)
    return words
