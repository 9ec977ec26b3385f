"""Built designs, each made once per test session."""

import pytest

from bdforge.operators.gemm import load_spec
from support.built_designs import ROOT, PlannedDesign, build, spec_content


@pytest.fixture(scope="session")
def flagship(tmp_path_factory) -> PlannedDesign:
    """The BitNet design as `designs/` holds it."""
    spec = load_spec(ROOT / "designs" / "gemm_i8_i2_bitnet.toml")
    return build(tmp_path_factory.mktemp("flagship"), spec.content, spec.name)


@pytest.fixture(scope="session")
def small(tmp_path_factory) -> PlannedDesign:
    """Two rows by two columns of cores with tiles of 16 x 16 x 32."""
    return build(tmp_path_factory.mktemp("small"), spec_content(16, 16, 32))
