"""Loops of operands by which an element has no place, or two share one: refused when a sequence is planned."""

import pytest

from bdforge.design.sequences import Axis, Builder, Dim, ProgramError, planned
from bdforge.devices import device_named
from support.shared_places import LEGAL_PLACES, REFUSED_PLACES


def plan_of(axes: list[Axis], dims: list[Dim]) -> None:
    build = Builder(["n"], 1)
    x = build.argument("X", "i8", 8, 64)
    build.operand("X", x, "in", "int8", 8, axes, dims)
    planned(build.program, {"n": 4}, device_named("strix_halo"))


@pytest.mark.parametrize(("axes", "dims", "said"), REFUSED_PLACES)
def test_an_element_has_one_place(axes: list[Axis], dims: list[Dim], said: str):
    with pytest.raises(ProgramError) as refused:
        plan_of(axes, dims)
    assert str(refused.value).startswith(f"operand X {said}")


@pytest.mark.parametrize(("axes", "dims"), LEGAL_PLACES)
def test_places_beyond_those_of_elements_are_taken(axes: list[Axis], dims: list[Dim]):
    plan_of(axes, dims)
