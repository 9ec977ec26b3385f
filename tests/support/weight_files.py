"""Weight files for tests, written from the descriptions of the formats without any of bdforge's code."""

import json
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np

Matrices = Mapping[str, tuple[np.ndarray, float | None]]


def ternary(seed: int, depth: int, columns: int) -> np.ndarray:
    """Random weights, int8 (K, N) of -1, 0, 1."""
    return np.random.default_rng(seed).integers(-1, 2, (depth, columns), np.int8)


def bf16_bytes(value: float) -> bytes:
    """The upper half of the float32, cut, not rounded."""
    return struct.pack("<f", value)[2:]


def safetensors_file(entries: Mapping[str, tuple[str, list[int], bytes]]) -> bytes:
    """A safetensors file of tensors given as (dtype, shape, content)."""
    header, offset = {}, 0
    for name, (dtype, shape, content) in entries.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(content)]}
        offset += len(content)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(content for _, _, content in entries.values())


def bitnet_bytes(weights: np.ndarray) -> bytes:
    """BitNet-b1.58-2B-4T's uint8 (N/4, K) of int8 (K, N): quarters of the output rows at bits 0, 2, 4, 6."""
    depth, columns = weights.shape
    assert columns % 4 == 0, "four output rows share a byte"
    a, b, c, d = (weights.T + 1).astype(np.uint8).reshape(4, columns // 4, depth)
    return (a | b << 2 | c << 4 | d << 6).tobytes()


def bitnet_entries(matrices: Matrices, scale_dtype: str = "BF16") -> dict[str, tuple[str, list[int], bytes]]:
    """Tensors for `safetensors_file`; a scale of None is left out."""
    entries = {}
    for name, (weights, scale) in matrices.items():
        depth, columns = weights.shape
        entries[name] = ("U8", [columns // 4, depth], bitnet_bytes(weights))
        if scale is not None:
            content = bf16_bytes(scale) if scale_dtype == "BF16" else struct.pack("<f", scale)
            entries[f"{name}_scale"] = (scale_dtype, [1], content)
    return entries


def write_safetensors_bitnet(path: Path, matrices: Matrices, scale_dtype: str = "BF16") -> Path:
    """Write int8 (K, N) weights and scales by tensor name in BitNet-b1.58-2B-4T's layout; scales keep bf16's 8 bits."""
    path.write_bytes(safetensors_file(bitnet_entries(matrices, scale_dtype)))
    return path


def i2s_bytes(weights: np.ndarray, scale: float) -> bytes:
    """bitnet.cpp's I2_S of int8 (K, N): N rows in blocks of 128, 32 bytes each, then 32 bytes with the scale."""
    depth, columns = weights.shape
    assert depth % 128 == 0, "I2_S has blocks of 128 along K"
    codes = (weights.T + 1).astype(np.uint8).reshape(columns, depth // 128, 4, 32)
    packed = codes[:, :, 0] << 6 | codes[:, :, 1] << 4 | codes[:, :, 2] << 2 | codes[:, :, 3]
    return packed.tobytes() + struct.pack("<f28x", scale)


def tq2_bytes(weights: np.ndarray, scale: float) -> bytes:
    """ggml's TQ2_0 of int8 (K, N), element by element: four codes to a byte, 32 elements apart; a scale each 256."""
    content = b""
    for row in weights.T:
        for block in row.reshape(-1, 256):
            qs = bytearray(64)
            for e, w in enumerate(block):
                half, inside = divmod(e, 128)
                qs[32 * half + inside % 32] |= (int(w) + 1) << 2 * (inside // 32)
            content += bytes(qs) + struct.pack("<e", scale if block.any() else 0)
    return content


def tq1_bytes(weights: np.ndarray, scale: float) -> bytes:
    """ggml's TQ1_0 of int8 (K, N): the base-3 number q of five elements' trits becomes the byte ceil(256 q / 243)."""
    runs = [(32 * n + m, m, n) for n in range(5) for m in range(32)]
    runs += [(160 + 16 * n + m, 32 + m, n) for n in range(5) for m in range(16)]
    runs += [(240 + 4 * n + m, 48 + m, n) for n in range(4) for m in range(4)]
    content = b""
    for row in weights.T:
        for block in row.reshape(-1, 256):
            q = [0] * 52
            for element, byte, digit in runs:
                q[byte] += (int(block[element]) + 1) * 3 ** (4 - digit)
            packed = bytes(-(-256 * number // 243) & 255 for number in q)
            content += packed + struct.pack("<e", scale if block.any() else 0)
    return content


TERNARY_BLOCKS = {34: tq1_bytes, 35: tq2_bytes}


def gguf_string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def gguf_entry(key: str, kind: int, value: bytes) -> bytes:
    """A metadata entry whose value is given as the file's bytes."""
    return gguf_string(key) + struct.pack("<I", kind) + value


def gguf_file(
    entries: Mapping[str, tuple[int, tuple[int, ...], bytes]],
    *,
    version: int = 3,
    alignment: int = 32,
    metadata: tuple[bytes, ...] = (),
) -> bytes:
    """A GGUF file of tensors given as (type, dims fastest first, content), and of ready metadata entries."""
    infos, data = b"", b""
    for name, (kind, dims, content) in entries.items():
        data += bytes(-len(data) % alignment)
        infos += gguf_string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, len(data))
        data += content
    head = b"GGUF" + struct.pack("<IQQ", version, len(entries), len(metadata)) + b"".join(metadata) + infos
    return head + bytes(-len(head) % alignment) + data


def i2s_entries(matrices: Matrices) -> dict[str, tuple[int, tuple[int, ...], bytes]]:
    """Tensors for `gguf_file`; I2_S always has a scale, None becomes 1."""
    return {
        name: (36, weights.shape, i2s_bytes(weights, 1.0 if scale is None else scale))
        for name, (weights, scale) in matrices.items()
    }


def write_gguf_i2s(path: Path, matrices: Matrices) -> Path:
    """Write int8 (K, N) weights and scales by tensor name as bitnet.cpp's I2_S in GGUF version 3."""
    metadata = (gguf_entry("general.architecture", 8, gguf_string("bitnet-b1.58")),)
    path.write_bytes(gguf_file(i2s_entries(matrices), metadata=metadata))
    return path
