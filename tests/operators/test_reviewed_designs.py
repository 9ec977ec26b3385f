"""Small designs of every operator and of what GEMMs may choose: documents as they were reviewed, and their MLIR.

A document is a third of the text's length and says the same: the text made of it is the text of the plan.
"""

from hashlib import sha256
from typing import Any

import pytest

from bdforge.design import render
from bdforge.design.document import design_of, document
from bdforge.devices import device_named
from bdforge.operators import OPERATORS, Plan
from support.built_designs import small_gemm
from support.differences import as_reviewed

DESIGNS: dict[str, tuple[str, dict[str, Any]]] = {
    "gemv of rows that are filled": ("strix_halo", {
        "kind": "gemv", "types": {"a": "int8", "w": "int2", "c": "int32"},
        "tile": {"m": 3, "k": 8, "n": 32}, "array": {"columns": 1, "rows": 2},
    }),
    "gemv of two channels": ("phoenix", {
        "kind": "gemv", "types": {"a": "int8", "w": "int2", "c": "int32"},
        "tile": {"m": 4, "k": 8, "n": 32}, "array": {"columns": 2, "rows": 2, "channels": 2},
    }),
    "elementwise of four rows": ("phoenix", {
        "kind": "elementwise", "type": "int8", "function": "add", "tile": 32, "array": {"columns": 1},
    }),
}  # fmt: skip
GEMMS: dict[str, tuple[tuple[int, int, int], dict[str, Any]]] = {
    "gemm of two shims and columns": (
        (32, 16, 16),
        {"types": ("int8",) * 3, "layouts": "column row column", "rows": 1, "columns": 2, "k_mt": 32, "a_shims": 2},
    ),
    "gemm of block floats with two slabs in a memtile": (
        (16, 32, 64),
        {"types": ("bf16", "bfp16", "bfp16"), "rows": 2, "columns": 1, "k_mt": 64, "c_buffers": 2, "c_pieces": 2},
    ),
    "gemm of rows that are not all used": (
        (8, 16, 32), {"types": ("int8", "int2", "int32"), "rows": 1, "columns": 1, "k_mt": 32, "m_used": 3},
    ),
    "gemm that is scaled in parts and whose B stays": (
        (32, 64, 32),
        {
            "types": ("int8", "int2", "bf16"), "rows": 1, "columns": 1, "rho": 2, "k_mt": 128, "c_in_parts": True,
            "c_buffers": 2, "residency": "b", "c_memtile_buffers": 1, "epilogue": {"scale": True, "bias": True},
        },
    ),
}  # fmt: skip


HASHES = {
    "gemm of rows that are not all used": "8344576534a4fff03e008ebdd53627eac9a51151f6417dfd9e1a8e0147761bbb",
    "gemv of two channels": "2cafe4bac75a95734c8e5fec285e3eab05e20ecdd705806772acd3b85f994a37",
}
"""Of the MLIR of designs whose documents say little that others don't."""


def plan_of(name: str) -> Plan:
    if name in GEMMS:
        tile, changes = GEMMS[name]
        return small_gemm(*tile, **changes)
    product, content = DESIGNS[name]
    operator = OPERATORS[content["kind"]]
    return operator.plan(operator.load(content, "small", "small.toml"), device_named(product))


@pytest.mark.parametrize("name", [name for name in (*DESIGNS, *GEMMS) if name not in HASHES])
def test_a_design_is_written_as_reviewed(name: str, file_regression):
    design = plan_of(name).design
    text = render(design)
    written = document(design)
    file_regression.check(
        f"{written}# MLIR {sha256(text.encode()).hexdigest()}\n", extension=".toml", check_fn=as_reviewed
    )
    assert render(design_of(written, name)) == text


@pytest.mark.parametrize("name", HASHES)
def test_a_design_has_the_text_that_it_had(name: str):
    design = plan_of(name).design
    text = render(design)
    assert sha256(text.encode()).hexdigest() == HASHES[name]
    assert render(design_of(document(design), name)) == text
