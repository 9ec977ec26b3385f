"""Software pipelining of small loops, against hand schedules and an exhaustive search."""

import random
from itertools import product

import pytest

from bdforge.devices import AIE2, AIE2P
from bdforge.perf.kernels.initiation_interval import LoopSchedule, schedule
from bdforge.perf.kernels.loop import Loop, Operation, ScheduleError
from bdforge.perf.kernels.scheduled_forms import TimedForm, timed_form

LOAD = timed_form(AIE2P, "VLDB_dmx_ldb_x_pstm_nrm_imm")
MAC = timed_form(AIE2P, "VMAC_vmul_cm_core_X_X")
FLOAT_MAC = timed_form(AIE2P, "VMAC_f_vmac_bfp_vmul_bfp_core_EX_EX")
AND = timed_form(AIE2P, "VBAND")


def a_form(slot: str, write_cycle: int | None, ports: tuple = (), **reads: int) -> TimedForm:
    """An instruction of the tests' own."""
    return TimedForm("TEST", (slot,), write_cycle, reads, ports, {})


def chain_of(mac: TimedForm, accumulators: int, products: int) -> Loop:
    """Products that take turns on the accumulators."""
    names = [f"c{i % accumulators}" for i in range(products)]
    body = tuple(Operation((mac,), (("acc1", c), ("s1", "a"), ("s2", "b")), (c,)) for c in names)
    return Loop("chain", body, frozenset(names))


def holds(found: LoopSchedule) -> bool:
    """Whether a schedule keeps every dependence and shares no slot or port, told from the body alone."""
    cells: set[tuple[str, int]] = set()
    for operation, issue, choice in zip(found.loop.body, found.issues, found.choices, strict=True):
        for name, cycle in operation.places[choice]:
            cell = name, (issue + cycle) % found.interval
            if cell in cells:
                return False
            cells.add(cell)
    return all(
        found.issues[e.later] + found.interval * e.distance >= found.issues[e.earlier] + e.delay
        for e in found.loop.edges
    )


@pytest.mark.parametrize(
    ("mac", "accumulators", "products", "interval"),
    [(MAC, 1, 1, 2), (MAC, 1, 3, 6), (MAC, 2, 2, 2), (FLOAT_MAC, 1, 1, 3), (FLOAT_MAC, 2, 2, 3), (FLOAT_MAC, 3, 3, 3)],
)
def test_products_on_one_accumulator_keep_their_distance(mac, accumulators, products, interval):
    # Integer products may follow at distance 2, floating ones at 3: two int8 or three bfp16 chains fill the slot.
    found = schedule(chain_of(mac, accumulators, products))
    assert found.interval == interval
    assert holds(found)


def test_first_generation_floats_need_four_accumulators():
    mac = timed_form(AIE2, "VMAC_F_vmac_bm_core_dense")
    assert schedule(chain_of(mac, 1, 1)).interval == 4
    assert schedule(chain_of(mac, 4, 4)).interval == 4


def test_masking_two_fields_hides_in_the_move_slot():
    # By hand: 3 loads of 2 units, 2 masks of 1 slot, 4 products of 1 slot; nothing takes more than 4 cycles.
    loads = tuple(Operation((LOAD,), (), (name,)) for name in ("a0", "a1", "packed"))
    masks = tuple(Operation((AND,), (("s1", "packed"), ("s2", f"mask{j}")), (f"b{j}",)) for j in (0, 1))
    macs = tuple(
        Operation((MAC,), (("acc1", f"c{i}{j}"), ("s1", f"a{i}"), ("s2", f"b{j}")), (f"c{i}{j}",))
        for i, j in product((0, 1), repeat=2)
    )
    found = schedule(Loop("masked", loads + masks + macs, frozenset(f"c{i}{j}" for i in (0, 1) for j in (0, 1))))
    assert found.interval == 4
    assert found.loop.slot_use == {"lda": 0, "ldb": 3, "st": 0, "alu": 0, "mv": 2, "vec": 4}
    assert found.loop.constants == 2
    assert found.span >= 7 + 2 + 1  # a load, a mask and a product follow one another
    assert holds(found)


