"""Register writes for reading: under each operation of the text what it writes, registers and fields by name."""

import textwrap
from collections.abc import Iterable, Iterator
from itertools import groupby

from bdforge.common.messages import clip_path
from bdforge.devices.txn_format.describe import describe_operation
from bdforge.devices.txn_format.operations import Operation

_INDENT = "  "


def listing(operations: Iterable[Operation], width: int = 80) -> Iterator[str]:
    """Lines of at most `width` characters; writes of one operation in a row share a heading."""
    for (place, origin), group in groupby(operations, lambda operation: (operation.location, operation.origin)):
        where = "" if place is None else f"{clip_path(place.file)}:{place.line}"
        yield from textwrap.wrap(f"{where} {origin or ''}".strip(), width, break_on_hyphens=False)
        for operation in group:
            line = describe_operation(operation)
            yield from textwrap.wrap(
                line, width, initial_indent=_INDENT, subsequent_indent=2 * _INDENT, break_on_hyphens=False
            )
