"""How a document is laid out as TOML: a table a tile, a line a descriptor."""

import json
from collections.abc import Iterator
from typing import Any

from bdforge.design.document.tables import COMMENT

_TABLES = ("tile", "flow", "cascade", "program", "runtime_sequence", "sequence", "operand", "problems", "made_from")
_WIDTH = 150
_LONGEST = 400  # of a line with a table that cannot be broken but at its last list


def toml_text(found: dict[str, Any]) -> str:
    """TOML of a document's plain data."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: dict[str, Any]) -> Iterator[str]:
    yield from _entries({key: value for key, value in found.items() if key not in _TABLES})
    for key in _TABLES:
        if key == "program":
            for name, program in found.get(key, {}).items():
                yield from ("", f"[program.{name}]", *_entries(program))
        elif key in found and isinstance(found[key], dict):
            yield from ("", f"[{key}]", *_entries(found[key]))
        else:
            for table in found.get(key, ()):
                yield from ("", f"[[{key}]]", *_entries(table))


def _entries(table: dict[str, Any]) -> Iterator[str]:
    for key, value in table.items():
        if key == COMMENT:
            continue
        yield from _laid(f"{_key(key)} = ", value, "", "")


def _laid(head: str, value: Any, indent: str, tail: str, note: str = "") -> Iterator[str]:
    """A value on a line, or, when it is a list of tables or too long, an item a line; `note` follows the first."""
    line = f"{indent}{head}{_value(value)}{tail}"
    tables = isinstance(value, list) and any(isinstance(item, dict) for item in value)
    if not tables and (len(line) <= _WIDTH or not isinstance(value, list | dict)):
        yield line + (note or _told(value))
    elif isinstance(value, list):
        yield f"{indent}{head}[{note}"
        if tables or "{" not in head:
            for item in value:
                yield from _laid("", item, indent + "  ", ",")
        else:
            yield from _filled(value, indent + "  ")
        yield f"{indent}]{tail}"
    elif (last := [key for key in value if key != COMMENT][-1]) and _broken(value[last], line):
        start = "".join(f"{_key(key)} = {_value(one)}, " for key, one in value.items() if key not in (last, COMMENT))
        own = _told({COMMENT: value.get(COMMENT, "")})
        yield from _laid(f"{head}{{ {start}{_key(last)} = ", value[last], indent, f" }}{tail}", own)
    else:
        yield line + _told(value)


def _told(value: Any) -> str:
    """Comments on a value and on all that stands in it."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = value.get(COMMENT, "") if isinstance(value, dict) else ""
    said = dict.fromkeys([own, *(_told(one).removeprefix("  # ") for one in inner)])
    text = "; ".join(filter(None, said))
    return f"  # {text}" if text else ""


def _filled(items: list[Any], indent: str) -> Iterator[str]:
    """Many numbers or texts, as many as a line holds."""
    line = indent
    for item in items:
        if len(line) + len(_value(item)) > _WIDTH and line != indent:
            yield line.rstrip()
            line = indent
        line += f"{_value(item)}, "
    yield line.rstrip()


def _broken(value: Any, line: str) -> bool:
    """Whether a list at the end of a table stands on lines of its own."""
    tables = isinstance(value, list) and any(isinstance(item, dict) for item in value)
    return tables or (isinstance(value, list) and len(line) > _LONGEST)


def _key(key: str) -> str:
    return key


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return json.dumps(value, ensure_ascii=False)
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case dict():
            said = {key: inner for key, inner in value.items() if key != COMMENT}
            return "{ " + ", ".join(f"{_key(key)} = {_value(inner)}" for key, inner in said.items()) + " }"
    raise TypeError(type(value).__name__)
