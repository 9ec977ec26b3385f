"""Where things stand in a TOML text: lines and columns, which `tomllib` does not tell.

For texts that `tomllib` has read: what it refuses is not looked at again.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

Path = tuple[str | int, ...]
"""Keys of tables and places in lists, from the top: ("tile", 0, "channels", 2, "dma")."""
Place = tuple[int, int]
"""Line and column, from 1."""

_BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_TEXT = r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\])*"|\'[^\']*\''
_KEY = re.compile(rf"[ \t]*({_TEXT}|[A-Za-z0-9_-]+)[ \t]*(\.?)", re.DOTALL)
_SCALAR = re.compile(rf"{_TEXT}|[^,\]}}\n#]+", re.DOTALL)


def places_of(text: str) -> dict[Path, Place]:
    """The place of every table, key and item of a list."""
    scanner = _Scanner(text, [0, *(found.end() for found in re.finditer("\n", text))])
    scanner.document()
    return scanner.found


@dataclass(slots=True)
class _Scanner:
    text: str
    lines: list[int]
    at: int = 0
    found: dict[Path, Place] = field(default_factory=dict)
    counts: dict[Path, int] = field(default_factory=dict)

    def document(self) -> None:
        table: Path = ()
        while self.blank() < len(self.text):
            start = self.at
            if self.text.startswith("[", self.at):
                table = self.header()
                self.mark(table, start)
            else:
                self.entry(table)

    def blank(self) -> int:
        found = _BLANK.match(self.text, self.at)
        assert found is not None  # it may be empty
        self.at = found.end()
        return self.at

    def mark(self, path: Path, at: int) -> None:
        line = bisect_right(self.lines, at)
        self.found.setdefault(path, (line, at - self.lines[line - 1] + 1))

    def header(self) -> Path:
        """The table that `[a.b]` or `[[a.b]]` begins; in a list of tables the last one is meant."""
        brackets = 2 if self.text.startswith("[[", self.at) else 1
        self.at += brackets
        path: Path = ()
        keys = self.keys()
        for number, key in enumerate(keys):
            path = (*path, key)
            if brackets == 2 and number == len(keys) - 1:
                self.counts[path] = self.counts.get(path, -1) + 1
            if path in self.counts:
                path = (*path, self.counts[path])
        self.at = self.text.index("]" * brackets, self.at) + brackets
        return path

    def keys(self) -> list[str]:
        found: list[str] = []
        more = "."
        while more and (key := _KEY.match(self.text, self.at)):
            self.at, more = key.end(), key[2]
            found.append(key[1][1:-1] if key[1][0] in "\"'" else key[1])
        return found

    def entry(self, table: Path) -> None:
        start = self.at
        path = (*table, *self.keys())
        self.mark(path, start)
        self.at = self.text.index("=", self.at) + 1
        self.value(path)

    def value(self, path: Path) -> None:
        self.blank()
        match self.text[self.at]:
            case "[":
                self.items(path)
            case "{":
                self.inline(path)
            case _:
                scalar: Any = _SCALAR.match(self.text, self.at)
                self.at = scalar.end()

    def items(self, path: Path) -> None:
        self.at += 1
        number = 0
        while self.text[self.blank()] != "]":
            self.mark((*path, number), self.at)
            self.value((*path, number))
            number += 1
            if self.text[self.blank()] == ",":
                self.at += 1
        self.at += 1

    def inline(self, path: Path) -> None:
        self.at += 1
        while self.text[self.blank()] != "}":
            self.entry(path)
            if self.text[self.blank()] == ",":
                self.at += 1
        self.at += 1
