"""Arguments of other kinds than a function takes: a sentence by their name."""

from typing import Any

import numpy as np
import pytest

import bdforge
from bdforge import emulate
from bdforge.array.emulator import ArgumentError, LoadError
from bdforge.models.tensors.einsum_expression import expanded
from bdforge.operators.contraction import ContractionError, parse
from bdforge.runtime import BuildError
from input.command import message_of, started

TEXT = "aie.device(npu2_1col) { aie.runtime_sequence @go(%x: memref<4xi32>) { } }"
X = np.zeros(4, np.int32)
WRONG = [
    {"mlir": None}, {"mlir": b"module {}"}, {"mlir": []}, {"args": None}, {"args": X}, {"args": "x"}, {"args": {}},
    {"kernels": []}, {"sequence": 3}, {"device": 3}, {"schedule": None}, {"permissive": "dma-bounds"},
    {"permissive": [3]},
    {"budget": "x"}, {"budget": 0}, {"budget": float("nan")}, {"seed": []}, {"seed": 1.5}, {"image": "x"},
    {"file": None},
    {"objects": [3]}, {"objects": "abc"}, {"elfs": [3]}, {"instructions": "abc"}, {"instructions": 3}, {"timing": True},
    {"observers": None},
]  # fmt: skip


@pytest.mark.parametrize("given", WRONG, ids=str)
def test_each_argument_of_a_run_is_of_its_kind(given: dict[str, Any]):
    (name,) = given
    with pytest.raises(ArgumentError, match=rf"(?s)^(each of )?{name} (must be|is 0; steps)"):
        emulate(**dict[str, Any]({"mlir": TEXT, "args": [X]}) | given)


def test_arguments_of_their_kinds_are_taken():
    emulate(TEXT, (X,), {}, "go", seed=3, budget=9, permissive={"dma-bounds"}, objects=(), elfs={})
    with pytest.raises(LoadError, match="instruction stream: words are bytes, or a vector of integers"):
        emulate(TEXT, [X], instructions=[1.5])  # type: ignore[arg-type]


@pytest.mark.parametrize("read", [parse, lambda text: expanded(text, (2, 2))])
@pytest.mark.parametrize(
    "expression", [None, 3, b"ij,jk->ik", ["ij", "jk"], "i" * 5000], ids=lambda e: type(e).__name__
)
def test_an_expression_is_a_short_text(read, expression: Any):
    with pytest.raises(ContractionError, match="an expression is a text of at most 4096 characters, got"):
        read(expression)


@pytest.mark.parametrize("folder", [None, 3, ["x"]])
def test_a_built_design_is_a_folder(folder: Any):
    with pytest.raises(BuildError, match="a built design is a folder, got"):
        bdforge.load(folder)


@pytest.mark.slow
def test_a_broken_choice_of_matplotlib_is_a_sentence(tmp_path):
    out = tmp_path / "x.png"
    told = started("plot", "pattern", "--sizes", "4", "--strides", "1", "-o", out, MPLBACKEND="nope")
    assert "matplotlib cannot be imported: " in message_of(told)
