"""BitNet b1.58 once more, written from its formulas alone: token after token, head after head, in float64.

Nothing of bdforge's code.
"""

from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

from tools.bitnet.content import Content


def norm(x, weight, eps):
    return x / np.sqrt((x * x).sum() / len(x) + eps) * weight


def turned(head, position, theta):
    """Pairs (i, i + d/2) as complex numbers, turned by position / theta^(2i/d)."""
    half = len(head) // 2
    pairs = head[:half] + 1j * head[half:]
    pairs = pairs * np.exp(1j * position * theta ** (-2 * np.arange(half) / len(head)))
    return np.concatenate([pairs.real, pairs.imag])


def codes_of(x):
    """int8 codes of a vector and the number that they were multiplied with."""
    steps = 127 / max(np.abs(x).max(), 1e-5)
    return np.clip(np.round(x * steps), -128, 127).astype(np.int64), steps


@dataclass
class PlainBitNet:
    """A model and its memory. `short`: results of linear layers are rounded to bfloat16."""

    model: Content
    short: bool = False
    keys: list = field(default_factory=list)

    def linear(self, layer, roles, x):
        codes, steps = codes_of(x)
        parts = []
        for role in roles:
            weights, scale = self.model.matrices[layer][role]
            parts.append(codes @ weights.astype(np.int64) / steps * scale)
        y = np.concatenate(parts)
        return y.astype(ml_dtypes.bfloat16).astype(np.float64) if self.short else y

    def step(self, token):
        """The logits behind one more token."""
        config, model = self.model.config, self.model
        eps, heads, size = config["rms_norm_eps"], config["num_attention_heads"], config["head_dim"]
        groups, theta, position = config["num_key_value_heads"], config["rope_theta"], len(self.keys)
        x = model.embedding[token].astype(np.float64)
        self.keys.append([])
        for layer, norms in enumerate(model.norms):
            qkv = self.linear(layer, "qkv", norm(x, norms["attn_norm"], eps)).reshape(-1, size)
            q = [turned(head, position, theta) for head in qkv[:heads]]
            k = [turned(head, position, theta) for head in qkv[heads : heads + groups]]
            self.keys[-1].append((k, qkv[heads + groups :]))
            seen = []
            for head in range(heads):
                group = head // (heads // groups)
                weights = np.exp([q[head] @ past[layer][0][group] / np.sqrt(size) for past in self.keys])
                values = np.array([past[layer][1][group] for past in self.keys])
                seen.append(weights @ values / weights.sum())
            x = x + self.linear(layer, "o", norm(np.concatenate(seen), norms["attn_sub_norm"], eps))
            both = self.linear(layer, ("gate", "up"), norm(x, norms["ffn_norm"], eps))
            gate, up = np.split(both, 2)
            z = np.where(gate > 0, gate, 0) ** 2 * up
            x = x + self.linear(layer, ("down",), norm(z, norms["ffn_sub_norm"], eps))
        return norm(x, model.final_norm, eps) @ model.embedding.astype(np.float64).T
