"""Tiled execution configurations as TEIR writes them: the published one of Phoenix, and what contradicts itself."""

import numpy as np
import pytest

from bdforge.devices import device_named
from bdforge.operators.contraction import Config, ContractionError, plan_config
from bdforge.operators.contraction.config import config_of
from bdforge.operators.gemm import Plan, load_spec, plan_gemm
from support.built_designs import ROOT
from support.differences import same

TYPES = "MNKMNK"
EXECS = ("spatial", "spatial", "seq", "prim", "prim", "prim")
SIZES = (16, 16, 8, 64, 64, 64)
# acdf,bcfe->abde: both inputs and the output tiled in the order of access.
STRIDES = (
    (8 * 64 * 64, 0, 64 * 64, 64, 0, 1),
    (0, 8 * 64 * 64, 64 * 64, 0, 1, 64),
    (16 * 64 * 64, 64 * 64, 0, 64, 1, 0),
)


@pytest.fixture(scope="module")
def phoenix() -> Plan:
    design = load_spec(ROOT / "designs" / "gemm_bf16_bf16_f32_64x64x64.toml")
    return plan_gemm(design, device_named("phoenix"))


def test_the_published_configuration_is_walked_in_place(phoenix):
    plan = plan_config(Config.of(TYPES, EXECS, SIZES, STRIDES), phoenix, staged="")
    mapped = plan.choice.mapped
    assert (mapped.rows.unit, mapped.columns.unit) == ("d0", "d1")
    assert [[part.dim.name for part in box if part.size > 1] for box in mapped.sides[0].tiles.groups(0)] == [
        ["d3"],
        ["d5"],
    ]
    tasks = plan.sequence(plan.problem).tasks()
    assert {len(bd.pattern.sizes) for task in tasks for bd in task.bds if bd.argument < 2 and task.runs == 1} <= {1}
    again = config_of(mapped).levels
    assert np.prod([level.size for level in again]) == np.prod(SIZES)


def test_its_answer_is_the_contraction_s(phoenix):
    plan = plan_config(Config.of(TYPES, EXECS, SIZES, STRIDES), phoenix, staged="")
    inputs = plan.random(plan.problem, 3)
    want = np.einsum("acdf,bcfe->abde", *(array.astype(np.float64) for array in inputs.values()))
    same(plan.reference(inputs)["C"].values, want)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"types": "MNKMN"}, "a type, an execution type, a size and three strides each"),
        ({"types": "MNCMNK"}, "dimension d2: strides .* are not those of type 'C'"),
        ({"execs": ("gpu", *EXECS[1:])}, "dimension 0: 'gpu' is none of seq, shared, spatial, prim"),
        ({"sizes": (16, 16, 8, 0, 64, 64)}, "dimension d3: size 0"),
        ({"sizes": (16, 16, 8, 32, 64, 64)}, "prim dimensions of type M make 32; design .* has m = 64"),
        ({"sizes": (3, 16, 8, 64, 64, 64)}, "spatial dimension d0: its tiles cannot be dealt out regularly"),
    ],
)
def test_what_contradicts_itself_is_refused(phoenix, changes, said):
    facts = {"types": TYPES, "execs": EXECS, "sizes": SIZES, "strides": STRIDES, **changes}
    with pytest.raises(ContractionError, match=said):
        plan_config(Config.of(**facts), phoenix)
