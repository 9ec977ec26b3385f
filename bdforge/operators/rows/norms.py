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
    return Expected(exact, np.full(exact.shape, 0.5 + _CODE)), Expected(scale, scale * _lost_of_root(x))


def layernorm(x: np.ndarray, w: np.ndarray, b: np.ndarray, epsilon: float) -> Expected:
    """(x - mean) / sqrt(variance + epsilon) w + b: the norm and the result are rounded, and the mean is of float32."""
    root = _root(x.var(axis=-1, keepdims=True), epsilon)
    scaled = (x - x.mean(axis=-1, keepdims=True)) * root * w
    exact = scaled + b
    lost = _lost_of_mean(x) * root * np.abs(w)
    return Expected(exact, np.abs(scaled) * (_ULP + 2.0**-11) + np.abs(exact) * _ULP + lost + _LEAST)


def layer_codes(x: np.ndarray, w: np.ndarray, b: np.ndarray, epsilon: float) -> tuple[Expected, Expected]:
    """`rms_codes` of LayerNorm's y; what it is off counts against the row's largest one."""
    root = _root(x.var(axis=-1, keepdims=True), epsilon)
    scaled = (x - x.mean(axis=-1, keepdims=True)) * root * w
    y = scaled + b
    most = np.maximum(np.abs(y).max(axis=-1, keepdims=True), 1e-5)
    of_mean = _lost_of_mean(x) * root
    of_root = _lost_of_root(x) + of_mean**2
    lost = of_mean * np.abs(w) + (np.abs(scaled) + np.abs(b)) * 2.0**-22 + np.abs(b) * of_root
    lost = lost.max(axis=-1, keepdims=True) / most
    exact, scale = 127 * y / most, most / 127
    bound = np.broadcast_to(0.5 + _CODE + 254 * lost, exact.shape)
    return Expected(exact, bound), Expected(scale[:, 0], (scale * (of_root + lost))[:, 0])


def _lost_of_mean(x: np.ndarray) -> np.ndarray:
    """What sums of lanes, and of these in pairs, lose of a row's mean in float32; and its product with 1 / width."""
    return (x.shape[-1] / _LEAST_LANES + 16) * 2.0**-24 * np.abs(x).mean(axis=-1, keepdims=True)


def _lost_of_root(x: np.ndarray) -> float:
    """What they lose of an inverse root, of itself."""
    return 2.0**-22 + (x.shape[-1] / _LEAST_LANES + 8) * 2.0**-25


def _root(mean: np.ndarray, epsilon: float) -> np.ndarray:
    return 1 / np.sqrt(mean + epsilon)


PASSES = {
    ("rmsnorm", False): ("statistics", "results"),
    ("rmsnorm", True): ("statistics", "results"),
    ("layernorm", False): ("sum", "squares", "results"),
    ("layernorm", True): ("sum", "squares", "largest", "results"),
}
"""Over a row that comes in chunks, by function and whether it makes codes."""


def state_vectors(function: str, codes: bool) -> int:
    """What stays from chunk to chunk (kernels/aie2p/{rmsnorm_statistics,layernorm_sum}_bf16.cc)."""
    return 6 if (function, codes) == ("layernorm", True) else 4


_CYCLES = {
    ("rmsnorm", "bf16", False): {
        "": ((8, 167), (28, 236), (10, 215)), "statistics": ((3, 30), (23, 100), (5, 79)),
        "results": ((5, 168), (25, 238), (7, 217)),
    },
    ("rmsnorm", "bf16", True): {
        "": ((17, 573), (37, 612), (19, 591)), "statistics": ((11, 61), (31, 102), (13, 81)),
        "results": ((6, 557), (26, 610), (8, 589)),
    },
    ("rmsnorm", "f32", False): {
        "": ((54, 179), (56, 229), (58, 216)), "statistics": ((31, 36), (33, 91), (35, 79)),
        "results": ((23, 167), (25, 217), (27, 205)),
    },
    ("rmsnorm", "f32", True): {
        "": ((49, 586), (51, 605), (53, 592)), "statistics": ((31, 70), (33, 92), (35, 80)),
        "results": ((18, 560), (20, 594), (22, 582)),
    },
    ("layernorm", "bf16", False): {
        "": ((23, 302), (43, 374), (25, 353)), "sum": ((3, 30), (23, 100), (5, 79)),
        "squares": ((12, 155), (32, 225), (14, 204)), "results": ((8, 294), (28, 364), (10, 343)),
    },
    ("layernorm", "f32", False): {
        "": ((24, 305), (26, 357), (28, 342)), "sum": ((3, 29), (5, 79), (7, 67)),
        "squares": ((12, 155), (14, 205), (16, 193)), "results": ((9, 301), (11, 351), (13, 339)),
    },
    ("layernorm", "bf16", True): {
        "": ((90, 908), (110, 951), (92, 930)), "sum": ((3, 51), (23, 100), (5, 79)),
        "squares": ((31, 179), (51, 233), (33, 212)), "largest": ((23, 443), (43, 497), (25, 476)),
        "results": ((33, 855), (53, 911), (35, 890)),
    },
    ("layernorm", "f32", True): {
        "": ((100, 853), (102, 892), (104, 877)), "sum": ((3, 50), (5, 79), (7, 67)),
        "squares": ((37, 167), (39, 201), (41, 189)), "largest": ((23, 441), (25, 475), (27, 463)),
        "results": ((37, 827), (39, 863), (41, 851)),
    },
}  # fmt: skip
"""On AIE2P, as assembled, for a vector and for a call: by function, type of rows and codes, by part, and by what rows
are: rows alone, sums with bf16, sums with f32."""
_ADDED = ("", "bf16", "f32")


SCALED_SUM, SCALED_SUM_CYCLES = "residual_bf16", (7, 89)
"""The kernel of sums with a scaled row, and its cycles for a vector and for a row, as assembled."""


def cycles(function: str, part: str, residual: str, codes: bool, x_type: str) -> tuple[int, int]:
    """(for a vector, for a call) of all, or of a pass, with a `residual` of this type, or "" without."""
    return _CYCLES[function, x_type, codes][part][_ADDED.index(residual)]
