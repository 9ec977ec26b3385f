"""What the DMAs of cores, memtiles and shims can do, against loops over indices."""

from collections.abc import Sequence

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import DmaError
from bdforge.array.emulator.verification import verify_design
from bdforge.array.mlir import MlirError
from support.array_text import (
    Task,
    acquire,
    bd,
    buffer,
    dimensions,
    flow,
    lock,
    module,
    program,
    release,
    sequence,
    tile,
    visited,
    write_word,
)
from support.differences import same

DEVICES = ("npu1_3col", "npu2_3col")
SENDERS = ("01", "02")
TILES = (tile(0, 0), tile(0, 1), tile(0, 2), tile(1, 1), tile(1, 2), tile(2, 1))
DATA = np.random.default_rng(5).integers(-(2**31), 2**31, 1024, np.int32)


def run(device: str, *parts: str, args=(), **options) -> dict[str, np.ndarray]:
    return dict(bdforge.emulate(module(device, *TILES, *parts), args, **options).buffers)


def sent(
    device: str, at: str, a: str, words: int, *tasks: Task, channel: int = 0, fills: Sequence[str] = (),
    element: str = "i32",
) -> np.ndarray:  # fmt: skip
    """What arrives in @x, a buffer of core (1, 2), when a tile with buffer `a` runs such tasks."""
    receives = [Task("S2MM", 0, [bd("x", words, piece, element=element)]) for piece in fills or [""]]
    found = run(
        device, a, buffer("x", "12", words, element=element), flow(f"{at} DMA : {channel}", "12 DMA : 0"),
        program(at, *tasks), program("12", *receives),
    )  # fmt: skip
    return found["x"]


CORE_DIMS = [[(3, 40), (4, 2), (2, 11)], [(2, 5), (7, 9), (3, 3)], [(5, 7), (4, 1)], [(9, 13)]]
MEMTILE_DIMS = [[(2, 100), (3, 30), (2, 7), (5, 1)], [(3, 1), (2, 60), (4, 11), (2, 3)], *CORE_DIMS]
ALL_DIMS = [("01", dims) for dims in MEMTILE_DIMS] + [("02", dims) for dims in CORE_DIMS]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("at", "dims"), ALL_DIMS)
def test_a_send_walks_all_its_dimensions(device, at, dims):
    walk = visited(dims, offset=6)
    task = Task("MM2S", 0, [bd("a", 300, f"6, {len(walk)}, {dimensions(dims)}")])
    same(sent(device, at, buffer("a", at, 300, DATA[:300]), len(walk), task), DATA[walk])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("at", "dims"), ALL_DIMS)
