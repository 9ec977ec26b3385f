"""Files that are read without complaint, one list for each format: what the fuzz of files starts from."""

import hashlib
import io
import json
from functools import cache

import numpy as np

from bdforge.devices import device_named
from bdforge.operators import manifest
from bdforge.operators.gemm import plan_gemm, spec_from
from bdforge.perf.rows import MEASURED
from bdforge.txn.insts import encode_mlir
from support.built_designs import ROOT, spec_content
from support.small_designs import loopback
from support.weight_files import (
    bitnet_entries,
    gguf_entry,
    gguf_file,
    gguf_string,
    i2s_entries,
    safetensors_file,
    ternary,
)

DESIGNS = ("gemm_i8_i2_bitnet", "gemm_bf16_bf16_bf16_112x48x96")


@cache
def seeds() -> dict[str, list[bytes]]:
    """Sound files by format; formats are the names that `file_reading.READERS` knows."""
    return {
        "toml": [(ROOT / "designs" / f"{name}.toml").read_bytes() for name in DESIGNS],
        "npy": [_npy(np.arange(30, dtype=np.int32).reshape(5, 6)), _npy(np.ones((3, 4), np.float32, order="F"))],
        "mlir": [loopback().encode(), (ROOT / "tests" / "fuzz" / "data" / "chain.mlir").read_bytes()],
        "gguf": [gguf_file(i2s_entries(_matrices()), metadata=(gguf_entry("general.name", 8, gguf_string("é")),))],
        "safetensors": [safetensors_file(bitnet_entries(_matrices()))],
        "stream": [_stream().tobytes(), "".join(f"{word:08X}\n" for word in _stream()).encode()],
        "manifest": [_manifest()],
        "csv": ["\n".join(MEASURED.read_text(encoding="utf-8").splitlines()[:4]).encode()],
    }


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _matrices() -> dict[str, tuple[np.ndarray, float | None]]:
    return {"blk.0.gate": (ternary(1, 128, 8), 0.5), "blk.0.up": (ternary(2, 128, 4), 2.0)}


def _stream() -> np.ndarray:
    return encode_mlir(loopback())


def _manifest() -> bytes:
    plan = plan_gemm(spec_from(spec_content(16, 16, 32), "small"), device_named("strix_halo"))
    hashes = {role: hashlib.sha256(b"").hexdigest() for role in ("mlir", "host_kernels")}
    return json.dumps(manifest(plan, plan.spec.problems, hashes), indent=1).encode()


BESIDE = {"manifest": ("small.mlir", "kernels/libsmall.so")}
"""Empty files that a sound file of a format names."""
