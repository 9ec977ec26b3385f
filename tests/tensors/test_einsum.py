"""`bdforge.einsum` on the emulated array against numpy.einsum: one loaded array for all contractions of a type."""

import gc
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import emulate
from bdforge.design.sequences import PlannedSequence
from bdforge.devices import device_named
from bdforge.devices.types import TYPES
from bdforge.models.tensors import Einsum, plans
from bdforge.models.tensors.contraction_tree import arranged, tree_of
from bdforge.models.tensors.plans import Plans
from bdforge.models.tensors.tensor_operands import walkable
from bdforge.operators.contraction import ContractionError, contraction, plan_contraction
from bdforge.operators.gemm import load_spec, plan_gemm
from bdforge.runtime import Loaded, OperandError
from support.built_designs import ROOT, build, spec_content
from support.differences import same
from support.idle_backend import IdleBackend
from support.tccg import Case, random_case, tccg

DESIGNS = {
    "bf16": (("bf16", "bf16", "f32"), "row row row", (8, 8, 8)),
    "int8": (("int8", "int8", "int32"), "row row row", (8, 16, 8)),
    "columns": (("bf16", "bf16", "f32"), "column column column", (16, 16, 8)),
    "int2": (("int8", "int2", "int32"), "row packed row", (16, 16, 32)),
}


@pytest.fixture(scope="module")
def arrays(tmp_path_factory) -> dict[str, Einsum]:
    """A loaded array of two rows by two columns for each set of types."""
    folder = tmp_path_factory.mktemp("einsum")
    for name, (types, layouts, tile) in DESIGNS.items():
        build(folder / name, spec_content(*tile, types=types, layouts=layouts), name)
    return {name: Einsum(bdforge.load(folder / name)) for name in DESIGNS}


@pytest.mark.slow
def test_an_array_that_contractions_ran_on_goes_with_its_last_user(arrays):
    loaded = bdforge.load(arrays["int8"].loaded.design.folder)
    a = np.ones((9, 17), np.int8)
    for _ in range(2):
        same(bdforge.einsum("ij,kj->ik", a, a, on=loaded), np.full((9, 9), 17))
    gone = weakref.ref(loaded)
    del loaded
    gc.collect()
    assert gone() is None


class Shuffled(IdleBackend):
    """A backend that runs a design anew under the adversarial schedule of a seed, with poisoned memory."""

    def __init__(self, design, seed: int):
        self.design, self.seed = design, seed

    def run(self, planned: PlannedSequence, buffers: Sequence[np.ndarray], timeout_seconds: float) -> tuple[str, ...]:
        design = self.design
        return emulate(
            design.mlir, buffers, design.kernels, instructions=planned.words(), schedule="random", seed=self.seed,
            poison=True,
        ).warnings  # fmt: skip


def check(array: Einsum, case: Case, seed: int, gaps: tuple[int, ...] = (0,), staged: str | None = None) -> None:
    """Small integers are exact in every type."""
    spec = array.plans.gemm.spec
    x, y = case.arrays(np.random.default_rng(seed), (spec.a, spec.b), gaps)
    got = array(case.expression, x, y, staged=staged)
    want = np.einsum(case.expression, x.astype(np.int64), y.astype(np.int64))
    same(got.astype(np.int64), want, f"{case}, staged {staged}")


@pytest.mark.slow
@pytest.mark.parametrize("case", tccg(), ids=lambda case: case.expression)
def test_the_benchmark_at_reduced_sizes(arrays, case):
    check(arrays[("bf16", "int8")[int(case.name) % 2]], case.reduced, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("case", tccg(), ids=lambda case: case.expression)
def test_the_benchmark_at_reduced_sizes_for_every_type(arrays, case, name):
    check(arrays[name], case.reduced, 2)


@pytest.mark.daily(every=4)
@pytest.mark.parametrize("seed", [0, 2, 3, 4, 7, 8, 9, 10])
def test_random_contractions(arrays, seed):
    check(arrays[list(DESIGNS)[seed % 4]], random_case(seed), seed, (0, 0, 2))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300))
def test_many_random_contractions_under_two_adversaries(arrays, seed):
    array = arrays[list(DESIGNS)[seed % 4]]
    for adversary in (seed, 1000 + seed):
        check(
            Einsum(Loaded(array.loaded.design, Shuffled(array.loaded.design, adversary))),
            random_case(seed),
            seed,
            (0, 0, 1, 2),
        )


