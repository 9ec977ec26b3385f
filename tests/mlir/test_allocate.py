"""Addresses and lock ids that the text leaves open."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import IntegerType, bf16

from bdforge.array.mlir import context
from bdforge.array.mlir.allocate import AddressMap, AllocationError, Overflow, allocate, element_bits
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.mlir.errors import SourceText
from bdforge.array.mlir.memory_ops import BufferOp
from bdforge.array.mlir.parser import parse_text

SETTINGS = settings(deadline=None, derandomize=True, max_examples=40)


def allocated(*lines: str, **told: Overflow) -> AddressMap:
    """Allocation of a device with these lines; unverified, for allocation refuses by itself."""
    body = "\n".join(lines)
    text = f"aie.device(npu2) {{\n%c = aie.tile(1, 2)\n%m = aie.tile(1, 1)\n%m2 = aie.tile(2, 1)\n{body}\n}}"
    module = parse_text(context(), SourceText(text, "design.mlir"))
    return allocate(next(op for op in module.walk() if isinstance(op, DeviceOp)), **told)


def by_symbol(allocation: AddressMap) -> dict[str | None, int]:
    return {op.symbol: value for op, value in (allocation.buffers | allocation.locks).items()}


def buffer(name: str, size: int, tile: str = "%c", options: str = "") -> str:
    return f'%buffer_{name} = aie.buffer({tile}) {{sym_name = "{name}"{options}}} : memref<{size}xi8>'


CORE = "%k = aie.core(%c) { aie.end }"


def test_buffers_go_largest_first_from_the_stack_upwards():
    found = allocated(buffer("a", 64), buffer("b", 256), buffer("c", 64), buffer("d", 128), CORE)
    assert by_symbol(found) == {"b": 0x400, "d": 0x500, "a": 0x580, "c": 0x5C0}


def test_the_stack_is_as_large_as_its_core_says_and_absent_without_one():
    stacked = allocated(buffer("a", 64), "%k = aie.core(%c) { aie.end } {stack_size = 3328 : i32}")
    assert by_symbol(stacked) == {"a": 3328}
    assert by_symbol(allocated(buffer("a", 64), buffer("x", 8, "%m"))) == {"a": 0, "x": 0}


def test_buffers_with_an_address_are_left_where_they_are():
    found = allocated(
        buffer("low", 100, options=", address = 1100 : i32"), buffer("big", 1000), buffer("small", 10), CORE
    )
    assert by_symbol(found) == {"low": 1100, "big": 1200, "small": 2200}


def test_tiles_do_not_share_memory_and_repeated_tiles_do():
    again = "%again = aie.tile(1, 1)"
    found = allocated(again, buffer("a", 64, "%m"), buffer("b", 64, "%m2"), buffer("c", 32, "%again"))
    assert by_symbol(found) == {"a": 0, "b": 0, "c": 64}


@given(st.lists(st.tuples(st.integers(1, 9000), st.none() | st.integers(0, 60)), min_size=1, max_size=6))
@SETTINGS
def test_placed_buffers_never_overlap(entries):
    lines = [
        buffer(f"b{i}", size, options="" if slot is None else f", address = {1024 + 1024 * slot} : i32")
        for i, (size, slot) in enumerate(entries)
    ]
    try:
        found = allocated(*lines, CORE)
    except AllocationError:
        fixed = [(1024 + 1024 * slot, size) for size, slot in entries if slot is not None]
        clash = any(a < b + m and b < a + n for (a, n), (b, m) in itertools.combinations(fixed, 2))
        crowded = sum(size for size, _ in entries) + 9000 * len(fixed) + 1024 * 62 > 0x10000
        assert clash or crowded
        return
    spans = sorted((at, at + entries[int((op.symbol or "")[1:])][0]) for op, at in found.buffers.items())
    assert spans[0][0] >= 1024
    assert spans[-1][1] <= 0x10000
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))


def test_locks_take_the_lowest_free_ids_in_program_order():
    found = allocated(
        '%a = aie.lock(%c) {sym_name = "a"}', '%b = aie.lock(%c, 1) {sym_name = "b"}',
        '%d = aie.lock(%c) {sym_name = "d"}', '%e = aie.lock(%m, 0) {sym_name = "e"}',
        '%f = aie.lock(%m) {sym_name = "f"}', '%g = aie.lock(%c, 0) {sym_name = "g"}',
    )  # fmt: skip
    assert by_symbol(found) == {"a": 2, "b": 1, "d": 3, "e": 0, "f": 1, "g": 0}


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        (
            [buffer("a", 60000), buffer("b", 5000), CORE], 6,
            r"core \(1, 2\): buffer @b with 5000 bytes would end at 66024, beyond the tile's 65536 bytes; "
            r"stack \(1024 bytes\) and buffers take 66024 bytes together",
        ),
        ([buffer("a", 524289, "%m")], 5, r"memtile \(1, 1\): buffer @a with 524289 bytes .* 524288 bytes"),
        ([buffer("a", 64, options=", address = 65500 : i32")], 5, "at 0xffdc with 64 bytes ends beyond"),
        (
            [buffer("a", 64, options=", address = 2048 : i32"), buffer("b", 64, options=", address = 2111 : i32")], 6,
            "buffer @b at 0x83f overlaps buffer @a, which ends at 0x840",
        ),
        ([buffer("a", 64, options=", address = 1023 : i32"), CORE], 5, "@a at 0x3ff overlaps the core's stack"),
        (
            ["%a = aie.lock(%c, 3)", '%b = aie.lock(%c, 3) {sym_name = "b"}'], 6,
            "without a name",
        ),
        ([f"%l{i} = aie.lock(%c)" for i in range(17)], 21, "finds no free id; the tile has 16 and the design uses 17"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(lines, line, message):
    with pytest.raises(AllocationError, match=message) as caught:
        allocated(*lines)
    assert (caught.value.file, caught.value.line) == ("design.mlir", line)


@pytest.mark.parametrize(("tile", "count"), [("%c", 16), ("%m", 64)])
def test_every_lock_of_a_tile_is_given_and_the_last_may_be_named(tile: str, count: int):
    found = allocated(
        f"%last = aie.lock({tile}, {count - 1})", *(f"%l{i} = aie.lock({tile})" for i in range(count - 1))
    )
    assert sorted(found.locks.values()) == list(range(count))


def test_buffers_with_an_address_may_touch_the_stack_and_each_other():
    at = {"a": 1024, "b": 1088, "c": 1120}
    sizes = {"a": 64, "b": 32, "c": 8}
    lines = [buffer(name, sizes[name], options=f", address = {at[name]} : i32") for name in ("c", "a", "b")]
    assert by_symbol(allocated(*lines, CORE)) == at


def test_elements_have_sizes():
    text = 'aie.device(npu2) {\n%t = aie.tile(0, 2)\n%b = aie.buffer(%t) : memref<8x!aiex.bfp<"v8bfp16ebs8">>\n}'
    module = parse_text(context(), SourceText(text, "design.mlir"))
    blocked = next(op for op in module.walk() if isinstance(op, BufferOp))
    assert [element_bits(t) for t in (IntegerType(4), bf16, blocked.type.element_type)] == [4, 16, 72]


@pytest.mark.parametrize("size", [2147483648, -64, 0x10001])
def test_a_stack_beyond_its_tile_is_refused(size):
    core = f"%k = aie.core(%c) {{ aie.end }} {{stack_size = {size} : i32}}"
    with pytest.raises(AllocationError, match=r"core \(1, 2\): stack_size = -?\d+ is outside 0 to 65536"):
        allocated(buffer("a", 64), core)


def test_a_stack_may_take_all_of_its_tile_or_nothing():
    for size in (0, 65536):
        allocated(f"%k = aie.core(%c) {{ aie.end }} {{stack_size = {size} : i32}}")
    assert by_symbol(allocated(buffer("a", 4), "%k = aie.core(%c) { aie.end } {stack_size = 65532 : i32}")) == {
        "a": 65532
    }
    with pytest.raises(AllocationError, match="@a with 4 bytes would end at 65537, beyond the tile's 65536 bytes"):
        allocated(buffer("a", 4), "%k = aie.core(%c) { aie.end } {stack_size = 65533 : i32}")


@pytest.mark.parametrize(
    ("memref", "bytes_"),
    [("3xi4", 2), ("4xi4", 2), ("9xi1", 2), ("5xi2", 2), ("3x5xi8", 15), ("3xbf16", 6), ("3xi32", 12), ("3xindex", 24)],
)
def test_a_buffers_last_byte_counts_whole(memref: str, bytes_: int):
    """What follows it in memory begins behind the byte that it fills in part."""
    fixed = f'%x = aie.buffer(%m) {{sym_name = "x", address = 0 : i32}} : memref<{memref}>'
    found = allocated(fixed, buffer("y", 1, "%m"))
    assert by_symbol(found) == {"x": 0, "y": bytes_}


def test_a_buffer_with_an_address_may_end_with_its_tiles_memory():
    assert by_symbol(allocated(buffer("a", 16, options=", address = 65520 : i32"))) == {"a": 65520}


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ((("a", 0, 1000), ("b", 100, 50), ("c", 999, 8)), {"b": ("@a", 1000), "c": ("@a", 1000)}),
        ((("a", 0, 1000), ("b", 100, 50), ("c", 1000, 8)), {"b": ("@a", 1000)}),
        ((("a", 0, 100), ("b", 99, 50), ("c", 148, 8)), {"b": ("@a", 100), "c": ("@b", 149)}),
        ((("a", 8, 16), ("b", 512, 8)), {"a": ("stack", 1024), "b": ("stack", 1024)}),
        ((("a", 0, 70_000), ("b", 65_000, 8)), {"b": ("@a", 70_000)}),
    ],
    ids=["inside and behind", "inside and adjacent", "in a chain", "in the stack", "in one beyond the memory"],
)
def test_every_overlap_of_given_addresses_is_told(lines, told):
    """Each names what reaches furthest before it, also behind a shorter one that lies inside."""
    text = [buffer(name, size, options=f", address = {at} : i32") for name, at, size in lines]
    core = [CORE] if "stack" in str(told) else []
    found: list[str] = []
    beyond: list[str] = []
    allocated(*core, *text, overflow=lambda error: beyond.append(str(error)), overlap=lambda e: found.append(str(e)))
    assert len(found) == len(told), f"wanted overlaps of {list(told)}, got {found}"
    for (name, (other, end)), message in zip(told.items(), found, strict=True):
        assert f"buffer @{name} at" in message
        assert f"{other}, which ends at {end:#x}" in message, message
    assert [name for name, at, size in lines if at + size > 65536] == [m.split("@")[1][0] for m in beyond], beyond


def test_a_gap_of_exactly_a_buffers_size_is_taken():
    """Buffers at 8 to 24 and 40 to 56 leave gaps of 8 and 16 bytes."""
    fixed = [buffer(name, 16, "%m", f", address = {at} : i32") for name, at in (("p", 8), ("q", 40))]
    for size, at in ((8, 0), (9, 24), (16, 24), (17, 56)):
        found = by_symbol(allocated(*fixed, buffer("a", size, "%m")))["a"]
        assert found == at, f"a buffer of {size} bytes lies at {found}, not {at}, with 8 to 24 and 40 to 56 taken"
