"""Branches, locks, streams, the cascade and events by hand-worked programs, on both generations."""

import pytest

from bdforge.core import isa
from bdforge.core.isa.assembler import assemble
from bdforge.core.isa.errors import ControlError, ExecutionError
from bdforge.core.python_kernel import AcquireLock
from support.machine_code import EXECUTORS, World, code_of, memories, run_text

SLOTS = "add r9, r9, #1\n" * 5
NOPS = "nop\n" * 8
BRANCHES = {
    "j #away": (1, 0, 5),
    "j p0": (1, 0, 5),
    "jz r1, #away": (1, 0, 5),
    "jz r2, #away": (1, 7, 5),
    "jnz r2, #away": (1, 0, 5),
    "jnz r1, #away": (1, 7, 5),
    "jl #away": (1, 0, 5),
    "jl p0": (1, 0, 5),
}
"""What r3 is at the target, r4 where it would go on, and how often the slots were run."""


@pytest.fixture(params=isa.GENERATIONS)
def generation(request):
    """Both generations."""
    return request.param


@pytest.fixture(params=EXECUTORS)
def executor(request):
    """Both executors."""
    return request.param


@pytest.mark.parametrize("branch", BRANCHES)
def test_a_branch_runs_its_five_slots_and_then_goes_on_there(executor, generation, branch):
    text = f"{branch}\n{SLOTS}add r4, r4, #7\n.p2align 4\naway: add r3, r3, #1\n"
    target = assemble(text + "done", generation, "t.s").symbols["away"]
    core = run_text(executor, text, {"p0": target, "r2": 5}, generation)
    assert (core.read("r3"), core.read("r4"), core.read("r9")) == BRANCHES[branch]


def test_a_call_returns_behind_its_slots(executor, generation):
    text = f"jl #work\n{SLOTS}back: add r3, r9, #0\nj #end\n{SLOTS}.p2align 4\nwork: add r4, r4, #4\nret\n{SLOTS}"
    core = run_text(executor, f"{text}.p2align 4\nend: nop\n", {}, generation)
    assert core.read("lr") == assemble(f"{text}.p2align 4\nend: done", generation, "t.s").symbols["back"]
    assert (core.read("r3"), core.read("r4"), core.read("r9")) == (10, 4, 15)


@pytest.mark.parametrize("passes", [1, 2, 5])
def test_jnzd_compares_before_it_decrements(executor, generation, passes):
    text = f"nop\n.p2align 4\nagain: add r3, r3, #1\njnzd r1, r1, p0\n{SLOTS}"
    core = run_text(executor, text, {"p0": 16, "r1": passes - 1}, generation)
    assert (core.read("r3"), core.read("r9")) == (passes, 5 * passes)
    assert core.read("r1") == 0xFFFFFFFF


def test_a_branch_in_a_slot_is_a_fault(executor, generation):
    with pytest.raises(ControlError, match="at 0x4: a branch in a delay slot of another"):
        run_text(executor, f"j p0\njz r1, #0\n{SLOTS}", {"p0": 16}, generation)


@pytest.mark.parametrize(
    ("target", "taken"), [(2, False), (8, False), (24, False), (30, False), (32, True), (48, True)]
)
def test_a_branch_leads_to_a_multiple_of_16_bytes(executor, generation, target, taken):
    text = f"j p0\n{SLOTS}.p2align 4\n" + "nop\n" * 40
    if taken:
        assert run_text(executor, text, {"p0": target}, generation).done
        return
    with pytest.raises(ControlError, match=f"at 0x0: a branch to {target:#x}, which is no multiple of 16"):
        run_text(executor, text, {"p0": target}, generation)


def test_locks_are_taken_and_given_by_number_and_by_register(executor, generation):
    text = f"acq #48, r1\n{NOPS}acq r2, r1\n{NOPS}rel #50, r3\n{NOPS}rel r4, r3\n{NOPS}"
    world = World({48: 3, 17: 2})
    run_text(executor, text, {"r1": -2, "r2": 17, "r3": 1, "r4": 33}, generation, world=world)
    assert world.log == [["acq", 48, -2, 1], ["acq", 17, -2, 0], ["rel", 50, 1, 1], ["rel", 33, 1, 1]]


@pytest.mark.parametrize(("gap", "pending"), [(0, 2), (3, 2), (4, 1), (9, 1), (10, 0)])
def test_stores_that_have_not_written_are_known_at_a_release(executor, generation, gap, pending):
    text = "st.s8 r1, [p0, #0] ; st r1, [p1, #0]" + " ; nopx" * (gap == 0) + "\n"
    text = text.replace(" ; nopx", " ; rel #48, r1") if gap == 0 else text + "nop\n" * (gap - 1) + "rel #48, r1\n"
    core = executor(isa.load(generation), code_of(text + NOPS * 2, generation), memories())
    core.write("p0", 0x70000)
    core.write("p1", 0x70100)
    next(core.run(50))
    assert core.pending_stores == pending


def test_an_acquire_of_a_positive_value_waits_for_equality(executor, generation):
    core = executor(isa.load(generation), code_of("acq #5, r1", generation), memories())
    core.write("r1", 4)
    assert next(core.run(10)) == AcquireLock(5, 4, True)


