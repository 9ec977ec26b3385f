"""What a report names: the party that is missing, not those that wait for it."""

import re

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import Deadlock
from bdforge.array.emulator.diagnose import deadlock
from bdforge.array.emulator.lock import EmulatedLock
from bdforge.array.emulator.scheduler import Agent, PlainWait
from bdforge.array.emulator.verification import verify_design
from support.array_text import (
    Task,
    acquire,
    bd,
    buffer,
    core,
    flow,
    lock,
    memcpy,
    module,
    packet_flow,
    program,
    release,
    ring,
    tile,
)
from support.register_designs import column
from support.small_designs import loopback

CORES = 4


def join(inits: tuple[int, ...] = (1, 1, 1, 1), first_rounds: int = 8) -> str:
    """Four cores fill a quarter of a memtile's buffer each; one channel sends the whole to DRAM, four rounds."""
    parts = [tile(0, 0), tile(0, 1), buffer("all", "01", 32), lock("all_free", "01", 0, 4), lock("all_full", "01", 1)]
    fills = []
    for i in range(CORES):
        at = f"0{i + 2}"
        parts += [
            tile(0, i + 2), buffer(f"part{i}", at, 8), lock(f"free{i}", at, 0, inits[i]), lock(f"full{i}", at, 1),
            flow(f"{at} DMA : 0", f"01 DMA : {i}"),
            program(at, ring("MM2S", 0, acquire(f"full{i}"), bd(f"part{i}", 8), release(f"free{i}"))),
            core(at, acquire(f"free{i}"), release(f"full{i}"), times=8 if i else first_rounds),
        ]  # fmt: skip
        fills.append(ring("S2MM", i, acquire("all_free"), bd("all", 32, f"{8 * i}, 8"), release("all_full")))
    send = ring("MM2S", 0, acquire("all_full", 4), bd("all", 32), release("all_free", 4))
    parts += [
        program("01", *fills, send), flow("01 DMA : 0", "00 DMA : 0"),
        "aie.shim_dma_allocation @out (%t00, S2MM, 0)",
        "aie.runtime_sequence @sequence(%c: memref<128xi32>) {",
        memcpy("c", "out", 0, 128, token=True), "aiex.npu.dma_wait {symbol = @out}", "}",
    ]  # fmt: skip
    return module("npu2_1col", *parts)


def report(text: str, *arguments: np.ndarray, **options) -> str:
    with pytest.raises(Deadlock) as fault:
        bdforge.emulate(text, arguments, **options)
    return str(fault.value)


def test_the_join_works_with_all_its_locks():
    assert bdforge.emulate(join(), [np.zeros(128, np.int32)]).arguments[0].shape == (128,)


@pytest.mark.parametrize("stuck", range(CORES))
@pytest.mark.parametrize("options", [{}, {"schedule": "random", "seed": 3}, {"schedule": "random", "seed": 8}])
def test_a_join_names_the_contributor_that_is_missing(stuck, options):
    """Lock init 0 on one of four cores: the circle of that core and its channel is the root, not the memtile's."""
    inits = tuple(0 if i == stuck else 1 for i in range(CORES))
    text = report(join(inits), np.zeros(128, np.int32), **options)
    ring = text.partition("... and so back to")[0]
    party = rf"core \(0, {stuck + 2}\)"
    assert text.startswith("deadlock: these wait for each other in a circle:")
    assert re.search(rf"  {party} waits for lock free{stuck} .* >= 1, which is 0 since the start", ring)
    assert re.search(rf"  {party} MM2S 0 waits for lock full{stuck} .* which is 0 since the start", ring)
    assert "memtile" not in ring
    assert f"S2MM {stuck}" in text.partition("(released never by ")[2].partition(" once by")[0]


def test_two_missing_contributors_are_both_named():
    text = report(join((1, 0, 1, 0)), np.zeros(128, np.int32))
    assert "released never by memtile (0, 1) S2MM 1, memtile (0, 1) S2MM 3, once by" in text
    assert {"core (0, 3)", "core (0, 5)"} <= set(re.findall(r"core \(0, \d\)", text))
    assert "stuck as well" in text


def test_a_root_that_is_waited_for_less_directly_is_named_last():
    """Core 0 ends after two rounds; core 2 never starts: it is behind, so it is the one to look at."""
    text = join((1, 1, 0, 1), first_rounds=2)
    assert "core (0, 4) waits for lock free2" in report(text, np.zeros(128, np.int32)).partition("... and so")[0]


