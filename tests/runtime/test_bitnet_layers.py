"""BitNet-b1.58-2B-4T's linear layers on the whole emulated array, weights read from files."""

import hashlib

import numpy as np
import pytest

from bdforge.models.weights import check_shape, read
from bdforge.operators.gemm import GemmSequence
from bdforge.runtime import first_mismatch
from support.differences import same
from support.gemm_problems import reference, run_gemm
from support.weight_files import ternary, write_gguf_i2s, write_safetensors_bitnet

LAYERS = {
    "attention q": (2560, {"blk.0.attn_q.weight": 2560}),
    "attention k": (2560, {"blk.0.attn_k.weight": 640}),
    "gate and up": (2560, {"blk.0.ffn_gate.weight": 6912, "blk.0.ffn_up.weight": 6912}),
    "down": (6912, {"blk.0.ffn_down.weight": 2560}),
}


def stored_weights(folder, layer: str) -> np.ndarray:
    """The layer's weights, written in both formats and read back from both."""
    depth, columns = LAYERS[layer]
    matrices = {name: (ternary(i, depth, n), 0.5) for i, (name, n) in enumerate(columns.items())}
    write_safetensors_bitnet(folder / "model.safetensors", matrices)
    write_gguf_i2s(folder / "model.gguf", matrices)
    one, other = (read(folder / name, list(columns)) for name in ("model.safetensors", "model.gguf"))
    check_shape(one, depth, sum(columns.values()))
    same(one.weights, other.weights)
    return one.weights


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer", "tokens"),
    [
        ("attention k", 256),
        pytest.param("gate and up", 256, marks=pytest.mark.slow),  # `./go run` has all four layers
        pytest.param("down", 256, marks=pytest.mark.slow),
        pytest.param("attention q", 1, marks=pytest.mark.slow),  # as tests/xrt has it
        pytest.param("attention q", 100, marks=pytest.mark.slow),
        pytest.param("attention q", 512, marks=pytest.mark.slow),
    ],
)
def test_a_layer_is_exact(flagship, tmp_path, data_regression, layer, tokens):
    weights = stored_weights(tmp_path, layer)
    a = np.random.default_rng(7).integers(-128, 128, (tokens, weights.shape[0]), np.int8)
    run = run_gemm(flagship, a, weights)
    c = run.outputs["C"]
    assert c.shape == (tokens, weights.shape[1])
    assert first_mismatch(c, reference(a, weights)) is None
    assert c.any()
    assert run.warnings == ()
    checksum = hashlib.sha256(np.ascontiguousarray(c).tobytes()).hexdigest()
    data_regression.check({"sha256": checksum, "edges": str(GemmSequence.of(flagship.plan, run.sequence).edges())})
