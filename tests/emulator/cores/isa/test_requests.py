"""What a core asks for and gets, form by form, memory at its ends, names, stacks of landings: worked by hand."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bdforge.array.emulator.cores import load_machine_code as loading
from bdforge.array.emulator.cores.machine_code_core import Breakpoints, address_of, memory_of
from bdforge.array.emulator.errors import ArgumentError
from bdforge.array.emulator.strictness import Strictness
from bdforge.core import isa
from bdforge.core.exact import verdicts
from bdforge.core.exact.core_memory import END, FIRST, WINDOW_BYTES, DataMemory
from bdforge.core.exact.core_state import checked
from bdforge.core.exact.profile import NO_NAME, Parts, shares
from bdforge.core.exact.requests import Asking, GetRegister, GetTimer, PutHeader, PutRegister, answered, request_of
from bdforge.core.isa.assembler import assemble
from bdforge.core.isa.errors import AccessError, ControlError, ExecutionError, OpenError, StepBudgetError
from bdforge.core.isa.hazard_layout import Hazard
from bdforge.core.python_kernel import AcquireLock, GetCascade, GetStream, PutCascade, PutStream, ReleaseLock, Request
from bdforge.devices import TileKind, mlir_device_named
from support.differences import same
from support.machine_code import EXECUTORS, code_of, memories, run_text

NOPS = "nop\n" * 8
EACH = pytest.mark.parametrize("executor", EXECUTORS)
INT, BYTE = np.dtype(np.int32), np.dtype(np.uint8)
MINUS = (1 << 32) - 5  # -5 in 32 bits
VALUE = sum(i << 8 * i for i in range(64))
REQUESTS: list[tuple[str, tuple[int, ...], Request]] = [
    ("acquire", (48, 0), AcquireLock(48, 0, True)), ("acquire", (48, 5), AcquireLock(48, 5, True)),
    ("acquire", (0, MINUS), AcquireLock(0, 5, False)), ("acquire", (63, 1 << 31), AcquireLock(63, 1 << 31, False)),
    ("acquire", (63, (1 << 31) - 1), AcquireLock(63, (1 << 31) - 1, True)),
    ("release", (48, 3), ReleaseLock(48, 3)), ("release", (48, MINUS), ReleaseLock(48, -5)),
    ("release", (1, 0), ReleaseLock(1, 0)),
    ("get stream", (), GetStream(0, INT, True)), ("poll stream", (), GetStream(0, INT, False)),
    ("put stream", ((1 << 32) + 258, 0), PutStream(0, b"\2\1\0\0", False, True)),
    ("put stream", (7, 3), PutStream(0, b"\7\0\0\0", True, True)),
    ("put stream", (7, 2), PutStream(0, b"\7\0\0\0", False, True)),
    ("offer stream", (7, 1), PutStream(0, b"\7\0\0\0", True, False)),
    ("put header", (31, 5, 1), PutHeader(5, 31, True, True)), ("put header", (32, 5, 2), PutHeader(5, 0, False, True)),
    ("offer header", (47, 7, 3), PutHeader(7, 15, True, False)),
    ("get register", (0x1F000,), GetRegister(0x1F000)), ("get timer", (), GetTimer()),
    ("put register", (4, (1 << 32) + 9), PutRegister(4, 9)),
    ("get cascade", (1, 0), GetCascade(BYTE)), ("get cascade", (1, 3), GetCascade(BYTE)),
    ("put cascade", (VALUE, 1), PutCascade(bytes(range(64)))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "operands", "wanted"), REQUESTS, ids=[f"{name} {o}"[:40] for name, o, _ in REQUESTS])
def test_operands_make_a_request(name: str, operands: tuple[int, ...], wanted: Request):
    same(request_of(name, operands), wanted)


@pytest.mark.parametrize(("number", "last"), [(17, False), (31, True), (32 + 3, True)])
def test_a_control_word_has_its_fields_and_an_odd_number_of_ones(number: int, last: bool):
    """Hardware facts 1.7: the address in bits 19:0, words less one from 20, what from 22, the id from 24."""
    for verb, waits in (("put", True), ("offer", False)):
        request = request_of(f"{verb} control", (0x1D004, 2, 1, number, 2 | last))
        assert isinstance(request, PutStream)
        word = int.from_bytes(request.data, "little")
        assert word & 0x7FFFFFFF == (number % 32) << 24 | 1 << 22 | 2 << 20 | 0x1D004
        assert word.bit_count() % 2 == 1
        assert (request.last, request.wait) == (last, waits)


@pytest.mark.parametrize(
    ("name", "operands", "error", "message"),
    [
        ("get cascade", (0, 0), ExecutionError, "input is used while crSCDEn is 0"),
        ("put cascade", (1, 0), ExecutionError, "output is used while crMCDEn is 0"),
        ("get cascade", (1, 4), OpenError, "r31 is 4: the cascade reaches parts 0 to 3"),
        ("ask nobody", (), ExecutionError, "no request is called ask nobody"),
    ],
)
def test_requests_that_nobody_serves_are_faults(name, operands, error, message):
    with pytest.raises(error, match=message):
        request_of(name, operands)


WORD = np.arange(64, dtype=np.uint8)
ANSWERS: list[tuple[str, tuple[int, ...], Any, int]] = [
    ("get cascade", (1, 0), WORD, VALUE), ("get cascade", (1, 2), WORD, VALUE << 1024),
    ("offer stream", (7, 0), True, 1), ("offer header", (7, 0, 0), None, 0), ("offer stream", (7, 0), False, 0),
    ("poll stream", (), None, 0), ("poll stream", (), 0, 1 << 32), ("poll stream", (), -1, (1 << 33) - 1),
    ("get stream", (), -2, (1 << 32) - 2), ("get stream", (), (1 << 32) + 5, 5), ("put stream", (7, 0), None, 0),
    ("get register", (4,), 1 << 31, 1 << 31), ("get timer", (), (7 << 32) + 9, (7 << 32) + 9),
    ("get timer", (), (1 << 64) + 1, 1),
]  # fmt: skip


@pytest.mark.parametrize(("name", "operands", "answer", "wanted"), ANSWERS, ids=lambda value: str(value)[:30])
def test_an_answer_becomes_bits(name: str, operands: tuple[int, ...], answer: Any, wanted: int):
    assert answered(name, operands, answer) == wanted


def test_data_of_a_request_stands_between_its_numbers():
    assert Asking("x", (False, True, False)).operands([5, 6, 7], b"\1\2") == [5, 0x201, 6]
    assert Asking("x", (False, False)).operands([5, 6, 7], b"") == [5, 6]


@EACH
@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize(("move", "gap"), [("mova r1, #9", 5), ("mov.d3 r1, r2", 2)])
def test_of_results_that_land_in_one_cycle_that_of_the_later_instruction_stays(executor, move, gap, more):
    """A load is seven bundles behind, a move one, a delayed one four: with `gap` between them both land at once."""
    text = "lda r1, [p0, #0]\n" + "nop\n" * (gap + more) + f"{move}\n{NOPS}"
    core = run_text(executor, text, {"p0": 0x70000, "r1": 5, "r2": 9})
    assert core.read("r1") == (0 if more < 0 else 9), f"{gap + more} bundles between a load of 0 and a move of 9"


@EACH
def test_a_register_that_is_set_from_outside_is_known(executor):
    text = f"mov.nb r1, ss\n{NOPS}add r2, r1, r1"
    core = executor(isa.load("aie2p"), code_of(text), memories())
    steps = core.run(9)  # until the answer has landed
    request = next(steps)
    assert isinstance(request, GetStream)
    with pytest.raises(StepBudgetError):
        steps.send(None)
    core.write("r1", 4)
    list(core.run(50))
    assert core.read("r2") == 8


@EACH
def test_a_budget_counts_from_where_a_core_stands(executor):
    core = executor(isa.load("aie2p"), code_of(f"again: j #again\n{NOPS}"), memories())
    for _ in range(3):
        list(core.step())
    for bundles in (3 + 20, 3 + 40):
        with pytest.raises(StepBudgetError, match="no end after 20 bundles"):
            list(core.run(20))
        assert core.bundles == bundles
    with pytest.raises(StepBudgetError, match="no end after 0 bundles"):
        list(core.run(0))
    assert core.bundles == 43


@pytest.mark.parametrize(
    ("address", "size", "fits"),
    [
        (FIRST, 8, True), (FIRST - 1, 8, False), (END - 8, 8, True), (END - 7, 8, False),
        (FIRST + WINDOW_BYTES - 8, 8, True), (FIRST + WINDOW_BYTES - 4, 8, False), (FIRST + WINDOW_BYTES, 8, False),
        (FIRST + 2 * WINDOW_BYTES + 3, 5, True),
    ],
)  # fmt: skip
def test_data_fits_within_one_memory_that_is_there(address: int, size: int, fits: bool):
    """The western memory is missing."""
    windows = [None if i == 1 else np.zeros(WINDOW_BYTES, np.uint8) for i in range(4)]
    written = [None if w is None else np.zeros(WINDOW_BYTES, bool) for w in windows]
    memory, data = DataMemory(windows, written), bytes(range(1, size + 1))
    assert memory.fill(address, data) is fits
    whole = b"".join(bytes(WINDOW_BYTES) if w is None else w.tobytes() for w in windows)
    flags = b"".join(bytes(WINDOW_BYTES) if w is None else w.tobytes() for w in written)
    at = address - FIRST
    assert (whole.strip(b"\0"), flags.count(1)) == ((data, size) if fits else (b"", 0))
    assert not fits or (whole[at : at + size], flags[at : at + size]) == (data, b"\1" * size)


@pytest.mark.parametrize(("address", "size"), [(FIRST, 4), (END - 4, 4), (END - 64, 64), (FIRST + 0x1FFFF, 1)])
def test_an_access_reaches_the_ends_of_memory_and_no_further(address: int, size: int):
    memory = memories()
    value = (1 << 8 * size) - 2
    memory.store(address, size, value + (1 << 8 * size))
    assert memory.load(address, size) == value
    for outside in (FIRST - size, END):
        with pytest.raises(AccessError, match=f"loads {size} bytes at {outside:#x}; data memory is from 0x40000"):
            memory.load(outside, size)
    if size > 1:
        with pytest.raises(AccessError, match=f"which is no multiple of {size}"):
            memory.store(address + size // 2, size, 0)


def test_poisoned_bytes_are_known_one_by_one():
    written = [np.zeros(WINDOW_BYTES, bool) for _ in range(4)]
    memory = DataMemory(memories().windows, written)
    memory.store(FIRST + 4, 4, 9)
    assert memory.load(FIRST + 4, 4) == 9
    for address, size in ((FIRST, 8), (FIRST + 8, 1), (FIRST, 4)):
        with pytest.raises(AccessError, match=f"loads {size} bytes at {address:#x}, which nobody has written"):
            memory.load(address, size)


KINDS = TileKind.SHIM, TileKind.MEMTILE, TileKind.CORE, TileKind.CORE, TileKind.CORE, TileKind.CORE


@pytest.mark.parametrize(
    ("place", "there"),
    [
        ((0, 2), [None, None, (0, 3), (0, 2)]), ((1, 3), [(1, 2), (0, 3), (1, 4), (1, 3)]),
        ((7, 5), [(7, 4), (6, 5), None, (7, 5)]),
    ],
)  # fmt: skip
def test_a_core_reaches_the_cores_to_the_south_west_and_north(place, there):
    device = SimpleNamespace(columns=8, rows=6, kind=lambda _, row: KINDS[row])
    array = SimpleNamespace(device=device, tile=lambda *at: SimpleNamespace(bytes=at, written=None))
    core: Any = SimpleNamespace(place=place, array=array)
    assert list(memory_of(core).windows) == there


def test_names_begin_at_their_address_and_reach_to_the_next():
    names = Parts({0x20: "b", 0x10: "a", 0x40: "c"})
    found = {pc: names.at(pc) for pc in (0, 0xF, 0x10, 0x1E, 0x20, 0x3E, 0x40, 0x3FFE)}
    a, b, c = (0x10, "a"), (0x20, "b"), (0x40, "c")
    assert found == {0: None, 0xF: None, 0x10: a, 0x1E: a, 0x20: b, 0x3E: b, 0x40: c, 0x3FFE: c}
    assert (names.address("b"), names.address("d")) == (0x20, None)


def test_shares_count_bundles_slots_and_macs_by_name():
    """A long constant takes the slots of the ALU and the moves; NOPs take theirs."""
    program = assemble("movxm r0, #70000\nmain: add r1, r1, #1 ; mova r2, #3\nadd r1, r1, #1\n", "aie2p", "s.s")
    code, main = program.code[0][1], program.symbols["main"]
    isa_ = isa.load("aie2p")
    behind = main + isa_.decode(code, main).size
    first, second = shares(isa_, code, {main: 5, behind: 2, 0: 3}, {behind: 64}, Parts({main: "main"}))
    assert (first.name, first.bundles, first.macs) == ("main", 7, 64)
    assert (second.name, second.bundles, second.macs) == (NO_NAME, 3, 0)
    assert (first.slots["alu"], first.slots["lda"], first.slots["mv"]) == (7, 5, 0)
    assert (second.slots["alu"], second.slots["mv"], second.slots["lng"]) == (3, 3, 0)


@pytest.mark.parametrize(("text", "place"), [("16", 16), ("0x20", 32), ("main", None), ("0b11", 3), ("12ab", None)])
def test_a_place_is_a_number_or_a_name(text: str, place: int | None):
    assert address_of(text) == place


def test_breakpoints_are_kept_by_core():
    found = Breakpoints.of(["0,2:main", "1,3:0x10", "0,2:32", "10,12:a_b"], lambda *_: None)
    assert found.places == {(0, 2): {"main", "32"}, (1, 3): {"0x10"}, (10, 12): {"a_b"}}
    for text in ("0:main", "0,2", "0,2:", "a,2:main", "0,2:main x", "0,2:a,b"):
        with pytest.raises(ArgumentError, match=f"{text!r} is no breakpoint: write COLUMN,ROW:ADDRESS"):
            Breakpoints.of([text], lambda *_: None)


@EACH
@pytest.mark.parametrize("generation", isa.GENERATIONS)
@pytest.mark.parametrize(
    ("count", "left", "carry"), [(0, 0xFFFFFFFF, 0), (1, 0, 1), (5, 4, 1), (1 << 31, (1 << 31) - 1, 1)]
)
def test_a_decrement_carries_unless_it_came_from_0(executor, generation, count: int, left: int, carry: int):
    text = f"jnzd r1, r1, p0\n{NOPS}.p2align 4\nend: nop\n"
    target = assemble(f"{text}done", generation, "t.s").symbols["end"]
    core = run_text(executor, text, {"r1": count, "p0": target, "srCarry": 1 - carry}, generation)
    assert (core.read("r1"), core.read("srCarry")) == (left, carry)


@pytest.mark.parametrize(("pc", "taken"), [(0, True), (62, True), (64, False), (66, False), (63, False), (1, False)])
def test_a_bundle_begins_within_the_program_at_an_even_address(pc: int, taken: bool):
    if taken:
        assert checked(pc, bytes(64)) == pc
        return
    with pytest.raises(ControlError, match="execution leaves program memory, which ends at 0x40"):
        checked(pc, bytes(64))


@pytest.fixture
def kept_apart(monkeypatch, tmp_path):
    """Verdicts of this test are in a folder of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    verdicts.verdict.cache_clear()
    yield
    verdicts.verdict.cache_clear()


