"""Buffer descriptors in words, against a walk of the registers as hardware reads them; raw ones field by field."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bdforge.array.mlir.register_ops import WRITEBD_FIELDS
from bdforge.devices import AIE2, AIE2P, Generation, TileKind
from bdforge.devices.bd_registers import RegisterError
from bdforge.devices.registers import TILE_REGISTERS
from bdforge.devices.txn_format.bd_encoding import (
    BdError,
    BdLock,
    burst_code,
    dims_in_words,
    drops_stride,
    encode_bd,
    granules,
    memcpy_transfer,
    raw_bd_words,
    reach_words,
    static_dims,
    task_transfer,
)

SETTINGS = settings(deadline=None, derandomize=True, max_examples=120)
SHIM, MEMTILE, CORE = (AIE2P.limits(kind) for kind in (TileKind.SHIM, TileKind.MEMTILE, TileKind.CORE))


def walk(kind: TileKind, words: list[int], executions: int = 1) -> list[int]:
    """Word offsets that a BD's registers visit: wrap 0 never wraps, steps are stored less 1, the length ends it all."""
    values = TILE_REGISTERS[kind].bd.decode(words)
    base = values["address_low"] // 4 if kind is TileKind.SHIM else values["address"]
    steps = [values[f"d{i}_step"] + 1 for i in range(4) if f"d{i}_step" in values]
    wraps = [values.get(f"d{i}_wrap", 0) for i in range(len(steps))]
    visited = []
    for execution in range(executions):
        start = base + execution % (values["iteration_wrap"] + 1) * (values["iteration_step"] + 1)
        for word in range(values["length"]):
            rest, offset = word, start
            for wrap, step in zip(wraps, steps, strict=True):
                index, rest = (rest, 0) if wrap == 0 else (rest % wrap, rest // wrap)
                offset += index * step
            visited.append(offset)
    return visited


def loops(sizes, strides, offset=0) -> list[int]:
    """Element offsets of nested loops, first entry outermost."""
    indices = itertools.product(*map(range, sizes))
    return [offset + sum(i * t for i, t in zip(index, strides, strict=True)) for index in indices]


@given(st.data(), st.sampled_from([SHIM, MEMTILE, CORE]))
@SETTINGS
def test_registers_visit_what_the_dimensions_say(data, limits):
    rank = data.draw(st.integers(1, limits.dims))
    dims = data.draw(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 90)), min_size=rank, max_size=rank))
    runs, stride = data.draw(st.tuples(st.integers(1, 4), st.integers(0, 50)))
    base = data.draw(st.integers(0, 300))
    sizes, strides = zip(*dims, strict=True)
    words = encode_bd(
        limits.kind, length_words=int(np.prod(sizes)), dims_words=dims, iteration=(runs, stride), address=4 * base
    )
    assert walk(limits.kind, words, runs) == loops((runs, *sizes), (stride, *strides), base)


@given(st.data(), st.sampled_from([SHIM, MEMTILE, CORE]), st.sampled_from([8, 16, 32]))
@SETTINGS
def test_memcpy_transfers_move_the_elements_of_their_loops(data, limits, bits):
    per_word = 32 // bits
    sizes = data.draw(st.tuples(*[st.integers(1, 4)] * 3, st.integers(1, 6).map(lambda n: n * per_word)))
    strides = data.draw(st.tuples(*[st.integers(0 if i == 0 else 1, 40) for i in range(3)]))
    strides = (*(t * per_word for t in strides), data.draw(st.integers(1, 5)) if bits == 32 else 1)
    transfer = memcpy_transfer(limits, sizes, strides, bits)
    words = encode_bd(
        limits.kind,
        length_words=transfer.length_words, dims_words=transfer.dims_words, iteration=transfer.iteration,
    )  # fmt: skip
    elements = np.array(walk(limits.kind, words, sizes[0]))[:, None] * per_word + np.arange(per_word)
    assert elements.ravel().tolist() == loops(sizes, strides)


def test_linear_transfers_may_be_longer_than_any_wrap():
    transfer = memcpy_transfer(SHIM, (1, 1, 1, 8_388_608), (0, 0, 0, 1), 32)
    assert (transfer.length_words, transfer.dims_words, transfer.iteration) == (8_388_608, (), None)


def test_a_run_stride_of_zero_is_a_plain_repeat():
    assert memcpy_transfer(SHIM, (5, 2, 3, 8), (0, 64, 16, 1), 32).iteration is None
    assert memcpy_transfer(SHIM, (5, 2, 3, 8), (128, 64, 16, 1), 32).iteration == (5, 128)
    assert memcpy_transfer(SHIM, (1, 2, 3, 8), (128, 64, 16, 1), 32).iteration is None
    assert memcpy_transfer(SHIM, (2, 2, 3, 8), (1, 64, 16, 1), 32).iteration == (2, 1)


