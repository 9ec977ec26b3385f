"""Compositions whose steps write rows of what the host gives, such as keys of new tokens into a cache that grows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bdforge.design.sequences import OperandError
from bdforge.devices.register_names import What, register_at
from bdforge.devices.txn_format.operations import BlockWrite, MaskWrite, Write
from bdforge.operators import plan_of
from bdforge.runtime import BuiltDesign, Loaded, load, run
from bdforge.runtime.composition import CompositionFault
from support import cached_tokens
from support.cached_tokens import BF16, CACHED, DIM, HEADS, PASSED, composed
from support.differences import same


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cached_tokens.built(tmp_path_factory)


def attended(x: np.ndarray) -> np.ndarray:
    """Causal attention of all tokens in float64; angles are 0, so that heads stay as they are."""
    q, k, v = x[:, :HEADS].astype(np.float64), x[:, HEADS].astype(np.float64), x[:, HEADS + 1].astype(np.float64)
    scores = np.einsum("qhd,kd->hqk", q, k) / np.sqrt(DIM)
    scores = np.where(np.tril(np.ones(scores.shape[1:], bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hqk,kd->qhd", weights / weights.sum(-1, keepdims=True), v)


def grown(loaded: Loaded, x: np.ndarray, pieces: list[int]) -> np.ndarray:
    """Y of tokens that come in pieces, each with one more run in the memory of the last one."""
    state, found, first = loaded.prepared(tokens=max(pieces), keys=len(x)), [], 0
    for count in pieces:
        one = loaded.resized(state, tokens=count, keys=first + count)
        one.arrays["x"][...] = x[first : first + count]
        one.arrays["angles"][...] = np.arange(DIM) < DIM // 2
        one()
        found.append(one.arrays["y"].astype(np.float64))
        first += count
        same(state.arrays["k_cache"][:first, 0], x[:first, HEADS], "keys so far")
    return np.concatenate(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cached", "resident", "passed"])
def test_a_cache_grows_in_its_memory(built: Path, name: str):
    x = np.random.default_rng(2).normal(size=(41, HEADS + 2, DIM)).astype(BF16)
    loaded = load(built / name)
    exact = attended(x)
    for pieces in ([18, 1, 1, 5, 16], [41], [40, 1]):
        off = grown(loaded, x, pieces) - exact
        assert (off**2).sum() / (exact**2).sum() < 1e-4, pieces


def test_resident_designs_that_share_no_tile_need_no_change(built: Path):
    assert composed(built, resident=True).changes.operations == ()
    assert composed(built).changes.operations


def test_a_resident_core_that_another_design_passes_waits(built: Path):
    """Of its tile the switch alone changes: it does not start anew."""
    written = [
        register_at(operation.address)
        for change in composed(built, resident=True, steps=PASSED).changes.operations
        for operation in change
        if isinstance(operation, Write | BlockWrite | MaskWrite)
    ]
    passed = {register.what for register in written if (register.column, register.row) == (0, 2)}
    assert passed
    assert passed <= {What.MASTER, What.SLAVE}


def test_steps_are_judged_by_the_rows_that_were_written(built: Path):
    design = BuiltDesign.load(built / "cached")
    inputs = plan_of(design.manifest).random(plan_of(design.manifest).problems[0], 4)
    made = run(design, inputs)
    right = plan_of(design.manifest).expected(inputs, made.outputs | made.between)
    off = np.abs(made.outputs["y"].astype(np.float64) - right["y"].values)
    assert (off <= right["y"].bound).all()
    stale = plan_of(design.manifest).expected(inputs, {**made.outputs, **made.between, "v": -made.outputs["v"]})
    assert not (np.abs(made.outputs["y"].astype(np.float64) - stale["y"].values) <= stale["y"].bound).all()


def test_a_larger_problem_has_no_room_in_the_memory_of_a_smaller_one(built: Path):
    loaded = load(built / "cached")
    state = loaded.prepared(tokens=1, keys=20)
    assert loaded.resized(state, keys=18).sizes == {"tokens": 1, "keys": 18}
    with pytest.raises(OperandError, match="keys of 1x21 takes 2688 bytes, and has 2560"):
        loaded.resized(state, keys=21)


def on_half(step: dict[str, Any]) -> dict[str, Any]:
    return step | {"tensors": step["tensors"] | {"Q": "half"}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"views": {"k": {"of": "v_cache", "first": -1}}}, "from one before the first on"),
        ({"views": {"k": {"of": "v_cache", "first": "keys + word"}}}, "word"),
        ({"views": {"k": {"of": "q"}}}, "which no step takes from the host"),
        ({"views": {"x": {"of": "k_cache"}}}, "X is part of k_cache, which no step before makes"),
        (
            {
                "views": {"half": {"of": "q"}},
                "in_place": {"y": "q"},
                "steps": [CACHED["steps"][0], on_half(CACHED["steps"][1])],
            },
            "Y is y, which is to lie in place of q, of which half is part",
        ),
        ({"views": {"odd": {"of": "k_cache"}}}, "no step has odd, which is to be part"),
        ({"views": {"k": {"of": "k_cache"}}, "buffers": {"keys": ["k"]}}, "a tensor lies in one place"),
    ],
)
def test_rows_that_cannot_be_are_refused(built: Path, changes: dict[str, Any], said: str):
    with pytest.raises(CompositionFault, match=said):
        composed(built, **changes)


@pytest.mark.parametrize(("tokens", "keys"), [(21, 20), (1, 15), (3, 2)])
def test_sizes_that_leave_a_cache_are_refused(built: Path, tokens: int, keys: int):
    with pytest.raises(Exception, match=r"tokens = 21, keys = 20|tiles have"):
        BuiltDesign.load(built / "cached").sequence({"tokens": tokens, "keys": keys})
