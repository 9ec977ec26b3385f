"""The manifest's schema: what plans write fits it and nothing else is in it; what is wrong is named."""

import json

import pytest
from pydantic import BaseModel

from bdforge.design.manifest import Manifest, json_schema, manifest_fault
from bdforge.devices import device_named
from bdforge.operators import built_files, manifest
from bdforge.operators.gemm import plan_gemm, spec_from
from support.built_designs import spec_content


@pytest.fixture(scope="module")
def facts() -> dict:
    """A manifest with every file, as JSON gives it back."""
    content = spec_content(16, 16, 32) | {"problems": [{"M": 33, "K": 40, "N": 70, "name": "odd"}]}
    plan = plan_gemm(spec_from(content, "small"), device_named("strix_halo"))
    hashes = dict.fromkeys(built_files(plan, plan.spec.problems), "0" * 64)
    return json.loads(json.dumps(manifest(plan, plan.spec.problems, hashes)))


def unknown(part: object, place: str = "") -> list[str]:
    """Members that the schema does not describe."""
    if isinstance(part, BaseModel):
        found = [f"{place}.{name}" for name in part.model_extra or {}]
        return found + [n for name in type(part).model_fields for n in unknown(getattr(part, name), f"{place}.{name}")]
    if isinstance(part, dict):
        return [name for key, value in part.items() for name in unknown(value, f"{place}.{key}")]
    return [name for item in part for name in unknown(item, place)] if isinstance(part, list) else []


def test_what_a_plan_writes_is_what_the_schema_describes(facts: dict):
    assert manifest_fault(facts) is None
    assert unknown(Manifest.model_validate(facts)) == []
    assert Manifest.model_validate(facts).model_dump(mode="json", by_alias=True, exclude_unset=True) == facts


def test_every_file_of_a_build_is_listed_with_its_hash(facts: dict):
    images = {"xclbin", "emulated", "elf", "placement", "toolchain"}
    assert set(facts["files"]) == {"mlir", "host_kernels", *images, "insts_gemm_33x40x70"}
    assert facts["files"]["elf"] == {"path": "small.elf", "sha256": "0" * 64}


@pytest.mark.parametrize(
    ("member", "value", "fault"),
    [
        ("schema", 99, "its schema is not 3"),
        ("design", None, "design: input should be a valid string"),
        ("sequence", {"program": {}}, "sequence.program.parameters is missing"),
        ("problems", [{"name": "", "sequence": "s", "sizes": {"M": 0}}], "problems.0.sizes.M: input should be greater"),
        ("files", {"mlir": {"path": "a", "sha256": "12"}}, "files.mlir.sha256: string should match pattern"),
    ],
)
def test_the_first_fault_is_named_by_its_place(facts: dict, member: str, value: object, fault: str):
    assert (manifest_fault(facts | {member: value}) or "").startswith(fault)


def test_members_of_a_newer_manifest_are_passed_over(facts: dict):
    assert manifest_fault(facts | {"colour": "blue", "$schema": "./manifest.schema.json"}) is None


def test_editors_get_names_and_meanings():
    schema = json.loads(json_schema())
    assert schema["properties"]["schema"]["const"] == 3
    assert {"design", "files", "sequence"} <= set(schema["required"])
    assert set(schema["$defs"]["BuiltFile"]["properties"]) == {"path", "sha256"}
    assert all(part.get("description") for part in schema["$defs"].values())
