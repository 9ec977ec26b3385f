"""The designs in examples/: what they do on the emulated array, in any order, with every check in force."""

import re
from pathlib import Path

import numpy as np
import pytest

import bdforge
from bdforge.emulator.verify import verify_design
from bdforge.txn import Sync, decode
from bdforge.txn.insts import encode_mlir
from support.differences import same

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_every_pass_through_is_here():
    assert {path.stem for path in EXAMPLES.glob("*.mlir")} == {"pass_through", "pass_through_8_columns"}


@pytest.mark.parametrize(("name", "columns"), [("pass_through", 1), ("pass_through_8_columns", 8)])
@pytest.mark.parametrize("seed", range(3))
def test_a_pass_through_copies_in_any_order(name, columns, seed):
    text = (EXAMPLES / f"{name}.mlir").read_text()
    rng = np.random.default_rng(seed)
    source, target = rng.integers(1, 2**31, 4096 * columns, np.int32), np.zeros(4096 * columns, np.int32)
    result = bdforge.emulate(text, [source, target], schedule="random", seed=seed, poison=True)
    same(target, source)
    assert result.warnings == ()


@pytest.mark.parametrize(("name", "columns"), [("pass_through", 1), ("pass_through_8_columns", 8)])
def test_a_pass_through_is_legal_and_waits_for_one_token_of_each_column(name, columns):
    text = (EXAMPLES / f"{name}.mlir").read_text()
    found = verify_design(text, name)
    assert (found.faults, found.warnings) == ((), ())
    waits = [op for op in decode(encode_mlir(text)).operations if isinstance(op, Sync)]
    assert waits == [Sync(0, 0, column, 1, 1, 0) for column in range(columns)]
    assert len(re.findall("issue_token = true", text)) == columns