def test_a_receive_walks_all_its_dimensions(device, at, dims):
    walk = visited(dims, offset=3)
    found = run(
        device,
        buffer("a", "12", len(walk), DATA[: len(walk)]),
        buffer("x", at, 300),
        flow("12 DMA : 0", f"{at} DMA : 1"),
        program("12", Task("MM2S", 0, [bd("a", len(walk))])),
        program(at, Task("S2MM", 1, [bd("x", 300, f"3, {len(walk)}, {dimensions(dims)}")])),
    )
    expected = np.zeros(300, np.int32)
    for word, place in zip(DATA, walk, strict=False):
        expected[place] = word
    same(found["x"], expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("at", SENDERS)
def test_the_length_and_not_the_outermost_size_ends_a_transfer(device, at):
    """A core has no size for its third dimension: length 40 makes five rounds of 2 x 4 where the text says two."""
    dims = [(2, 20), (2, 9), (4, 1)] if at == "02" else [(2, 20), (1, 1), (2, 9), (4, 1)]
    task = Task("MM2S", 0, [bd("a", 128, f"0, 40, {dimensions(dims)}")])
    same(sent(device, at, buffer("a", at, 128, DATA[:128]), 40, task), DATA[visited([(5, 20), (2, 9), (4, 1)])])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("at", SENDERS)
@pytest.mark.parametrize(
    ("element", "dtype"), [("i8", np.int8), ("i16", np.int16), ("bf16", np.uint16), ("i64", np.int64)]
)
def test_elements_of_other_sizes_move_as_words(device, at, element, dtype):
    values = np.random.default_rng(3).integers(-100, 100, 96)
    dims = [(3, 24), (2, 8), (4, 1)]
    task = Task("MM2S", 0, [bd("a", 96, f"8, 24, {dimensions(dims)}", element=element)])
    found = sent(device, at, buffer("a", at, 96, values, element=element), 24, task, element=element)
    as_stored = (values.astype(np.float32).view(np.uint32) >> 16 if element == "bf16" else values).astype(dtype)
    same(found, as_stored[visited(dims, offset=8)])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("at", SENDERS)
def test_a_chain_repeats_as_a_whole(device, at):
    task = Task("MM2S", 0, [bd("a", 12, "1, 4"), bd("a", 12, "6, 5")], repeat=2)
    found = sent(device, at, buffer("a", at, 12, DATA[:12]), 40, task)
    same(found, [*([*DATA[1:5], *DATA[6:11]] * 3), *[0] * 13])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("at", SENDERS)
def test_tasks_queued_on_one_channel_run_in_order(device, at):
    tasks = [
        Task("MM2S", 0, [bd("a", 12, "8, 4")], repeat=1),
        Task("MM2S", 0, [bd("a", 12, "0, 3"), bd("a", 12, "5, 2")]), Task("MM2S", 0, [bd("a", 12, "1, 5")]),
    ]  # fmt: skip
    found = sent(device, at, buffer("a", at, 12, DATA[:12]), 18, *tasks, fills=["0, 9", "10, 8"])
    words = [*DATA[8:12], *DATA[8:12], *DATA[:3], *DATA[5:7], *DATA[1:6]]
    same(found, [*words[:9], 0, *words[9:17]])


REGION = """%dma02 = aie.mem(%t02) {
  %q = aie.dma(S2MM, 1) {loop = true} [{
    aie.use_lock(%free, AcquireGreaterEqual, 1)
    aie.dma_bd(%in : memref<8xi32>, 0, 4)
    aie.use_lock(%full, Release, 1)
  }, {
    aie.use_lock(%free, AcquireGreaterEqual, 1)
    aie.dma_bd(%in : memref<8xi32>, 4, 4)
    aie.use_lock(%full, Release, 1)
  }]
  %r = aie.dma(MM2S, 0) {loop = false, repeat_count = 2 : i32} [{
    aie.use_lock(%full, AcquireGreaterEqual, 2)
    aie.dma_bd(%in : memref<8xi32>, 0, 8, [<size = 4, stride = 1>, <size = 2, stride = 4>])
    aie.use_lock(%free, Release, 2)
  }]
  aie.end
}"""


@pytest.mark.parametrize("device", DEVICES)
def test_the_region_form_loops_and_repeats(device):
    found = run(
        device,
        buffer("a", "01", 24, DATA[:24]),
        buffer("in", "02", 8),
        buffer("x", "12", 30),
        lock("free", "02", 4, 2),
        lock("full", "02", 5),
        flow("01 DMA : 5", "02 DMA : 1"),
        flow("02 DMA : 0", "12 DMA : 0"),
        program("01", Task("MM2S", 5, [bd("a", 24)])),
        program("12", Task("S2MM", 0, [bd("x", 30)])),
        REGION,
    )
    same(found["x"], [*DATA[:24].reshape(3, 2, 4).transpose(0, 2, 1).ravel(), *[0] * 6])


@pytest.mark.parametrize("device", DEVICES)
def test_a_memtile_reaches_memory_and_locks_of_both_neighbours(device):
    """Memtile (1, 1) fills a buffer of each neighbour, under that neighbour's locks, and sends it on transposed."""
    parts = [
        buffer("west", "01", 20),
        buffer("east", "21", 20),
        buffer("a", "12", 20, DATA[:20]),
        buffer("x", "02", 20),
        lock("wf", "01", 9),
        lock("ef", "21", 63),
        buffer("y", "12", 12),
        flow("12 DMA : 0", "11 DMA : 3"),
        flow("12 DMA : 1", "11 DMA : 2"),
        flow("11 DMA : 0", "02 DMA : 0"),
        flow("11 DMA : 3", "12 DMA : 1"),
        program(
            "11",
            Task("S2MM", 3, [bd("west", 20) + "\n" + release("wf", 3)]),
            Task("S2MM", 2, [bd("east", 20, "4, 12") + "\n" + release("ef", 2)]),
            Task("MM2S", 0, [acquire("wf", 3) + "\n" + bd("west", 20, f"0, 20, {dimensions([(5, 1), (4, 5)])}")]),
            Task("MM2S", 3, [acquire("ef", 2) + "\n" + bd("east", 20, f"4, 12, {dimensions([(4, 1), (3, 4)])}")]),
        ),
        program(
            "12",
            Task("MM2S", 0, [bd("a", 20)]),
            Task("MM2S", 1, [bd("a", 20, "8, 12")]),
            Task("S2MM", 1, [bd("y", 12)]),
        ),
        program("02", Task("S2MM", 0, [bd("x", 20)])),
    ]
    found = run(device, *parts)
    same(found["west"], DATA[:20])
    same(found["east"], [*[0] * 4, *DATA[8:20], *[0] * 4])
    same(found["x"], DATA[:20].reshape(4, 5).T.ravel())
    same(found["y"], DATA[8:20].reshape(3, 4).T.ravel())


@pytest.mark.parametrize("channel", [4, 5])
def test_the_upper_channels_of_a_memtile_stay_at_home(channel):
    with pytest.raises(MlirError, match=rf"channel {channel}, which reaches only its own memtile"):
        run("npu2_3col", buffer("west", "01", 20), program("11", Task("MM2S", channel, [bd("west", 20)])))


PADS = [
    ([(3, 40), (4, 8), (6, 1)], [(1, 2), (3, 1), (2, 5)]),
    ([(2, 8), (5, 1)], [(0, 31), (63, 1)]),
    ([(4, 2)], [(1, 1)]),
    ([(2, 30), (1, 1), (2, 3)], [(15, 15), (0, 0), (0, 1)]),
]


def padded(dims, pads, value: int = 0) -> np.ndarray:
    block = DATA[visited(dims, offset=2)].reshape([size for size, _ in dims])
    return np.pad(block, pads, constant_values=value).ravel()


def check_padded(device: str, dims, pads, *parts: str, value: int = 0) -> None:
    """What a memtile sends behind a lock, by dimension: told as one line, nearly all behind the first wrong padding
    would be wrong."""
    expected, turned = padded(dims, pads, value), [(after, before) for before, after in pads]
    pad_text = ", ".join(f"<const_pad_before = {before}, const_pad_after = {after}>" for before, after in pads)
    send = f"{acquire('go')}\n{bd('a', 150, f'2, {len(expected)}, {dimensions(dims)}, [{pad_text}]')}"
    found = run(
        device, lock("go", "01", 0), buffer("a", "01", 150, DATA[:150]), flow("01 DMA : 3", "12 DMA : 0"),
        buffer("x", "12", len(expected), [7] * len(expected)), program("01", Task("MM2S", 3, [send])),
        program("12", Task("S2MM", 0, [bd("x", len(expected))])), sequence(*parts, "aiex.set_lock(%go, 1)"),
    )["x"]  # fmt: skip
    exchanged = turned != pads and np.array_equal(found, padded(dims, turned, value))
    shape = [size + before + after for (size, _), (before, after) in zip(dims, pads, strict=True)]
    what = f"{dimensions(dims)} padded by {pads}{', as with those before and after exchanged' * exchanged}"
    same(found.reshape(shape), expected.reshape(shape), what, names=("plane", "row", "element")[-len(dims) :])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("dims", "pads"), PADS)
