"""Every number of a spec at its limits: the last that is taken, the first that is refused; every choice by its name."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from bdforge.operators.gemm import SpecError, spec_from
from bdforge.operators.gemm.spec import _GemmFile
from support.built_designs import spec_content

SCHEMA = _GemmFile.model_json_schema()
PROBLEM = {"M": 64, "K": 64, "N": 64}


def facts(schema: dict[str, Any], path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], dict]]:
    """(place, rule) of every value of a spec, by the schema of the file."""
    schema = SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema
    for name, rule in schema.get("properties", {}).items():
        yield from facts(rule, (*path, name))
    for option in schema.get("anyOf", ()):
        yield from facts(option, path)
    if schema.get("type") == "array":
        yield from facts(schema["items"], (*path, 0))
    if schema.get("type") == "integer" or "enum" in schema or "const" in schema:
        yield path, schema


def told(path: tuple[str | int, ...], value: Any) -> str | None:
    """What the reader of specs says of a value at a place; None where the file's form has nothing against it."""
    content: Any = deepcopy(spec_content(m=64, k=64, n=64)) | {"problems": [dict(PROBLEM)]}
    at = content
    for name in path[:-1]:
        at = at.setdefault(name, {}) if isinstance(at, dict) else at[name]
    at[path[-1]] = value
    try:
        spec_from(content, "small")
    except SpecError as error:
        place = ".".join(map(str, path))
        return str(error) if f"{place}:" in str(error) or f"{place} =" in str(error) else None
    return None


RULES = {".".join(map(str, path)): (path, rule) for path, rule in facts(SCHEMA)}
NUMBERS = {name: found for name, found in RULES.items() if "minimum" in found[1]}
CHOICES = {name: found for name, found in RULES.items() if "enum" in found[1]}


def test_the_schema_tells_numbers_and_choices():
    assert {"tile.m", "array.columns", "epilogue.shift", "buffers.stack_bytes", "problems.0.K"} <= NUMBERS.keys()
    assert {"types.a", "layouts.b", "epilogue.rounding", "buffers.c_buffers"} <= CHOICES.keys()
    assert all("maximum" in rule for _, rule in NUMBERS.values())


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_taken_at_its_limits_and_refused_beyond(name: str):
    path, rule = NUMBERS[name]
    assert told(path, rule["minimum"]) is None
    assert told(path, rule["maximum"]) is None
    for beyond in (rule["minimum"] - 1, rule["maximum"] + 1):
        assert f"got {beyond}" in (told(path, beyond) or "")


@pytest.mark.parametrize("name", CHOICES)
def test_every_choice_is_taken_and_others_are_refused(name: str):
    path, rule = CHOICES[name]
    for choice in rule["enum"]:
        assert told(path, choice) is None
    other = max(rule["enum"]) + 1 if isinstance(rule["enum"][0], int) else "neither"
    assert "got" in (told(path, other) or "")
