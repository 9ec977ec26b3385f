"""Assembly source as lines: labels, directives with arguments, bundles of instructions. No meaning yet."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bdforge.core.isa.errors import AssemblyError

_LABEL = re.compile(r"\s*([A-Za-z_.$][\w.$]*)\s*:")
_ASSIGN = re.compile(r"\s*([A-Za-z_.$][\w.$]*)\s*=(?!=)\s*(.+)")
_COMMENT = re.compile(r"//.*|/\*.*?\*/", re.DOTALL)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


@dataclass(frozen=True, slots=True)
class Line:
    """A source line that says something: `labels` before it, then a directive, or the instructions of one bundle."""

    file: str
    number: int
    text: str
    labels: tuple[str, ...]
    directive: str = ""
    arguments: tuple[str, ...] = ()
    instructions: tuple[str, ...] = ()

    def error(self, reason: str) -> AssemblyError:
        """A fault of this line."""
        return AssemblyError(f"{self.file}:{self.number}: {reason}\n  {self.text.strip()[:200]}")


def lines(source: str, file: str) -> Iterator[Line]:
    """Lines with labels, directives or instructions; comments are `// ...` and `/* ... */`."""
    text = _without_comments(source)
    for number, (raw, shown) in enumerate(zip(text.split("\n"), source.split("\n"), strict=True), 1):
        labels = []
        rest = raw
        while match := _LABEL.match(rest):
            labels.append(match[1])
            rest = rest[match.end() :]
        rest = rest.strip()
        if rest or labels:
            yield _line(file, number, shown, tuple(labels), rest)


def _without_comments(source: str) -> str:
    """The source with comments blanked out; strings keep what looks like one, line breaks stay."""
    kept, position = [], 0
    for match in re.finditer(f"{_QUOTED.pattern}|{_COMMENT.pattern}".replace("//.*", "//[^\n]*"), source, re.DOTALL):
        kept.append(source[position : match.start()])
        kept.append(match[0] if match[0][0] == '"' else "\n" * match[0].count("\n") or " ")
        position = match.end()
    return "".join([*kept, source[position:]])


def _line(file: str, number: int, shown: str, labels: tuple[str, ...], rest: str) -> Line:
    line = Line(file, number, shown, labels)
    assignment = _ASSIGN.fullmatch(rest)
    if assignment:
        return Line(file, number, shown, labels, ".set", (assignment[1], assignment[2].strip()))
    if rest.startswith("."):
        name, _, tail = rest.partition(" ") if "\t" not in rest.split(" ")[0] else rest.partition("\t")
        return Line(file, number, shown, labels, name.strip().lower(), _arguments(tail, line))
    instructions = tuple(part.strip() for part in rest.split(";"))
    if rest and not all(instructions[:-1]):
        raise line.error("an instruction is missing between two ';'")
    return Line(file, number, shown, labels, instructions=tuple(part for part in instructions if part))


def _arguments(text: str, line: Line) -> tuple[str, ...]:
    """Arguments between commas; quoted ones keep their quotes."""
    if _QUOTED.sub("", text).count('"'):
        raise line.error("a quotation mark is never closed")
    arguments = re.findall(rf"(?:{_QUOTED.pattern}|[^,\"])+", text)
    return tuple(argument.strip() for argument in arguments if argument.strip())
