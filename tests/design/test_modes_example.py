"""The example of two operators in one configuration: both have their results, as kernels and as machine code."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator.verification import verify_design
from bdforge.design import Design
from bdforge.design import render as render_design
from bdforge.design.document import design_of, document
from bdforge.design.sequences.buffers import arguments, fetched, placed
from bdforge.devices import DEVICES
from bdforge.operators import Problem, load_spec, operator_of, plan, render
from bdforge.runtime.toolchain.assembled import built_image
from support.built_designs import kernels_of
from support.differences import same
from support.examples import EXAMPLES

PATH = EXAMPLES / "documents" / "modes.toml"
PLANNED = plan(load_spec(PATH), DEVICES["strix_halo"])
TEXT = render(PLANNED, [])
SIZES = [(1, 1, 1, 1), (33, 130, 129, 8193), (64, 256, 300, 20000)]
SCHEDULES = [{}, {"schedule": "random", "seed": 1}, {"schedule": "random", "seed": 2}]


def check(sizes: Sequence[int], run: Callable[..., Any]) -> None:
    """Compare both outputs of a run with numpy's."""
    problem: Problem = operator_of(PLANNED.spec).problem(sizes)
    inputs, sequence = PLANNED.random(problem, seed=1), PLANNED.sequence(problem)
    buffers = arguments(sequence, placed(sequence, inputs))
    run(buffers, sequence)
    found, expected = fetched(sequence, buffers), PLANNED.reference(inputs)
    for name in ("C", "D"):
        same(found[name], expected[name].values, name)
    assert np.any(np.asarray(found["D"], np.float32))


@pytest.mark.daily(every=3)
@pytest.mark.parametrize("options", SCHEDULES, ids=str)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_both_operators_have_their_results_by_compiled_kernels(sizes, options):
    def run(buffers, sequence) -> None:
        result = bdforge.emulate(
            TEXT, buffers, kernels_of(PLANNED), instructions=sequence.words(), poison=True, **options
        )
        assert result.warnings == ()

    check(sizes, run)


@pytest.mark.slow
@pytest.mark.parametrize("options", SCHEDULES[1:], ids=str)
def test_both_operators_have_their_results_by_machine_code(options):
    made = built_image(TEXT, "modes.mlir", PLANNED.kernels.defines, [])
    assert not made.without

    def run(buffers, sequence) -> None:
        bdforge.emulate("", buffers, device="npu2_4col", instructions=sequence.words(), image=made.xclbin, **options)

    check(SIZES[1], run)


def test_the_example_is_legal_and_short():
    assert verify_design(TEXT, "modes").faults == ()
    assert len(PATH.read_text(encoding="utf-8").splitlines()) <= 190


def test_a_slot_of_one_mode_is_one_of_the_other():
    (core, *_) = (tile for tile in PLANNED.design.tiles if tile.core)
    at = {buffer.name: buffer.address for buffer in core.buffers}
    assert [at[f"core_0_{name}_ping"] for name in "efd"] == [at[f"core_0_{name}_ping"] for name in "abc"]
    assert TEXT.count("aie.buffer(%core_0)") == 5


def test_the_example_printed_is_the_example():
    whole = PLANNED.whole
    content = document(whole)
    assert content.count("[program.") == 1
    assert '{ case = { number = "column" }' in content
    again = design_of(content, "again.toml")
    assert document(again) == content
    assert text_of(again) == text_of(whole)


def text_of(design: Design) -> str:
    return render_design(replace(design, program=None))
