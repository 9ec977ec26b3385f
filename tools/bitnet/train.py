"""`python -m tools.bitnet.train OUT.gguf`: a BitNet b1.58 of characters that learns the text of LICENSE by heart.

Needs torch (2.13 was used; some minutes on one core). Weights are quantised while training, as the paper has it:
forward with ternary weights and int8 activations, gradients as if nothing were rounded. The seed fixes the run on one
version of torch and one kind of processor.
"""

# pyrefly: ignore-errors[missing-import]

import math
import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tools.bitnet.content import Content, config
from tools.bitnet.write import write_gguf

TEXT = Path(__file__).parents[2] / "LICENSE"
CONFIG = config(128, 384, 2, 4, 2, 32, 128, 512)
CONTEXT, BATCH, STEPS, RATE = 96, 10, 2000, 4e-3


def through(rounded: Tensor, x: Tensor) -> Tensor:
    """`rounded` forward, the gradient of x backward."""
    return x + (rounded - x).detach()


class Norm(nn.Module):
    """RMSNorm."""

    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + CONFIG["rms_norm_eps"]) * self.weight


class Ternary(nn.Module):
    """A linear layer behind its norm: weights to -1, 0, 1 by their mean magnitude, rows to int8 by their largest."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) * 0.5 / math.sqrt(inputs))

    def codes(self) -> tuple[Tensor, Tensor]:
        scale = self.weight.abs().mean().clamp(min=1e-5)
        return (self.weight / scale).round().clamp(-1, 1), scale

    def forward(self, x: Tensor) -> Tensor:
        steps = 127 / x.abs().amax(-1, keepdim=True).clamp(min=1e-5)
        codes, scale = self.codes()
        quantised = (x * steps).round().clamp(-128, 127) / steps
        return functional.linear(through(quantised, x), through(codes * scale, self.weight))


class Layer(nn.Module):
    """Attention and gated feed-forward, with norms before each and sub-norms within."""

    def __init__(self) -> None:
        super().__init__()
        hidden, ffn = CONFIG["hidden_size"], CONFIG["intermediate_size"]
        narrow = CONFIG["num_key_value_heads"] * CONFIG["head_dim"]
        sizes = {"q": (hidden, hidden), "k": (hidden, narrow), "v": (hidden, narrow), "o": (hidden, hidden)}
        sizes |= {"gate": (hidden, ffn), "up": (hidden, ffn), "down": (ffn, hidden)}
        widths = {"attn_norm": hidden, "attn_sub_norm": hidden, "ffn_norm": hidden, "ffn_sub_norm": ffn}
        self.matrices = nn.ModuleDict({role: Ternary(*size) for role, size in sizes.items()})
        self.norms = nn.ModuleDict({role: Norm(width) for role, width in widths.items()})

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        m, n, size = self.matrices, self.norms, CONFIG["head_dim"]
        h = n["attn_norm"](x)
        q, k, v = (m[role](h).unflatten(-1, (-1, size)).transpose(1, 2) for role in "qkv")
        q, k = turned(q, cos, sin), turned(k, cos, sin)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + m["o"](n["attn_sub_norm"](y.transpose(1, 2).flatten(2)))
        h = n["ffn_norm"](x)
        z = functional.relu(m["gate"](h)).pow(2) * m["up"](h)
        return x + m["down"](n["ffn_sub_norm"](z))


class Model(nn.Module):
    """Bytes in, logits out."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(CONFIG["vocab_size"], CONFIG["hidden_size"]) * 0.09)
        self.layers = nn.ModuleList(Layer() for _ in range(CONFIG["num_hidden_layers"]))
        self.norm = Norm(CONFIG["hidden_size"])

    def forward(self, ids: Tensor, first: Tensor) -> Tensor:
        size = CONFIG["head_dim"]
        frequencies = CONFIG["rope_theta"] ** (-torch.arange(0, size, 2) / size)
        positions = first[:, None] + torch.arange(ids.shape[1])
        angles = (positions[:, None, :, None] * frequencies).repeat(1, 1, 1, 2)
        cos, sin, x = angles.cos(), angles.sin(), self.embedding[ids]
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.norm(x) @ self.embedding.T


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding."""
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat([-right, left], -1) * sin


def train(model: Model, text: Tensor) -> None:
    """Random windows of the text, anywhere among the positions; the rate falls as a cosine after a warm-up."""
    optimiser = torch.optim.AdamW(model.parameters(), RATE, betas=(0.9, 0.98), weight_decay=0.0)
    for step in range(STEPS):
        rate = min(1.0, step / 100) * (0.02 + 0.98 * (1 + math.cos(math.pi * step / STEPS)) / 2)
        optimiser.param_groups[0]["lr"] = RATE * rate
        starts = torch.randint(len(text) - CONTEXT - 1, (BATCH,))
        window = text[starts[:, None] + torch.arange(CONTEXT + 1)]
        first = torch.randint(CONFIG["max_position_embeddings"] - CONTEXT, (BATCH,))
        loss = functional.cross_entropy(model(window[:, :-1], first).flatten(0, 1), window[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if step % 100 == 0 or step == STEPS - 1:
            print(f"step {step}: {loss.item():.3f} nats a character", flush=True)


def content(model: Model) -> Content:
    """What was learnt, as files hold it."""

    def array(x: Tensor) -> np.ndarray:
        return x.detach().numpy().astype(np.float32)

    found = Content(CONFIG, array(model.embedding), array(model.norm.weight))
    for layer in model.layers:
        matrices = {role: matrix.codes() for role, matrix in layer.matrices.items()}  # type: ignore[union-attr,operator]
        found.matrices.append({
            role: (np.ascontiguousarray(array(codes).T).astype(np.int8), scale.item())
            for role, (codes, scale) in matrices.items()
        })  # fmt: skip
        found.norms.append({role: array(norm.weight) for role, norm in layer.norms.items()})  # type: ignore[union-attr,arg-type]
    return found


def main() -> None:
    """Train and write."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    text = torch.tensor(list(" ".join(TEXT.read_text(encoding="ascii").split()).encode()))
    model = Model()
    train(model, text)
    write_gguf(Path(sys.argv[1]), content(model))


if __name__ == "__main__":
    main()
