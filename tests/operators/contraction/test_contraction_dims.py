"""Types, fusion and faults of contractions, worked out by hand."""

import pytest

from bdforge.operators.contraction import ContractionError, contraction


def test_types_follow_from_the_tensors_that_have_a_dimension():
    found = contraction("bmk,nbk->bnm", {"b": 2, "m": 3, "n": 5, "k": 7})
    assert {dim.name: (dim.kind, dim.strides) for dim in found.dims} == {
        "b": ("C", (21, 7, 15)), "n": ("N", (None, 14, 3)), "m": ("M", (7, None, 1)), "k": ("K", (1, 1, None)),
    }  # fmt: skip
    assert found.macs == 2 * 3 * 5 * 7


def test_spaces_of_an_expression_are_passed_over():
    sizes = {"a": 2, "b": 3, "c": 4}
    assert contraction(" ab, b c -> a c ", sizes) == contraction("ab,bc->ac", sizes)


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
        ("ab,bc,ca->a", "must be two inputs and an output"),
        ("ab,b_->a", "'b_' has more than letters"),
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


@pytest.mark.parametrize("strides", [[4], [4, 0], [0, 4], [4, -1], [4, 2, 1], []])
def test_strides_are_as_many_as_labels_and_go_forward(strides):
    with pytest.raises(ContractionError, match=r"strides .* of ab: must be 2 numbers of 1 or more"):
        contraction("ab,bc->ac", {"a": 4, "b": 4, "c": 4}, (strides, None, None))


def test_a_stride_and_a_size_may_be_1():
    found = contraction("ab,bc->ac", {"a": 1, "b": 4, "c": 1}, ([1, 1], None, None))
    assert [(dim.size, dim.strides) for dim in found.dims] == [
        (1, (1, None, 1)), (1, (None, 1, 1)), (4, (1, 1, None)),
    ]  # fmt: skip
    assert [dim.kind for dim in contraction("ab,ab->", {"a": 1, "b": 1}).dims] == ["K", "K"]


@pytest.mark.parametrize("size", [0, -1])
def test_a_size_below_1_is_none(size: int):
    with pytest.raises(ContractionError, match="label b: has no size of 1 or more; give one, as in b=64"):
        contraction("ab,bc->ac", {"a": 4, "b": size, "c": 4})


def test_sizes_of_unknown_labels_are_refused():
    with pytest.raises(ContractionError, match="label q: has a size, but is not in ab,bc->ac"):
        contraction("ab,bc->ac", {"a": 4, "b": 4, "c": 4, "q": 2})


def test_exchanged_inputs_change_m_and_n_and_twice_is_once_more_the_same():
    """Members of fused dimensions, too: ab of the first input is ab of the second one."""
    found = contraction("abk,kc->abc", {"a": 2, "b": 3, "c": 4, "k": 5}).fused()
    other = found.exchanged()
    assert [(d.name, d.kind, d.strides) for d in other.dims] == [
        ("ab", "N", (None, 5, 4)), ("c", "M", (1, None, 1)), ("k", "K", (4, 1, None)),
    ]  # fmt: skip
    assert [(m.name, m.strides) for m in other.dims[0].members] == [("a", (None, 15, 12)), ("b", (None, 5, 4))]
    assert (found.swapped, other.swapped, other.exchanged()) == (False, True, found)


@pytest.mark.parametrize(("sizes", "strides", "joined"), [
    ((2, 3), (3, 1), "ab"), ((3, 2), (1, 3), "ba"), ((2, 3), (2, 1), ""), ((2, 3), (6, 2), "ab"), ((2, 3), (1, 1), ""),
    ((2, 2), (4, 1), ""), ((1, 3), (3, 1), "ab"), ((1, 3), (9, 1), ""),
])  # fmt: skip
def test_a_stride_of_the_inner_one_s_size_joins_whichever_comes_first(sizes, strides, joined):
    """A stride of `b`'s size times its own makes `ab` one walk, and the other way round."""
    found = contraction("abk,kc->abc", {"a": sizes[0], "b": sizes[1], "c": 1, "k": 7}, (None, None, (*strides, 1)))
    assert [dim.name for dim in found.fused([2]).of("M")] == (
        [joined] if joined else sorted("ab", key=lambda x: -strides["ab".index(x)])
    )
