"""BitNets as files: Hugging Face's folder, and GGUF with I2_S, TQ1_0 or TQ2_0."""

import json
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from tools.bitnet.content import Content

HUGGING_FACE = {
    "q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj", "o": "self_attn.o_proj",
    "gate": "mlp.gate_proj", "up": "mlp.up_proj", "down": "mlp.down_proj", "attn_norm": "input_layernorm",
    "attn_sub_norm": "self_attn.attn_sub_norm", "ffn_norm": "post_attention_layernorm",
    "ffn_sub_norm": "mlp.ffn_sub_norm",
}  # fmt: skip
GGUF = {
    "q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output", "gate": "ffn_gate", "up": "ffn_up",
    "down": "ffn_down", "attn_norm": "attn_norm", "attn_sub_norm": "attn_sub_norm", "ffn_norm": "ffn_norm",
    "ffn_sub_norm": "ffn_sub_norm",
}  # fmt: skip
Q8_0 = 8
F32, F16, UINT32, INT32, FLOAT32, STRING, ARRAY = 0, 1, 4, 5, 6, 8, 9
ALIGNMENT = 32
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
"""Kinds of tokens (llama.h)."""


def write_hugging_face(folder: Path, model: Content) -> Path:
    """config.json and model.safetensors: matrices packed four outputs to a byte, floats as float32."""
    tensors = {"model.embed_tokens.weight": model.embedding, "model.norm.weight": model.final_norm}
    for number, (matrices, norms) in enumerate(zip(model.matrices, model.norms, strict=True)):
        start = f"model.layers.{number}."
        tensors |= {f"{start}{HUGGING_FACE[role]}.weight": norm for role, norm in norms.items()}
        for role, (weights, scale) in matrices.items():
            codes = (weights.T + 1).astype(np.uint8).reshape(4, -1, len(weights))
            packed = codes[0] | codes[1] << 2 | codes[2] << 4 | codes[3] << 6
            tensors[f"{start}{HUGGING_FACE[role]}.weight"] = np.ascontiguousarray(packed)
            tensors[f"{start}{HUGGING_FACE[role]}.weight_scale"] = np.array([scale], np.float32)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(model.config, indent=1))
    (folder / "model.safetensors").write_bytes(save(tensors))
    return folder


def write_gguf(
    path: Path, model: Content, kind: str = "I2_S", architecture: str = "bitnet-b1.58", *, short: bool = False
) -> Path:
    """A .gguf with matrices of `kind`, an embedding of float16, or of Q8_0 where `short`, and norms of float32.

    One of architecture `bitnet`, which is stock llama.cpp's, has what that wants besides: a tokeniser, of bytes.
    """
    number, packed = KINDS[kind]
    tensors: list[tuple[str, int, np.ndarray | tuple[tuple[int, ...], bytes]]] = [
        ("token_embd.weight", *_embedding(model.embedding, short)), ("output_norm.weight", F32, model.final_norm),
    ]  # fmt: skip
    for layer, (matrices, norms) in enumerate(zip(model.matrices, model.norms, strict=True)):
        tensors += [(f"blk.{layer}.{GGUF[role]}.weight", F32, norm) for role, norm in norms.items()]
        for role, (weights, scale) in matrices.items():
            content = packed(weights, scale)
            tensors.append((f"blk.{layer}.{GGUF[role]}.weight", number, (weights.shape, content)))
    infos, data = b"", b""
    for name, type_, value in tensors:
        dims, content = value if isinstance(value, tuple) else (value.shape[::-1], value.tobytes())
        data += bytes(-len(data) % ALIGNMENT)
        infos += _text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, type_, len(data))
        data += content
    entries = list(_metadata(model, architecture))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + b"".join(entries) + infos
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(head + bytes(-len(head) % ALIGNMENT) + data)
    return path


