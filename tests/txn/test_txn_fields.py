"""Every field by itself: operations at their ends, raw BDs by the names of their registers."""

import pytest

from bdforge.array.mlir.register_ops import WRITEBD_FIELDS
from bdforge.devices import AIE2, AIE2P, MLIR_DEVICES, Generation, TileKind
from bdforge.devices.bd_registers import RegisterError
from bdforge.devices.registers import TILE_REGISTERS
from bdforge.devices.txn_format.bd_encoding import raw_bd_words
from bdforge.devices.txn_format.codec import TxnError, decode, encode
from bdforge.devices.txn_format.operations import (
    BlockWrite,
    LoadPdi,
    MaskPoll,
    MaskPollBusy,
    MaskWrite,
    Operation,
    Patch,
    Preempt,
    Sync,
    Unknown,
    Write,
)

NPU2 = MLIR_DEVICES["npu2"]
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
DATA = {BlockWrite: {"words": (7,)}, Unknown: {"payload": (7,)}}


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


def stream(*body: int, first: int = 0x06040100, count: int = 1) -> list[int]:
    return [first, 0x0108, count, 4 * (4 + len(body)), *body]


OPTIMISED = 0x06040001


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (stream(128, 16, 1 << 24, 0), r"word 6: TCT: .* bits \[31:24\] are 0, got 0x01000000"),
        (stream(129, 24, 0x1D004, 2, 64, 0), "word 5: DDR_PATCH has 44 bytes or more, got 24"),
        (stream(1, 0x1D000, 8, first=OPTIMISED), "word 6: BLOCKWRITE: 8 bytes are not 12 and a whole number"),
        (stream(1, 0x1D000, 14, first=OPTIMISED), "word 6: BLOCKWRITE: 14 bytes"),
        (stream(129, 28, 1, 2, 3, 4, 5, first=OPTIMISED), "word 5: DDR_PATCH has 44 bytes or more, got 28"),
        (stream(2), "word 4: operation code 2 is unknown"),
        (stream(127), "word 4: operation code 127 is unknown"),
    ],
)
def test_malformed_words_of_either_version_are_refused_by_place(words: list[int], message: str):
    with pytest.raises(TxnError, match=message):
        decode(words)


def test_block_writes_of_either_version_may_be_empty():
    assert decode(stream(1, 0x1D000, 12, first=OPTIMISED)).operations == (BlockWrite(0x1D000, ()),)
    assert decode(stream(1, 0, 0x1D000, 16)).operations == (BlockWrite(0x1D000, ()),)


def test_words_without_a_header_are_tried_as_both_versions():
    (note,) = decode(stream(0, 0x1D000, 5, first=0)).notes
    assert "read as version 1.0 for 6 rows" in note
    with pytest.raises(TxnError, match=r"version 0\.0 is unknown"):
        decode([0, 0, 0, 16])  # nothing but four words


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
