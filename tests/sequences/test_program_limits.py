"""Every limit of a sequence program's form and of its runs: its ends are taken, what is next to them is refused."""

import pytest

from bdforge.common.messages import InputError
from bdforge.design.sequences import ProgramError, planned
from bdforge.design.sequences.program_check import load_program
from bdforge.devices import device_named
from support.program_limits import (
    BOUNDS,
    COUNTER,
    LAST,
    LOOP,
    WORDS,
    changed_word,
    limits_of_the_form,
    whole,
    words_of_the_form,
)
from support.run_limits import RUN_FIRSTS, RUN_LIMITS

OF_PROGRAMS = [name for name in BOUNDS if not name.startswith("Target.")]


def test_every_limit_of_the_form_is_in_the_table():
    """A new one goes there, with its ends written a second time and where it stands."""
    assert limits_of_the_form() == {name: (bound.low, bound.high) for name, bound in BOUNDS.items()}
    assert words_of_the_form() == {name: list(words) for name, (_, words) in WORDS.items()}


@pytest.mark.parametrize("name", OF_PROGRAMS)
def test_a_programs_ends_are_taken_and_what_is_next_is_refused(name: str):
    bound = BOUNDS[name]
    for value in bound.accepted():
        load_program(bound.changed(value)["program"])
    for value in bound.beyond():
        with pytest.raises(ProgramError) as caught:
            load_program(bound.changed(value)["program"])
        expected = bound.refused if value == (bound.last or 0) + 1 and bound.refused else bound.member
        assert expected in str(caught.value), value


@pytest.mark.parametrize("name", [name for name in OF_PROGRAMS if BOUNDS[name].last == LAST])
def test_a_counter_may_stand_in_its_loop_alone(name: str):
    """What the loop does may name it; how often the loop turns, and what stands outside, may not."""
    path = BOUNDS[name].paths[0]
    content = BOUNDS[name].changed(COUNTER)["program"]
    if path[: len(LOOP)] == LOOP and len(path) > len(LOOP) + 1:
        load_program(content)
        return
    with pytest.raises(ProgramError, match="uses value 2, which needs the counter of loop 0, outside of it"):
        pytest.fail(f"{name}: {load_program(content)}")


@pytest.mark.parametrize(("leading", "taken"), [("n", True), (None, True), ("m", False), ("", False)])
def test_a_leading_dimension_is_a_parameter(leading: str | None, taken: bool):
    content = whole()["program"]
    content["operands"][0]["leading"] = leading
    if taken:
        assert load_program(content).operands[0].leading == leading
        return
    with pytest.raises(ProgramError, match=f"operand A has leading dimension {leading}, which is no parameter"):
        load_program(content)


@pytest.mark.parametrize("name", WORDS)
def test_a_members_words_are_taken_and_others_refused(name: str):
    _, words = WORDS[name]
    for word in words:
        load_program(changed_word(name, word)["program"])
    with pytest.raises(ProgramError, match="input should be"):
        load_program(changed_word(name, words[0] + "s")["program"])


@pytest.mark.parametrize("name", RUN_LIMITS)
def test_a_run_takes_the_last_value_and_refuses_the_next_one_by_its_limit(name: str):
    limit, device = RUN_LIMITS[name], device_named("strix_halo")
    planned(*limit.program(limit.last), device).words()
    with pytest.raises(InputError) as caught:
        planned(*limit.program(limit.last + 1), device).words()
    assert limit.said in str(caught.value)


@pytest.mark.parametrize("name", RUN_FIRSTS)
def test_a_run_takes_the_first_value_and_refuses_the_one_before_it_by_its_limit(name: str):
    first, program, said = RUN_FIRSTS[name]
    device = device_named("strix_halo")
    planned(*program(first), device).words()
    with pytest.raises(InputError, match=said):
        planned(*program(first - 1), device).words()
