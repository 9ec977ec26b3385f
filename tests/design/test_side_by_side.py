"""Two designs in one array: each has its result whatever the other one does."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest

import bdforge
from bdforge.design.sequences.buffers import arguments, fetched, placed
from bdforge.devices import DEVICES
from bdforge.devices.register_names import What, register_at
from bdforge.devices.txn_format.codec import encode
from bdforge.devices.txn_format.operations import Operation, Sync, Write
from bdforge.operators import load_spec, operator_of, plan, render
from support.differences import same
from support.examples import EXAMPLES

PLANNED = plan(load_spec(EXAMPLES / "documents" / "side_by_side.toml"), DEVICES["strix_halo"])
SIZES = [(16, 16, 16), (992, 32, 80), (48, 80, 1024)]
OUTPUTS = "b", "d"  # of columns 0 and 1


def check(sizes: Sequence[int], outputs: Iterable[str], stuck: int | None = None, **options: Any) -> None:
    """Compare outputs of a run with numpy's; a `stuck` column gets no input, and nobody waits for it."""
    problem = operator_of(PLANNED.spec).problem(sizes)
    inputs, sequence = PLANNED.random(problem, seed=1), PLANNED.sequence(problem)
    buffers = arguments(sequence, placed(sequence, inputs))
    words = encode([op for op in sequence.operations() if not _feeds(op, stuck)], sequence.device)
    kernels = {"add_one": lambda x, y: np.add(x, 1, out=y)}
    bdforge.emulate(render(PLANNED, []), buffers, kernels, instructions=words, **options)
    found, expected = fetched(sequence, buffers), PLANNED.reference(inputs)
    for name in outputs:
        same(found[name], expected[name].values, name)


def _feeds(operation: Operation, column: int | None) -> bool:
    if isinstance(operation, Sync):
        return operation.column == column
    register = register_at(operation.address) if isinstance(operation, Write) else None
    return (
        register is not None
        and register.column == column
        and register.what is What.QUEUE
        and (register.direction == "MM2S")
    )


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("options", [{}, {"schedule": "random", "seed": 2}], ids=str)
def test_each_computes_what_it_would_alone(sizes: Sequence[int], options: dict[str, Any]):
    check(sizes, OUTPUTS, **options)


@pytest.mark.parametrize("stuck", [0, 1])
def test_neither_waits_for_the_other(stuck: int):
    check(SIZES[1], [OUTPUTS[1 - stuck]], stuck)


def test_both_are_started_before_either_is_awaited():
    operations = PLANNED.sequence(operator_of(PLANNED.spec).problem(SIZES[0])).operations()
    awaited = [isinstance(operation, Sync) for operation in operations]
    assert awaited == sorted(awaited)
    assert sum(awaited) == 2
