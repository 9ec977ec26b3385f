"""BitNet's layers give the recorded results: the same tests on the emulated array and, marked hardware, on the NPU.

On a machine with an NPU: `scons device=strix_halo`, then `pytest -m hardware tests/xrt`.
"""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bdforge
from bdforge.runtime import BuiltDesign, Loaded, first_mismatch
from support.gemm_problems import reference
from support.npu import design_folder, obstacle
from support.weight_files import ternary

RECORDED = Path(__file__).resolve().parents[1] / "runtime" / "test_bitnet_layers"
LAYERS = {"attention q": (2560, [2560]), "attention k": (2560, [640]), "gate and up": (2560, [6912, 6912]),
          "down": (6912, [2560])}  # fmt: skip
GOLDEN = [("attention q", 256), ("attention k", 256), ("gate and up", 256), ("down", 256), ("attention q", 1),
          ("attention q", 100), ("attention q", 512)]  # fmt: skip
EDGES = [(1, 1, 1), (64, 128, 64), (65, 129, 65), (3, 70, 515), (257, 300, 64)]
QUICK = [("attention q", 1), (65, 129, 65), (3, 70, 515)]  # the others run on the emulated array in tests/runtime
SLOW = [("attention q", 1)]  # seconds; tests/runtime has another layer daily

npu = pytest.mark.hardware


def each(cases: list[tuple]) -> list:
    """The cases on both devices."""
    return [
        *(
            pytest.param("emulated", *case, id=f"emulated-{case}", marks=pytest.mark.slow if case in SLOW else ())
            for case in cases
            if case in QUICK
        ),
        *(pytest.param("xrt", *case, marks=npu, id=f"xrt-{case}") for case in cases),
    ]


@pytest.fixture(scope="module")
def gemm(flagship: BuiltDesign) -> Callable[[str], Loaded]:
    """The BitNet design, loaded once on each device."""
    loaded: dict[str, Loaded] = {}

    def load(device: str) -> Loaded:
        if device == "xrt" and (reason := obstacle("pyxrt")):
            pytest.skip(reason)
        if device not in loaded:
            loaded[device] = bdforge.load(design_folder() if device == "xrt" else flagship.folder, device)
        return loaded[device]

    return load


def recorded(layer: str, tokens: int) -> str:
    """SHA-256 of C."""
    text = (RECORDED / f"test_a_layer_is_exact_{layer.replace(' ', '_')}_{tokens}_.yml").read_text()
    found = re.search("^sha256: ([0-9a-f]{64})$", text, re.MULTILINE)
    assert found
    return found[1]


@pytest.mark.parametrize(("device", "layer", "tokens"), each(GOLDEN))
def test_a_layer_gives_the_recorded_result(gemm: Callable[[str], Loaded], device: str, layer: str, tokens: int):
    run = gemm(device)
    depth, columns = LAYERS[layer]
    weights = np.ascontiguousarray(np.concatenate([ternary(i, depth, n) for i, n in enumerate(columns)], axis=1))
    a = np.random.default_rng(7).integers(-128, 128, (tokens, depth), np.int8)
    c = run(a, weights)
    assert first_mismatch(c, reference(a, weights)) is None
    assert hashlib.sha256(c.tobytes()).hexdigest() == recorded(layer, tokens)


@pytest.mark.parametrize(("device", "M", "K", "N"), each(EDGES))
def test_odd_sizes_are_exact(gemm: Callable[[str], Loaded], device: str, M: int, K: int, N: int):
    run = gemm(device)
    weights = ternary(M, K, N)
    a = np.random.default_rng(N).integers(-128, 128, (M, K), np.int8)
    assert first_mismatch(run(a, weights), reference(a, weights)) is None


@npu
def test_the_same_design_runs_again_and_again(gemm: Callable[[str], Loaded]):
    run = gemm("xrt")
    weights = ternary(1, 512, 640)
    a = np.random.default_rng(1).integers(-128, 128, (256, 512), np.int8)
    packed, expected = run.pack(weights), reference(a, weights)
    for rows in [256, 1, 100, 256] * 25:
        assert first_mismatch(run(a[:rows], packed), expected[:rows]) is None