STAGINGS = {
    "": ("abk,knc->acbn", {"a": 3, "b": 16, "k": 32, "n": 16, "c": 2}),
    "A": ("kab,knc->abcn", {"a": 3, "b": 12, "k": 24, "n": 16, "c": 2}),
    "B": ("abk,nk->abn", {"a": 5, "b": 9, "k": 40, "n": 18}),
    "C": ("qak,kqn->qna", {"q": 3, "a": 18, "k": 16, "n": 20}),
    "AB": ("ka,nk->an", {"a": 17, "k": 21, "n": 14}),
}


@pytest.mark.daily(every=3)
@pytest.mark.parametrize("staged", STAGINGS)
@pytest.mark.parametrize("adversary", [3, 4])
def test_operands_are_staged_or_walked_in_place(arrays, staged, adversary):
    expression, sizes = STAGINGS[staged]
    design, made = arrays["bf16"].loaded.design, list[Any]()

    class Seen(Plans):
        def plan(self, expression: str, *arrays: np.ndarray, staged: str | None = None) -> Any:
            made.append(super().plan(expression, *arrays, staged=staged))
            return made[-1]

    array = Einsum(Loaded(design, Shuffled(design, adversary)), Seen(design))
    check(array, Case(staged, expression, sizes), adversary, staged=staged)
    (planned,) = made
    assert "".join(side.name for side in planned.plan.sides if side.staged) == staged


def test_transposed_views_and_gaps_are_read_where_they_are(arrays):
    rng = np.random.default_rng(5)
    x = rng.integers(-4, 5, (6, 20, 36)).astype(np.int8)[:, :16, :32].transpose(2, 0, 1)
    y = rng.integers(-4, 5, (32, 24)).astype(np.int8)
    got = arrays["int8"]("kab,kn->abn", x, y, staged="")
    same(got, np.einsum("kab,kn->abn", x.astype(int), y.astype(int)))


TREES = {
    "abi,icd,cdj,jk->abk": {"a": 3, "b": 8, "i": 16, "c": 4, "d": 8, "j": 9, "k": 12},
    "ij,jk,kl,lm->im": {"i": 17, "j": 16, "k": 24, "l": 8, "m": 9},
    "abc,bx,cy,az->xyz": {"a": 8, "b": 9, "c": 16, "x": 5, "y": 8, "z": 4},
    "ab,bcq,cd->ad": {"a": 9, "b": 8, "c": 8, "q": 3, "d": 10},
}


@pytest.mark.parametrize("expression", TREES)
def test_trees_run_in_pairs(arrays, expression):
    """Ones and twos, with sums that bf16 holds."""
    rng, sizes = np.random.default_rng(9), TREES[expression]
    dtype = TYPES["bf16"].dtype
    given = []
    for labels in expression.split("->")[0].split(","):
        ones = (rng.random([sizes[label] for label in labels]) < 0.25).astype(dtype)
        given.append(ones)
    got = arrays["bf16"](expression, *given)
    want = np.einsum(expression, *(array.astype(np.float64) for array in given))
    same(got, want, rtol=len(given) * 2**-8)


def test_a_path_of_the_user_s_is_taken(arrays):
    x, y, z = (np.ones(shape, TYPES["bf16"].dtype) for shape in ((4, 8), (8, 9), (9, 2)))
    for path in ([(1, 2), (0, 1)], [(0, 1), (0, 1)]):
        got = bdforge.einsum("ab,bc,cd->ad", x, y, z, on=arrays["bf16"].loaded, path=path)
        same(got, 72)


def test_what_is_no_tree_is_refused_before_anything_runs(arrays):
    x = np.ones((4, 4), TYPES["bf16"].dtype)
    with pytest.raises(OperandError, match="3 arrays for 2 inputs"):
        bdforge.einsum("ab,bc->ac", x, x, x, on=arrays["bf16"].loaded)


def test_results_of_integers_are_no_operands(arrays):
    x = np.ones((4, 4), np.int8)
    with pytest.raises(ContractionError, match="a result of int32 is no operand of int8 x int8 without scaling"):
        arrays["int8"]("ab,bc,cd->ad", x, x, x)


