"""`bdforge doctor`: versions for bug reports, and an exit code for what was asked for."""

import platform

import pytest

import bdforge
from bdforge.cli import doctor
from bdforge.runtime.npu import Finding
from bdforge.runtime.toolchain.doctor import examine


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine with nothing but this Python."""
    monkeypatch.setattr(doctor, "examine", lambda: examine({"PATH": ""}, tmp_path))


def made(**facts) -> Finding:
    return Finding("made up", True, "seen", "mend it", **facts)


def test_versions_for_bug_reports_come_first(run, bare):
    code, out, _ = run("doctor")
    assert code == 0  # nothing was asked for
    first, second = out.splitlines()[:2]
    assert first == f"ok       bdforge: {bdforge.__version__}"
    assert second.startswith(f"ok       Python: {platform.python_version()} (")
