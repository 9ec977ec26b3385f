"""Every value of a spec's file by a table written by hand: limits from both sides, choices by name, defaults."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from bdforge.operators import OPERATORS, SpecError, spec_from
from bdforge.operators.elementwise import ElementwiseForm
from bdforge.operators.gemm.spec import _GemmFile
from bdforge.operators.gemv.spec import GemvForm
from support.differences import same

FORMS = {"gemm": _GemmFile, "gemv": GemvForm, "elementwise": ElementwiseForm}
MILLION, SHIFTS = 1 << 20, (0, 31)
ROUNDINGS = (
    "floor ceil symmetric_floor symmetric_ceil negative_inf positive_inf symmetric_zero symmetric_inf "
    "conv_even conv_odd"
)
ARRAY: dict[str, Any] = {"array.rows": (1, 4), "array.columns": (1, 8)}
PLACED = ARRAY | {"array.first_column": (0, 7), "array.first_row": (0, 3)}
PROBLEMS: dict[str, Any] = {f"problems.0.{axis}": (1, MILLION) for axis in "MKN"}
LIMITS: dict[str, dict[str, tuple[int, int]]] = {
    "gemm": ARRAY | PROBLEMS | {
        "tile.m": (1, MILLION), "tile.k": (1, MILLION), "tile.n": (1, MILLION), "tile.m_used": (0, MILLION),
        "buffers.k_mt": (1, MILLION), "buffers.rho": (1, MILLION), "buffers.stack_bytes": (1, MILLION),
        "buffers.pool_bytes": (0, MILLION), "buffers.c_pieces": (1, MILLION), "epilogue.shift": SHIFTS,
        "outputs.0.columns": (1, MILLION),
    },
    "gemv": PLACED | PROBLEMS | {
        "tile.m": (1, 8), "tile.k": (1, MILLION), "tile.n": (1, MILLION), "buffers.w": (2, 12),
        "buffers.w_memtile": (2, 20),
        "stack_bytes": (1, MILLION),
    },
    "elementwise": PLACED | {
        "problems.0.length": (1, 1 << 30), "tile": (1, MILLION), "narrowing.shift": SHIFTS, "stack_bytes": (1, MILLION),
    },
}  # fmt: skip
"""Least and most of every number."""
DEVICES = {"array.device": "npu1 npu2"}
CHOICES: dict[str, dict[str, str]] = {
    "gemm": DEVICES | {
        "types.a": "int8 bf16 bfp16", "types.b": "int8 int4 int2 bf16 bfp16",
        "types.c": "int8 int16 int32 bf16 f32 bfp16", "types.accumulator": "int8 int16 int32 bf16 f32 bfp16",
        "layouts.a": "row column", "layouts.b": "packed row column", "layouts.c": "row column",
        "buffers.c_buffers": "1 2", "buffers.c_memtile_buffers": "1 2", "buffers.a_shims": "1 2",
        "buffers.residency": "none b", "epilogue.rounding": ROUNDINGS, "epilogue.gate": "none relu2 silu",
    },
    "gemv": DEVICES | {
        "types.a": "int8 bf16", "types.w": "int8 int2 bf16", "types.c": "int32 f32 bf16", "array.channels": "1 2",
    },
    "elementwise": DEVICES | {
        "function": "add mul relu2_gate", "type": "int8 bf16", "narrowing.rounding": ROUNDINGS,
    },
}  # fmt: skip
"""All names of every choice."""
LEAST: dict[str, dict[str, Any]] = {
    "gemm": {"types": {"a": "int8", "b": "int8", "c": "int32"}, "tile": {"m": 64, "k": 48, "n": 64}},
    "gemv": {"types": {"a": "int8", "w": "int2", "c": "int32"}, "tile": {"k": 64, "n": 64}},
    "elementwise": {"function": "mul", "type": "int8", "tile": 64},
}
LISTS: dict[str, list[dict[str, Any]]] = {"outputs": [{"name": "q"}]}
"""Of which a value is a part."""
STARTS = {"first_column": 0, "first_row": 0, "from_end": False}
WAITS = {"wait": "column", "in_flight": 0}
FILLED: dict[str, dict[str, Any]] = {
    "gemm": {
        "types": {"a": "int8", "b": "int8", "c": "int32", "accumulator": "int32"},
        "layouts": {"a": "row", "b": "packed", "c": "row"}, "array": {"rows": 4, "columns": 8},
        "tile": {"m": 64, "k": 48, "n": 64, "m_used": 0},
        "buffers": {
            "k_mt": 48, "c_buffers": 1, "c_memtile_buffers": 2, "rho": 1, "a_shims": 1, "stack_bytes": 4096,
        },
        "epilogue": {"shift": 0, "rounding": "conv_even", "scale": False, "bias": False, "relu": False},
    },
    "gemv": {
        "types": LEAST["gemv"]["types"], "tile": {"m": 8, "k": 64, "n": 64}, "array": {"rows": 4} | STARTS,
        "buffers": {"w": 2, "w_memtile": 2}, "stack_bytes": 4096,
    },
    "elementwise": LEAST["elementwise"] | {
        "array": {"rows": 4} | STARTS, "narrowing": {"shift": 0, "rounding": "conv_even"},
        "stack_bytes": 4096,
    },
}  # fmt: skip
"""What a spec of the least content holds."""


def content_of(kind: str) -> dict[str, Any]:
    sizes = dict.fromkeys(OPERATORS[kind].axes, 64)
    return deepcopy(LEAST[kind]) | {"kind": kind, "problems": [sizes]}


def told(kind: str, name: str, value: Any) -> str | None:
    """What the reader of specs says of a value at a place; None where the file's form has nothing against it."""
    content: Any = content_of(kind)
    at, path = content, [int(part) if part.isdigit() else part for part in name.split(".")]
    for part in path[:-1]:
        at = at.setdefault(part, deepcopy(LISTS.get(str(part), {}))) if isinstance(at, dict) else at[part]
    at[path[-1]] = value
    try:
        spec_from(content, "small")
    except SpecError as error:
        return str(error) if f"{name}:" in str(error) or f"{name} =" in str(error) else None
    return None


