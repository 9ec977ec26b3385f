"""The designs in examples/: what they do on the emulated array, in any order, with every check in force."""

import re
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import Deadlock
from bdforge.array.emulator.verification import verify_design
from bdforge.devices.txn_format.codec import decode
from bdforge.devices.txn_format.operations import Sync
from support.differences import same
from support.examples import example
from support.txn_vectors import encode_mlir

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MLIR = sorted(path for path in EXAMPLES.rglob("*.mlir") if path.parent.name != "puzzles")  # which are to be mended
KERNELS = vars(example("chain/kernels.py"))
EXPECTED = {"add_one": lambda x: x + 1, "chain": lambda x: np.maximum(3 * x, 0)}


def test_every_pass_through_is_here():
    assert {path.stem for path in EXAMPLES.glob("*.mlir")} == {"pass_through", "pass_through_8_columns"}


@pytest.mark.parametrize(("name", "columns"), [("pass_through", 1), ("pass_through_8_columns", 8)])
@pytest.mark.parametrize("seed", range(2))
def test_a_pass_through_copies_in_any_order(name, columns, seed):
    text = (EXAMPLES / f"{name}.mlir").read_text()
    rng = np.random.default_rng(seed)
    source, target = rng.integers(1, 2**31, 4096 * columns, np.int32), np.zeros(4096 * columns, np.int32)
    result = bdforge.emulate(text, [source, target], schedule="random", seed=seed, poison=True)
    same(target, source)
    assert result.warnings == ()


@pytest.mark.parametrize("capacity", [0, "known", 64])
@pytest.mark.parametrize("path", MLIR, ids=lambda path: path.stem)
def test_an_example_ends_whatever_streams_hold(path, capacity):
    """Without any buffering, too; but for the one that shows a deadlock, whatever they hold."""
    text = path.read_text()
    (sizes,) = (re.findall(r"memref<(\d+)xi32>", line) for line in text.splitlines() if "runtime_sequence" in line)
    arrays = [np.arange(int(size), dtype=np.int32) for size in sizes]
    hangs = pytest.raises(Deadlock) if path.stem == "deadlock" else nullcontext()
    with hangs:
        bdforge.emulate(text, arrays, KERNELS, capacity=capacity)
        same(arrays[1], EXPECTED.get(path.stem, lambda x: x)(arrays[0]))


@pytest.mark.parametrize(("name", "columns"), [("pass_through", 1), ("pass_through_8_columns", 8)])
def test_a_pass_through_is_legal_and_waits_for_one_token_of_each_column(name, columns):
    text = (EXAMPLES / f"{name}.mlir").read_text()
    found = verify_design(text, name)
    assert (found.faults, found.warnings) == ((), ())
    waits = [op for op in decode(encode_mlir(text)).operations if isinstance(op, Sync)]
    assert waits == [Sync(0, 0, column, 1, 1, 0) for column in range(columns)]
    assert len(re.findall("issue_token = true", text)) == columns