def test_a_shared_port_binds_like_a_slot():
    port = (("PORT", 3),)
    body = (Operation((a_form("lda", 5, port),), (), ("x",)), Operation((a_form("st", None, port),)))
    assert schedule(Loop("ports", body)).interval == 2


def test_alternatives_share_the_load():
    body = tuple(Operation((a_form("lda", 7), a_form("ldb", 7)), (), (f"x{i}",)) for i in range(5))
    found = schedule(Loop("loads", body))
    assert found.interval == 3
    assert holds(found)


def test_a_fixed_temporary_is_not_overwritten_early():
    # By hand: the second reader issues 1 + 6 cycles after the write; the next write may land in the cycle of its read.
    body = (
        Operation((a_form("lda", 1),), (), ("t",)),
        Operation((a_form("mv", 6, src=1),), (("src", "t"),), ("y",)),
        Operation((a_form("st", None, src=1, s1=1),), (("src", "t"), ("s1", "y"))),
    )
    assert schedule(Loop("renamed", body)).interval == 1
    fixed = schedule(Loop("fixed", body, frozenset({"t"})))
    assert fixed.interval == fixed.loop.recurrence_interval == 7
    assert holds(fixed)


@pytest.mark.parametrize(
    ("registers", "interval", "live"),
    [(12, 1, 11), (11, 1, 11), (10, 2, 6), (6, 2, 6), (5, 3, 5), (4, 4, 4), (3, 5, 3), (2, 10, 2)],
)
def test_registers_lengthen_the_interval(registers: int, interval: int, live: int):
    """x waits 10 cycles for its second reader, y lives in the last of them: 1 + 10/interval registers, rounded up."""
    body = (
        Operation((a_form("lda", 1),), (), ("x",)),
        Operation((a_form("mv", 9, s1=1),), (("s1", "x"),), ("y",)),
        Operation((a_form("st", None, s1=1, s2=1),), (("s1", "x"), ("s2", "y"))),
    )
    found = schedule(Loop("waits", body, registers=registers))
    assert (found.interval, found.live_registers) == (interval, live), f"with {registers} registers"
    assert holds(found)


@pytest.mark.parametrize(("last", "stages"), [(0, 1), (3, 1), (4, 2), (7, 2), (8, 3)])
def test_iterations_in_flight_are_the_intervals_that_one_takes(last: int, stages: int):
    body = (Operation((a_form("lda", 1),), (), ("x",)), Operation((a_form("st", None, src=1),), (("src", "x"),)))
    found = LoopSchedule(Loop("two", body), 4, (0, last), (0, 0))
    assert (found.span, found.stages) == (last + 1, stages)


def test_values_in_fixed_registers_and_of_products_are_not_counted_as_live():
    """Of t in place, a product in an accumulator and y, read 4 cycles after it is written, y and a constant count."""
    body = (
        Operation((a_form("lda", 1),), (), ("t",)),
        Operation((a_form("vec", 1, s1=1),), (("s1", "t"),), ("sum",)),
        Operation((a_form("mv", 1, s1=1, s2=1),), (("s1", "t"), ("s2", "mask")), ("y",)),
        Operation((a_form("st", None, src=1),), (("src", "y"),)),
        Operation((a_form("alu", None, s1=1, s2=1),), (("s1", "sum"), ("s2", "mask"))),
    )
    loop = Loop("some", body, frozenset({"t"}))
    assert loop.constants == 1, "mask, which two read"
    assert [LoopSchedule(loop, interval, (0, 1, 1, 5, 2), (0,) * 5).live_registers for interval in (4, 2, 1)] == [
        1 + 1, 1 + 2, 1 + 4,
    ]  # fmt: skip
    alone = (Operation((a_form("lda", 1),), (), ("x",)),)
    assert LoopSchedule(Loop("unread", alone), 1, (0,), (0,)).live_registers == 1, "for a cycle"


