"""Laws of the access-pattern algebra, against loop nests."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pattern_strategies import loops, patterns, permutations

from bd_patterns import Pattern, PatternError, compose

quick = settings(deadline=None, derandomize=True, max_examples=60)


def visits(pattern: Pattern) -> list[int]:
    return list(pattern.offsets())


@quick
@given(patterns())
def test_offsets_are_those_of_the_loop_nest(pattern: Pattern):
    expected = loops(pattern.sizes, pattern.strides, pattern.offset)
    assert visits(pattern) == expected
    assert pattern.order().tolist() == expected
    assert pattern.count == len(expected)
    assert pattern.span == (min(expected), max(expected))


@quick
@given(patterns())
def test_coalescing_keeps_order_and_cannot_go_further(pattern: Pattern):
    coalesced = pattern.coalesced()
    assert visits(coalesced) == visits(pattern)
    inner = list(coalesced.dims())[1:]
    assert all(stride != size * t for stride, (size, t) in zip(coalesced.strides, inner, strict=False))
    assert coalesced.count == 1 or 1 not in coalesced.sizes


@quick
@given(patterns(), st.data())
def test_split_keeps_order_and_coalescing_undoes_it(pattern: Pattern, data: st.DataObject):
    axis = data.draw(st.integers(0, pattern.rank - 1))
    size = pattern.sizes[axis]
    inner = data.draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0]))
    split = pattern.split(axis, inner)
    assert split.sizes[axis : axis + 2] == (size // inner, inner)
    assert visits(split) == visits(pattern)
    assert split.coalesced() == pattern.coalesced()


@quick
@given(patterns(), st.data())
def test_permuting_transposes_the_positions(pattern: Pattern, data: st.DataObject):
    axes = data.draw(st.permutations(range(pattern.rank)))
    expected = np.array(visits(pattern)).reshape(pattern.sizes).transpose(axes).ravel()
    assert visits(pattern.permuted(axes)) == expected.tolist()


@quick
@given(patterns(), st.data())
def test_slicing_keeps_the_chosen_positions(pattern: Pattern, data: st.DataObject):
    axis = data.draw(st.integers(0, pattern.rank - 1))
    start = data.draw(st.integers(0, pattern.sizes[axis] - 1))
    stop = data.draw(st.integers(start + 1, pattern.sizes[axis]))
    expected = np.array(visits(pattern)).reshape(pattern.sizes).take(range(start, stop), axis).ravel()
    assert visits(pattern.sliced(axis, start, stop)) == expected.tolist()


@quick
@given(patterns(), st.integers(1, 4), st.integers(0, 7))
def test_repeating_and_shifting_visit_again_and_further_on(pattern: Pattern, times: int, distance: int):
    assert visits(pattern.repeated(times)) == visits(pattern) * times
    assert visits(pattern.shifted(distance)) == [offset + distance for offset in visits(pattern)]


@quick
@given(patterns(), st.integers(1, 4))
def test_refined_visits_the_parts_of_each_element_in_order(pattern: Pattern, parts: int):
    assert visits(pattern.refined(parts)) == [
        parts * offset + part for offset in visits(pattern) for part in range(parts)
    ]


def test_tiling_visits_tile_after_tile():
    matrix = np.arange(6 * 20).reshape(6, 20)
    expected = [matrix[i : i + 3, j : j + 4].ravel() for i in range(0, 6, 3) for j in range(0, 20, 4)]
    assert visits(Pattern.of_shape((6, 20)).tiled(3, 4)) == np.concatenate(expected).tolist()


@quick
@given(permutations())
def test_inverse_undoes_a_permutation(pattern: Pattern):
    order, back = pattern.order(), pattern.inverse().order()
    assert back[order].tolist() == list(range(pattern.count))
    assert order[back].tolist() == list(range(pattern.count))


@quick
@given(patterns(max_rank=3))
def test_inverse_exists_exactly_for_permutations(pattern: Pattern):
    if sorted(visits(pattern)) == list(range(pattern.count)):
        assert pattern.inverse().order()[pattern.order()].tolist() == list(range(pattern.count))
    else:
        with pytest.raises(PatternError, match="has no inverse"):
            pattern.inverse()


@quick
@given(patterns())
def test_from_order_finds_the_coalesced_pattern(pattern: Pattern):
    found = Pattern.from_order(visits(pattern))
    assert found is not None
    assert visits(found) == visits(pattern)
    assert found.rank <= pattern.coalesced().rank


@pytest.mark.parametrize("order", [[0, 1, 2, 4], [2, 1, 0], [0, 1, 5, 6, 9, 10], [-1, 0], []])
def test_from_order_refuses_what_no_loop_nest_visits(order: list[int]):
    assert Pattern.from_order(order) is None


@quick
@given(patterns(), st.data())
def test_composition_lands_each_element_where_the_writer_puts_it(read: Pattern, data: st.DataObject):
    sizes = data.draw(st.permutations(read.sizes))
    strides = data.draw(st.lists(st.integers(0, 20), min_size=read.rank, max_size=read.rank))
    write = Pattern(tuple(sizes), tuple(strides), data.draw(st.integers(0, 5)))
    memory: dict[int, int] = {}
    for source, destination in zip(visits(read), visits(write), strict=True):
        memory[destination] = source
    assert compose(read, write).tolist() == [memory.get(d, -1) for d in range(max(memory) + 1)]


@quick
@given(permutations(), st.data())
def test_then_is_the_single_pattern_of_a_dma_pair(write: Pattern, data: st.DataObject):
    read = Pattern.of_shape(write.sizes, offset=3).permuted(data.draw(st.permutations(range(write.rank))))
    landed = compose(read, write).tolist()
    try:
        single = read.then(write)
    except PatternError:
        assert Pattern.from_order(landed) is None
    else:
        assert visits(single) == landed


@quick
@given(permutations())
def test_then_with_the_own_order_restores_memory(pattern: Pattern):
    assert pattern.then(pattern).is_linear or pattern.count == 1


def test_then_merges_two_small_reorders_into_a_larger_one():
    by_slab = Pattern((4, 6, 4), (4, 16, 1))  # 6 x 16 read in slabs of four columns
    to_tiles = Pattern((4, 2, 3, 4), (12, 48, 4, 1))  # each slab written as 3 x 4 tiles, slab after slab in a row
    assert by_slab.then(to_tiles) == Pattern.of_shape((6, 16)).tiled(3, 4)


def test_then_refuses_a_writer_that_writes_twice_and_what_no_pattern_reads():
    with pytest.raises(PatternError, match="writes an offset twice"):
        Pattern.of_shape((2, 3)).then(Pattern((2, 3), (2, 1)))
    with pytest.raises(PatternError, match=r"is no single pattern; keep the two, or use compose"):
        Pattern((3, 2), (3, 1)).then(Pattern((2, 3), (1, 2)))


def test_the_span_begins_at_the_offset():
    assert Pattern((3, 4), (10, 2), 7).span == (7, 33)
    assert compose(Pattern.of_shape((2,)), Pattern((2,), (1,), 2)).tolist() == [-1, -1, 0, 1]
    assert Pattern((3,), (2,)).then(Pattern((3,), (1,), 5)) == Pattern((3,), (2,))


def test_then_refuses_a_writer_that_leaves_gaps():
    with pytest.raises(PatternError, match="leaves gaps"):
        Pattern.of_shape((2, 3)).then(Pattern((2, 3), (4, 1)))


def test_then_refuses_unequal_counts_by_name():
    with pytest.raises(PatternError, match=r"sends 6 elements but \(5\):\(1\)\+0 takes 5"):
        Pattern.of_shape((2, 3)).then(Pattern.of_shape((5,)))


def test_patterns_print_sizes_strides_and_offset():
    assert str(Pattern((16, 8), (128, 1))) == "(16, 8):(128, 1)+0"
    assert str(Pattern((7,), (2,), 5)) == "(7):(2)+5"


def test_numpy_integers_become_plain_ones():
    pattern = Pattern(tuple(np.array([2, 3])), tuple(np.array([3, 1])), int(np.int64(4)))
    assert [type(v) for v in (*pattern.sizes, *pattern.strides)] == [int] * 4


def test_a_malformed_pattern_is_refused_with_every_fault():
    with pytest.raises(PatternError) as caught:
        Pattern((0, 3), (-1,), -2)
    for fault in (
        "2 sizes but 1 strides",
        "size 0 in dimension 0",
        "stride -1 in dimension 0",
        "offset -2 is negative",
    ):
        assert fault in str(caught.value)


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda: Pattern((), ()), "no dimension"),
        (lambda: Pattern((2.5,), (1,)), "use integers"),  # pyrefly: ignore[bad-argument-type]
        (lambda: Pattern.of_shape((4, 4)).split(1, 3), "size 4 of dimension 1 is no multiple of the inner size 3"),
        (lambda: Pattern.of_shape((4, 4)).split(2, 2), "no dimension 2"),
        (lambda: Pattern.of_shape((4, 4)).sliced(0, 3, 5), "slice 3:5 is empty or outside dimension 0 of size 4"),
        (lambda: Pattern.of_shape((4, 4)).sliced(0, 2, 2), "slice 2:2 is empty"),
        (lambda: Pattern.of_shape((4, 4)).sliced(0, -1, 2), "slice -1:2 is empty or outside dimension 0 of size 4"),
        (lambda: Pattern.of_shape((4, 4)).sliced(2, 0, 1), "no dimension 2; dimensions are 0 to 1"),
        (lambda: Pattern.of_shape((4, 4)).split(-1, 2), "no dimension -1; dimensions are 0 to 1"),
        (lambda: Pattern.of_shape((4, 4)).split(1, 0), "is no multiple of the inner size 0"),
        (lambda: Pattern.of_shape((4, 4)).permuted((0,)), "do not name each of the 2 dimensions"),
        (lambda: Pattern((1,), (0,), -1), "offset -1 is negative"),
        (lambda: Pattern.of_shape((4, 4)).permuted((0, 0)), "do not name each of the 2 dimensions"),
        (lambda: Pattern.of_shape((4, 4)).tiled(2), "1 tile sizes for 2 dimensions"),
        (lambda: Pattern.of_shape((4, 4)).repeated(0), "size 0 in dimension 0 is below 1"),
        (lambda: Pattern.of_shape((4, 4)).shifted(-1), "offset -1 is negative"),
    ],
)
def test_impossible_operations_say_why(make, fault: str):
    with pytest.raises(PatternError, match=fault):
        make()
