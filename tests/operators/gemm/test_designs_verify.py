"""What the passes of the real toolchain need is there in every named design, and its lack is named."""

import pytest

from bdforge.array.emulator.verification import verify_design
from bdforge.operators import render
from bdforge.operators.gemm import GemmPlan, GemmProblem
from support.built_designs import ROOT, named_plans

TILES = """
module {{
  aie.device(npu2) {{
    %shim = aie.tile(0, 0) {{controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 15>}}
    %core = aie.tile({column}, 2) {{controller_id = #aie.packet_info<pkt_type = 0, pkt_id = {id}>}}
  }}
}}
"""


OFTEN = {"gemm_i8_i2_resident", "gemm_i8_i8_i8_112x112x112"}
"""Both generations, B that stays; the sweep tries all."""


def kept(plan: GemmPlan) -> object:
    name = f"{plan.spec.name}-{plan.device.name}"
    return pytest.param(plan, id=name, marks=() if plan.spec.name in OFTEN else pytest.mark.slow)


@pytest.mark.parametrize("plan", [kept(plan) for plan in named_plans()])
def test_a_named_design_has_no_fault(plan: GemmPlan):
    tile = plan.spec.tile
    ragged = GemmProblem(tile.m + 1, 2 * tile.k + 8, tile.n + 8)
    found = verify_design(render(plan, [ragged]))
    assert found.faults == ()
    assert found.warnings == ()


def test_every_named_design_is_verified_somewhere():
    assert {plan.spec.name for plan in named_plans()} == {path.stem for path in (ROOT / "designs").glob("gemm_*.toml")}


@pytest.mark.parametrize(("column", "id_"), [(0, 27), (1, 15)])
def test_controller_ids_of_a_column_may_differ(column: int, id_: int):
    assert verify_design(TILES.format(column=column, id=id_)).faults == ()


def test_a_controller_id_that_two_tiles_of_a_column_share_is_named():
    (fault,) = verify_design(TILES.format(column=0, id=15), "two.mlir").faults
    assert fault.startswith("two.mlir:5:")
    assert "tiles (0, 0) and (0, 2) share controller id 15" in fault
