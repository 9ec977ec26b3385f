"""What people are told: within bounds, and without characters that a terminal would obey.

Anything read from a file may end up in a message or a table. `bounded` is for whole messages, `clip` for a name or a
value inside of one, `excerpt` for a line of a file, `listed` for many of a kind. Faults of what users give derive from
`Fault` or `InputError`, whose messages are always bounded.
"""

import logging
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

MESSAGE_BYTES = 3584
"""Of a message, as UTF-8; what a command puts around one fits into 4 KiB with it."""
LISTED = 10
"""Things of a kind that a message names before it counts the others."""
CLIP_CHARACTERS = 120
"""Of a name or value inside of a message."""
PATH_CHARACTERS = 1024
"""Of a path inside of a message."""
LINE_CHARACTERS = 200
"""Of a line of a file, around the place that a message is about."""

# C0 but tab and newline, DEL, C1, marks and overrides of writing direction, line separators, lone surrogates
_CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class Fault(Exception):
    """A fault that people are told of: its message is bounded and holds no control characters."""

    def __init__(self, message: object = ""):
        super().__init__(bounded(message))


class RunFault(Fault):
    """A fault of a run, of what was given to it where it is a ValueError too."""


class Location(NamedTuple):
    """A place in a text; line and column start at 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class InputError(Fault, ValueError):
    """Something given, a file or an argument, that cannot be used."""


@lru_cache(maxsize=256)
def warn_once(message: str) -> None:
    """Log a warning beside a result, by the logger "bdforge"; the same one once in a process."""
    logging.getLogger("bdforge").warning("%s", bounded(message))


def printable(text: str) -> str:
    """`text` with control characters written as escapes; newlines and tabs stay."""
    return _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def bounded(message: object, most: int = MESSAGE_BYTES) -> str:
    """A message as people get it: printable, its middle left out where it is longer than `most` bytes."""
    text, kept = str(message), most
    shown = printable(text) if len(text) <= most else _without_middle(text, kept)
    while len(shown.encode()) > most:
        kept -= max(64, kept // 8)
        shown = _without_middle(text, kept)
    return shown


def _without_middle(text: str, characters: int) -> str:
    """About so many characters of `text`, printable: mostly its beginning, which names the place, and its end."""
    tail = characters // 4
    head = characters - tail - 48
    left_out = len(text) - head - tail
    return f"{printable(text[:head])} [... {left_out} characters ...] {printable(text[-tail:])}"


def clip(value: object, characters: int = CLIP_CHARACTERS) -> str:
    """A name or value from a file on one line, its end left out where it is long."""
    text = str(value)
    shown = printable(text[:characters]).replace("\n", "\\n").replace("\t", "\\t")
    return shown if len(text) <= characters else f"{shown}... ({len(text)} characters)"


def clip_path(path: object) -> str:
    """A file's name as `clip` shows it, and long enough to find the file."""
    return clip(path, PATH_CHARACTERS)


def listed(things: Iterable[object], separator: str = ", ", most: int = LISTED) -> str:
    """The first of many, and how many more there are; all of it is no longer than one message."""
    found = list(things)
    rest = [f"and {len(found) - most} more"] if len(found) > most else []
    room = MESSAGE_BYTES // max(1, len(found[:most])) - 8
    whole = separator.join([*map(printable, map(str, found[:most])), *rest])
    if len(whole.encode()) <= MESSAGE_BYTES:
        return whole
    return separator.join([*(bounded(thing, room) for thing in found[:most]), *rest])


def excerpt(line: str, column: int) -> tuple[str, int]:
    """At most LINE_CHARACTERS of `line` around `column` (from 1), and where that column stands in them (from 1)."""
    if len(line) <= LINE_CHARACTERS:
        return line, column
    start = max(0, min(column - 1 - LINE_CHARACTERS // 2, len(line) - LINE_CHARACTERS))
    before = "..." if start else ""
    after = "..." if start + LINE_CHARACTERS < len(line) else ""
    return f"{before}{line[start : start + LINE_CHARACTERS]}{after}", column - start + len(before)


def form_fault(fault: Mapping[str, Any], place: str) -> str:
    """What pydantic refuses of a file that people write, as a sentence; `place` is the key."""
    if fault["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{place}: unexpected key; remove it or check its spelling"
    if fault["type"] == "missing":
        return f"{place}: missing; add it"
    if fault["type"] in ("model_type", "dataclass_type"):
        return f"{place}: input should be a table (a section of its own), got {clip(repr(fault['input']))}"
    reason = fault["msg"].removeprefix("Value error, ")
    return f"{place}: {reason[0].lower()}{reason[1:]}, got {clip(repr(fault['input']))}"
