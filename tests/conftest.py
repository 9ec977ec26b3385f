"""Built designs, each made once per test session, command lines, and what a failing test says."""

import gc
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HELPERS = [p.stem for p in Path(__file__).parent.rglob("*.py") if not p.stem.startswith(("test_", "conftest"))]
pytest.register_assert_rewrite("support", "oracle", "fuzz", "input", *HELPERS)  # their asserts show values too

from bdforge.cli import importing, main  # noqa: E402

with importing():  # memory is searched seldom from then on
    from bdforge.operators.gemm import GemmPlan, load_spec
    from support.built_designs import ROOT, PlannedDesign, build, spec_content
    from support.cpu_time import CpuTime
    from support.daily import DailyCases
    from support.failures import compared, explain
    from support.met_halfway import import_from_behind
    from support.short_reports import ShortReports


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(DailyCases())
    config.pluginmanager.register(CpuTime())
    if hasattr(config, "workerinput"):  # of a process that xdist has started
        config.pluginmanager.register(ShortReports())


def pytest_assertrepr_compare(op, left, right) -> list[str] | None:
    return compared(op, left, right)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    if call.excinfo is not None and not isinstance(call.excinfo.value, pytest.skip.Exception):
        explain(item.function, item.callspec.params if hasattr(item, "callspec") else {}, call.excinfo)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session):
    """What is collected stays: it isn't searched for what can be freed, not even at the end."""
    gc.disable()
    import_from_behind(session.config)
    yield
    gc.freeze()
    gc.enable()


@pytest.fixture
def plan(request: pytest.FixtureRequest) -> GemmPlan:
    """The design that the test is parametrized with."""
    return request.param()


@pytest.fixture(scope="session")
def flagship(tmp_path_factory) -> PlannedDesign:
    """The BitNet design as `designs/` holds it."""
    spec = load_spec(ROOT / "designs" / "gemm_i8_i2_bitnet.toml")
    return build(tmp_path_factory.mktemp("flagship"), spec.content, spec.name)


@pytest.fixture(scope="session")
def small(tmp_path_factory) -> PlannedDesign:
    """Two rows by two columns of cores with tiles of 16 x 16 x 32."""
    return build(tmp_path_factory.mktemp("small"), spec_content(16, 16, 32))


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    """Runs a command line in a folder of its own: exit code, standard output, standard error; nothing is folded.

    Results of tasks are kept in another one: what a test put in place of something is nobody else's.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("bdforge.cli.options.kept_results", lambda: tmp_path.with_name(f"{tmp_path.name}-results"))
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["bdforge", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capfd.readouterr()
        return int(end.value.code or 0), out, err

    return run


@pytest.fixture
def refused(run: Callable[..., tuple[int, str, str]]) -> Callable[[str, str], str]:
    """Runs a command line that is refused by a message with some words; gives what it says."""

    def refused(command: str, words: str) -> str:
        code, out, err = run(*shlex.split(command))
        assert (code, bool(out)) == (2, "--json" in command)
        assert words in " ".join(err.replace("│", " ").split())
        assert "Traceback" not in err
        assert len(err.encode()) <= 4096
        return err

    return refused
