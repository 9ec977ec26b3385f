"""Inputs that hurt, and how near an output is to what it must be."""

import numpy as np
import pytest

from bdforge.devices import device_named
from bdforge.devices.types import TYPES
from bdforge.operators import DATA, input_data, plan, spec_from
from bdforge.runtime import Closeness, first_mismatch
from support.built_designs import spec_content
from support.loaded_arrays import LoadedArray


@pytest.mark.parametrize("dtype", [np.float32, TYPES["bf16"].dtype])
def test_floats_become_what_the_kind_says(dtype):
    x = np.random.default_rng(0).normal(size=(9, 17)).astype(dtype)
    wide = {kind: input_data(kind, {"X": x})["X"].astype(float) for kind in DATA}
    assert (wide["random"] == x.astype(float)).all()
    assert abs(wide["normal"].mean()) < 0.3
    assert not wide["zeros"].any()
    assert (np.count_nonzero(wide["spike"], axis=1) == 1).all()
    assert len(set(np.argmax(wide["spike"], axis=1))) > 1
    assert len(np.unique(wide["equal"])) == 1
    late = wide["late"] / np.where(x == 0, 1, x.astype(float))
    assert sorted(np.unique(late)) == [1, 32, 1024]
    assert (late[8, :15], late[:8, 15:]) == (pytest.approx(32), pytest.approx(32))
    assert abs(wide["subnormal"]).max() < 2.0**-126
    assert all(input_data(kind, {"X": x})["X"].dtype == dtype for kind in DATA)


def test_integers_reach_the_ends_of_what_is_drawn():
    x = np.random.default_rng(0).integers(-1, 2, (5, 7), np.int8)
    assert set(input_data("large", {"B": x})["B"].ravel()) == {-1, 1}
    assert (input_data("equal", {"B": x})["B"] == 1).all()
    assert not input_data("zeros", {"B": x})["B"].any()
    assert (input_data("spike", {"B": x})["B"] == x).all()


@pytest.mark.parametrize(
    ("got", "exact", "bound", "found"),
    [
        ([1.0, 2.5], [1.0, 2.0], [1.0, 2.0], (0.25, 0.5 / 3)),
        ([3.0, -2.0], [3.0, -2.0], [0.0, 0.0], (0, 0)),
        ([0.0], [0.0], [1.0], (0, 0)),
        ([], [], [], (0, 0)),
    ],
)
def test_closeness_is_the_largest_share_and_the_mean(got, exact, bound, found):
    near = Closeness.of(np.array(got), np.array(exact), np.array(bound))
    assert (near.bound, near.mean) == pytest.approx(found)


@pytest.mark.parametrize("kind", ["subnormal", "tiny", "large"])
def test_a_bound_holds_where_scales_vanish(kind):
    content = spec_content(16, 32, 16, types=("int8", "int8", "bf16", "int32"), epilogue={"scale": True, "bias": True})
    design = LoadedArray.of(plan(spec_from(content, "scaled"), device_named("strix_halo")))
    inputs = input_data(kind, design.plan.random(design.problem([5, 40, 9]), 1))
    (expected,) = design.plan.reference(inputs).values()
    found = design.run([5, 40, 9], inputs)[0]["C"]
    assert first_mismatch(found, expected.values, expected.bound) is None
