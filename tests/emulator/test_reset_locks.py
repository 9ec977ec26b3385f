"""A channel that goes on after a reset, with the lock that the dropped task had taken given back or not."""

import re
from collections.abc import Sequence

import numpy as np
import pytest

import bdforge
from bdforge.devices.registers import address
from support.register_designs import column, push, write32, writebd

CORE, MEM, OWN = (0, 2), (0, 1), 0x20000 + 4096 // 4
RESET = [write32(address(0, 2, 0x1DE00), value) for value in (2, 0)]
BACK = "aiex.set_lock(%cl, 1)"
TAKEN = "aiex.set_lock(%cl, 0)"
SEND = [
    *(write32(i, 10 + i, where=", buffer = @mb") for i in range(4)), writebd(MEM, 24, 4, OWN),
    write32(address(0, 1, 0xA063C), 24),
]  # fmt: skip


def fill(bd: int = 0, amount: int = 1, number: int = 5, release: int = 0) -> list[str]:
    """A task of the core's S2MM that acquires a lock, %cl or another, and gives back its own or nothing."""
    locks = {"lock_acq_enable": 1, "lock_acq_val": -amount, "lock_acq_id": number}
    locks |= {"lock_rel_id": number, "lock_rel_val": release}
    return [writebd(CORE, bd, 4, 2048, **locks), push(CORE, "S2MM : 0", bd)]


def run(lines: Sequence[str], **options) -> tuple[bool, list[str]]:
    """Whether the words arrive, and what is told of locks."""
    text = column(*lines, *SEND, extra='%other = aie.lock(%c, 6) {sym_name = "other"}')
    result = bdforge.emulate(text, [np.zeros(64, np.int32) for _ in range(2)], **options)
    told = [w for w in result.warnings if w.endswith("[reset-locks]")]
    return result.buffers["cb"][:4].tolist() == [10, 11, 12, 13], told


CASES = {
    "lost": ([*fill(), *RESET, *fill()], True),
    "another BD of the lock": ([*fill(), *RESET, *fill(1)], True),
    "twice": ([*fill(), *RESET, BACK, *fill(), *RESET, *fill()], True),
    "given back": ([*fill(), *RESET, BACK, *fill()], False),
    "given back before the reset": ([*fill(), BACK, *RESET, *fill()], False),
    "not yet taken": ([TAKEN, *fill(), *RESET, BACK, *fill()], False),
    "waited for more": ([*fill(amount=2), *RESET, *fill()], False),
    "another lock": ([*fill(), *RESET, "aiex.set_lock(%other, 1)", *fill(number=6)], False),
    "released": ([*fill(release=1), *SEND, *RESET, *fill(release=1)], False),
    "none": ([*fill()], False),
}


@pytest.mark.parametrize("name", CASES)
def test_a_lock_that_a_reset_lost_is_told_when_the_channel_goes_on(name):
    lines, lost = CASES[name]
    arrived, told = run(lines)
    assert arrived != lost
    message = (
        r"core \(0, 2\) S2MM 0 was reset while a task of it had acquired lock cl \(5 of core \(0, 2\)\) .* \(it is 0\)"
    )
    assert [bool(re.match(message, warning)) for warning in told] == [True] * lost
    assert run(lines, permissive=["reset-locks"]) == (arrived, [])


def test_it_is_told_exactly_where_the_next_task_waits_for_ever():
    """A random schedule may reset the channel before its task has asked, or when it was given the lock and does not
    know yet."""
    for lines in ([*fill(), *RESET, *fill()], [TAKEN, *fill(), BACK, *RESET, *fill()]):
        ends = [run(lines, schedule="random", seed=seed) for seed in range(34, 46)]
        assert all(arrived != bool(told) for arrived, told in ends)
        assert {arrived for arrived, _ in ends} == {True, False}
