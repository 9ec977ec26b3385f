"""JSON Schemas as tables, a section for each object: the form of documents, and of operators' specs."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from bdforge.design.document.schema import json_schema
from tools.docs.markdown import prose, table
from tools.site.parts import escaped

_START = prose(
    "Every table and key of a [descriptor document](../docs/document.md). Numbers may be expressions, and tables and",
    "elements of arrays stand [several times](../docs/document.md#numbers-names-repetition) by `for`. Editors check",
    "documents by the JSON Schema that `bdforge plan --schema` prints.",
)
_LIMITS = {"minimum": "at least", "maximum": "at most", "minItems": "length at least", "maxItems": "length at most"}
_ANY = {"object": "table"}
Schema = Mapping[str, Any]


def pages() -> dict[str, str]:
    """Text of the page by its path below `reference`."""
    text = ["# Schema of documents\n", _START, *SchemaTables(json.loads(json_schema())).sections("The document")]
    return {"document_schema.md": "\n".join(text)}


class SchemaTables:
    """Sections of the objects of a schema, each called by the keys that lead to it.

    Of alternatives each is called by the key that tells them apart, the first that it requires.
    """

    def __init__(self, schema: Schema):
        self._schema = schema
        self._todo: list[tuple[str, Schema]] = []
        self._references: dict[str, str] = {}
        """The words for each definition: one that holds itself is told once."""

    def sections(self, title: str) -> Iterator[str]:
        """The object itself, under a title, then those that it holds."""
        yield from self._section(title, self._schema, "")
        told = set()
        while self._todo:
            name, schema = self._todo.pop(0)
            if name not in told:
                told.add(name)
                yield from self._section(f"`{name}`", schema, name)

    def _section(self, title: str, schema: Schema, path: str) -> Iterator[str]:
        yield f"## {title}\n"
        if text := schema.get("description"):
            yield f"{escaped(text)}\n"
        required = schema.get("required", ())
        yield table(("key", "value", "default"), (
            (f"`{key}`", self._words(of, f"{path}.{key}".lstrip(".")), "required" if key in required else _default(of))
            for key, of in schema["properties"].items() if key != "for"
        ))  # fmt: skip

    def _words(self, of: Schema, path: str) -> str:
        """What a value is; objects get sections, to which the words lead."""
        if reference := of.get("$ref"):
            name = reference.rpartition("/")[2]
            if name not in self._references:
                self._references[name] = self._words(self._schema["$defs"][name], path)
            return self._references[name]
        if choices := of.get("anyOf"):
            return self._one_of([choice for choice in choices if not _repeats(choice)], path)
        if "properties" in of:
            self._todo.append((path, of))
            return _link(path)
        if "items" in of:
            return f"array of {self._words(of['items'], path)}{_limits(of)}"
        if isinstance(each := of.get("additionalProperties"), dict):
            return f"table of {self._words(each, path)} by name"
        return _plain(of)

    def _one_of(self, choices: list[Schema], path: str) -> str:
        several = sum("properties" in choice for choice in choices) > 1
        words = (
            self._words(choice, f"{path}.{choice['required'][0]}" if several and "properties" in choice else path)
            for choice in choices
        )
        return " or ".join(dict.fromkeys(word for word in words if word != "null"))


def _repeats(choice: Schema) -> bool:
    return choice.get("required") == ["do"]


def _link(path: str) -> str:
    return f"[`{path}`](#{re.sub(r'[^a-z0-9_-]', '', path.lower())})"


def _plain(of: Schema) -> str:
    """A value without parts."""
    if values := of.get("enum", [of["const"]] if "const" in of else None):
        return " or ".join(f"`{json.dumps(value)}`" for value in values)
    kinds = of.get("type", "any")
    words = " or ".join(_ANY.get(kind, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds))
    return words + (f" like `{of['pattern']}`".replace("|", "\\|") if "pattern" in of else "") + _limits(of)


def _limits(of: Schema) -> str:
    return "".join(f", {word} {of[key]}" for key, word in _LIMITS.items() if of.get(key))


def _default(of: Schema) -> str:
    default = of.get("default")
    return "" if default in (None, [], {}) else f"`{json.dumps(default)}`"