@given(st.data())
@SETTINGS
def test_a_transfer_reaches_as_far_as_its_farthest_word(data):
    rank = data.draw(st.integers(0, 3))
    dims = data.draw(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 30)), min_size=rank, max_size=rank))
    inner = int(np.prod([size for size, _ in dims[1:]], dtype=int))
    length = data.draw(st.integers(0, 3)) * inner if dims else data.draw(st.integers(0, 9))
    iteration = data.draw(st.none() | st.tuples(st.integers(1, 4), st.integers(0, 50)))
    runs, step = iteration or (1, 0)
    if not length:
        assert reach_words(0, dims, iteration) == (runs - 1) * step
        return
    sizes = [length // inner, *(size for size, _ in dims[1:])] if dims else [length]
    strides = [stride for _, stride in dims] or [1]
    assert reach_words(length, dims, iteration) == 1 + max(loops((runs, *sizes), (step, *strides)))


def test_a_length_that_ends_within_the_outermost_size_reaches_into_it():
    assert reach_words(9, [(9, 100), (4, 1)]) == 1 + 2 * 100 + 3
    assert reach_words(8, [(9, 100), (4, 1)]) == 1 + 100 + 3


def test_static_dimensions_keep_strides_that_are_never_stepped_by():
    assert static_dims([(1, 6), (4, 8), (2, 1)], 32) == [(1, 6), (4, 8), (2, 1)]
    assert static_dims([(1, 7), (4, 8), (4, 1)], 16) == [(1, 3), (4, 4), (2, 1)]  # 3.5 words, rounded down
    assert static_dims([(2, 6), (1, 9)], 32) == [(2, 6), (1, 9)]
    assert static_dims([(1, 3), (8, 1)], 8) == [(1, 0), (2, 1)]
    with pytest.raises(BdError, match="stride of dimension 1 is 7 elements of 16 bits, 14 bytes"):
        static_dims([(2, 7), (4, 1)], 16)


@pytest.mark.parametrize(
    ("sizes", "strides", "memcpy", "task"),
    [
        ((1, 1, 1, 8), (0, 0, 0, 1), True, True), ((3, 1, 1, 8), (9, 0, 0, 1), True, True),
        ((1, 1, 1, 8), (0, 9, 0, 1), False, True), ((1, 1, 1, 8), (0, 0, 9, 1), False, True),
        ((1, 1, 1, 8), (0, 0, 0, 2), False, True), ((1, 1, 2, 8), (0, 0, 9, 1), False, False),
        ((1, 2, 1, 8), (0, 9, 0, 1), False, False),
    ],
)  # fmt: skip
def test_what_is_linear_holds_no_dimensions(sizes, strides, memcpy, task):
    """mlir-aie asks a memcpy's strides too, a task's sizes only."""
    assert (memcpy_transfer(SHIM, sizes, strides, 32).dims_words == ()) == memcpy
    assert (task_transfer(SHIM, sizes, strides, 32).dims_words == ()) == task


def test_a_memtiles_third_dimension_has_no_wrap_at_run_time():
    assert memcpy_transfer(MEMTILE, (1, 2, 3, 8), (0, 64, 16, 1), 32).dims_words == ((0, 64), (3, 16), (8, 1))
    assert memcpy_transfer(MEMTILE, (1, 1, 3, 8), (0, 64, 16, 1), 32).dims_words == ((3, 16), (8, 1))
    assert memcpy_transfer(SHIM, (1, 1, 3, 8), (0, 64, 16, 1), 32).dims_words == ((1, 0), (3, 16), (8, 1))
    assert memcpy_transfer(SHIM, (1, 2, 3, 8), (0, 64, 16, 1), 32).dims_words == ((2, 64), (3, 16), (8, 1))


def test_elements_become_words():
    assert dims_in_words([(4, 128), (16, 8), (64, 1)], 8) == [(4, 32), (16, 2), (16, 1)]
    assert dims_in_words([(3, 6), (10, 1)], 16) == [(3, 3), (5, 1)]
    assert dims_in_words([(3, 7), (5, 2)], 32) == [(3, 7), (5, 2)]
    assert dims_in_words([(2, 16), (32, 1)], 2) == [(2, 1), (2, 1)]
    assert dims_in_words([(2, 5), (3, 1)], 64) == [(2, 10), (6, 1)]
    assert dims_in_words([], 8) == []
    assert granules(48, 2, "length") == 3


def test_bursts_have_codes():
    assert [burst_code(AIE2P, b) for b in (0, 64, 128, 256, 512)] == [3, 0, 1, 2, 3]
    assert burst_code(AIE2, 0) == 2
    with pytest.raises(BdError, match=r"burst length is 512 bytes; AIE2 has 64, 128, 256"):
        burst_code(AIE2, 512)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: granules(30, 8, "length"), "length is 30 elements of 8 bits, 30 bytes; it must be a multiple of 4"),
        (lambda: dims_in_words([(4, 66), (64, 1)], 8), "stride of dimension 1 is 66 elements of 8 bits"),
        (lambda: dims_in_words([(4, 64), (6, 1)], 8), "size of dimension 0 is 6 elements"),
        (lambda: dims_in_words([(8, 2)], 16), "innermost stride is 2; it must be 1 for elements of 16 bits"),
        (lambda: encode_bd(TileKind.MEMTILE, length_words=1 << 17), r"length = 131072 does not fit .*0 to 131071"),
        (lambda: encode_bd(TileKind.CORE, length_words=1, dims_words=[(256, 9), (4, 1)]), "d1_wrap = 256"),
        (lambda: encode_bd(TileKind.SHIM, length_words=1, dims_words=[(2, 0), (4, 1)]), "dimension 1 is 0 words"),
        (lambda: encode_bd(TileKind.SHIM, length_words=1, dims_words=[(2, 9)] * 4), "4 dimensions; a shim BD has 3"),
        (lambda: encode_bd(TileKind.SHIM, length_words=1, address=6), "address 0x6 is not a multiple of 4"),
        (lambda: encode_bd(TileKind.CORE, length_words=1, padding=[(1, 0)]), "a core BD cannot pad it"),
        (lambda: encode_bd(TileKind.MEMTILE, length_words=1, padding=[(64, 0)]), "d0_pad_before = 64"),
        (lambda: encode_bd(TileKind.CORE, length_words=1, packet=(8, 0)), "packet_type = 8"),
        (lambda: encode_bd(TileKind.CORE, length_words=1, acquire=BdLock(0, 64)), "acquire_value = 64"),
        (lambda: encode_bd(TileKind.SHIM, length_words=1, iteration=(65, 4)), "iteration_wrap = 64"),
        (lambda: task_transfer(SHIM, (1, 1, 2, 1024), (0, 0, 2048, 1), 32), "dimension 0 is 1024 words; .* 1023"),
        (lambda: task_transfer(SHIM, (1, 1, 1024, 4), (0, 0, 8, 1), 8), "dimension 1 is 1024 steps"),
        (lambda: task_transfer(CORE, (1, 1, 2, 256), (0, 0, 512, 1), 32), "dimension 0 is 256 words; .* 255"),
        (lambda: task_transfer(SHIM, (65, 1, 2, 4), (8, 0, 16, 1), 32), "dimension 3 is 65; .* at most 64 times"),
        (lambda: task_transfer(SHIM, (2, 1, 2, 4), (-8, 0, 16, 1), 32), "dimension 3 is -8; it must be 0 or more"),
        (lambda: task_transfer(SHIM, (1, 2, 2, 4), (0, 0, 16, 1), 32), "dimension 2 is 0; it must be positive"),
        (lambda: task_transfer(SHIM, (1, 0, 2, 4), (0, 8, 16, 1), 32), "size of dimension 2 is 0"),
        (lambda: task_transfer(CORE, (1, 1, 2, 4), (0, 0, 8193, 1), 32), "steps by at most 8192"),
    ],
)
def test_what_does_not_fit_is_named_with_its_limit(call, message):
    with pytest.raises(BdError, match=message):
        call()


