"""What `bdforge doctor` finds on machines made up in a folder."""

import resource

from bdforge.toolchain import doctor


def findings(tmp_path, **environ: str) -> dict[str, doctor.Finding]:
    return {finding.name: finding for finding in doctor.examine({"PATH": "", **environ}, tmp_path)}


def test_a_bare_machine_misses_everything_and_says_how_to_mend_it(tmp_path):
    found = findings(tmp_path)
    for name in ("kernel driver amdxdna", "NPU device node", "access to the NPU", "Peano clang++", "aiecc"):
        assert not found[name].present
        assert found[name].remedy
    assert "modprobe amdxdna" in found["kernel driver amdxdna"].remedy
    assert "PEANO_INSTALL_DIR" in found["Peano clang++"].detail


def test_driver_and_node_are_seen(tmp_path):
    (tmp_path / "sys/module/amdxdna").mkdir(parents=True)
    (tmp_path / "dev/accel").mkdir(parents=True)
    (tmp_path / "dev/accel/accel0").touch()
    found = findings(tmp_path)
    assert found["kernel driver amdxdna"].present
    assert found["NPU device node"].detail.endswith("accel0")
    assert found["access to the NPU"].present


def test_a_small_memlock_limit_is_a_finding(tmp_path, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (8 << 20, 8 << 20))
    finding = findings(tmp_path)["locked memory"]
    assert not finding.present
    assert finding.detail == "8192 KiB"


def test_a_compiler_in_its_folder_is_found(tmp_path):
    (tmp_path / "peano/bin").mkdir(parents=True)
    for name in ("clang++", "ld.lld"):
        program = tmp_path / "peano/bin" / name
        program.write_text("#!/bin/sh\necho made-up 1.0\n")
        program.chmod(0o755)
    found = findings(tmp_path, PEANO_INSTALL_DIR=str(tmp_path / "peano"))
    assert found["Peano clang++"].present
    assert "made-up 1.0" in found["Peano clang++"].detail
