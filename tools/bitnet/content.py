"""What a BitNet b1.58 holds, before it has a format; random ones."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

ROLES = ("q", "k", "v", "o", "gate", "up", "down")


@dataclass
class Content:
    """`config` as in config.json; float32 embedding and norms; for each layer int8 matrices (inputs x outputs) of -1, 0
    and 1 by role with a scale, and norms by role (`attn_norm`, `attn_sub_norm`, `ffn_norm`, `ffn_sub_norm`)."""

    config: dict[str, Any]
    embedding: np.ndarray
    final_norm: np.ndarray
    matrices: list[dict[str, tuple[np.ndarray, float]]] = field(default_factory=list)
    norms: list[dict[str, np.ndarray]] = field(default_factory=list)


def config(
    hidden: int, ffn: int, layers: int, heads: int, kv_heads: int, head_dim: int, vocabulary: int, positions: int
) -> dict[str, Any]:
    """A config.json, constants as of BitNet-b1.58-2B-4T."""
    return {
        "model_type": "bitnet", "architectures": ["BitNetForCausalLM"], "hidden_size": hidden, "intermediate_size": ffn,
        "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv_heads,
        "head_dim": head_dim, "vocab_size": vocabulary, "max_position_embeddings": positions, "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0, "hidden_act": "relu2", "tie_word_embeddings": True, "torch_dtype": "bfloat16",
        "quantization_config": {
            "quant_method": "bitnet", "linear_class": "autobitlinear", "quantization_mode": "offline",
        },
    }  # fmt: skip


def shapes(config: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Inputs and outputs of each matrix of a layer."""
    hidden, ffn = config["hidden_size"], config["intermediate_size"]
    wide, narrow = (config[f"num_{of}_heads"] * config["head_dim"] for of in ("attention", "key_value"))
    return {
        "q": (hidden, wide), "k": (hidden, narrow), "v": (hidden, narrow), "o": (wide, hidden), "gate": (hidden, ffn),
        "up": (hidden, ffn), "down": (ffn, hidden),
    }  # fmt: skip


def random_content(config: dict[str, Any], seed: int) -> Content:
    """Random weights; norms around 1, scales of about 1 / sqrt(inputs), as bf16 and float16 hold them exactly."""
    rng, hidden = np.random.default_rng(seed), config["hidden_size"]
    embedding = _short(rng.normal(0, hidden**-0.5, (config["vocab_size"], hidden)))
    found = Content(config, embedding, _norm(rng, hidden))
    for _ in range(config["num_hidden_layers"]):
        sizes = shapes(config)
        scales = {role: float(_short(rng.uniform(0.5, 2) / sizes[role][0] ** 0.5)) for role in ROLES}
        found.matrices.append({role: (rng.integers(-1, 2, sizes[role], np.int8), scales[role]) for role in ROLES})
        widths = {
            "attn_norm": hidden, "attn_sub_norm": sizes["o"][0], "ffn_norm": hidden, "ffn_sub_norm": sizes["down"][0],
        }  # fmt: skip
        found.norms.append({role: _norm(rng, width) for role, width in widths.items()})
    return found


def _norm(rng: np.random.Generator, width: int) -> np.ndarray:
    return _short(rng.uniform(0.5, 1.5, width))


def _short(values: np.ndarray | float) -> np.ndarray:
    """Rounded to 6 bits behind the first."""
    mantissa, exponent = np.frexp(np.asarray(values, np.float32))
    return np.ldexp(np.round(mantissa * 128) / 128, exponent).astype(np.float32)
