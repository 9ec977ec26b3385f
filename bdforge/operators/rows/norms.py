"""Norms of rows in float64, how far results may be off (kernels/aie2p/{rms,layer}norm_bf16.cc), and cycles of calls."""

import numpy as np

from bdforge.operators.operator_api import Expected

_LEAST = 2.0**-125  # what may be lost where numbers near the least normal one become 0
_ULP = 2.0**-8  # of a rounding to bfloat16, and the most that it takes
_CODE = 127 * 2.0**-20  # so far from a half a code is that of the formula
_LEAST_LANES = 16  # of the sums of a row


def rmsnorm(x: np.ndarray, w: np.ndarray, epsilon: float) -> Expected:
    """x w / sqrt(mean x^2 + epsilon): two roundings, and the root's 2^-12."""
    exact = x * _root((x**2).mean(axis=-1, keepdims=True), epsilon) * w
    return Expected(exact, np.abs(exact) * (2 * _ULP + 2.0**-12) + _LEAST)


def rms_codes(x: np.ndarray, w: np.ndarray, epsilon: float) -> tuple[Expected, Expected]:
    """127 y / max(max abs y, 1e-5) of RMSNorm's y, to the nearest integer; and the scale, that maximum / 127."""
    y = x * _root((x**2).mean(axis=-1, keepdims=True), epsilon) * w
    scale = np.maximum(np.abs(y).max(axis=-1), 1e-5) / 127
    exact = y / scale[:, None]
    lost = 2.0**-22 + (x.shape[-1] / _LEAST_LANES + 8) * 2.0**-25
    return Expected(exact, np.full(exact.shape, 0.5 + _CODE)), Expected(scale, scale * lost)


def layernorm(x: np.ndarray, w: np.ndarray, b: np.ndarray, epsilon: float) -> Expected:
    """(x - mean) / sqrt(variance + epsilon) w + b: the norm and the result are rounded, and the mean is of float32."""
    root = _root(x.var(axis=-1, keepdims=True), epsilon)
    scaled = (x - x.mean(axis=-1, keepdims=True)) * root * w
    exact = scaled + b
    lost = x.shape[-1] * 2.0**-24 * np.abs(x).max(axis=-1, keepdims=True) * root * np.abs(w)
    return Expected(exact, np.abs(scaled) * (_ULP + 2.0**-11) + np.abs(exact) * _ULP + lost + _LEAST)


def _root(mean: np.ndarray, epsilon: float) -> np.ndarray:
    return 1 / np.sqrt(mean + epsilon)


PASSES = {"rmsnorm": ("statistics", "results"), "layernorm": ("sum", "squares", "results")}
"""Over a row that comes in chunks."""
STATE_VECTORS = 4  # what stays from chunk to chunk (kernels/aie2p/{rmsnorm_statistics,layernorm_sum}_bf16.cc)

_CYCLES = {
    "": {(False, False): (8, 167), (False, True): (17, 573), (True, False): (28, 236), (True, True): (37, 612)},
    "statistics": {(False, False): (3, 30), (False, True): (11, 61), (True, False): (23, 100), (True, True): (31, 102)},
    "results": {(False, False): (5, 168), (False, True): (6, 557), (True, False): (25, 238), (True, True): (26, 610)},
}
"""Of RMSNorm's (residual, codes) on AIE2P, as assembled: for a vector, and for a call."""

_FLOAT_CODES = {
    "": {False: (49, 586), True: (51, 605)},
    "statistics": {False: (31, 70), True: (33, 92)},
    "results": {False: (18, 560), True: (20, 594)},
}
"""Of codes of rows of float32, by residual, as assembled."""

_LAYERNORM = {"": (16, 400), "sum": (1, 50), "squares": (6, 100), "results": (9, 350)}


SCALED_SUM, SCALED_SUM_CYCLES = "residual_bf16", (7, 89)
"""The kernel of sums with a scaled row, and its cycles for a vector and for a row, as assembled."""

_FLOATS = 6
"""More for a vector and pass of float32: its parts take a load, two products, three conversions, then products."""


def cycles(function: str, part: str, residual: bool, codes: bool, x_type: str) -> tuple[int, int]:
    """(for a vector, for a call) of all, or of a pass; as sources count the busiest slots of LayerNorm, and of float32
    but for codes."""
    if codes and x_type == "f32":
        return _FLOAT_CODES[part][residual]
    more = 0 if x_type == "bf16" else _FLOATS if part else len(PASSES[function]) * _FLOATS
    if function == "rmsnorm":
        of_vector, of_call = _CYCLES[part][residual, codes]
        return of_vector + more, of_call
    of_vector, of_call = _LAYERNORM[part]
    return (of_vector + 20 + more, of_call + 69) if residual else (of_vector + more, of_call)
