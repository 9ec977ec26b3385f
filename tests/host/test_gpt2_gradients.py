"""The example's GPT-2 against its definition in numpy: the loss, and its gradients by finite differences."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from library_builds import ROOT, c_program

EXAMPLE = ROOT / "examples" / "gpt2"
LAYERS, C, HEADS, V, B, T = 2, 16, 2, 128, 4, 16
BLOCK = {
    "norm1": (C,), "norm1_bias": (C,), "qkv": (3 * C, C), "qkv_bias": (3 * C,), "out": (C, C), "out_bias": (C,),
    "norm2": (C,), "norm2_bias": (C,), "up": (4 * C, C), "up_bias": (4 * C,), "down": (C, 4 * C), "down_bias": (C,),
}  # fmt: skip
SHAPES = {
    "tokens": (V, C), "places": (T, C),
    **{f"{i}.{name}": shape for i in range(LAYERS) for name, shape in BLOCK.items()},
    "norm": (C,), "norm_bias": (C,),
}  # fmt: skip
"""Parameters in the order of memory."""


def parts(values: np.ndarray) -> dict[str, np.ndarray]:
    ends = np.cumsum([int(np.prod(shape)) for shape in SHAPES.values()])
    assert ends[-1] == len(values)
    pieces = np.split(values, ends[:-1])
    return {name: piece.reshape(shape) for (name, shape), piece in zip(SHAPES.items(), pieces, strict=True)}


def norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight + bias


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(qkv: np.ndarray) -> np.ndarray:
    q, k, v = (x.reshape(B, T, HEADS, C // HEADS).swapaxes(1, 2) for x in np.split(qkv, 3, axis=-1))
    scores = q @ k.swapaxes(2, 3) / np.sqrt(C // HEADS)
    scores = np.where(np.tri(T, dtype=bool), scores, -np.inf)
    return (softmax(scores) @ v).swapaxes(1, 2).reshape(B, T, C)


def loss(values: np.ndarray, tokens: np.ndarray, targets: np.ndarray) -> float:
    """Mean cross entropy of GPT-2 (Radford et al.), its head tied to the table of tokens."""
    p = parts(values)
    x = p["tokens"][tokens] + p["places"]
    for i in range(LAYERS):
        w = {name: p[f"{i}.{name}"] for name in BLOCK}
        h = attention(norm(x, w["norm1"], w["norm1_bias"]) @ w["qkv"].T + w["qkv_bias"])
        x = x + h @ w["out"].T + w["out_bias"]
        h = norm(x, w["norm2"], w["norm2_bias"]) @ w["up"].T + w["up_bias"]
        h = 0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
        x = x + h @ w["down"].T + w["down_bias"]
    shares = softmax(norm(x, p["norm"], p["norm_bias"]) @ p["tokens"].T)
    return float(-np.log(np.take_along_axis(shares, targets[..., None], -1)).mean())


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("step")
    return c_program(folder, EXAMPLE / "layers.c", EXAMPLE / "model.c", ROOT / "tests/host/gpt2_step.c")


@pytest.mark.slow
def test_the_example_computes_gpt2_and_its_gradients(program: Path):
    rng = np.random.default_rng(3)
    values = rng.normal(0, 0.3, sum(int(np.prod(shape)) for shape in SHAPES.values())).astype(np.float32)
    tokens, targets = rng.integers(0, V, (2, B, T), np.int32)
    given = values.tobytes() + tokens.tobytes() + targets.tobytes()
    done = subprocess.run([program], input=given, capture_output=True, check=True, timeout=60)
    found = np.frombuffer(done.stdout, np.float32).astype(np.float64)
    exact = values.astype(np.float64)
    assert found[0] == pytest.approx(loss(exact, tokens, targets), rel=1e-5)
    gradients = parts(found[1:])
    for name, gradient in gradients.items():
        direction = np.zeros_like(exact)
        parts(direction)[name][...] = gradient / np.linalg.norm(gradient)  # along which it is steepest
        step = 1e-5 * direction
        slope = (loss(exact + step, tokens, targets) - loss(exact - step, tokens, targets)) / 2e-5
        assert slope == pytest.approx(np.linalg.norm(gradient), rel=1e-3), name