def test_intermediates_are_kept_in_the_order_that_needs_no_copies():
    gemm = plan_gemm(load_spec(ROOT / "designs" / "gemm_bf16_bf16_f32_64x64x64.toml"), device_named("phoenix"))
    sizes = {"a": 256, "b": 8, "i": 256, "c": 256, "d": 256}
    tree = tree_of("abi,bic,cd->abd", [(0, 1), (0, 1)])

    def copies(one) -> float:
        plans = (plan_contraction(contraction(one.expression(s), _own(one, s, sizes)), gemm) for s in one.steps)
        return sum(sum(plan.choice.price.copies_us) for plan in plans)

    turned = replace(tree, labels=(*tree.labels[:3], "cab", *tree.labels[4:]))
    assert copies(turned) > copies(arranged(turned, sizes, gemm)) == 0


@pytest.mark.parametrize(
    ("cheap", "kept"), [("", "abc"), ("abc", "abc"), ("bac", "bac"), ("cba", "cba"), ("cab", "abc"), ("bca", "abc")]
)
def test_intermediates_come_as_they_are_or_with_their_sums_last_or_first_in_the_order_of_the_reader(
    monkeypatch, cheap: str, kept: str
):
    """Kept are b and a in the reader's order, summed is c. Of equals the one as it comes; both steps count."""
    found = tree_of("abi,bic,cd->bad", [(0, 1), (0, 1)])
    asked: list[str] = []

    def cost(expression: str, sizes: object, gemm: object) -> int:
        asked.append(expression)
        first, second = expression.split("->")[1] == cheap, expression.startswith(f"{cheap},") and bool(cheap)
        return 1 - first - second

    monkeypatch.setattr("bdforge.models.tensors.contraction_tree._us", cost)
    assert arranged(found, {}, None).labels[3] == kept  # type: ignore[arg-type]
    assert set(asked) == {f"abi,bic->{order}" for order in ("abc", "bac", "cba")} | {
        f"{order},cd->bad" if found.steps[1].x == 3 else f"cd,{order}->bad" for order in ("abc", "bac", "cba")
    }


def _own(tree, step, sizes):
    return {label: sizes[label] for label in sizes if label in tree.expression(step)}


def test_the_front_door_takes_a_folder(arrays):
    folder = arrays["int8"].loaded.design.folder
    x, y = np.ones((3, 5), np.int8), np.full((5, 2), 2, np.int8)
    same(bdforge.einsum("ab,bc->ac", x, y, on=folder), 10)


@pytest.mark.parametrize(
    ("expression", "shapes", "said"),
    [
        ("ab,bc->ac", ((3, 5), (4, 2)), "label b is 5 in one operand, 4 in another"),
        ("abc,bc->ac", ((3, 5), (5, 2)), "operand 'abc' has 3 labels; its array has 2 axes"),
    ],
)
def test_shapes_that_contradict_are_refused(arrays, expression, shapes, said):
    with pytest.raises(OperandError, match=said):
        arrays["int8"](expression, *(np.ones(shape, np.int8) for shape in shapes))


def test_other_types_are_refused(arrays):
    with pytest.raises(OperandError, match="operand 0 must be an array of int8, which the design takes, got float64"):
        arrays["int8"]("ab,bc->ac", np.ones((2, 2)), np.ones((2, 2), np.int8))


def test_a_forced_walk_that_there_is_not_is_refused_with_reasons(arrays):
    x, y = np.ones((9, 7), np.int8), np.ones((7, 9), np.int8)
    with pytest.raises(ContractionError, match="K has b = 7, less than a tile of 16 in A and B: stage it"):
        arrays["int8"]("ab,bc->ac", x, y, staged="")


def test_arrays_that_go_backwards_or_nowhere_are_copied_and_others_are_not():
    """What the array reads goes forward in whole elements."""
    plain = np.arange(24, dtype=np.int8).reshape(4, 6)
    wide = np.arange(12, dtype=np.int16)
    odd = np.ndarray((3,), np.int16, wide, strides=(3,))
    for array, copied in ((plain, False), (plain.T, False), (plain[:, ::2], False), (plain[::-1], True),
                          (np.broadcast_to(plain[0], (4, 6)), True), (plain[:1][::-1], False),
                          (np.broadcast_to(plain[0], (1, 6)), False)):  # fmt: skip
        found = walkable(array, 0)
        same(found, array)
        assert np.shares_memory(found, plain) is not copied
    assert not np.shares_memory(walkable(odd, 0), wide)