def test_a_memtile_pads_in_three_dimensions(device, dims, pads):
    check_padded(device, dims, pads)


@pytest.mark.parametrize(("device", "value"), [("npu1_3col", 0), ("npu2_3col", -77)])
@pytest.mark.parametrize("channel", [3, 2])
def test_only_npu2_pads_with_a_constant_of_the_channel(device, value, channel):
    """The register of MM2S c is at 0xA06E0 + 4 c; npu1 has none and pads with 0, and so do other channels."""
    write = write_word("01", 0xA06E0 + 4 * channel, -77 % 2**32)
    check_padded(device, *PADS[0], write, value=value if channel == 3 else 0)


def test_padding_words_of_subword_elements():
    """Eight bytes with four before and four behind: two words of data, two of padding, length 16."""
    padded = "0, 16, [<size = 8, stride = 1>], [<const_pad_before = 4, const_pad_after = 4>]"
    task = Task("MM2S", 0, [bd("a", 8, padded, element="i8")])
    found = sent("npu1_3col", "01", buffer("a", "01", 8, range(1, 9), element="i8"), 16, task, element="i8")
    same(found, [0] * 4 + list(range(1, 9)) + [0] * 4)


def test_a_receiving_channel_cannot_pad():
    padding = "0, 6, [<size = 4, stride = 1>], [<const_pad_before = 1, const_pad_after = 1>]"
    with pytest.raises(DmaError, match=r"memtile \(0, 1\) S2MM 0, BD 0 .*only MM2S can pad"):
        run("npu2_3col", buffer("x", "01", 8), program("01", Task("S2MM", 0, [bd("x", 8, padding)])))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("at", SENDERS)
