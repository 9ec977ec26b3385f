"""What transformers do beside products of ternary matrices: formulas in numpy, in the type of x.

x is T x width, a row to a token. Formulas of BitNet b1.58 as in `transformers` (`models/bitnet/modeling_bitnet.py`,
`integrations/bitnet.py`).
"""

from collections.abc import Callable, Mapping

import numpy as np

_INT8_MAX = np.float32(127)
_LEAST = np.float32(1e-5)  # a row of zeros is divided by this


def rms_norm(x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
    """weight * x / sqrt(mean(x^2) + eps), the mean over the last dimension."""
    return x * (1 / np.sqrt(np.square(x).mean(-1, keepdims=True) + np.float32(eps))) * weight


def quantised(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int8 codes of x, a scale to each row, and those scales (float32, T): x is about codes * scales.

    The largest magnitude of a row becomes 127; ties go to even.
    """
    steps = np.float32(1) / np.maximum(np.abs(x).max(-1, keepdims=True), _LEAST) * _INT8_MAX
    codes = np.clip(np.rint(x * steps), -_INT8_MAX - 1, _INT8_MAX).astype(np.int8)
    return codes, np.float32(1) / steps[:, 0]


def rotated(x: np.ndarray, first: int, theta: float) -> np.ndarray:
    """Rotary embedding of T x heads x d, row t at position first + t.

    Pair (x_i, x_(i + d/2)) turns by position * theta^(-2i / d).
    """
    size = x.shape[-1]
    frequencies = (1 / np.float32(theta) ** (np.arange(0, size, 2, dtype=np.float32) / np.float32(size))).astype("f4")
    angles = np.arange(first, first + len(x), dtype=np.float32)[:, None, None] * frequencies
    cos, sin = np.cos(angles), np.sin(angles)
    left, right = x[..., : size // 2], x[..., size // 2 :]
    return np.concatenate([left * cos - right * sin, right * cos + left * sin], -1)


def softmax(x: np.ndarray) -> np.ndarray:
    """exp(x) over its sum along the last dimension."""
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """softmax(q k^T / sqrt(d)) v, causal, of T x heads x d queries, the last T of S positions: T x (heads * d).

    k and v are S x fewer heads x d (grouped queries): heads h * n to (h + 1) * n - 1 look at head h of k and v.
    """
    rows, heads, size = q.shape
    positions, groups, _ = k.shape
    out = np.empty((rows, groups, heads // groups, size), q.dtype)
    hidden = np.arange(positions) > np.arange(positions - rows, positions)[:, None]
    q, k, v = (
        q.reshape(rows, groups, -1, size).transpose(1, 2, 0, 3),
        k.transpose(1, 2, 0)[:, None],
        v.transpose(1, 0, 2),
    )
    at_once = groups if rows == 1 else 1  # the scores of a long prompt take much memory
    for first in range(0, groups, at_once):
        some = slice(first, first + at_once)
        scores = q[some] @ k[some] / np.float32(np.sqrt(size))
        scores[..., hidden] = -np.inf
        out[:, some] = (softmax(scores) @ v[some, None]).transpose(2, 0, 1, 3)
    return out.reshape(rows, heads * size)


def relu2_gate(gate: np.ndarray, up: np.ndarray) -> np.ndarray:
    """relu(gate)^2 * up."""
    return np.square(np.maximum(gate, 0)) * up


def silu_gate(gate: np.ndarray, up: np.ndarray) -> np.ndarray:
    """gate / (1 + exp(-gate)) * up."""
    return gate / (1 + np.exp(-gate)) * up


GATES: Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "relu2": relu2_gate, "silu": silu_gate, "swish": silu_gate,
}  # fmt: skip
"""Activations of gated feed-forward layers, by their names in `transformers`."""
