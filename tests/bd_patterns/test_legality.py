"""What fits a BD, and that every reason against it is told."""

from itertools import chain
from math import prod
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pattern_strategies import patterns, word_patterns, words_of

from bd_patterns import Pattern, PatternError, Runs, problems, require_legal, static_fits
from bdforge.devices.limits import AIE2P, TileKind, TileLimits
from bdforge.devices.registers import TILE_REGISTERS
from bdforge.devices.txn_format.bd_encoding import BdError, encode_bd, granules, static_dims, task_transfer

SHIM, MEMTILE, CORE = (AIE2P.limits(kind) for kind in TileKind)
KINDS = (SHIM, MEMTILE, CORE)
quick = settings(deadline=None, derandomize=True, max_examples=80)

# Values at and just beyond every register's edge.
EDGE_SIZES = [1, 2, 3, 4, 64, 65, 255, 256, 512, 513, 1020, 1023, 1024, 4092, 4096]
EDGE_STRIDES = [0, 1, 2, 4, 8, 1 << 13, (1 << 13) + 4, 1 << 15, 1 << 17, (1 << 17) + 4, 1 << 19, 1 << 20, (1 << 22) + 4]


def walked(fields: dict[str, int], base: int, runs: int) -> list[int]:
    """Words that a DMA visits for these register fields; -1 for a word of padding."""
    visited = []
    for run in range(runs):
        start = base
        if fields["iteration_wrap"]:
            start += run % (fields["iteration_wrap"] + 1) * (fields["iteration_step"] + 1)
        visited += [start + displacement if displacement >= 0 else -1 for displacement in displacements(fields)]
    return visited


