"""Running members of the GEMM family on the emulated array."""

import numpy as np

from bdforge.array.emulator import emulate
from bdforge.array.images.image_build import image, program_of
from bdforge.array.lower import configuration
from bdforge.array.mlir import parsed
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.design.sequences.buffers import arguments, fetched, placed
from bdforge.operators import render
from bdforge.operators.gemm import GemmPlan
from support.built_designs import kernels_of
from support.family import Member
from support.family_oracle import Data, check, random_data

SCHEDULES = ({"schedule": "random", "seed": 1}, {"schedule": "random", "seed": 2, "poison": True})
"""Of runs from the text and of those from its own PDI."""


def run(plan: GemmPlan, problem, data: Data, kernels, text: str | None = None, **options) -> np.ndarray:
    """C of a problem on the emulated array."""
    planned = plan.sequence(problem)
    buffers = arguments(planned, placed(planned, data.inputs))
    result = emulate(text or render(plan, [problem]), buffers, kernels, **options)
    assert result.warnings == ()
    return fetched(planned, buffers)["C"]


def own_pdi(text: str) -> bytes:
    """The image of a design's text."""
    device = next(op for op in parsed(text, "<string>").walk() if isinstance(op, DeviceOp))
    return image(configuration(device, program_of), ".pdi", bare=True)


def fault(member: Member, seed: int, booted: bool) -> str:
    """What is wrong with a member's results under an adversarial schedule, from its text or `booted` from its PDI."""
    plan, problem, options = member.plan, member.problem, SCHEDULES[booted]
    data, text = random_data(plan, problem, seed), render(plan, [problem])
    c = run(plan, problem, data, kernels_of(plan), text, image=own_pdi(text) if booted else None, **options)
    wrong = check(plan, data, c)
    return wrong and f"{member} under {options}: {wrong}"
