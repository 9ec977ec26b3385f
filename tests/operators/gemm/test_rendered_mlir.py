"""Rendered text: one configuration for all problems, with the circuits of the mapping."""

import re

from bdforge.operators import render
from bdforge.operators.gemm import GemmProblem


def configuration(text: str) -> str:
    """The device without its runtime sequences."""
    return re.split(r"\n +// C \(", text)[0]


def test_one_configuration_serves_every_problem(flagship):
    """Only the runtime sequence differs between problems, M from 1 to 4096."""
    problems = [flagship.spec.problems[3], *(GemmProblem(m, 2560, 2560) for m in (1, 4096))]
    configurations = {configuration(render(flagship, some)) for some in (problems[:1], problems[1:])}
    assert len(configurations) == 1


def test_the_flagship_has_the_circuits_of_its_mapping(flagship):
    text = render(flagship, [])
    flows = re.findall(r"aie.flow\(%(\w+?)_\S+ DMA : (\d), %(\w+?)_\S+ DMA : (\d)\)", text)
    count = {kinds: sum((s, t) == kinds for s, _, t, _ in flows) for kinds in {(s, t) for s, _, t, _ in flows}}
    assert count == {("shim", "mem"): 4 + 8, ("mem", "core"): 32 + 32, ("core", "mem"): 32, ("mem", "shim"): 8}