def fault(number: int, unusual: bool = False) -> Hazard:
    """A hazard with a number."""
    return Hazard("rule", 0, None, f"hazard {number}", unusual)


@pytest.mark.parametrize(("count", "told"), [(1, 1), (3, 3), (5, 3)])
def test_three_hazards_of_a_program_are_told_and_the_rest_counted(count: int, told: int, monkeypatch, kept_apart):
    """Once of each program, and in one sentence what is unusual; another process has it from a file."""
    found = [*(fault(i) for i in range(count)), fault(9, True), fault(10, True)]
    monkeypatch.setattr(verdicts, "check_program", lambda *_, **__: found)
    expected = [f"rule: hazard {i}" for i in range(told)] + [f"and {count - told} more hazards"] * (count > told)
    expected.append("2 places are unusual, though compiled code has such: 2 rule; the first: hazard 9")
    for check in (lambda *_, **__: found, None, None):  # None: whoever asks again fails
        monkeypatch.setattr(verdicts, "check_program", check)
        verdicts.verdict.cache_clear()
        assert warnings_of_a_start() == [f"core (0, 2), a.elf: {line} [machine-code]" for line in expected]


@pytest.mark.parametrize("spoilt", ["", "{", "[]", '{"errors": 3, "unusual": ""}', "\0\0"])
def test_a_verdict_that_cannot_be_read_or_kept_is_made_anew(spoilt: str, monkeypatch, kept_apart, tmp_path):
    monkeypatch.setattr(verdicts, "check_program", lambda *_, **__: [fault(1)])
    first = warnings_of_a_start()
    (file,) = tmp_path.rglob("*.json")
    file.write_text(spoilt)
    verdicts.verdict.cache_clear()
    assert warnings_of_a_start() == first
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))  # no folder
    verdicts.verdict.cache_clear()
    assert warnings_of_a_start() == first


def warnings_of_a_start() -> list[str]:
    """What is told when two cores start with one program."""
    rules = Strictness()
    core = SimpleNamespace(name="core (0, 2)", take=lambda _: None)
    tile = SimpleNamespace(code=bytearray(16))
    array: Any = SimpleNamespace(
        device=mlir_device_named("npu2"), strictness=rules, core=lambda *_: core, tile=lambda *_: tile,
        scheduler=SimpleNamespace(wake=lambda _: None),
    )  # fmt: skip
    programs = loading.ProgramMemories(array, {(0, 2): ({}, "a.elf"), (0, 3): ({}, "b.elf")})
    programs.start((0, 2))
    programs.start((0, 3))
    return rules.warnings
