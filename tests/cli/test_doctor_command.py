"""`bdforge doctor`: versions for bug reports, and an exit code for what was asked for."""

import platform

import pytest

import bdforge
from bdforge.cli import doctor
from bdforge.runtime.npu import Finding
from bdforge.runtime.toolchain.doctor import PURPOSES, examine


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


@pytest.mark.parametrize(
    ("purpose", "missing"),
    [
        ("build", "C++ compiler g++, xclbinutil (XRT), Peano clang++, Peano ld.lld, aiecc, AIE API headers"),
        ("npu", "kernel driver amdxdna, NPU device node, access to the NPU, locked memory, pyxrt, XRT"),
        ("tests", "C++ compiler g++"),
    ],
)
def test_what_was_asked_for_decides_the_exit_code(run, bare, purpose, missing):
    code, out, _ = run("doctor", "--for", purpose)
    assert code == 1
    assert out.splitlines()[-1].endswith(f"missing or bad: {missing}")
    others = set(PURPOSES) - {purpose}
    assert not any(line.startswith(f"{other} (") for line in out.splitlines() for other in others)