def test_writes_of_a_fixed_register_land_in_their_order():
    """Written in cycles 7 and 1 from their issues: the second issues 7 later, the next first 5 before the second."""
    body = (Operation((a_form("lda", 7),), (), ("t",)), Operation((a_form("mv", 1),), (), ("t",)))
    first, second = Loop("fixed", body, frozenset({"t"})).edges
    assert (first.earlier, first.later, first.delay, first.distance) == (0, 1, 7 - 1 + 1, 0)
    assert (second.earlier, second.later, second.delay, second.distance) == (1, 0, 1 - 7 + 1, 1)


def test_a_value_comes_from_the_last_write_before_it_or_from_the_iteration_before():
    body = (
        Operation((a_form("st", None, src=1),), (("src", "x"),)),
        Operation((a_form("lda", 3),), (), ("x",)),
        Operation((a_form("st", None, src=1),), (("src", "x"),)),
        Operation((a_form("ldb", 5),), (), ("x",)),
        Operation((a_form("st", None, src=1),), (("src", "x"),)),
    )
    found = {(edge.earlier, edge.later, edge.delay, edge.distance) for edge in Loop("twice", body).edges}
    assert found == {(3, 0, 5, 1), (1, 2, 3, 0), (3, 4, 5, 0)}


def test_fixed_slots_are_filled_before_instructions_that_have_a_choice():
    body = [Operation((a_form("lda", 7), a_form("ldb", 7)), (), (f"x{i}",)) for i in range(4)]
    body += [Operation((a_form("lda", 7),), (), (f"y{i}",)) for i in range(3)]
    loop = Loop("loads", tuple(body))
    assert (loop.slot_use["lda"], loop.slot_use["ldb"], loop.resource_interval) == (4, 3, 4)
    assert Loop("none", (Operation((a_form("lda", 7),), (), ("x",)),)).resource_interval == 1


def test_constants_beyond_the_registers_are_refused():
    body = (Operation((AND,), (("s1", "m0"), ("s2", "m1")), ("x",)),)
    with pytest.raises(ScheduleError, match="keeps to 2 vector registers; 2 hold constants"):
        schedule(Loop("full", body, registers=2))
    assert schedule(Loop("as many as there are", body, registers=3)).live_registers == 3


def best_interval(loop: Loop, longest: int, horizon: int) -> int:
    """The shortest interval for which any assignment of issue cycles below `horizon` works."""
    for interval in range(1, longest + 1):
        for issues in product(range(horizon), repeat=len(loop.body)):
            for choices in product(*(range(len(o.places)) for o in loop.body)):
                if holds(LoopSchedule(loop, interval, issues, choices)):
                    return interval
    raise AssertionError("no schedule at all")


def random_loop(seed: int) -> Loop:
    """Three or four operations on three slots with random latencies, some carried to the next iteration."""
    pick = random.Random(seed)
    values = ["x", "y", "z"]
    body = []
    for _ in range(pick.choice((3, 3, 4))):
        slot = pick.choice(("lda", "ldb", "lda|ldb", "mv"))
        ports = (("PORT", pick.randint(0, 2)),) if pick.random() < 0.3 else ()
        read, latency = pick.choice(values), pick.randint(1, 3)
        forms = tuple(a_form(name, latency, ports, s1=1) for name in slot.split("|"))
        body.append(Operation(forms, (("s1", read),), (pick.choice(values),)))
    return Loop(f"random {seed}", tuple(body), frozenset(pick.sample(values, 1)))


@pytest.mark.parametrize("seed", range(24))
def test_random_loops_reach_the_best_interval(seed):
    loop = random_loop(seed)
    found = schedule(loop)
    assert holds(found)
    assert found.interval >= max(loop.resource_interval, loop.recurrence_interval)
    assert found.interval == best_interval(loop, found.interval, max(6, found.span))