@pytest.mark.parametrize("iteration", [(0, 4), (-1, 4), (3, -1)])
def test_an_iteration_counts_and_steps_forwards(iteration):
    with pytest.raises(BdError, match=f"iteration of {iteration[0]} executions by {iteration[1]} words"):
        encode_bd(TileKind.SHIM, length_words=4, iteration=iteration)


def test_the_shortest_iteration_is_two_steps_of_a_word():
    fields = TILE_REGISTERS[TileKind.SHIM].bd.decode(encode_bd(TileKind.SHIM, length_words=4, iteration=(2, 1)))
    assert (fields["iteration_wrap"], fields["iteration_step"]) == (1, 0)
    for none in ((1, 9), (7, 0)):
        assert encode_bd(TileKind.SHIM, length_words=4, iteration=none) == encode_bd(TileKind.SHIM, length_words=4)


@pytest.mark.parametrize(
    ("sizes", "strides", "dropped"),
    [
        ((1, 1, 1, 8), (0, 0, 0, 2), True),
        ((5, 1, 1, 2), (64, 0, 0, 4), True),
        ((1, 1, 1, 8), (0, 0, 0, 1), False),
        ((1, 1, 1, 1), (0, 0, 0, 2), False),
        ((1, 2, 1, 8), (0, 32, 0, 2), False),
        ((1, 1, 2, 8), (0, 0, 32, 2), False),
    ],
)
def test_a_task_of_one_row_loses_its_innermost_stride(sizes, strides, dropped):
    assert drops_stride(sizes, strides) is dropped