FORMS = {
    "implied": ("ba,bC", (5, 3), (5, 4)), "the sum of all": ("ab,ba", (3, 5), (5, 3)), "one": ("ab->ba", (3, 5)),
    "a trace": ("aa", (4, 4)), "diagonals": ("aab->ba", (3, 3, 2)), "one summed": ("abc->b", (3, 4, 5)),
    "everything summed": ("ab->", (3, 5)), "a diagonal times": ("aa,ab->b", (4, 4), (4, 5)),
    "three of one": ("aaa,ab->ab", (3, 3, 3), (3, 2)), "batches": ("...ij,...jk", (2, 3, 4), (2, 4, 5)),
    "batches of one": ("...ij,jk->...ik", (2, 2, 3, 4), (4, 5)), "one for many": ("...ij,...jk", (2, 3, 4), (1, 4, 5)),
    "a label of one": ("ij,ij->ij", (1, 4), (3, 4)), "a number": ("ij,->ij", (3, 4), ()), "numbers": (",", (), ()),
    "outer": ("i,j->ij", (3,), (4,)), "elements": ("ij,ij->ij", (3, 4), (3, 4)), "labels alone": ("ijq,jkr->ik",
    (3, 4, 2), (4, 5, 2)), "all alone": ("i,j->", (3,), (4,)), "empty": ("ij,jk->ik", (3, 0), (0, 4)),
    "empty outside": ("ij,jk->ik", (0, 3), (3, 4)), "one beside none": ("i,i->i", (1,), (0,)),
}  # fmt: skip


@pytest.mark.daily(every=3)
@pytest.mark.parametrize("name", ["int8", "bf16"])
@pytest.mark.parametrize("form", FORMS)
def test_expressions_are_numpys(arrays, form, name):
    """Small integers are exact in every type, sums before a product as well."""
    array, (expression, *shapes) = arrays[name], FORMS[form]
    spec, rng = array.plans.gemm.spec, np.random.default_rng(1)
    given = [rng.integers(-3, 4, shape).astype(TYPES[spec.a].dtype) for shape in shapes]
    want = np.asarray(np.einsum(expression, *(one.astype(np.int64) for one in given)))
    got = array(expression, *given)
    assert (got.shape, got.dtype) == (want.shape, TYPES[spec.c].dtype)
    same(np.asarray(got).astype(np.int64), want, expression)
    out = np.full(want.shape[::-1], 77, got.dtype).T
    assert array(expression, *given, out=out) is out
    same(out.astype(np.int64), want, "out")


def test_several_tensors_have_numpys_expressions_too(arrays):
    ones = [np.ones(shape, TYPES["bf16"].dtype) for shape in ((3, 3, 4), (4, 5), (5,))]
    got = arrays["bf16"]("aa...,...b,b", *ones)
    same(got, np.einsum("aa...,...b,b", *(one.astype(float) for one in ones)))


@pytest.mark.parametrize(
    "out",
    [np.zeros((3, 2), np.int32), np.zeros((2, 3)), np.broadcast_to(np.int32(0), (2, 3)), [[0]]],
    ids=["shape", "type", "read-only", "a list"],
)
def test_an_out_that_does_not_hold_the_result_is_refused_before_anything_runs(arrays, out):
    with pytest.raises(OperandError, match="out"):
        arrays["int8"]("ij,jk->ik", np.ones((2, 4), np.int8), np.ones((4, 3), np.int8), out=out)


@pytest.mark.parametrize("staged", ["D", "a", "AA", "AAAA", "A,B"])
def test_operands_that_there_are_not_cannot_be_staged(arrays, staged):
    with pytest.raises(ContractionError, match="names operands of A, B and C, each once"):
        arrays["int8"]("ij,jk->ik", np.ones((2, 4), np.int8), np.ones((4, 3), np.int8), staged=staged)


def test_plans_that_were_used_last_are_kept(arrays, monkeypatch):
    monkeypatch.setattr(plans, "PLANS_MAX", 2)
    kept, x = Plans(arrays["int8"].loaded.design), np.ones((4, 4), np.int8)
    plan = lambda size: kept.plan("ab,bc->ac", x[:size], x)  # noqa: E731
    first = plan(1)
    assert plan(2) is not first
    assert plan(1) is first
    plan(3)
    assert plan(1) is first
    assert kept._kept.cache_info().misses == 3
    plan(2)
    assert kept._kept.cache_info().misses == 4, "it was used before the others"
