"""The same designs as documents, Python and templates: each runs exactly at any size."""

from typing import Any

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator.verification import verify_design
from bdforge.design.sequences.buffers import arguments, fetched, placed
from bdforge.devices import DEVICES
from bdforge.operators import load_spec, operator_of, plan, render
from support.differences import same
from support.examples import EXAMPLES


def multiply(a: np.ndarray, b: np.ndarray, c: np.ndarray, side: int = 64) -> None:
    """c += a b of square tiles in micro-tiles of 8 x 8, those of b column by column."""
    blocks = side // 8
    left = a.reshape(blocks, blocks, 8, 8).transpose(0, 2, 1, 3).reshape(side, side).astype(np.float32)
    right = b.reshape(blocks, blocks, 8, 8).transpose(1, 2, 0, 3).reshape(side, side).astype(np.float32)
    c += (left @ right).astype(np.int32).reshape(blocks, 8, blocks, 8).transpose(0, 2, 1, 3).reshape(-1)


EXAMPLE: dict[str, tuple[int, list[tuple[int, ...]], dict[str, Any]]] = {
    "add_one": (60, [(16,), (1008,)], {"add_one": lambda x, y: np.add(x, 1, out=y)}),
    "transpose": (60, [(16, 48), (80, 32)], {}),
    "gemm_i8": (150, [(1, 300, 519), (257, 41, 30)], {"mm_i8_i8_i32": multiply, "zero_i32": lambda c: c.fill(0)}),
}
"""Lines that each may have, a template without the tables beside it; sizes; kernels."""


@pytest.mark.daily("add_one-templates", "transpose-python", "add_one-documents")
@pytest.mark.parametrize("producer", ["documents", "python", "templates"])
@pytest.mark.parametrize("name", EXAMPLE)
def test_an_example_computes_what_it_says_at_any_size(name: str, producer: str):
    lines, sizes, kernels = EXAMPLE[name]
    (path,) = {*(EXAMPLES / producer).glob(f"{name}.toml"), *(EXAMPLES / producer).glob(f"{name}.py")}
    planned = plan(load_spec(path), DEVICES["strix_halo"])
    text = render(planned, [])
    for size in sizes if producer == "documents" else sizes[-1:]:  # others make the same design
        problem = operator_of(planned.spec).problem(size)
        inputs = planned.random(problem, seed=1)
        sequence = planned.sequence(problem)
        buffers = arguments(sequence, placed(sequence, inputs))
        bdforge.emulate(text, buffers, kernels, instructions=sequence.words())
        (expected,) = planned.reference(inputs).values()
        (found,) = fetched(sequence, buffers).values()
        same(found, expected.values)
    assert all(len(file.read_text().splitlines()) <= lines for file in path.parent.glob(f"{name}.*"))
    assert producer != "templates" or verify_design(text, name).faults == ()
