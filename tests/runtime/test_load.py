"""`bdforge.load`: numpy in, numpy out."""

import numpy as np
import pytest

import bdforge
from bdforge.emulator import ArgumentError
from bdforge.operators.gemm import SequenceOptions
from bdforge.runtime import BuildError, reference


def operands(m: int, k: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(11)
    return rng.integers(-128, 128, (m, k), np.int8), rng.integers(-1, 2, (k, n), np.int8)


@pytest.mark.parametrize("shape", [(32, 16, 64), (1, 5, 3), (45, 52, 70)])
def test_a_loaded_design_is_a_function(small, shape):
    gemm = bdforge.load(small.folder)
    a, weights = operands(*shape)
    got = gemm(a, weights)
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, reference(a, weights))


@pytest.mark.parametrize("options", [SequenceOptions("wide"), SequenceOptions(in_flight=1)])
def test_how_runs_wait_can_be_chosen(small, options):
    gemm = bdforge.load(small.folder, sequence=options)
    assert gemm.design.plan.spec.sequence == options
    a, weights = operands(45, 52, 70)
    np.testing.assert_array_equal(gemm(a, weights), reference(a, weights))


def test_weights_are_packed_once_for_many_calls(small):
    gemm = bdforge.load(small.folder, device="emulator")
    a, weights = operands(40, 48, 64)
    packed = gemm.pack(weights)
    for rows in (40, 3):
        np.testing.assert_array_equal(gemm(a[:rows], packed), reference(a[:rows], weights))


def test_shapes_that_do_not_fit_are_refused(small):
    gemm = bdforge.load(small.folder)
    a, weights = operands(4, 8, 32)
    with pytest.raises(ArgumentError, match="a is 4 x 8, but weights are 9 x 32"):
        gemm(a, np.zeros((9, 32), np.int8))
    with pytest.raises(ArgumentError, match="weights must be an int8 matrix, got float32"):
        gemm(a, weights.astype(np.float32))


def test_the_device_comes_from_the_argument_then_the_variable(small, monkeypatch):
    monkeypatch.setenv("BDFORGE_DEVICE", "abacus")
    with pytest.raises(BuildError, match="device 'abacus' is unknown; choose emulator or xrt"):
        bdforge.load(small.folder)
    assert bdforge.load(small.folder, device="emulator")
    with pytest.raises(BuildError, match="device 'loom' is unknown"):
        bdforge.load(small.folder, device="loom")
