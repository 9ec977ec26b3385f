"""What the check of a program says of operands whose names or directions cannot be meant, and of conditions."""

import pytest

from bdforge.design.sequences import Axis, Builder, ProgramError


def program_of(argument: tuple[str, int], *operands: tuple[str, str, str, int]) -> None:
    """A program that writes X by a task; operands (name, direction, type, bits) stand in it."""
    build = Builder(["n"], 1)
    n = build.parameter("n")
    x, y = build.argument("X", *argument, n), build.argument("Y", *argument, n)
    for name, direction, type_, bits in operands:
        build.operand(name, y if name == "Y" else x, direction, type_, bits, [Axis(n)])
    with build.step([("S2MM", 0, 0, 1)]):
        build.task("S2MM", 0, 0, build.bd(x, 0, (n,), (1,)), token=True)
        build.task("MM2S", 0, 0, build.bd(y, 0, (n,), (1,)))
    assert build.program.operands


@pytest.mark.parametrize(
    ("argument", "operands", "said"),
    [
        (("i32", 32), [("X", "in", "int32", 32), ("X", "out", "int32", 32)], "there is an operand X already"),
        (("i32", 32), [("Y", "out", "int32", 32)], "Y is made by the array, but no S2MM task writes argument Y"),
    ],
)
def test_operands_that_cannot_be_meant_are_refused(argument, operands, said: str):
    with pytest.raises(ProgramError) as refused:
        program_of(argument, *operands)
    assert said in str(refused.value)


@pytest.mark.parametrize("condition", [True, False])
def test_a_bool_of_pythons_is_no_condition(condition: bool):
    build = Builder(["n"], 1)
    with pytest.raises(ProgramError, match=rf"n is 3 is {condition} at any size; expressions are compared by .equals"):
        build.require(condition, "n is 3")
    with pytest.raises(ProgramError, match=f"when is {condition} at any size"), build.when(condition):
        pass
