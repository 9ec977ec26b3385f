"""Arrays that tiny models run on, each built once per test session."""

import pytest

from support.built_designs import PlannedDesign, build, spec_content


@pytest.fixture(scope="session")
def scaling(tmp_path_factory) -> PlannedDesign:
    """int8 x int2, scaled to bf16; three columns, so that no size of the tiny models divides evenly."""
    types = ("int8", "int2", "bf16", "int32")
    content = spec_content(16, 64, 32, types=types, epilogue={"scale": True}, columns=3)
    return build(tmp_path_factory.mktemp("scaling"), content, "scaling")


@pytest.fixture(scope="session")
def summing(tmp_path_factory) -> PlannedDesign:
    """int8 x int2 to int32, which the host scales: bit for bit what the CPU computes."""
    return build(tmp_path_factory.mktemp("summing"), spec_content(16, 64, 32, columns=3), "summing")