def displacements(fields: dict[str, int]) -> list[int]:
    found = []
    for word in range(fields["length"]):
        rest, where, padded = word, 0, False
        for d in range(4):
            if f"d{d}_step" not in fields:
                break
            before, after = fields.get(f"d{d}_pad_before", 0), fields.get(f"d{d}_pad_after", 0)
            wrap = fields.get(f"d{d}_wrap", 0)
            place, rest = (rest % (wrap + before + after), rest // (wrap + before + after)) if wrap else (rest, 0)
            padded |= bool(wrap) and not before <= place < before + wrap
            where += (place - before) * (fields[f"d{d}_step"] + 1)
        found.append(-1 if padded else where)
    return found


def words_in(pattern: Pattern, limits: TileLimits, element_bits: int, *, static: bool, padding=()) -> list[int]:
    """The registers of a BD as loaders and tasks write them."""
    if static:
        whole = pattern.rank == 1 and pattern.is_linear and not padding  # written without dimensions
        dims = [] if whole else static_dims(list(pattern.dims()), element_bits)
        pads: Any = [*padding[:-1], tuple(granules(n, element_bits, "padding") for n in padding[-1])] if padding else []
        sizes = [size + sum(pad) for (size, _), pad in zip(dims, pads or [(0, 0)] * len(dims), strict=True)]
        length = prod(sizes) if sizes else granules(pattern.count, element_bits, "length")
        return encode_bd(limits.kind, length_words=length, dims_words=dims, padding=pads)
    runs = Runs.of(pattern, limits, static=False)
    inner = [(1, 0)] * (3 - runs.bd.rank) + list(runs.bd.dims())
    sizes, strides = zip((runs.count, runs.stride), *inner, strict=True)
    moved = task_transfer(limits, sizes, strides, element_bits)
    return encode_bd(
        limits.kind, length_words=moved.length_words, dims_words=moved.dims_words, iteration=moved.iteration
    )


def fields_in(pattern: Pattern, limits: TileLimits, element_bits: int, **how) -> dict[str, int]:
    """What those registers say, by name."""
    return TILE_REGISTERS[limits.kind].bd.decode(words_in(pattern, limits, element_bits, **how))


@quick
@given(st.sampled_from(KINDS), st.booleans(), st.sampled_from([2, 8, 16, 32]), st.integers(1, 3), st.data())
def test_a_legal_pattern_survives_the_registers(limits, static, element_bits, repeat, data: st.DataObject):
    pattern = data.draw(word_patterns(element_bits))
    assume(not problems(pattern, limits, element_bits, static=static, repeat=repeat))
    fields = fields_in(pattern, limits, element_bits, static=static)
    runs = repeat * Runs.of(pattern, limits, static=static).count
    base = pattern.offset * element_bits // 32
    assert walked(fields, base, runs) == words_of(list(pattern.offsets()) * repeat, element_bits)


@pytest.mark.parametrize("limits", KINDS, ids=lambda limits: limits.kind)
def test_problems_know_every_register_edge(limits: TileLimits):
    random, legal = Random(5), 0
    for _ in range(2000):
        static, element_bits = random.random() < 0.5, random.choice([8, 16, 32])
        rank = random.randint(1, 4)
        sizes, strides = random.choices(EDGE_SIZES, k=rank), random.choices(EDGE_STRIDES, k=rank - 1)
        pattern = Pattern(tuple(sizes), (*strides, 1))
        if problems(pattern, limits, element_bits, static=static):
            continue
        legal += 1
        fields_in(pattern, limits, element_bits, static=static)
    assert legal > 100


@quick
@given(patterns(), st.sampled_from(KINDS), st.booleans(), st.sampled_from([2, 8, 32, 64]), st.integers(0, 40))
def test_require_legal_raises_once_with_all_problems(pattern, limits, static, element_bits, buffer_elements):
    found = problems(pattern, limits, element_bits, static=static, buffer_elements=buffer_elements)
    if not found:
        require_legal(pattern, limits, element_bits, static=static, buffer_elements=buffer_elements)
        return
    with pytest.raises(PatternError) as caught:
        require_legal(pattern, limits, element_bits, static=static, buffer_elements=buffer_elements)
    assert str(caught.value).splitlines()[1:] == [f"  - {problem}" for problem in found]


def runtime(pattern: Pattern, limits: TileLimits = SHIM, element_bits: int = 32, **more) -> str:
    return " | ".join(problems(pattern, limits, element_bits, static=False, **more))


def static(pattern: Pattern, limits: TileLimits = MEMTILE, element_bits: int = 32, **more) -> str:
    return " | ".join(problems(pattern, limits, element_bits, static=True, **more))


EDGES = [
    # judge, limits, sizes and strides that fit, and those one step too far
    (runtime, SHIM, ((2, 1023), (4096, 1)), ((2, 1024), (4096, 1)), "size 1024 elements = 1024 granules"),
    (runtime, SHIM, ((1023, 2), (4, 1)), ((1024, 2), (4, 1)), "size 1024 in dimension 0 (d1)"),
    (runtime, SHIM, ((5000, 2, 2), (8, 4, 1)), ((1, 5000, 2), (8, 4, 1)), "size 5000 in dimension 1 (d1)"),
    (runtime, SHIM, ((2, 4), (1 << 20, 1)), ((2, 4), ((1 << 20) + 1, 1)), "exceeds the 1048576"),
    (runtime, MEMTILE, ((2, 4), (1 << 17, 1)), ((2, 4), ((1 << 17) + 1, 1)), "exceeds the 131072"),
    (static, CORE, ((2, 4), (1 << 13, 1)), ((2, 4), ((1 << 13) + 1, 1)), "exceeds the 8192"),
    (static, CORE, ((2, 255), (300, 1)), ((2, 256), (300, 1)), "exceeds the 255 of a core BD"),
    (static, MEMTILE, ((2, 512), (600, 1)), ((2, 513), (600, 1)), "exceeds the 512 that aie.dma_bd takes"),
    (static, CORE, (((1 << 14) - 1,), (1,)), ((1 << 14,), (1,)), "length 16384 granules exceeds the 16383"),
    (static, MEMTILE, (((1 << 17) - 1,), (1,)), ((1 << 17,), (1,)), "length 131072 granules"),
    (static, CORE, ((2, 2, 2), (9, 3, 1)), ((2, 2, 2, 2), (27, 9, 3, 1)), "4 dimensions exceed the 3"),
    (static, MEMTILE, ((2,) * 4, (27, 9, 3, 1)), ((2,) * 5, (81, 27, 9, 3, 1)), "5 dimensions exceed the 4"),
    (runtime, SHIM, ((2,) * 4, (27, 9, 3, 1)), ((2,) * 5, (81, 27, 9, 3, 1)), "and one of runs"),
    (runtime, SHIM, ((64, 1, 2, 4), (8, 0, 5, 1)), ((65, 1, 2, 4), (8, 0, 5, 1)), "exceeds the 64 of the it"),
    (
        runtime,
        MEMTILE,
        ((2,) * 4, (27, 9, 3, 1)),
        ((2,) * 5, (81, 27, 9, 3, 1)),
        "the 3 of a memtile BD and one of runs",
    ),
    (runtime, CORE, ((2,) * 4, (27, 9, 3, 1)), ((2,) * 5, (81, 27, 9, 3, 1)), "the 3 of a core BD and one of runs"),
    (static, SHIM, ((2, 512), (2000, 1)), ((2, 513), (2000, 1)), "exceeds the 512 that aie.dma_bd takes on a shim"),
    (static, MEMTILE, ((2, 9), (1 << 17, 1)), ((2, 9), ((1 << 17) + 1, 1)), "exceeds the 131072"),
    (static, CORE, ((2, 4), (1, 1 << 13)), ((2, 4), (1, (1 << 13) + 1)), "in dimension 1 (d0) exceeds the"),
    (runtime, SHIM, ((1,), (2,)), ((2,), (2,)), "stride 2 in dimension 0 (d0) would be dropped"),
    (runtime, SHIM, ((64, 4), (0, 1)), ((65, 4), (0, 1)), "size 65 in dimension 0 (runs of the task)"),
    (
        runtime,
        SHIM,
        ((2, 1, 2, 4), (1 << 20, 0, 5, 1)),
        ((2, 1, 2, 4), ((1 << 20) + 1, 0, 5, 1)),
        "1048576 of the iteration step",
    ),
    (runtime, SHIM, ((5, 4), (0, 1)), ((2, 5, 4), (8, 0, 1)), "stride 0 in dimension 1 (d1)"),
    (static, MEMTILE, ((5, 4), (1, 8)), ((5, 4), (0, 1)), "stride 0 in dimension 0 (d1) cannot be expressed"),
    (static, MEMTILE, ((1, 4, 4), (1, 8, 1)), ((1, 4, 4), (0, 8, 1)), "stride 0 in dimension 0 (d2) is below 1"),
]


@pytest.mark.parametrize(("judge", "limits", "fits", "too_far", "message"), EDGES)
def test_limits_hold_to_the_last_value(judge, limits: TileLimits, fits: tuple, too_far: tuple, message: str):
    assert judge(Pattern(*fits), limits) == ""
    assert message in judge(Pattern(*too_far), limits)


def test_inner_sizes_count_granules_at_run_time():
    assert runtime(Pattern((2, 4092), (8192, 1)), element_bits=8) == ""
    assert "size 4096 elements = 1024 granules in dimension 1 (d0) exceeds the 1023" in runtime(
        Pattern((2, 4096), (8192, 1)), element_bits=8
    )


def test_linear_patterns_need_no_wrap():
    assert runtime(Pattern((1 << 23,), (1,))) == ""
    assert runtime(Pattern((1, 1, 1 << 23), (0, 0, 1))) == ""
    assert static(Pattern((100_000,), (1,)), element_bits=8) == ""
    assert runtime(Pattern((1, 1, 2048), (8, 4096, 1))) == ""
    assert "exceeds the 1023" in static(Pattern((1, 2048), (4096, 1)), limits=SHIM)


@pytest.mark.parametrize("limits", [SHIM, MEMTILE, CORE])
def test_a_stride_that_mlir_aie_drops_from_tasks_is_named_with_a_form_that_it_keeps(limits):
    assert "write (64, 1, 1):(2, 0, 1)" in runtime(Pattern((64,), (2,)), limits=limits)
    assert "would be dropped" in runtime(Pattern((4, 1, 1, 64), (512, 0, 0, 2)), limits=limits)
    assert runtime(Pattern((64, 1, 1), (2, 0, 1)), limits=limits) == ""
    assert runtime(Pattern((2, 1, 64), (128, 0, 2)), limits=limits) == ""


def test_a_message_tells_when_coalescing_helps():
    assert "coalesced as (8192):(1)+0 it fits" in runtime(Pattern((4, 2048), (2048, 1)))
    assert "coalesced as (2, 4, 3):(64, 8, 1)+0 it fits" in static(Pattern((2, 2, 2, 3), (64, 16, 8, 1)), CORE)
    assert "coalesced" not in runtime(Pattern((4, 2048), (2048, 3)))


def test_a_size_message_offers_a_split():
    assert "split it as (2, 1000)" in runtime(Pattern((2000, 2), (4, 1)))
    assert "split it as (2, 1023)" in runtime(Pattern((2046, 2), (4, 1)))
    assert "split it as (3, 1021)" in runtime(Pattern((3063, 2), (4, 1)))
    assert "choose a size with a factor up to 1023" in runtime(Pattern((1031, 2), (4, 1)))
    assert "split it as (2, 2560)" in runtime(Pattern((2, 5120), (8192, 1)), element_bits=8)
    assert "split it as (2, 512)" in static(Pattern((1024, 4), (8, 1)))
    assert "split it as (2, 64) in several tasks" in runtime(Pattern((128, 4), (0, 1)))


def test_offsets_and_runs_must_be_whole_words():
    assert "offset 2 x 8 bit" in runtime(Pattern((8,), (1,), 2), element_bits=8)
    assert "size 6 x 8 bit" in runtime(Pattern((6,), (1,)), element_bits=8)
    assert "stride 66 x 8 bit" in runtime(Pattern((4, 64), (66, 1)), element_bits=8)
    assert "innermost dimension 0 of 16-bit elements must be 1" in runtime(Pattern((4,), (2,)), element_bits=16)
    assert "stride 3 in dimension 0 of size 1" in runtime(Pattern((1, 4), (3, 1)), element_bits=8)


def test_wide_elements_need_the_rules_of_their_operation():
    assert "elements of 64 bit exceed the 32" in runtime(Pattern((4,), (1,)), element_bits=64)
    assert static(Pattern((4, 4), (8, 1)), element_bits=64) == ""
    assert "innermost stride 2 of 64-bit elements" in static(Pattern((4,), (2,)), element_bits=64)


def test_the_last_index_must_lie_inside_the_buffer():
    assert static(Pattern((4, 8), (16, 1)), buffer_elements=56) == ""
    assert "last index 55 is outside the buffer of 55" in static(Pattern((4, 8), (16, 1)), buffer_elements=55)
    assert "last index 8 is outside" in runtime(Pattern((8,), (1,), 1), buffer_elements=8)
    assert static(Pattern((1, 8), (32, 1)), buffer_elements=32) == ""
    assert "stride 64 in dimension 0 (d1) exceeds the buffer's 32 elements" in static(
        Pattern((1, 8), (64, 1)), buffer_elements=32
    )


def test_static_strides_stay_below_the_verifiers_bound():
    assert static(Pattern((2, 4), ((1 << 19) - 4, 1)), SHIM, 8) == ""
    assert "is not below 524288 elements" in static(Pattern((2, 4), (1 << 19, 1)), SHIM, 8)


def test_the_queue_holds_256_runs():
    assert runtime(Pattern((8,), (1,)), repeat=256) == ""
    assert "1 x 257 runs exceed the 256" in runtime(Pattern((8,), (1,)), repeat=257)
    assert "64 x 5 runs" in runtime(Pattern((64, 8), (0, 1)), repeat=5)
    assert "repeat 0 is below 1" in runtime(Pattern((8,), (1,)), repeat=0)


def test_every_problem_is_told_at_once():
    found = static(Pattern((600, 3, 6, 700), (1 << 19, 0, 33, 2), 1), CORE, 8, buffer_elements=10, repeat=300)
    for part in (
        "4 dimensions",
        "offset 1",
        "33 x 8 bit",
        "must be 1",
        "size 600",
        "stride 0",
        "524288",
        "length",
        "outside",
        "300",
    ):
        assert part in found


@pytest.mark.parametrize("element_bits", [8, 16, 32])
@pytest.mark.parametrize("limits", KINDS, ids=lambda limits: limits.kind)
def test_the_short_question_has_the_answer_of_the_long_one(limits: TileLimits, element_bits: int):
    """For the patterns that `static_fits` is for, at and beyond every edge, one by one and side by side."""
    random, rank, seen = Random(7), limits.dims, []
    strides = [stride for stride in EDGE_STRIDES if stride] + [1 << 18, (1 << 19) - 4]
    for _ in range(400):
        pattern = Pattern(tuple(random.choices(EDGE_SIZES, k=rank)), (*random.choices(strides, k=rank - 1), 1))
        seen.append((pattern, not problems(pattern.coalesced() if pattern.is_linear else pattern,
                                           limits, element_bits, static=True)))  # fmt: skip
    for pattern, fits in seen:
        assert bool(static_fits(pattern.sizes, pattern.strides, element_bits, limits)) == fits, str(pattern)
    sizes, steps = (list(np.array([getattr(pattern, name) for pattern, _ in seen]).T) for name in ("sizes", "strides"))
    assert static_fits(sizes, steps, element_bits, limits).tolist() == [fits for _, fits in seen]


PAD = ((1, 0), (1, 3))


def test_padding_is_checked_field_by_field():
    image = Pattern((4, 8), (8, 1))
    assert static(image, padding=PAD) == ""
    assert "needs a memtile" in static(image, CORE, padding=PAD)
    assert static(image, padding=((0, 0),)) == "1 pairs of padding for 2 dimensions; give one pair for each"
    assert "padding 64 after in dimension 1 (d0) exceeds the 63 granules" in static(image, padding=((0, 0), (63, 64)))
    assert "padding 32 before in dimension 0 (d1) exceeds the 31" in static(image, padding=((32, 31), (0, 0)))
    assert "padding 2 before in dimension 1 (d0) is 16 bit" in static(image, element_bits=8, padding=((0, 0), (2, 4)))
    assert "padding -1 before in dimension 0 (d1) is negative" in static(image, padding=((-1, 0), (0, 0)))
    assert "padding -4 after in dimension 1 (d0) is negative" in static(image, padding=((0, 0), (0, -4)))
    assert static(Pattern((2, 2, 2), (9, 3, 1)), padding=((15, 15), (0, 0), (0, 0))) == ""
    assert "padding 16 before in dimension 0 (d2) exceeds the 15 of" in static(
        Pattern((2, 2, 2), (9, 3, 1)), padding=((16, 0), (0, 0), (0, 0))
    )
    deep = Pattern((2, 2, 2, 2), (27, 9, 3, 1))
    assert "padding 1 after in dimension 0 (d3) exceeds the 0" in static(deep, padding=((0, 1), *[(0, 0)] * 3))
    long = Pattern((500, 256), (256, 1))
    assert "length" in static(long, padding=((7, 6), (0, 0)))
    assert "length" not in static(long, padding=((6, 5), (0, 0)))


@pytest.mark.parametrize(("element_bits", "most"), [(8, 63 * 4), (16, 63 * 2), (32, 63)])
def test_padding_of_the_innermost_dimension_is_limited_in_words(element_bits: int, most: int):
    image, step = Pattern((4, 8), (8, 1)), 32 // element_bits
    assert static(image, element_bits=element_bits, padding=((0, 0), (most, most))) == ""
    assert static(image, element_bits=element_bits, padding=((31, 31), (0, 0))) == ""
    found = static(image, element_bits=element_bits, padding=((0, 0), (most, most + step)))
    assert f"padding {most + step} after in dimension 1 (d0) exceeds the 63 granules" in found


@quick
@given(st.data(), st.sampled_from([8, 32]))
def test_padded_patterns_survive_the_registers(data: st.DataObject, element_bits: int):
    pattern = data.draw(word_patterns(element_bits, max_rank=3))
    per_word = 32 // element_bits
    outer = [(data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))) for _ in range(pattern.rank - 1)]
    inner = (data.draw(st.integers(0, 2)) * per_word, data.draw(st.integers(0, 2)) * per_word)
    padding = [*outer, inner]
    assume(not problems(pattern, MEMTILE, element_bits, static=True, padding=padding))
    fields = fields_in(pattern, MEMTILE, element_bits, static=True, padding=padding)
    assert walked(fields, pattern.offset // per_word, 1) == padded_words(pattern, padding, per_word)


def padded_words(pattern: Pattern, padding: list[tuple[int, int]], per_word: int) -> list[int]:
    """Words in stream order, one dimension at a time."""

    def dimension(axis: int, start: int) -> list[int]:
        if axis == pattern.rank:
            return [start]
        inside = [dimension(axis + 1, start + i * pattern.strides[axis]) for i in range(pattern.sizes[axis])]
        before, after = padding[axis]
        margin = [-1] * len(inside[0])
        return [*margin * before, *chain.from_iterable(inside), *margin * after]

    elements = dimension(0, pattern.offset)
    return [e // per_word if e >= 0 else -1 for e in elements[::per_word]]


@pytest.mark.parametrize(
    ("pattern", "limits", "static", "message"),
    [
        (Pattern((2, 1024), (4096, 1)), SHIM, False, "size of dimension 0 is 1024 words"),
        (Pattern((2, 1024), (4096, 1)), MEMTILE, True, "d0_wrap = 1024 does not fit"),
        (Pattern((2, 2, 2, 2), (27, 9, 3, 1)), CORE, True, "4 dimensions; a core BD has 3"),
        (Pattern((5, 4), (0, 1)), MEMTILE, True, "stride of dimension 1 is 0 words"),
    ],
)
def test_what_has_no_field_is_told_and_not_encoded(pattern, limits, static, message):
    assert problems(pattern, limits, 32, static=static)
    with pytest.raises(BdError, match=message):
        words_in(pattern, limits, 32, static=static)


# Words 0 and 3 to 6 of shim BDs as aie-translate (mlir-aie 5ff2ab97) wrote them for npu2; bits 31:30 of word 4 are the
# burst, bits 27:24 of word 5 the AXI cache, neither of them ours.
@pytest.mark.parametrize(
    ("pattern", "element_bits", "words"),
    [
        (Pattern((1, 8, 32, 64), (0, 64, 512, 1)), 16, ("2000", "02000000", "020000FF", "0000001F", "00000000")),
        (Pattern((2, 2, 16, 32), (65536, 1024, 512, 1)), 16, ("200", "01000000", "010000FF", "000001FF", "00107FFF")),
        (Pattern((5, 40, 64, 64), (0, 64, 2560, 1)), 8, ("A000", "01000000", "0400027F", "0000000F", "00000000")),
        (Pattern((2, 4, 64, 64), (131072, 64, 256, 1)), 32, ("4000", "04000000", "040000FF", "0000003F", "0011FFFF")),
        (Pattern((2, 4, 64, 128), (524288, 128, 2048, 1)), 8, ("2000", "02000000", "040001FF", "0000001F", "0011FFFF")),
        (Pattern((4, 16, 64), (8192, 512, 1)), 8, ("400", "01000000", "0100007F", "000007FF", "00000000")),
        (Pattern((1, 1, 1, 8388608), (0, 0, 0, 1)), 32, ("800000", "0", "0", "0", "0")),
    ],
)
def test_fields_are_those_of_the_real_toolchain(pattern: Pattern, element_bits: int, words: tuple[str, ...]):
    assert problems(pattern, SHIM, element_bits, static=False) == []
    encoded = words_in(pattern, SHIM, element_bits, static=False)
    assert [encoded[word] for word in (0, 3, 4, 5, 6)] == [int(word, 16) for word in words]


@pytest.mark.parametrize("static", [True, False])
def test_elements_have_a_bit_at_least(static: bool):
    pattern = Pattern((32,), (1,))
    assert problems(pattern, MEMTILE, 1, static=static) == []
    for bits in (0, -8):
        assert problems(pattern, MEMTILE, bits, static=static) == [f"element width {bits} bit is below 1"]


@pytest.mark.parametrize(("limits", "sizes", "strides", "static", "runs"), [
    (SHIM, (3, 4), (0, 1), False, ((4,), (1,), 3, 0)), (SHIM, (3, 4), (0, 1), True, None),
    (SHIM, (3, 4), (8, 1), False, None), (SHIM, (1, 4), (0, 1), False, None), (SHIM, (4,), (0,), False, None),
    (SHIM, (5, 2, 3, 4), (64, 32, 8, 1), False, ((2, 3, 4), (32, 8, 1), 5, 64)),
    (SHIM, (1, 2, 3, 4), (64, 32, 8, 1), False, ((2, 3, 4), (32, 8, 1), 1, 64)),
    (SHIM, (2, 3, 4), (32, 8, 1), False, None), (SHIM, (5, 2, 3, 4), (64, 32, 8, 1), True, None),
    (MEMTILE, (5, 2, 3, 4), (64, 32, 8, 1), False, ((2, 3, 4), (32, 8, 1), 5, 64)),
    (MEMTILE, (5, 2, 3, 4), (64, 32, 8, 1), True, None), (CORE, (7, 3, 4), (0, 8, 1), False, ((3, 4), (8, 1), 7, 0)),
])  # fmt: skip
def test_runs_of_a_task_are_its_outermost_repetition_or_a_fourth_dimension(limits, sizes, strides, static, runs):
    """At run time alone; what one run walks begins where the whole pattern does."""
    whole = Pattern(sizes, strides, 40)
    inner, steps, count, stride = runs or (sizes, strides, 1, 0)
    found = Runs.of(whole, limits, static=static)
    assert (found.bd, found.count, found.stride) == (Pattern(inner, steps, 40), count, stride)
    visited = [at + run * found.stride for run in range(found.count) for at in found.bd.offsets()]
    assert visited == list(whole.offsets())
