"""Operators beside products in bdforge-run: by the manifest alone, each against its reference in Python."""

from pathlib import Path
from typing import Any

import pytest
from library_builds import run, small_design

from bdforge.devices import device_named
from bdforge.operators import plan, spec_from

CORNER: dict[str, Any] = {"array": {"rows": 1, "columns": 2}}
FEW: dict[str, Any] = {"stack_bytes": 62464}
"""Leaves cores room for some vectors, so that rows come in chunks."""
QKV = [{"name": "Q", "heads": 2}, {"name": "K", "heads": 1}, {"name": "V", "heads": 1, "turned": False}]
GEMM: dict[str, Any] = {
    "kind": "gemm", "layouts": {"a": "row", "b": "packed", "c": "row"}, "tile": {"m": 16, "k": 16, "n": 32},
    "types": {"a": "int8", "b": "int8", "c": "bf16", "accumulator": "int32"},
}  # fmt: skip
ROWS, TOKENS, MATRIX = {"rows": 13}, {"tokens": 13}, {"M": 19, "K": 41, "N": 37}
CASES: dict[str, tuple[str, dict[str, Any], dict[str, int]]] = {
    "attention": (
        "strix_halo",
        {"heads": 4, "kv_heads": 2, "head_dim": 64, "tile": {"queries": 16, "keys": 16}},
        {"queries": 19, "keys": 37},
    ),
    "attention of few queries": (
        "strix_halo", {"heads": 4, "kv_heads": 2, "head_dim": 64, "few_queries": True}, {"queries": 1, "keys": 37},
    ),
    "attention of split keys": (
        "strix_halo", {"heads": 4, "kv_heads": 1, "head_dim": 64, "few_queries": True}, {"queries": 1, "keys": 170},
    ),
    "elementwise": ("strix_halo", {"function": "silu_gate", "type": "bf16", "tile": 64}, {"length": 301}),
    "elementwise int8": ("phoenix", {"function": "add", "type": "int8", "tile": 32}, {"length": 301}),
    "rope": ("strix_halo", {"heads": 3, "head_dim": 64}, TOKENS),
    "rope of arrays with scales": ("phoenix", {"heads": 4, "head_dim": 32, "outputs": QKV, "scaled": True}, TOKENS),
    "rope in chunks": ("strix_halo", FEW | {"heads": 12, "head_dim": 64, "pairs": "neighbours"}, TOKENS),
    "softmax": ("strix_halo", {"width": 64, "scale": 0.5}, ROWS),
    "softmax in chunks": ("phoenix", FEW | {"width": 1024}, ROWS),
    "convert": ("strix_halo", {"function": "quantise", "width": 64}, ROWS),
    "convert in chunks": ("phoenix", FEW | {"function": "quantise_f32", "width": 768}, ROWS),
    "convert sums in chunks": ("strix_halo", FEW | {"function": "dequantise_int32", "width": 768}, ROWS),
    "rows": ("strix_halo", {"function": "rmsnorm", "width": 64, "residual": True, "codes": True}, ROWS),
    "rows as codes": ("phoenix", {"function": "layernorm", "width": 96, "residual": True, "codes": True}, ROWS),
    "rows of scaled sums": (
        "phoenix", {"function": "rmsnorm", "width": 64, "residual": True, "residual_scaled": True, "codes": True}, ROWS,
    ),
    "transpose": ("strix_halo", {"type": "bf16", "tile": {"m": 16, "n": 24}}, {"M": 37, "N": 101}),
    "transpose int8": ("phoenix", {"type": "int8", "tile": {"m": 16, "n": 16}}, {"M": 21, "N": 70}),
    "gemm of scales and biases": (
        "strix_halo", GEMM | {"epilogue": {"scale": True, "bias": True, "relu": True}}, MATRIX,
    ),
    "gemm of the other generation": ("phoenix", GEMM | {"epilogue": {"scale": True, "bias": True}}, MATRIX),
}  # fmt: skip
"""Products, specs and ragged sizes. A name begins with the kind."""


@pytest.mark.daily("convert")  # C++ of the others takes seconds each
@pytest.mark.parametrize("name", CASES)
def test_an_operator_is_run_and_verified_by_the_library(build: Path, tmp_path: Path, name: str):
    product, content, sizes = CASES[name]
    planned = plan(spec_from({"kind": name.split()[0]} | content | CORNER, "small"), device_named(product))
    image = small_design(tmp_path, planned)
    given = [word for name, count in sizes.items() for word in ("-s", f"{name}={count}")]
    options = ["-d", "emulated", "--verify", "-i", "1", "--warmup", "0"]
    done = run(build / "bin" / "bdforge-run", "-x", image, *given, *options)
    assert (done.returncode, done.stderr) == (0, "")
    assert "verified: " in done.stdout
