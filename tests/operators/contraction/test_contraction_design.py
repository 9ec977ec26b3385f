"""A contraction as a design of its own: spec, manifest, and a run from the built folder against numpy."""

import numpy as np
import pytest

from bdforge.devices import DEVICES
from bdforge.operators import OPERATORS, SpecError, spec_from
from bdforge.runtime import load
from support.built_designs import build, spec_content

CONTENT = {
    "kind": "contraction", "expression": "acd,db->abc", "sizes": {"a": 3, "b": 20, "c": 18, "d": 40},
    "design": spec_content(16, 16, 32, types=("int8", "int8", "int32"), layouts="row row row", rows=1, columns=1),
}  # fmt: skip


def test_a_contraction_is_built_and_run_as_any_design(tmp_path):
    built = build(tmp_path, CONTENT)
    (problem,) = built.plan.problems
    assert (built.manifest.kind, built.manifest.problems[0].sizes) == ("contraction", dict(problem.sizes))
    inputs = built.plan.random(problem, seed=1)
    with load(tmp_path, "emulated") as run:
        found = run(**inputs)
    expected = built.plan.reference(inputs)["C"].values
    np.testing.assert_array_equal(found, expected)
    sizes = CONTENT["sizes"]
    by_size = {tuple(sizes[label] for label in labels): labels for labels in ("acd", "db", "abc")}
    arrays = [inputs["A"], inputs["B"], expected]
    assert sorted(map(np.size, arrays)) == sorted(int(np.prod(shape)) for shape in by_size)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"expression": "ab"}, "must be two inputs and an output"),
        ({"sizes": {"a": 0}}, r"sizes.a: .*greater than or equal to 1"),
        ({"sizes": {"a": 3}}, "label b: has no size"),
        ({"design": {}}, "x: design: types"),
        ({"problems": [{"name": "one"}]}, "problems: .*at most 0 items"),
        ({"strides": [[1]]}, "strides: .*at least 3 items"),
    ],
)
def test_what_is_no_contraction_is_a_fault_of_the_spec(changes, reason):
    with pytest.raises(SpecError, match=reason):
        spec_from(CONTENT | changes, "x", "x")


def test_it_is_for_products_that_its_gemm_is_for():
    spec = spec_from(CONTENT | {"design": CONTENT["design"] | {"array": {"device": "npu1", "columns": 1}}}, "x")
    assert {name for name, device in DEVICES.items() if OPERATORS["contraction"].fits(spec, device)} == {
        "phoenix", "hawk_point",
    }  # fmt: skip