LONG = "%wide = aie.buffer(%c) {sym_name = \"wide\", address = 4096 : i32} : memref<8xi32>\n" \
    "%near = aie.buffer(%c) {sym_name = \"near\", address = 4128 : i32} : memref<4xi32>\n" \
    "%far = aie.buffer(%c) {sym_name = \"far\", address = 8192 : i32} : memref<4xi32>\n"  # fmt: skip
SEND = "%p = aie.mem(%c) {{\n%0 = aie.dma_start(MM2S, 0, ^bd, ^end)\n^bd:\naie.dma_bd(%wide : memref<8xi32>, {})\n" \
    "aie.next_bd ^end\n^end:\naie.end\n}}"  # fmt: skip
LEAVES = [
    ("0, 16", 63, "@near"),
    ("4, 8", 47, "@near"),
    ("1024, 4", 4111, "@far"),
    ("0, 16, [<size = 2, stride = 4>, <size = 4, stride = 1>]", 63, "@near"),
]


@pytest.mark.parametrize(("moved", "last", "met"), LEAVES)
def test_a_bd_that_leaves_its_buffer_names_what_it_runs_into(moved, last, met):
    text = column(extra=LONG + SEND.format(moved))
    wanted = f"the BD moves words up to byte {last} of buffer @wide, which has 32 bytes and runs into {met};"
    for warnings in (verify_design(text).warnings, bdforge.emulate(text, [np.zeros(64, np.int32)] * 2).warnings):
        (found,) = [w for w in warnings if w.endswith("[buffer-bounds]")]
        assert wanted in found
        assert found.startswith("<string>:")
    silent = bdforge.emulate(text, [np.zeros(64, np.int32)] * 2, permissive=["buffer-bounds"])
    assert not [w for w in silent.warnings if "buffer" in w]


@pytest.mark.parametrize("moved", ["0, 8", "4, 4", "0, 8, [<size = 2, stride = 4>, <size = 4, stride = 1>]"])
def test_a_bd_that_fills_its_buffer_is_no_news(moved):
    assert verify_design(column(extra=LONG + SEND.format(moved))).warnings == ()


def test_a_task_that_leaves_its_buffer_is_a_warning_too():
    task = ["%t = aiex.dma_configure_task(%m, MM2S, 0) {", "aie.dma_bd(%mb : memref<64xi32>, 48, 32)",
            "aie.end", "}", "aiex.dma_start_task(%t)"]  # fmt: skip
    (found,) = [w for w in verify_design(column(*task)).warnings if "buffer-bounds" in w]
    assert "up to byte 319 of buffer @mb, which has 256 bytes;" in found


def blocked(rounds: int) -> str:
    """Two cores of an array without a sequence, one of which waits for a release too many."""
    own = core("02", acquire("free0"), release("full0"), times=rounds)
    return module(
        "npu2_1col", tile(0, 2), tile(0, 3), lock("free0", "02", 0, 3), lock("full0", "02", 1), own, core("03")
    )


def test_an_array_that_goes_quiet_lists_its_blocked_cores():
    (warning,) = bdforge.emulate(blocked(4)).warnings
    first, listed = warning.splitlines()
    assert first == "the array went quiet with 1 core blocked:"
    assert listed.startswith("  core (0, 2) waits for lock free0 (0 of core (0, 2)) >= 1, which is 0")
    assert warning.endswith("[blocked-cores]")
    assert bdforge.emulate(blocked(4), permissive=["blocked-cores"]).warnings == ()
    assert bdforge.emulate(blocked(3)).warnings == ()


@pytest.mark.parametrize(("count", "told"), [(1, "1 token"), (2, "2 tokens")])
def test_unread_tokens_are_a_warning(count: int, told: str):
    walk = "aiex.npu.dma_memcpy_nd(%{}[0, 0, 0, 0][1, 1, 1, 32][0, 0, 0, 1]) {{id = {} : i64, metadata = @{}}}"
    moves = [move for i in range(count) for move in (("b", 2 * i + 1, "out"), ("a", 2 * i, "in"))]
    text = loopback(sequence="\n".join(f"{walk.format(*move)} : memref<96xi32>" for move in moves))
    found = bdforge.emulate(text, list(np.zeros((2, 96), np.int32))).warnings
    assert found == (f"{told} of S2MM 0 of tile (0, 0) nobody awaited",)


