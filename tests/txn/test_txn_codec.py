"""Words and operations of instruction streams."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bdforge.devices import MLIR_DEVICES
from bdforge.devices.txn_format.codec import StreamHeader, TxnError, decode, encode
from bdforge.devices.txn_format.operations import (
    BlockWrite,
    LoadPdi,
    MaskPoll,
    MaskPollBusy,
    MaskWrite,
    Noop,
    Operation,
    Patch,
    Preempt,
    Sync,
    Unknown,
    Write,
)
from support.differences import same
from support.txn_vectors import STREAM_VECTORS, StreamVector

NPU1, NPU2 = MLIR_DEVICES["npu1"], MLIR_DEVICES["npu2"]
VECTORS = tuple(STREAM_VECTORS.values())
SETTINGS = settings(deadline=None, derandomize=True, max_examples=150)

u8, u16, u32, u64 = (st.integers(0, (1 << bits) - 1) for bits in (8, 16, 32, 64))
words_of_data = st.lists(u32, max_size=9).map(tuple)
OPERATIONS = st.one_of(
    st.builds(Write, u32, u32),
    st.builds(MaskWrite, u32, u32, u32),
    st.builds(MaskPoll, u32, u32, u32),
    st.builds(MaskPollBusy, u32, u32, u32),
    st.builds(BlockWrite, u32, words_of_data, u32),
    st.builds(Noop),
    st.builds(Preempt, st.integers(0, 255)),
    st.builds(LoadPdi, u16, u32, u64),
    st.builds(Sync, st.integers(0, 1), u8, u8, u8, u8, u8),
    st.builds(Patch, u32, u32, u64),
    st.builds(Unknown, st.integers(130, 255), words_of_data, st.integers(0, (1 << 24) - 1)),
)

# The words of each operation, written out from the tables of the format.
GOLDEN = [
    (Write(0x0201D214, 7), [0, 0, 0x0201D214, 0, 7, 24]),
    (MaskWrite(0x1D200, 0xF00, 0x1F00), [3, 0, 0x1D200, 0, 0xF00, 0x1F00, 28]),
    (MaskPoll(0x1D220, 1, 3), [4, 0, 0x1D220, 0, 1, 3, 28]),
    (MaskPollBusy(0x1D220, 1, 3), [7, 0, 0x1D220, 0, 1, 3, 28]),
    (BlockWrite(0x1D000, (5, 6, 7)), [1, 0, 0x1D000, 28, 5, 6, 7]),
    (BlockWrite(0x1D000, (5,), hint=0x203), [1, 0x203, 0x1D000, 20, 5]),
    (Noop(), [5]),
    (Preempt(2), [6 | 2 << 8]),
    (LoadPdi(3, 4096, 0x1_0000_0010), [8 | 3 << 16, 4096, 0x10, 1]),
    (Sync(direction=1, row=2, column=3, rows=4, columns=5, channel=6), [128, 16, 0x00030201, 0x06050400]),
    (Patch(0x1D004, 2, 16384), [129, 48, 0, 0, 0, 0, 0x1D004, 0, 2, 0, 16384, 0]),
    (Unknown(131, (9, 8), extra=0x55), [131 | 0x55 << 8, 16, 9, 8]),
]


def stream(*body: int, count: int = 1, first: int = 0x06040100) -> list[int]:
    """A stream with a correct size around `body`."""
    return [first, 0x0108, count, 4 * (4 + len(body)), *body]


def problem(words: list[int]) -> str:
    """What decoding complains about; words that decode must be a stream whose operations can be written again."""
    try:
        decoded = decode(words)
    except TxnError as error:
        return str(error)
    return "word 0 is fine" if len(encode(decoded.operations, NPU2)) >= 4 else "empty"


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_real_streams_survive_decoding_and_encoding(vector: StreamVector):
    device, words, decoded = vector.device, vector.words, decode(vector.words)
    assert decoded.header == StreamHeader.of(MLIR_DEVICES[device])
    same(encode(decoded.operations, decoded.header), words)
    same(encode(decoded.operations, MLIR_DEVICES[device]), words)


@pytest.mark.parametrize(("operation", "words"), GOLDEN, ids=lambda value: type(value).__name__)
def test_each_operation_has_the_words_of_the_format(operation, words):
    encoded = encode([operation], NPU2)
    assert encoded.tolist() == stream(*words)
    assert decode(encoded).operations == (operation,)


@given(st.lists(OPERATIONS, max_size=8), st.sampled_from([NPU1, NPU2]))
@SETTINGS
def test_decoding_undoes_encoding(operations, device):
    words = encode(operations, device)
    decoded = decode(words)
    assert list(decoded.operations) == operations
    same(encode(decoded.operations, decoded.header), words)
    assert decode(words.astype("<u4").tobytes()) == decoded == decode(words.tolist())


@given(st.lists(u32 | st.integers(0, 140), max_size=30))
@SETTINGS
def test_random_words_give_a_stream_or_a_txn_error(body):
    for first in (0x06040100, 0x06040001):
        assert problem(stream(*body, first=first)).startswith("word ")


@given(st.data())
@SETTINGS
def test_damaged_real_streams_give_a_stream_or_a_txn_error(data):
    words = data.draw(st.sampled_from(VECTORS)).words
    damaged = words.tolist()
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(u32 | st.integers(0, 255))
    assert problem(damaged).startswith("word ")


def test_every_truncation_is_refused():
    words = VECTORS[-1].words
    whole, starts = decode(words), {4}
    for operation in whole.operations:
        starts.add(max(starts) + len(encode([operation], NPU2)) - 4)
    for length in range(len(words)):
        cut = words[:length].tolist()
        with pytest.raises(TxnError, match="word"):
            decode(cut)
        if length < 4:
            continue
        cut[3] = 4 * length
        cut[2] = sum(start < length for start in starts)
        if length in starts:
            assert decode(cut).operations == whole.operations[: cut[2]]
            continue
        with pytest.raises(TxnError, match=r"needs .* words, the stream ends after"):
            decode(cut)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([0x06040100, 0x108, 0], "word 3: the stream ends inside its header"),
        ([0x06040200, 0x108, 0, 16], "word 0: version 0.2 is unknown"),
        ([0x06040100, 0x10108, 0, 16], r"word 1: bits \[31:16\]"),
        ([0x06040100, 0x108, 0, 20], "word 3: the header announces 20 bytes, the stream has 16"),
        (stream(5, count=2), "word 2: the header announces 2 operations, the stream holds 1"),
        (stream(5, 9), "word 5: operation code 9 is unknown"),
        (stream(0, 0, 4, 1, 2, 24), "word 7: Write: high half of the address is 0x1, expected 0x0"),
        (stream(0, 0, 4, 0, 2, 20), "word 9: Write: size in bytes is 0x14, expected 0x18"),
        (stream(3, 0, 4, 0, 2, 1, 24), "word 10: MaskWrite: size in bytes"),
        (stream(1, 0, 4, 15), "word 7: BLOCKWRITE: 15 bytes"),
        (stream(1, 0, 4, 12), "word 7: BLOCKWRITE: 12 bytes"),
        (stream(1, 0, 4, 0xFFFFFFFC), "word 8: BLOCKWRITE data needs"),
        (stream(200, 4), "word 5: operation 200: 4 bytes"),
        (stream(200, 10, 1), "word 5: operation 200: 10 bytes"),
        (stream(200, 16, 1), "word 6: operation 200 needs 2 words, the stream ends after 1"),
        (stream(128, 12, 0), "word 5: TCT: size in bytes is 0xc"),
        (stream(128, 16, 2, 0x100), "word 6: TCT: direction"),
        (stream(128, 16, 0, 1), "word 7: TCT: bits"),
        (stream(129, 40, 0, 0, 0, 0, 4, 0, 1, 0), "word 5: DDR_PATCH has 44 bytes or more"),
        (stream(129, 48, 0, 0, 0, 7, 4, 0, 1, 0, 0, 0), "word 9: DDR_PATCH: action is 0x7"),
        (stream(129, 48, 0, 0, 0, 0, 4, 1, 1, 0, 0, 0), "word 11: DDR_PATCH: high half of the register"),
        (stream(129, 48, 0, 0, 0, 0, 4, 0, 1, 3, 0, 0), "word 13: DDR_PATCH: high half of the argument"),
        (stream(128, 16, 1 << 24, 0), r"word 6: TCT: .* bits \[31:24\] are 0, got 0x01000000"),
        (stream(129, 24, 0x1D004, 2, 64, 0), "word 5: DDR_PATCH has 44 bytes or more, got 24"),
        (stream(1, 0x1D000, 8, first=0x06040001), "word 6: BLOCKWRITE: 8 bytes are not 12 and a whole number"),
        (stream(1, 0x1D000, 14, first=0x06040001), "word 6: BLOCKWRITE: 14 bytes"),
        (stream(129, 28, 1, 2, 3, 4, 5, first=0x06040001), "word 5: DDR_PATCH has 44 bytes or more, got 28"),
        (stream(2), "word 4: operation code 2 is unknown"),
        (stream(127), "word 4: operation code 127 is unknown"),
        ([0x06040100, 0x108, 1 << 33, 16], "word 2: 8589934592 does not fit 32 bits"),
        (b"\0\1\4\6\1", "word 1: 5 bytes are not a whole number"),
    ],
)
def test_malformed_streams_are_refused_at_their_word(words, message):
    with pytest.raises(TxnError, match=message):
        decode(words)


def test_short_patches_are_read():
    assert decode(stream(129, 44, 0, 0, 0, 0, 0x1D004, 0, 1, 0, 64)).operations == (Patch(0x1D004, 1, 64),)


def test_optimised_streams_are_read():
    body = [0, 0x2000, 5, 3, 0x2004, 5, 7, 1, 0x2008, 20, 1, 2, 4, 9, 8, 7, 129, 24, 0x1D004, 2, 64, 1, 5, 0x106]
    body += [128, 16, 0x00030000, 0x01010100, 210, 12, 77]
    expected = (
        Write(0x2000, 5), MaskWrite(0x2004, 5, 7), BlockWrite(0x2008, (1, 2)), MaskPoll(9, 8, 7),
        Patch(0x1D004, 2, 64 | 1 << 32), Noop(), Preempt(1), Sync(0, 0, 3, 1, 1, 1), Unknown(210, (77,)),
    )  # fmt: skip
    decoded = decode(stream(*body, count=len(expected), first=0x06040001))
    assert decoded.operations == expected
    with pytest.raises(TxnError, match=r"version 1\.0 streams are only read"):
        encode(expected, decoded.header)


@pytest.mark.parametrize("flags", [0, 0x300, 0xFFFFFF00])
def test_the_packed_argument_is_its_lowest_byte(flags):
    """Above it stand flags, which say nothing about where the address goes."""
    decoded = decode(stream(129, 24, 0x1D004, flags | 2, 64, 0, count=1, first=0x06040001))
    assert decoded.operations == (Patch(0x1D004, 2, 64),)


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (BlockWrite(0, (1, 1 << 32)), "operation 1 BlockWrite: a data word"),
        (Unknown(200, (-1,)), "operation 1 Unknown: a data word"),
        ("push", "operation 1: 'push' is not an operation"),
    ],
    ids=str,
)
def test_values_that_do_not_fit_are_named(operation, message):
    with pytest.raises(TxnError, match=message):
        encode([Noop(), operation], NPU2)


B8, B16, B24, B32, B64 = ((1 << bits) - 1 for bits in (8, 16, 24, 32, 64))
ENDS: dict[type[Operation], dict[str, int]] = {
    Write: {"address": B32, "value": B32},
    MaskWrite: {"address": B32, "value": B32, "mask": B32},
    MaskPoll: {"address": B32, "value": B32, "mask": B32},
    MaskPollBusy: {"address": B32, "value": B32, "mask": B32},
    BlockWrite: {"address": B32, "hint": B32},
    Preempt: {"level": 255},
    LoadPdi: {"id": B16, "size": B32, "address": B64},
    Sync: {"direction": 1, "row": B8, "column": B8, "rows": B8, "columns": B8, "channel": B8},
    Patch: {"register": B32, "argument": B32, "plus": B64},
    Unknown: {"opcode": B8, "extra": B24},
}
DATA: dict[type[Operation], dict[str, Any]] = {BlockWrite: {"words": (7,)}, Unknown: {"payload": (7,)}}


@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind in ENDS for field in ENDS[kind]])
def test_a_field_of_an_operation_takes_its_end_and_refuses_what_is_next(kind: type[Operation], field: str):
    rest = dict.fromkeys(ENDS[kind], 0) | ({"opcode": 200} if kind is Unknown else {}) | DATA.get(kind, {})
    last = kind(**rest | {field: ENDS[kind][field]})  # type: ignore[arg-type]
    assert decode(encode([last], NPU2)).operations == (last,)
    for value in (-1, ENDS[kind][field] + 1):
        words = f"operation 0 {kind.__name__}: {field} = {value} is outside 0 to {ENDS[kind][field]}"
        with pytest.raises(TxnError, match=words):
            encode([kind(**rest | {field: value})], NPU2)  # type: ignore[arg-type]


@pytest.mark.parametrize(("opcode", "known"), [(127, True), (128, True), (129, True), (130, False)])
def test_codes_that_are_known_are_not_unknown(opcode: int, known: bool):
    if not known:
        assert decode(encode([Unknown(opcode, ())], NPU2)).operations == (Unknown(opcode, ()),)
        return
    with pytest.raises(TxnError, match=f"code {opcode} is known or below 128"):
        encode([Unknown(opcode, ())], NPU2)


def test_block_writes_of_either_version_may_be_empty():
    assert decode(stream(1, 0x1D000, 12, first=0x06040001)).operations == (BlockWrite(0x1D000, ()),)
    assert decode(stream(1, 0, 0x1D000, 16)).operations == (BlockWrite(0x1D000, ()),)


def test_words_without_a_header_are_tried_as_both_versions():
    (note,) = decode(stream(0, 0x1D000, 5, first=0)).notes
    assert "read as version 1.0 for 6 rows" in note
    with pytest.raises(TxnError, match=r"version 0\.0 is unknown"):
        decode([0, 0, 0, 16])  # nothing but four words
