"""Tables in CSV as rows of anything: every line is read, and what is wrong is said by line."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from bdforge.common.messages import clip, listed, printable
from bdforge.perf.errors import PerfError

ROWS_MAX = 100_000
"""Of a table: a row without a tile takes milliseconds to model."""


Parsed = TypeVar("Parsed")


def parsed_rows(
    text: str, where: str, required: Sequence[str], parse: Callable[[dict[str, str]], Parsed],
    *, column: Callable[[str], str] = str.strip, told: Callable[[], object] = lambda: None,
) -> tuple[list[Parsed], list[str]]:  # fmt: skip
    """What `parse` makes of each row's fields, by the names that `column` gives, and what is wrong with other rows.

    `parse` raises PerfError, a line for each fault; `told` is called after each row. PerfError where columns are
    missing or twice there.
    """
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    _check_columns(reader, where, required, column)
    rows, faults = [], []
    for line_number, read in _lines(reader, column):
        try:
            if isinstance(read, PerfError):
                raise read
            rows.append(parse(read))
        except PerfError as error:
            faults += [f"{where}: line {line_number}: {line}" for line in str(error).splitlines()]
        told()
    return rows, faults


def _check_columns(reader: csv.DictReader, where: str, required: Sequence[str], column: Callable[[str], str]) -> None:
    try:
        names = [column(name) for name in reader.fieldnames or ()]
    except csv.Error as error:
        raise PerfError(f"{where}: no CSV: {error}") from None
    if missing := [name for name in required if name not in names]:
        raise PerfError(f"{where}: missing columns {', '.join(missing)}; add them, empty where a value is unknown")
    if twice := [name for name, count in Counter(names).items() if count > 1 and name]:
        raise PerfError(f"{where}: columns {listed(map(clip, twice))} are there twice; remove or rename one of each")


def _lines(reader: csv.DictReader, column: Callable[[str], str]) -> Iterator[tuple[int, dict[str, str] | PerfError]]:
    """The line where each row begins, and its fields by name, or what is wrong with it."""
    for number in range(ROWS_MAX + 1):
        first = reader.line_num + 1
        try:
            fields = next(reader)
            if number == ROWS_MAX:
                raise PerfError(f"more than {ROWS_MAX} rows are not read; split the table")
            found = _named(fields, column)
        except StopIteration:
            return
        except csv.Error as error:
            found = PerfError(f"no CSV: {error}")
        except PerfError as error:
            found = error
        yield first, found


def _named(fields: dict[Any, Any], column: Callable[[str], str]) -> dict[str, str]:
    """Fields by the names of their columns; PerfError for a row that is none of the table's."""
    more = fields.pop(None, ())
    if any(cell.strip() for cell in more):
        raise PerfError(f"has {len(fields) + len(more)} fields, the table {len(fields)} columns; is a comma unquoted?")
    given = [value for value in fields.values() if value is not None]
    if not any(value.strip() for value in given):
        raise PerfError("every field is blank; remove the line")
    if len(given) < len(fields):
        raise PerfError(f"has {len(given)} fields, the table {len(fields)} columns; end it with a comma for each")
    named = {column(name or ""): value for name, value in fields.items()}
    if odd := [name for name, value in named.items() if printable(value) != value]:
        raise PerfError(f"{listed(map(clip, odd))}: holds control characters; save the table as plain text")
    return named