def packets(sent: int) -> str:
    """Two destinations by id; the first waits for a packet of id 3."""
    return module(
        "npu2_1col", tile(0, 0), tile(0, 1), tile(0, 2), tile(0, 3),
        buffer("from", "01", 8, range(8)), buffer("one", "02", 4), buffer("two", "03", 4), lock("got", "02", 0),
        packet_flow(3, "01 DMA : 0", "02 DMA : 0"), packet_flow(5, "01 DMA : 0", "03 DMA : 0"),
        program("01", Task("MM2S", 0, [bd("from", 8, "0, 4", packet=sent), bd("from", 8, "4, 4", packet=5)])),
        program("02", Task("S2MM", 0, [f"{bd('one', 4)}\n{release('got')}"])),
        program("03", Task("S2MM", 0, [bd("two", 4), bd("two", 4)])),
        core("02", acquire("got")),
        "aie.runtime_sequence @sequence() {",
        "aiex.npu.sync {column = 0 : i32, row = 2 : i32, direction = 0 : i32, channel = 0 : i32, "
        "column_num = 1 : i32, row_num = 1 : i32}", "}",
    )  # fmt: skip


def test_a_packet_deadlock_says_which_ids_were_sent_and_expected():
    text = report(packets(5), permissive=[])
    assert "core (0, 2) S2MM 0 waits for 4 words in a packet of id 3 from memtile (0, 1) MM2S 0" in text
    assert "which has sent 2 of id 5" in text


def reported(waits: dict[str, str]) -> str:
    """The report of a sequence that waits for `a`, where each party waits for those named by a letter (none: idle)."""
    agents = {name: Agent(name) for name in waits}
    for name, others in waits.items():
        agents[name].waiting = gate(f"waits for {others or 'nobody'}", *(agents[other] for other in others))
    return str(deadlock(gate("waits for a", agents["a"])))


def gate(words: str, *others: Agent) -> PlainWait:
    """A wait in words, for parties that are known."""
    return PlainWait(lambda: words, lambda: others)


CHAIN = "abcdefghijklmnopqrstuvwxyz"
WORDS = {
    "deadlock: nothing can move:": "dead:", "deadlock: these wait for each other in a circle:": "ring:",
    "which was reached from:": "by:", "stuck as well, but waited for less directly:": "also:",
}  # fmt: skip
REPORTS = {
    "a way to one that is idle": ({"a": "b", "b": ""}, "dead: sequence a b"),
    "a circle and the way to it": ({"a": "b", "b": "c", "c": "b"}, "ring: b c b by: sequence a"),
    "the shorter of two circles": ({"a": "bc", "b": "d", "c": "a", "d": "a"}, "ring: a c a by: sequence"),
    "itself where nobody else could": ({"a": "a"}, "ring: a a by: sequence"),
    "another before itself": ({"a": "ab", "b": ""}, "dead: sequence a b"),
    "the nearest root first": ({"a": "bc", "b": "d", "c": "", "d": ""}, "dead: sequence a c also: d"),
    "four other roots": ({"a": "bcdefg"} | dict.fromkeys("bcdefg", ""), "dead: sequence a b also: c d e f"),
    "24 of a longer way": (
        {name: CHAIN[i + 1 : i + 2] for i, name in enumerate(CHAIN)}, f"dead: sequence {' '.join(CHAIN[:23])}",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("waits", "wanted"), REPORTS.values(), ids=REPORTS)
def test_a_report_goes_from_the_sequence_to_the_nearest_root(waits: dict[str, str], wanted: str):
    lines = re.sub(r"^  (\.\.\. and so back to|runtime) ", "  ", reported(waits), flags=re.MULTILINE).splitlines()
    assert " ".join(WORDS.get(line) or line.split()[0] for line in lines) == wanted


@pytest.mark.parametrize(("often", "first"), [(1, "lazy's root"), (0, "busy")])
def test_those_who_are_behind_lead_to_the_root_even_by_a_longer_way(often: int, first: str):
    """Two release a lock: `busy` is idle, `lazy` waits for another. Who has released less often is to be looked at."""
    names = ("waiter", "busy", "lazy", "lazy's root")
    waiter, busy, lazy, root = (Agent(name) for name in names)
    lock = EmulatedLock("gate", 63, lambda _: None, releasers=lambda: [busy, lazy])
    busy.waiting = root.waiting = gate("has no task")
    lazy.waiting = gate("waits for its root", root)
    lock.take(waiter, 5)
    for _ in range(often):
        lock.add(1, agent=busy)
    lines = str(deadlock(gate("waits", waiter))).splitlines()
    way = lines[: lines.index("stuck as well, but waited for less directly:")]
    assert way[-1] == f"  {first} has no task"
