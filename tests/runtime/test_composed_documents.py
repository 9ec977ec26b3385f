"""Steps that somebody wrote as documents: a run is compared by the reference that stands beside each."""

import numpy as np
import pytest

from bdforge.devices import device_named
from bdforge.operators import load_spec, plan, plan_of
from bdforge.runtime import BuiltDesign, run
from bdforge.runtime.composition import CompositionForm, compose
from support.coded_folders import coded_plan
from support.differences import same
from support.examples import EXAMPLES

SIZES = {name: name for name in ("M", "K", "N", "E")}
FORM = CompositionForm.model_validate({
    "kind": "composition",
    "parameters": [*SIZES],
    "steps": [{"design": "modes", "sizes": SIZES, "tensors": {name: name.lower() for name in "ABCDEF"}}],
})  # fmt: skip


@pytest.fixture(scope="module")
def composed(tmp_path_factory: pytest.TempPathFactory) -> BuiltDesign:
    folder = tmp_path_factory.mktemp("built")
    one = coded_plan(
        folder / "modes", plan(load_spec(EXAMPLES / "documents" / "modes.toml"), device_named("strix_halo"))
    )
    compose(FORM, "one", lambda _: one).write(folder / "one")
    return BuiltDesign.load(folder / "one")


@pytest.mark.slow
def test_a_step_is_compared_by_its_own_reference(composed: BuiltDesign):
    planned = plan_of(composed.manifest, composed.folder)
    inputs = planned.random(planned.spec.operator.problem([9, 40, 33, 500]), 2)
    made = run(composed, inputs).outputs
    right = planned.expected(inputs, made)
    same(made["c"], inputs["a"].astype(np.int32) @ inputs["b"].astype(np.int32), "c")
    assert right.keys() == {"c", "d"}
    for name, expected in right.items():
        same(made[name], expected.values, name)