def test_a_bd_of_length_zero_moves_nothing_but_uses_its_locks(device, at):
    """Both directions: the empty BDs open the way for the others."""
    found = run(
        device,
        buffer("a", at, 8, DATA[:8]),
        buffer("x", at, 8),
        lock("first", at, 0, 1),
        lock("sent", at, 1),
        lock("read", at, 2),
        flow(f"{at} DMA : 0", f"{at} DMA : 1"),
        program(
            at,
            Task(
                "MM2S",
                0,
                [
                    acquire("first") + "\n" + bd("a", 8, "0, 0") + "\n" + release("sent"),
                    acquire("read") + "\n" + bd("a", 8),
                ],
            ),
            Task("S2MM", 1, [acquire("sent") + "\n" + bd("x", 8, "0, 0") + "\n" + release("read"), bd("x", 8)]),
        ),
    )
    same(found["x"], DATA[:8])


def external(name: str, elements: int, address: int) -> str:
    return f'%{name} = aie.external_buffer {{sym_name = "{name}", address = {address} : i64}} : memref<{elements}xi32>'


@pytest.mark.parametrize("address", [0, 64, 1 << 33])
def test_a_shims_own_program_moves_host_memory_of_the_text(address: int):
    """A memtile's values go out to DRAM and from there to another memtile's buffer, behind a lock of the shim."""
    locks = [lock("there", "00", 0)]
    found = run(
        "npu2_3col", external("e", 12, address), *locks, buffer("a", "01", 8, DATA[:8]),
        buffer("b", "01", 8), flow("01 DMA : 0", "00 DMA : 0"), flow("00 DMA : 0", "01 DMA : 0"),
        program("00", Task("S2MM", 0, [bd("e", 12, "4, 8") + "\n" + release("there")]),
                Task("MM2S", 0, [acquire("there") + "\n" + bd("e", 12, "4, 8")])),
        program("01", Task("MM2S", 0, [bd("a", 8)]), Task("S2MM", 0, [bd("b", 8)])),
    )  # fmt: skip
    same(found["e"], np.concatenate([np.zeros(4, np.int32), DATA[:8]]))
    same(found["b"], DATA[:8])


@pytest.mark.parametrize("place", ["", "{address = 64 : i64}"])
def test_verify_knows_the_host_memory_of_the_text(place: str):
    parts = [tile(0, 0), f"%x = aie.external_buffer {place} : memref<12xi32>"]
    assert not verify_design(module("npu2_3col", *parts, program("00", Task("MM2S", 0, [bd("x", 12)])))).faults


def test_external_buffers_of_one_address_are_told():
    parts = [external("e", 8, 32), external("f", 8, 60), external("g", 8, 64)]
    found = bdforge.emulate(module("npu2_3col", tile(0, 0), *parts))
    assert found.buffers.keys() == {"e", "g"}
    (warning,) = found.warnings
    assert "the 32 bytes of external buffer f from address 0x3c on are another's too" in warning