@pytest.mark.parametrize(("size", "stride", "taken"), [(0, 1, True), (0, 0, False), (1, 0, True), (2, 0, False)])
def test_a_dimension_that_never_wraps_steps_all_the_same(size: int, stride: int, taken: bool):
    """Only a dimension of one step may have a stride of 0."""
    dims = [(size, stride), (4, 1)]
    if taken:
        assert len(encode_bd(TileKind.MEMTILE, length_words=4, dims_words=dims)) == 8
        return
    with pytest.raises(BdError, match=f"stride of dimension 1 is {stride} words; a BD steps by at least 1"):
        encode_bd(TileKind.MEMTILE, length_words=4, dims_words=dims)


RAW = {  # a register's field by the attribute that gives it
    "buffer_length": "length", "enable_packet": "packet_enable", "out_of_order_id": "out_of_order_id",
    "packet_id": "packet_id", "packet_type": "packet_type", "d0_size": "d0_wrap", "d0_stride": "d0_step",
    "d1_size": "d1_wrap", "d1_stride": "d1_step", "d2_stride": "d2_step", "iteration_current": "iteration_current",
    "iteration_size": "iteration_wrap", "iteration_stride": "iteration_step", "next_bd": "next",
    "use_next_bd": "use_next", "valid_bd": "valid", "lock_rel_val": "release_value", "lock_rel_id": "release_id",
    "lock_acq_enable": "acquire_enable", "lock_acq_val": "acquire_value", "lock_acq_id": "acquire_id",
    "d0_zero_before": "d0_pad_before", "d1_zero_before": "d1_pad_before", "d2_zero_before": "d2_pad_before",
    "d0_zero_after": "d0_pad_after", "d1_zero_after": "d1_pad_after", "d2_zero_after": "d2_pad_after",
}  # fmt: skip
PLACE = {"column", "row", "bd_id", "buffer_offset", "d2_size"}
SHIM_ALWAYS = {"axi_cache": 2, "burst": 3}


def raw(kind: TileKind, given: dict[str, int], generation: Generation = AIE2P) -> dict[str, int]:
    """The fields that are not 0 of a raw BD."""
    words = raw_bd_words(kind, generation, dict.fromkeys(WRITEBD_FIELDS, 0) | given)
    return {name: value for name, value in TILE_REGISTERS[kind].bd.decode(words).items() if value}


@pytest.mark.parametrize("kind", list(TileKind))
@pytest.mark.parametrize("attribute", RAW)
def test_each_attribute_of_a_raw_bd_reaches_its_field_alone(kind: TileKind, attribute: str):
    always = SHIM_ALWAYS if kind is TileKind.SHIM else {}
    if RAW[attribute] in TILE_REGISTERS[kind].bd.fields:
        assert raw(kind, {attribute: 1}) == always | {RAW[attribute]: 1}
        return
    with pytest.raises(ValueError, match=f"{attribute} = 1, but a {kind} BD has no such field"):
        raw(kind, {attribute: 1})


def test_raw_bds_have_no_other_attributes_and_place_their_buffer_by_the_tile():
    assert set(WRITEBD_FIELDS) == PLACE | set(RAW)
    assert raw(TileKind.SHIM, {"buffer_offset": 64}) == SHIM_ALWAYS | {"address_low": 64}
    assert raw(TileKind.MEMTILE, {"buffer_offset": 64, "d2_size": 9}) == {"address": 64}
    assert raw(TileKind.CORE, {"buffer_offset": 64}) == {"address": 16}


@pytest.mark.parametrize(("generation", "codes"), [(AIE2, (2, 0, 1, 2)), (AIE2P, (3, 0, 1, 2, 3))])
def test_raw_bursts_are_codes_of_the_generation(generation: Generation, codes: tuple[int, ...]):
    lengths = (0, 64, 128, 256, 512)[: len(codes)]
    assert [raw(TileKind.SHIM, {"burst_length": n}, generation).get("burst", 0) for n in lengths] == list(codes)


@pytest.mark.parametrize(("given", "value"), [(1, 1), (63, 63), (64, -64), (127, -1), (-64, -64), (-1, -1)])
def test_raw_lock_values_may_be_bit_patterns(given: int, value: int):
    for attribute in ("lock_acq_val", "lock_rel_val"):
        assert raw(TileKind.CORE, {attribute: given}) == {RAW[attribute]: value}
    for beyond in (128, -65):
        with pytest.raises(RegisterError, match=rf"release_value = {beyond} does not fit .* -64 to 63"):
            raw(TileKind.CORE, {"lock_rel_val": beyond})
