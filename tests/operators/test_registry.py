"""Operators by their kind: what specs ask for, and what all plans can tell."""

import pytest

from bdforge.devices import DEVICES, device_named
from bdforge.operators import OPERATORS, Problem, SpecError, gemm, load_spec, operator_of, plan, spec_from
from support.built_designs import ROOT, spec_content

SPECS = sorted((ROOT / "designs").glob("*.toml"))


@pytest.mark.parametrize("file", SPECS, ids=lambda file: file.stem)
def test_a_spec_says_all_that_its_plan_needs(file):
    spec = load_spec(file)
    operator = operator_of(spec)
    again = spec_from(spec.content, spec.name)
    assert (again, again.hash) == (spec, spec.hash)
    assert any(operator.fits(spec, device) for device in DEVICES.values())
    for problem in spec.problems:
        assert tuple(problem.sizes) == operator.axes
        assert operator.problem(list(problem.sizes.values())) == problem


def test_an_unknown_kind_is_told_with_those_there_are():
    with pytest.raises(SpecError, match=r"x.toml: kind: unknown operator 'gem'; there is gemm"):
        spec_from({"kind": "gem"}, "x", "x.toml")
    with pytest.raises(SpecError, match="kind: missing; add it; there is gemm"):
        spec_from({}, "x")


def test_shapes_have_as_many_sizes_as_the_operator_has_axes():
    with pytest.raises(SpecError, match="16x32 has 2 sizes; gemm takes 3: MxKxN"):
        OPERATORS["gemm"].problem([16, 32])


def test_problems_are_their_sizes():
    named, plain = gemm.Problem(1, 2, 3, "layer"), Problem("gemm", {"M": 1, "K": 2, "N": 3})
    assert named == plain
    assert len({named, plain}) == 1
    assert (str(plain), plain.sequence) == ("1x2x3", "gemm_1x2x3")
    assert plain != Problem("gemv", plain.sizes)


def test_a_plan_tells_what_a_run_moves():
    """A 32 x 32 x 64 GEMM on 2 x 2 cores of 16 x 16 x 32: each core one tile, each operand once."""
    small = plan(spec_from(spec_content(16, 16, 32), "small"), device_named("strix_halo"))
    cost = small.cost(Problem("gemm", {"M": 32, "K": 32, "N": 64}))
    a_bytes, b_bytes, c_bytes = 32 * 32, 32 * 64 // 4, 4 * 32 * 64
    assert (cost.read_bytes, cost.write_bytes, cost.operations) == (a_bytes + b_bytes, c_bytes, 32 * 32 * 64)
    assert (cost.channel_bytes, cost.run_bytes) == (c_bytes // 2, 16)
    assert cost.core_cycles == 16 * 32 * 32 / 512
    sequence = small.sequence(Problem("gemm", {"M": 32, "K": 32, "N": 64}))
    assert sequence.argument_bytes == [a_bytes, b_bytes, c_bytes]


def test_sizes_that_a_plan_refuses_are_listed():
    small = plan(spec_from(spec_content(16, 16, 32), "small"), device_named("strix_halo"))
    with pytest.raises(SpecError, match=r"small: 0x1x2097152: M = 0 is outside 1 to 1048576\nsmall: .*N = 2097152"):
        small.sequence(Problem("gemm", {"M": 0, "K": 1, "N": 1 << 21}))
