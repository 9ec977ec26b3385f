"""Files that are read without complaint, one list for each format: what the fuzz of files starts from."""

import hashlib
import io
import json
from functools import cache

import numpy as np

from bdforge.array.emulator.strictness import Strictness
from bdforge.array.images.image_build import image, program_of
from bdforge.array.lower import StaticConfiguration, configuration
from bdforge.array.mlir import Era, convert, parse
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.core.isa.assembler import assemble
from bdforge.devices import device_named
from bdforge.operators import manifest
from bdforge.operators.gemm import plan_gemm, spec_from
from bdforge.perf.rows import MEASURED
from fuzz.corpus import samples
from support.built_designs import ROOT, spec_content
from support.images import IMAGES
from support.small_designs import loopback
from support.txn_vectors import encode_mlir
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
        "document": [path.read_bytes() for path in sorted((ROOT / "examples" / "documents").glob("*.toml"))],
        "toml": [(ROOT / "designs" / f"{name}.toml").read_bytes() for name in DESIGNS],
        "npy": [_npy(np.arange(30, dtype=np.int32).reshape(5, 6)), _npy(np.ones((3, 4), np.float32, order="F"))],
        "mlir": [loopback().encode(), (ROOT / "tests" / "mlir" / "data" / "chain.mlir").read_bytes()],
        "design": [sample.encode() for sample in samples()],
        "gguf": [gguf_file(i2s_entries(_matrices()), metadata=(gguf_entry("general.name", 8, gguf_string("é")),))],
        "safetensors": [safetensors_file(bitnet_entries(_matrices()))],
        "stream": [
            _stream().tobytes(),
            "".join(f"{word:08X}\n" for word in _stream()).encode(),
            IMAGES["full_elf_small"],
        ],
        "manifest": [_manifest()],
        "mlir 1.4": [convert(loopback(), Era.MODERN, "d.mlir").encode()],
        "template": [(PROJECT / "templates" / "transpose.mlir.j2").read_bytes()],
        "template spec": [BESIDE_TEMPLATE.read_bytes()],
        "assembly": [_ASSEMBLY.encode()],
        "elf": [assemble(_ASSEMBLY).elf()],
        "cdo": [image(_configuration(), ".cdo")],
        "pdi": [image(_configuration(), ".pdi")],
        "xclbin": [image(_configuration(), ".xclbin"), IMAGES["xclbin_small"]],
        "container": [IMAGES[name] for name in ("full_elf_small", "pdi_core", "xclbin_small")],
        "command": ["\n".join(words).encode() for words in COMMANDS],
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


PROJECT = ROOT / "examples" / "project"
TEMPLATES_OF_PROJECT, BESIDE_TEMPLATE = PROJECT / "templates", PROJECT / "designs" / "transpose.toml"
_ASSEMBLY = """SIZE = 4 * 8  // bytes
.globl main
main:
  mova r0, #SIZE; mov r2, r3
  movxm r1, #table + 4
loop: add r0, r0, r1
  jz r0, #loop
  nop
  nop
  nop
  nop
  nop
  done
.section .data.table, 0x74000
table: .word 1, 2, 0xffffffff
.asciz "a,b"
.p2align 4
.zero 32
"""
_SPEC = str(ROOT / "designs" / "gemm_i8_i2_bitnet.toml")
_CONTRACTS, _PASS = (str(ROOT / p) for p in ("designs/gemm_bf16_bf16_f32_64x64x64.toml", "examples/pass_through.mlir"))
COMMANDS = (
    ("estimate", _SPEC, "--shape", "256x2560x640", "--kernel", "fitted", "--rate", "200.5"),
    ("render", _SPEC, "--device", "strix_halo", "--shape", "64x128x64", "--in-flight", "2", "--out", "made", "--force"),
    ("contract", "ij,jk->ik", "--sizes", "i=64,j=64,k=64", "--design", _CONTRACTS, "--strides", "64,1", "--strides",
     "", "--strides", ""),
    ("plot", "pattern", "--sizes", "4,2,8", "--strides", "16,8,1", "--offset", "3", "-o", "p.svg", "--force"),
    ("verify", _PASS, "--permissive", "dma-bounds"), ("show", _PASS), ("lower", _PASS, "--columns", "1"), ("checks",),
)  # fmt: skip


def _configuration() -> StaticConfiguration:
    text = (ROOT / "examples" / "pass_through.mlir").read_text()
    device = next(op for op in parse(text, "d.mlir").walk() if isinstance(op, DeviceOp))
    return configuration(device, program_of, Strictness())


BESIDE = {"manifest": ("small.mlir", "kernels/libsmall.so")}
"""Empty files that a sound file of a format names."""
