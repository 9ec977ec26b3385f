"""What the passes of the real toolchain need is there in every named design, and its lack is named."""

import pytest

from bdforge.array.emulator.verification import verify_design
from bdforge.operators import render
from bdforge.operators.gemm import GemmPlan
from support.built_designs import ROOT, named_designs, possible


@pytest.mark.daily("gemm_i8_i8_i32_one_core-strix_halo", "gemm_i8_i8_i8_112x112x112-phoenix")
@pytest.mark.parametrize("plan", named_designs().values(), ids=named_designs(), indirect=True)
def test_a_named_design_has_no_fault(plan: GemmPlan):
    tile = plan.spec.tile
    ragged = possible(plan, tile.m + 1, 2 * tile.k + 8, tile.n + 8)
    found = verify_design(render(plan, [ragged]))
    assert found.faults == ()
    assert found.warnings == ()


def test_every_named_design_is_verified_somewhere():
    assert {name.rpartition("-")[0] for name in named_designs()} == {
        path.stem for path in (ROOT / "designs").glob("gemm_*.toml")
    }
