"""The one error of this package and the places it points at."""

from bisect import bisect_right
from typing import Self

from bdforge.common.messages import InputError, Location, bounded, clip_path, excerpt, printable


class SourceText:
    """MLIR text that turns character offsets into lines and columns."""

    def __init__(self, text: str, file: str):
        self.text, self.file = text, file
        self.era: str | None = None  # form of the dialect that the text has; None until something in it tells
        self.folded: list[tuple[int, int]] = []  # constants that stood for the numbers of other operations alone
        self._line_starts = [0]
        start = text.find("\n")
        while start >= 0:
            self._line_starts.append(start + 1)
            start = text.find("\n", start + 1)

    def location(self, offset: int) -> Location:
        """Where the character at `offset` stands."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self._line_starts, offset)
        return Location(self.file, line, offset - self._line_starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """Text of line `number`, without its end."""
        start = self._line_starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start : len(self.text) if end < 0 else end].rstrip("\r")


class MlirError(InputError):
    """MLIR text that cannot be used: what is wrong, and where.

    `str()` gives `file:line:column: message`, then the source line and a caret below the place.
    """

    def __init__(self, message: str, location: Location, source_line: str | None = None):
        super().__init__(message)
        self.message = str(self.args[0])
        self.file, self.line, self.column = location
        self.source_line = source_line

    @classmethod
    def at(cls, source: SourceText, offset: int, message: str) -> Self:
        """The error at a character offset of `source`."""
        location = source.location(offset)
        return cls(message, location, source.line(location.line))

    @property
    def location(self) -> Location:
        """The place as one value."""
        return Location(self.file, self.line, self.column)

    def __str__(self) -> str:
        place = f"{clip_path(self.file)}:{self.line}:{self.column}"
        if self.source_line is None:
            return bounded(f"{place}: {self.message}")
        line, column = excerpt(self.source_line, self.column)
        caret = "".join("\t" if c == "\t" else " " for c in printable(line[: column - 1])) + "^"
        return bounded(f"{place}: {self.message}\n{line}\n{caret}")
