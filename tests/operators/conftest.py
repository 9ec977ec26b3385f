"""Plans of named GEMMs that several files ask."""

import pytest

from bdforge.devices import device_named
from bdforge.operators.gemm import GemmPlan, load_spec, plan_gemm
from support.built_designs import ROOT


@pytest.fixture(scope="session")
def flagship() -> GemmPlan:
    """BitNet's GEMM on the largest array."""
    return plan_gemm(load_spec(ROOT / "designs" / "gemm_i8_i2_bitnet.toml"), device_named("strix_halo"))


@pytest.fixture(scope="session")
def phoenix() -> GemmPlan:
    """The GEMM of bfloat16 on Phoenix that published contractions ran on."""
    return plan_gemm(load_spec(ROOT / "designs" / "gemm_bf16_bf16_f32_64x64x64.toml"), device_named("phoenix"))
