"""Types, fusion and faults of contractions, worked out by hand."""

import pytest

from bdforge.operators.contraction import ContractionError, contraction


def test_types_follow_from_the_tensors_that_have_a_dimension():
    found = contraction("bmk,nbk->bnm", {"b": 2, "m": 3, "n": 5, "k": 7})
    assert {dim.name: (dim.kind, dim.strides) for dim in found.dims} == {
        "b": ("C", (21, 7, 15)), "n": ("N", (None, 14, 3)), "m": ("M", (7, None, 1)), "k": ("K", (1, 1, None)),
    }  # fmt: skip
    assert found.macs == 2 * 3 * 5 * 7


def test_neighbours_are_fused_where_they_are_one_walk_in_every_tensor():
    found = contraction("abk,kcd->abdc", {"a": 2, "b": 3, "c": 4, "d": 5, "k": 6}).fused()
    assert [(dim.name, dim.size, dim.strides) for dim in found.dims] == [
        ("ab", 6, (6, None, 20)), ("d", 5, (None, 1, 4)), ("c", 4, (None, 5, 1)), ("k", 6, (1, 20, None)),
    ]  # fmt: skip


def test_tensors_that_are_copied_do_not_hinder_fusion():
    given = contraction("aebf,fdec->abcd", {"a": 2, "b": 3, "c": 4, "d": 5, "e": 6, "f": 7})
    assert len(given.fused().dims) == 6
    assert {dim.name: dim.size for dim in given.fused([2]).dims} == {"ab": 6, "cd": 20, "fe": 42}


def test_gaps_keep_dimensions_apart():
    sizes = {"a": 4, "b": 4, "c": 4}
    assert len(contraction("ab,bc->ac", sizes, ([5, 1], None, None)).fused().dims) == 3
    assert [d.name for d in contraction("ab,abc->c", sizes, ([5, 1], None, None)).fused().dims if d.kind == "K"] == [
        "a",
        "b",
    ]


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("ab,bc", "must be two inputs and an output"),
        ("ab->ab", "must be two inputs and an output"),
        ("ab,b1->a", "has more than letters"),
        ("aab,bc->ac", "a stands twice in aab; take the diagonal before"),
        ("abx,bc->ac", "label x: only the first input has it: sum"),
        ("ab,bcy->ac", "label y: only the second input has it: sum"),
        ("ab,bc->acz", "label z: no input has it: broadcast"),
        ("aw,wc->ac", "label w: has no size of 1 or more"),
    ],
)
def test_what_is_no_contraction_is_said_by_label(expression, said):
    with pytest.raises(ContractionError, match=said):
        contraction(expression, {label: 4 for label in "abcxyz" if label in expression})


@pytest.mark.parametrize("strides", [[4], [4, 0], [4, -1]])
def test_strides_are_as_many_as_labels_and_go_forward(strides):
    with pytest.raises(ContractionError, match="strides"):
        contraction("ab,bc->ac", {"a": 4, "b": 4, "c": 4}, (strides, None, None))


def test_sizes_of_unknown_labels_are_refused():
    with pytest.raises(ContractionError, match="label q: has a size, but is not in"):
        contraction("ab,bc->ac", {"a": 4, "b": 4, "c": 4, "q": 2})