def fields(schema: dict[str, Any], rule: dict[str, Any], name: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, rule) of every value of a file, by the schema of its form."""
    rule = schema["$defs"][rule["$ref"].rsplit("/", 1)[1]] if "$ref" in rule else rule
    for part, inner in rule.get("properties", {}).items():
        yield from fields(schema, inner, f"{name}.{part}" if name else part)
    for option in rule.get("anyOf", ()):
        yield from fields(schema, option, name)
    if rule.get("type") == "array":
        yield from fields(schema, rule["items"], f"{name}.0")
    if rule.get("type") == "integer" or "enum" in rule:
        yield name, rule


@pytest.mark.parametrize("kind", FORMS)
def test_the_tables_name_every_number_and_choice_of_a_file(kind: str):
    schema = FORMS[kind].model_json_schema()
    rules = dict(fields(schema, schema))
    assert rules.pop("sequence.in_flight")["type"] == "integer"  # its limit follows from `wait`
    same({name for name, rule in rules.items() if "enum" in rule}, set(CHOICES[kind]), "choices")
    same({name for name, rule in rules.items() if "enum" not in rule}, set(LIMITS[kind]), "numbers")


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, own in LIMITS.items() for name in own])
def test_a_number_is_taken_at_its_limits_and_refused_beyond(kind: str, name: str):
    least, most = LIMITS[kind][name]
    assert (told(kind, name, least), told(kind, name, most)) == (None, None)
    assert f"equal to {least}, got {least - 1}" in (told(kind, name, least - 1) or "taken")
    assert f"equal to {most}, got {most + 1}" in (told(kind, name, most + 1) or "taken")


@pytest.mark.daily(every=3)
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, own in CHOICES.items() for name in own])
def test_every_choice_is_taken_and_others_are_refused(kind: str, name: str):
    choices = [int(choice) if choice.isdigit() else choice for choice in CHOICES[kind][name].split()]
    assert {choice: told(kind, name, choice) for choice in choices} == dict.fromkeys(choices)
    others = [0, 3] if choices[0] == 1 else ["neither", "uint8", "int64", "nearest"]
    assert all(f"got {other!r}" in (told(kind, name, other) or f"{other} is taken") for other in others)


@pytest.mark.parametrize("kind", FILLED)
def test_what_a_file_leaves_out_has_its_default(kind: str):
    spec = spec_from(LEAST[kind] | {"kind": kind}, "small")
    same(spec.content, {"kind": kind, **FILLED[kind], "sequence": WAITS, "problems": []})


OTHER: dict[str, dict[str, Any]] = {
    "gemm": {
        "types": {"a": "bf16", "b": "bf16", "c": "bf16", "accumulator": "f32"},
        "layouts": {"a": "column", "b": "row", "c": "column"}, "array": {"device": "npu1", "rows": 3, "columns": 2},
        "tile": {"m": 32, "k": 16, "n": 96, "m_used": 8},
        "buffers": {
            "k_mt": 96, "c_buffers": 2, "c_memtile_buffers": 1, "rho": 4, "a_shims": 2, "stack_bytes": 1024,
            "residency": "b", "pool_bytes": 999, "c_pieces": 2, "c_in_parts": True,
        },
        "epilogue": {"shift": 3, "rounding": "floor", "scale": True, "bias": True, "relu": True, "gate": "silu"},
    },
    "gemv": {
        "types": {"a": "bf16", "w": "bf16", "c": "f32"}, "tile": {"m": 3, "k": 16, "n": 96},
        "buffers": {"w": 5, "w_memtile": 7},
        "array": {
            "device": "npu2", "rows": 2, "columns": 5, "channels": 2, "first_column": 3, "first_row": 1,
            "from_end": True,
        },
        "stack_bytes": 2048,
    },
    "elementwise": {
        "function": "add", "type": "bf16", "tile": 96,
        "array": {
            "device": "npu2", "rows": 1, "columns": 7, "first_column": 1, "first_row": 3, "from_end": True,
        },
        "narrowing": {"shift": 5, "rounding": "ceil"}, "stack_bytes": 2048,
    },
}  # fmt: skip
"""A file in which nothing is as it is by default."""


@pytest.mark.parametrize("kind", OTHER)
def test_a_file_is_told_as_it_was_written(kind: str):
    sizes = dict(zip(OPERATORS[kind].axes, (3, 5, 7), strict=False))
    content = {
        "kind": kind, **OTHER[kind], "sequence": {"wait": "wide", "in_flight": 1}, "problems": [{"name": "x", **sizes}],
    }  # fmt: skip
    spec = spec_from(content, "small")
    same(spec.content, content)
    assert spec_from(spec.content, "small") == spec
    assert [(dict(problem.sizes), problem.name) for problem in spec.problems] == [(sizes, "x")]


def single_changes(kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The least file with one value of `OTHER`, by its place."""
    for name, value in OTHER[kind].items():
        for key, inner in value.items() if isinstance(value, dict) else [("", value)]:
            least = LEAST[kind].get(name, {})
            yield f"{name}.{key}".rstrip("."), {name: {**least, key: inner} if key else inner}


@pytest.mark.parametrize("kind", OTHER)
def test_every_value_of_the_array_s_configuration_is_in_the_hash_and_no_other(kind: str):
    least = LEAST[kind] | {"kind": kind}
    plain = spec_from(least, "small").hash
    hashes = {place: spec_from(least | change, "x").hash for place, change in single_changes(kind)}
    assert [place for place, hash_ in hashes.items() if hash_ == plain] == []
    assert len(set(hashes.values())) == len(hashes)
    others = {"sequence": {"wait": "wide"}, "problems": content_of(kind)["problems"]}
    assert spec_from(least | others, "other").hash == plain


@pytest.mark.parametrize("kind", LEAST)
def test_every_fault_of_a_file_is_told_in_a_line_of_its_own(kind: str):
    content = LEAST[kind] | {"kind": kind, "array": {"rows": 5, "columns": 9}, "tyle": 1}
    with pytest.raises(SpecError) as caught:
        spec_from(content, "small", "small.toml")
    assert [line.split(": ")[:2] for line in str(caught.value).splitlines()] == [
        ["small.toml", place] for place in ("array.rows", "array.columns", "tyle")
    ]
