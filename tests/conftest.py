"""Built designs, each made once per test session, and what a failing test says."""

import gc
from pathlib import Path

import pytest

HELPERS = [p.stem for p in Path(__file__).parent.rglob("*.py") if not p.stem.startswith(("test_", "conftest"))]
pytest.register_assert_rewrite("support", "oracle", "fuzz", "input", *HELPERS)  # their asserts show values too

from bdforge.cli import SEARCHES  # noqa: E402
from bdforge.operators.gemm import load_spec  # noqa: E402
from support.built_designs import ROOT, PlannedDesign, build, spec_content  # noqa: E402
from support.failures import compared, explain  # noqa: E402

gc.set_threshold(*SEARCHES)


def pytest_assertrepr_compare(op, left, right) -> list[str] | None:
    return compared(op, left, right)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    if call.excinfo is not None and not isinstance(call.excinfo.value, pytest.skip.Exception):
        explain(item.function, item.callspec.params if hasattr(item, "callspec") else {}, call.excinfo)
    return (yield)


@pytest.fixture(scope="session")
def flagship(tmp_path_factory) -> PlannedDesign:
    """The BitNet design as `designs/` holds it."""
    spec = load_spec(ROOT / "designs" / "gemm_i8_i2_bitnet.toml")
    return build(tmp_path_factory.mktemp("flagship"), spec.content, spec.name)


@pytest.fixture(scope="session")
def small(tmp_path_factory) -> PlannedDesign:
    """Two rows by two columns of cores with tiles of 16 x 16 x 32."""
    return build(tmp_path_factory.mktemp("small"), spec_content(16, 16, 32))
