"""Every limit of a manifest's own members: its ends are taken, what is next to them is named."""

import copy
import json
import re
from typing import Any

import pytest

from bdforge.design.manifest import manifest_fault, spec_hash
from bdforge.devices import device_named
from bdforge.operators import manifest, plan, spec_from
from support.program_limits import BOUNDS

CONTENT = {"kind": "elementwise", "function": "mul", "type": "bf16", "tile": 32, "array": {"rows": 1, "columns": 1}}


@pytest.fixture(scope="module")
def built() -> dict[str, Any]:
    """A manifest as it is read from a file."""
    spec = spec_from(CONTENT | {"problems": [{"length": 64}]}, "small")
    return json.loads(json.dumps(manifest(plan(spec, device_named("strix_halo")), spec.problems)))


@pytest.mark.parametrize("name", [name for name in BOUNDS if name.startswith("Target.")])
def test_a_targets_ends_are_taken_and_what_is_next_is_named(built: dict[str, Any], name: str):
    bound = BOUNDS[name]

    def fault(value: int) -> str | None:
        return manifest_fault(built | {"sequence": bound.changed(value)})

    assert [fault(value) for value in bound.accepted()] == [None] * len(bound.accepted())
    for value in bound.beyond():
        found = str(fault(value))
        assert found.startswith("sequence.target."), value
        assert bound.member in found


@pytest.mark.parametrize(("size", "taken"), [(0, False), (1, True), (1 << 40, True), ((1 << 40) + 1, False)])
def test_sizes_of_built_problems_have_ends(built: dict[str, Any], size: int, taken: bool):
    content = copy.deepcopy(built)
    content["problems"][0]["sizes"]["length"] = size
    assert (manifest_fault(content) is None) == taken
    assert taken or "problems.0.sizes.length: input should be" in str(manifest_fault(content))


def test_hashes_have_64_hexadecimal_digits_or_none(built: dict[str, Any]):
    for digest, taken in (("", True), ("0f" * 32, True), ("0f" * 31, False), ("0f" * 33, False), ("0g" * 32, False)):
        content = built | {"files": {"mlir": {"path": "x.mlir", "sha256": digest}}}
        assert (manifest_fault(content) is None) == taken, digest


@pytest.mark.parametrize("version", [1, 4, None, "3"])
def test_another_schema_is_refused(built: dict[str, Any], version: object):
    assert manifest_fault(built | {"schema": version}) == "its schema is not 3"


def test_what_is_missing_or_of_another_spec_is_named_by_its_place(built: dict[str, Any]):
    assert manifest_fault(built) is None
    for member in ("kernel", "arguments", "files", "spec_hash"):
        assert manifest_fault({k: v for k, v in built.items() if k != member}) == f"{member} is missing"
    content = copy.deepcopy(built)
    del content["sequence"]["target"]["bds"]
    assert manifest_fault(content) == "sequence.target.bds is missing"
    other = {"made_from": built["document"]["made_from"] | {"tile": 64}}
    assert (
        manifest_fault(built | {"document": other})
        == f"the manifest was built from another spec ({built['spec_hash']})"
    )
    content = copy.deepcopy(built)
    content["sequence"]["program"]["operands"][0]["axes"][0]["size"] = 9999
    assert str(manifest_fault(content)).startswith("sequence.program: ")


def test_a_specs_identity_leaves_out_what_the_array_does_not_see():
    """Its problems and how its sequences wait; the order of members is no matter."""
    facts = {"kind": "gemm", "tile": {"m": 8, "k": 4}, "problems": [1], "sequence": {"wait": "wide"}}
    found = spec_hash(facts)
    assert re.fullmatch("[0-9a-f]{16}", found)
    alike = [{"kind": "gemm", "tile": {"k": 4, "m": 8}}, facts | {"problems": []}, facts | {"sequence": {}}]
    assert [spec_hash(each) for each in alike] == [found] * 3
    assert len({found, spec_hash(facts | {"kind": "gemv"}), spec_hash(facts | {"tile": {"m": 4, "k": 8}})}) == 3