def _metadata(model: Content, architecture: str) -> Iterator[bytes]:
    config = model.config
    yield _text("general.architecture") + struct.pack("<I", STRING) + _text(architecture)
    counts = {
        "context_length": "max_position_embeddings", "embedding_length": "hidden_size",
        "block_count": "num_hidden_layers", "feed_forward_length": "intermediate_size",
        "attention.head_count": "num_attention_heads", "attention.head_count_kv": "num_key_value_heads",
        "attention.key_length": "head_dim", "attention.value_length": "head_dim", "rope.dimension_count": "head_dim",
        "vocab_size": "vocab_size",
    }  # fmt: skip
    for key, name in counts.items():
        yield _text(f"{architecture}.{key}") + struct.pack("<II", UINT32, config[name])
    floats = {"attention.layer_norm_rms_epsilon": config["rms_norm_eps"], "rope.freq_base": config["rope_theta"]}
    for key, value in floats.items():
        yield _text(f"{architecture}.{key}") + struct.pack("<If", FLOAT32, value)
    if (eos := config.get("eos_token_id")) is not None:
        yield _text("tokenizer.ggml.eos_token_id") + struct.pack("<II", UINT32, eos)
    if architecture == "bitnet":
        yield _text("bitnet.rope.scaling.type") + struct.pack("<I", STRING) + _text("linear")
        yield _text("bitnet.rope.scaling.factor") + struct.pack("<If", FLOAT32, 1)
        yield from _tokenizer(config["vocab_size"])


def _tokenizer(size: int) -> Iterator[bytes]:
    """SentencePiece's three special tokens, every byte, a space, and names that no text has; none for fewer tokens."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581"]
    kinds = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256, NORMAL]
    rest = size - len(tokens)
    yield _text("tokenizer.ggml.model") + struct.pack("<I", STRING) + _text("llama" if rest >= 0 else "no_vocab")
    if rest < 0:
        return
    tokens += [f"<unused {number}>" for number in range(rest)]
    yield _array("tokenizer.ggml.tokens", STRING, [_text(token) for token in tokens])
    yield _array("tokenizer.ggml.scores", FLOAT32, [bytes(4)] * size)
    yield _array("tokenizer.ggml.token_type", INT32, [struct.pack("<i", kind) for kind in kinds + [NORMAL] * rest])


def _array(key: str, kind: int, content: Sequence[bytes]) -> bytes:
    return _text(key) + struct.pack("<IIQ", ARRAY, kind, len(content)) + b"".join(content)


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _embedding(values: np.ndarray, short: bool) -> tuple[int, np.ndarray | tuple[tuple[int, ...], bytes]]:
    if not short:
        return F16, values.astype("<f2")
    blocks = values.reshape(-1, 32)
    scales = (np.abs(blocks).max(1, keepdims=True) / 127).astype("<f2")
    codes = np.rint(blocks / np.maximum(scales, np.finfo("<f2").tiny).astype(np.float32)).astype(np.int8)
    return Q8_0, (values.shape[::-1], np.hstack([scales.view(np.uint8), codes.view(np.uint8)]).tobytes())


def _i2_s(weights: np.ndarray, scale: float) -> bytes:
    codes = (weights.T + 1).astype(np.uint8).reshape(weights.shape[1], -1, 4, 32)
    packed = codes[:, :, 0] << 6 | codes[:, :, 1] << 4 | codes[:, :, 2] << 2 | codes[:, :, 3]
    return packed.tobytes() + struct.pack("<f28x", scale)


def _tq2_0(weights: np.ndarray, scale: float) -> bytes:
    codes = (weights.T + 1).astype(np.uint8).reshape(-1, 2, 4, 32)
    packed = codes[:, :, 0] | codes[:, :, 1] << 2 | codes[:, :, 2] << 4 | codes[:, :, 3] << 6
    return _blocks(packed.reshape(-1, 64), scale)


def _tq1_0(weights: np.ndarray, scale: float) -> bytes:
    trits = (weights.T + 1).astype(np.uint16).reshape(-1, 256)
    parts = [trits[:, :160].reshape(-1, 5, 32), trits[:, 160:240].reshape(-1, 5, 16), trits[:, 240:].reshape(-1, 4, 4)]
    digits = np.array([81, 27, 9, 3, 1])
    numbers = [np.einsum("bdm,d->bm", part, digits[: part.shape[1]]) for part in parts]
    return _blocks((-(-256 * np.hstack(numbers) // 243)).astype(np.uint8), scale)


def _blocks(packed: np.ndarray, scale: float) -> bytes:
    scales = np.full((len(packed), 1), scale, "<f2").view(np.uint8)
    return np.hstack([packed, scales]).tobytes()


KINDS = {"I2_S": (36, _i2_s), "TQ1_0": (34, _tq1_0), "TQ2_0": (35, _tq2_0)}
"""Ternary types: ggml's number, and the content of a matrix with its scale."""
