"""Static configurations against those that the real tools write."""

from collections import Counter

import pytest

from bdforge.array.mlir import Era, convert, parse, print_generic, print_module
from bdforge.devices.register_names import What, register_at
from bdforge.devices.txn_format.operations import BlockWrite, MaskWrite, Write
from support.cdo_vectors import PARTS, VECTORS

TOKENS = {0x3F008: 0xC0000045, 0x3F100: 0xC0000000, 0x3F200: 0x0F1F0135}
"""The three writes that lead a shim's completion tokens to the controller (seen in CDOs and on silicon)."""
UNROUTED = (What.LOCK, What.CORE, What.CASCADE, What.QUEUE, What.CONTROL, What.MUX, What.DEMUX)


@pytest.mark.daily(every=3)
@pytest.mark.parametrize("name", VECTORS)
def test_the_lowered_text_gives_the_same_operations_in_the_same_order(name):
    vector = VECTORS[name]
    found = vector.configuration()
    for part, operations in zip(PARTS, found.parts, strict=True):
        assert list(operations) == vector.operations(part), part


@pytest.mark.daily(every=2)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if i % 4 == 1 else pytest.mark.slow) for i, name in enumerate(VECTORS)]
)
def test_every_form_of_the_text_gives_the_same(name):
    vector = VECTORS[name]
    expected = vector.configuration().operations
    module = parse(vector.lowered)
    for text in (print_module(module), print_generic(module), convert(vector.lowered, Era.MODERN)):
        assert vector.configuration(text).operations == expected


@pytest.mark.daily(every=3)
@pytest.mark.parametrize("name", VECTORS)
def test_every_write_names_its_place(name):
    found = VECTORS[name].configuration()
    assert all(op.location and op.location.line > 1 and op.origin for op in found.operations)


@pytest.mark.parametrize("name", VECTORS)
def test_the_text_as_written_gives_the_same_but_for_routes_and_addresses(name):
    """Which wires a stream takes is the router's choice, where a buffer lies the allocator's."""
    vector = VECTORS[name]
    real = [op for part in PARTS for op in vector.operations(part)]
    found = vector.configuration(vector.mlir)
    assert _without_choices(found.operations) == _without_choices(real)
    assert all(op.location and op.location.line > 1 for op in found.operations)


def _without_choices(operations) -> Counter:
    found = Counter()
    for operation in operations:
        register = register_at(operation.address)
        if register.what in UNROUTED:
            found[operation] += 1
        elif register.what is What.BD:
            assert isinstance(operation, BlockWrite)
            assert register.layout is not None
            fields = {k: v for k, v in register.layout.decode(operation.words).items() if not k.startswith("address")}
            found[register, *fields.items()] += 1
    return found


@pytest.mark.parametrize("name", VECTORS)
def test_tokens_of_every_declared_shim_have_a_way(name):
    vector = VECTORS[name]
    found = vector.configuration(vector.mlir)
    real = {op for op in vector.operations("init") if isinstance(op, Write) and op.address & 0xFFFFF in TOKENS}
    real = {op for op in real if op.value == TOKENS[op.address & 0xFFFFF]}
    assert real <= set(found.operations)
    assert len(real) % len(TOKENS) == 0


def test_masks_of_no_bit_are_written_where_the_real_tool_writes_them():
    starts = [op for op in VECTORS["npu1_core_dma"].configuration().init if isinstance(op, MaskWrite) and op.mask == 0]
    assert starts
    assert {op.value for op in starts} == {1}