def test_an_answer_lands_in_its_cycle(executor):
    """A word of the stream is there seven bundles behind, as a load is."""
    world = World(words=[0x80000001 - (1 << 32)])
    core = run_text(executor, "mov r1, ss\n" + "nop\n" * 5 + "mov r2, r1\nmov r3, r1\n" + NOPS, {"r1": 9}, world=world)
    assert (core.read("r2"), core.read("r3")) == (9, 0x80000001)


def test_words_are_sent_with_and_without_tlast(executor, generation):
    world = World()
    text = f"mov ms, r1\nmov.tlast ms, r1\nmov ms, r1, r28\n{NOPS}"
    run_text(executor, text, {"r1": 7, "r28": 3}, generation, world=world)
    assert world.sent == [(7, False), (7, True), (7, True)]


def test_the_cascade_moves_512_bits(executor, generation):
    value = bytes(range(64))
    world = World(cascade=[value])
    enable = {"crSCDEn": 1, "crMCDEn": 1} if generation == "aie2p" else {}
    core = run_text(executor, f"vmov x1, scd\n{NOPS}vmov mcd, x1\n{NOPS}", {**enable}, generation, world=world)
    assert core.read("x1").to_bytes(64, "little") == value
    assert world.sent == [value]


@pytest.mark.parametrize(
    ("part", "register"), [(0, "cml3"), (1, "cmh3"), (0, "dm2"), (1, "dm2"), (2, "dm2"), (3, "dm2")]
)
def test_the_cascade_fills_a_part_of_a_wide_register(executor, part, register):
    value, ones = bytes(range(1, 65)), (1 << 2048) - 1
    world = World(cascade=[value])
    core = run_text(
        executor, f"vmov.{part} {register}, scd\n{NOPS}", {"crSCDEn": 1, "dm2": ones, "dm3": ones}, world=world
    )
    whole, first = core.read(register), 512 * part
    assert (whole >> first) % (1 << 512) == int.from_bytes(value, "little")
    size = 1024 if register.startswith("cm") else 2048
    assert whole | ((1 << 512) - 1) << first == (1 << size) - 1  # all else stays


@pytest.mark.parametrize(("half", "first"), [("lo", 0), ("hi", 512)])
def test_the_cascade_fills_a_half_on_aie2(executor, half, first):
    value, ones = bytes(range(1, 65)), (1 << 1024) - 1
    core = run_text(executor, f"vmov.{half} cm3, scd\n{NOPS}", {"cm3": ones}, "aie2", world=World(cascade=[value]))
    whole = core.read("cm3")
    assert (whole >> first) % (1 << 512) == int.from_bytes(value, "little")
    assert whole | ((1 << 512) - 1) << first == ones


def test_a_cascade_that_is_not_enabled_is_a_fault(executor):
    with pytest.raises(ExecutionError, match="crSCDEn is 0: write 1 to it first"):
        run_text(executor, f"vmov x1, scd\n{NOPS}", {}, world=World(cascade=[bytes(64)]))


def test_events_are_kept_in_order(executor, generation):
    text = "event #1\nevent #0\n" + ("event #3" if generation == "aie2" else "nop")
    core = run_text(executor, text, {}, generation)
    assert core.events == [1, 0, 3][: len(core.events)]
    assert len(core.events) == (3 if generation == "aie2" else 2)


def test_results_under_way_land_after_done(executor, generation):
    core = run_text(executor, "lda r1, [p0, #0]", {"p0": 0x70000, "r1": 5}, generation)
    assert core.read("r1") == 0
    assert core.done


def test_single_steps_show_the_core_between_bundles(executor, generation):
    core = executor(isa.load(generation), code_of("add r1, r1, #1\nadd r1, r1, #1", generation), memories())
    seen = []
    while not core.done:
        assert list(core.step()) == []
        seen.append((core.bundles, core.read("r1")))
    assert seen[:3] == [(1, 0), (2, 1), (3, 2)]


@pytest.mark.parametrize(("count", "passes"), [(0, 1), (1, 1), (2, 2), (5, 5)])
def test_a_hardware_loop_goes_round_until_its_count_is_0(executor, generation, count, passes):
    """A count of 0 is no loop; what stands behind the last bundle runs once."""
    text = (
        "nop\n.p2align 4\nstart: add r3, r3, #1\nadd r4, r4, #1\nlast: add r5, r5, #1\nadd r6, r6, #1\nadd r7, r7, #1"
    )
    found = assemble(f"{text}\ndone", generation, "t.s").symbols
    core = run_text(executor, text, {"lc": count, "ls": found["start"], "le": found["last"]}, generation)
    assert [core.read(f"r{i}") for i in (3, 4, 5, 6, 7)] == [passes] * 3 + [1, 1]
    assert core.read("lc") == 0


@pytest.mark.parametrize(("count", "fault"), [(0, False), (1, False), (2, True)])
def test_a_hardware_loop_does_not_go_round_in_a_delay_slot(executor, generation, count, fault):
    text = "j #away\nadd r3, r3, #1\nlast: add r3, r3, #1\nnop\nnop\nnop\n.p2align 4\naway: nop"
    found = assemble(f"{text}\ndone", generation, "t.s").symbols
    if fault:
        with pytest.raises(ControlError, match="a hardware loop goes round in a delay slot"):
            run_text(executor, text, {"lc": count, "ls": 0, "le": found["last"]}, generation)
        return
    assert run_text(executor, text, {"lc": count, "ls": 0, "le": found["last"]}, generation).read("r3") == 2
