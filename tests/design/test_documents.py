"""Descriptor documents: read and written they are the design, whoever made it."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bdforge.design import render
from bdforge.design.document import design_of, document
from bdforge.design.document.document_values import DocumentError
from bdforge.design.document.schema import json_schema
from bdforge.design.sequences import Program, ProgramError, interpret
from bdforge.design.sequences.interpret import values_of
from bdforge.devices import DEVICES, TileKind
from bdforge.operators import Plan, design_for, load_spec, operator_of, plan, spec_from
from support.examples import EXAMPLES, example
from support.family import GROUPS, SEED, SIZE, group
from tools.testing.source_tree import ROOT

NAMED = sorted((ROOT / "designs").glob("*.toml"))
DAILY = {"gemm_i8_i2_bitnet": 250, "gemm_i8_i8_i32_one_core": 200, "gemv_i8_i2": 250, "add_i8": 200}
LONGER = {
    "attention_bf16_bitnet": 590, "attention_bf16_d128": 510, "attention_bf16_d64": 510, "attention_bf16_token": 650,
}  # fmt: skip
LINES = DAILY | LONGER
"""Lines that these documents may have; any named design 400. With the sequence of any size twice as many."""
SAMPLE = [pytest.param(path, marks=[] if path.stem in DAILY else [pytest.mark.slow], id=path.stem) for path in NAMED]
DOCUMENTS = EXAMPLES / "documents"


def planned(path: Path) -> Plan:
    spec = load_spec(path)
    device = next(device for device in DEVICES.values() if operator_of(spec).fits(spec, device))
    return plan(spec, device)


@pytest.mark.daily("gemm_i8_i8_i32_one_core", "gemv_i8_i2")
@pytest.mark.parametrize("path", SAMPLE)
def test_a_document_is_its_design_to_the_byte(path: Path):
    found = planned(path)
    design = replace(found.whole, program=None, sequences=design_for(found, found.problems[:1]).sequences)
    content = document(design)
    again = design_of(content, path.name)
    assert render(again) == render(design)
    assert document(again) == content
    assert len(content.splitlines()) <= LINES.get(path.stem, 400)


@pytest.mark.parametrize("first_row", [0, 2])
def test_cores_that_differ_by_their_place_share_a_program(first_row: int):
    array = {"rows": 2, "columns": 4, "first_column": 1, "first_row": first_row}
    spec = {
        "kind": "attention", "heads": 4, "kv_heads": 2, "head_dim": 64, "tile": {"queries": 16, "keys": 16},
        "array": array,
    }  # fmt: skip
    design = replace(plan(spec_from(spec, "small"), DEVICES["strix_halo"]).whole, program=None)
    content = document(design)
    assert render(design_of(content, "small.toml")) == render(design)
    assert content.count("[program.") == 1
    assert f'{{ number = "row - {2 + first_row}" }}, {{ number = "column - 1" }}' in content
    with pytest.raises(DocumentError, match="word is no number here"):
        design_of(content.replace(f'"row - {2 + first_row}"', '"row - word"'), "small.toml")


@pytest.mark.daily("gemm_i8_i8_i32_one_core", "gemv_i8_i2")
@pytest.mark.parametrize("path", SAMPLE)
def test_a_document_with_the_sequence_of_any_size_is_its_program(path: Path):
    design = planned(path).whole
    content = document(design)
    again = design_of(content, path.name)
    assert document(again) == content
    assert len(content.splitlines()) <= 2 * LINES.get(path.stem, 400)
    assert design.program is not None
    assert again.program is not None
    for sizes in ((1, 37, 999), (8, 4096, 2560), (700, 768, 3000)):
        given = dict.fromkeys(design.program.parameters, 0) | dict(zip(again.program.sizes, sizes, strict=False))
        assert streamed(again.program, given) == streamed(design.program, given)


@pytest.mark.daily("gemm_i8_i8_i32_one_core", "gemv_i8_i2")
@pytest.mark.parametrize("path", SAMPLE)
def test_a_printed_document_is_rendered_as_its_spec(path: Path, tmp_path: Path):
    """To the byte but for comments, for sizes that are asked for."""
    found, copy = planned(path), tmp_path / "copy.toml"
    copy.write_text(document(found.whole))
    spec = load_spec(copy)
    sizes = {1: [30_000], 2: [300, 700], 3: [256, 2560, 3840]}[len(found.program.sizes)]
    if found.spec.kind == "gemv":
        sizes[0] = 1
    problem = operator_of(spec).problem(sizes)
    assert problem == operator_of(found.spec).problem(sizes)
    texts = (render(design_for(one, [problem])) for one in (found, plan(spec, found.device)))
    first, second = ([line for line in text.splitlines() if not line.strip().startswith("//")] for text in texts)
    assert first == second


@pytest.mark.slow
@pytest.mark.parametrize("index", range(GROUPS))
def test_members_of_the_family_are_their_documents(index: int):
    for member in group(index, SIZE, SEED):
        whole, sequences = member.plan.whole, design_for(member.plan, [member.problem]).sequences
        again = design_of(document(whole), "member")
        assert again.program is not None
        sizes = dict.fromkeys(member.plan.program.parameters, 0) | dict(member.problem.sizes)
        assert streamed(again.program, sizes) == streamed(member.plan.program, sizes)
        placed_runs = replace(whole, program=None, sequences=sequences)
        assert render(design_of(document(placed_runs), "member")) == render(placed_runs)


def streamed(program: Program, sizes: dict[str, int]) -> list[object]:
    """The events of a run, operands with their values, or why there is none."""
    limits = DEVICES["strix_halo"].generation.limits(TileKind.SHIM)
    try:
        events = list(interpret(program, sizes, limits))
    except ProgramError as error:
        return [str(error)]
    values = values_of(program, sizes)
    dims = [[values[p] for p in (d.count, d.step, d.stride)] for operand in program.operands for d in operand.dims]
    return [*events, dims, [values[argument.elements] for argument in program.arguments]]


def test_a_design_of_other_peoples_is_its_document():
    stencil = example("stencil/stencil.py")
    design = stencil.smoothing(stencil.stencil(32, 4), 9, 2)
    assert render(design_of(document(design), "stencil")) == render(design)


KINDS = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}


def allowed(found: Any, schema: dict[str, Any], definitions: dict[str, Any]) -> bool:
    """Whether a JSON Schema of the words that ours uses allows a value."""
    if "$ref" in schema:
        return allowed(found, definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        return any(allowed(found, one, definitions) for one in schema["anyOf"])
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(isinstance(found, KINDS[kind]) for kind in kinds):
        return False
    if found not in schema.get("enum", [found]):
        return False
    if isinstance(found, list):
        return all(allowed(one, schema.get("items", {}), definitions) for one in found)
    if not isinstance(found, dict):
        return True
    known, other = schema.get("properties", {}), schema.get("additionalProperties", {})
    if not set(schema.get("required", ())) <= found.keys() or (other is False and not found.keys() <= known.keys()):
        return False
    return all(allowed(one, known.get(key, other or {}), definitions) for key, one in found.items())


@pytest.mark.parametrize("name", ["add_one", "transpose", "gemm_i8", "side_by_side", "gemm_i8_i2_bitnet", "add_i8"])
def test_the_schema_allows_documents_and_no_other_keys(name: str):
    schema = json.loads(json_schema())
    path = DOCUMENTS / f"{name}.toml"
    content = path.read_text() if path.exists() else document(planned(ROOT / "designs" / f"{name}.toml").whole)
    tables = tomllib.loads(content)
    assert allowed(tables, schema, schema["$defs"])
    for key in ("kind", "tile"):
        assert not allowed({other: tables[other] for other in tables.keys() - {key}}, schema, schema["$defs"])
    assert not allowed(tables | {"tiles": []}, schema, schema["$defs"])
    assert not allowed(tables | {"tile": [tables["tile"][0] | {"place": [0, 1]}]}, schema, schema["$defs"])
    assert not allowed(tables | {"sequence": tables["sequence"] | {"body": [{"lop": 1}]}}, schema, schema["$defs"])


def test_what_a_spec_leaves_empty_is_an_array():
    """A rope's outputs, which its form holds as a tuple, came to nothing before."""
    found = planned(ROOT / "designs" / "rope_bf16.toml")
    assert tomllib.loads(document(found.whole))["made_from"]["outputs"] == []
