"""What `bdforge doctor` finds on machines made up in a folder."""

from bdforge.runtime.npu import machine
from bdforge.runtime.toolchain import doctor


def findings(tmp_path, **environ: str) -> dict[str, doctor.Finding]:
    return {finding.name: finding for finding in doctor.examine({"PATH": "", **environ}, tmp_path)}


def test_a_bare_machine_misses_everything_and_says_how_to_mend_it(tmp_path):
    found = findings(tmp_path)
    for name in ("kernel driver amdxdna", "NPU device node", "access to the NPU", "Peano clang++", "aiecc"):
        assert not found[name].present
        assert found[name].remedy
    assert "modprobe amdxdna" in found["kernel driver amdxdna"].remedy
    assert "PEANO_INSTALL_DIR" in found["Peano clang++"].detail


def test_a_doctor_sees_the_machine_between_versions_and_tools(tmp_path, monkeypatch):
    """What is told of the machine is the machine's own; what things are for says which fault matters to whom."""
    monkeypatch.setattr(
        doctor.metadata, "requires", lambda _: ["numpy", "a-b>=1; extra == 'dev'", "bdforge[x]; extra == 'dev'"]
    )
    found = doctor.examine({"PATH": ""}, tmp_path)
    names = [finding.name for finding in found]
    seen = [finding.name for finding in machine(tmp_path)]
    tools = ["xclbinutil (XRT)", "Peano clang++", "Peano ld.lld", "aiecc", "AIE API headers", "aiebu-asm"]
    assert names == ["Python", "C++ compiler g++", *seen, "XRT", *tools, "package a-b"]
    purposes = {finding.name: finding.purposes for finding in found}
    assert purposes == dict.fromkeys(names, ("npu",)) | dict.fromkeys(tools, ("build",)) | {
        "Python": ("build", "npu", "tests"), "C++ compiler g++": ("build", "tests"), "package a-b": ("tests",),
    }  # fmt: skip
    assert (found[-1].present, found[-1].detail) == (False, "not installed")
    assert [finding.name for finding in found if not finding.needed] == [
        "address translation (IOMMU)", "clock and power mode", "aiebu-asm",
    ]  # fmt: skip


def write(tmp_path, path: str, text: str) -> None:
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text(text)


def test_a_bad_build_of_peano_is_a_fault_and_what_only_elfs_need_is_not(tmp_path):
    write(tmp_path, "llvm-aie/bin/clang++", "#!/bin/sh\necho made-up 1.0\n")
    (tmp_path / "llvm-aie/bin/clang++").chmod(0o755)
    about = "Metadata-Version: 2.1\nName: llvm-aie\nVersion: 21.0.0.2026062401+fdf257de\n"
    write(tmp_path, "llvm_aie-21.dist-info/METADATA", about)
    found = findings(tmp_path, PEANO_INSTALL_DIR=str(tmp_path / "llvm-aie"))
    assert (found["Peano clang++"].present, found["Peano clang++"].fails) == (True, True)
    assert "wrong code without a word" in found["Peano clang++"].fault
    tools = ("Peano ld.lld", "aiecc", "AIE API headers", "xclbinutil (XRT)", "aiebu-asm")
    assert [(name, found[name].fails) for name in tools] == [(name, name != "aiebu-asm") for name in tools]


def test_an_xrt_library_is_found_in_every_place_and_where_a_variable_says(tmp_path):
    write(tmp_path, "usr/lib/libxrt_coreutil.so.2.18.0", "")
    assert findings(tmp_path)["XRT"].detail.endswith("libxrt_coreutil.so.2.18.0 2.18.0")
    write(tmp_path, "usr/local/lib/x86_64-linux-gnu/libxrt_coreutil.so.2.20.0", "")
    assert findings(tmp_path)["XRT"].detail.endswith("libxrt_coreutil.so.2.20.0 2.20.0")
    (tmp_path / "usr/local/lib/x86_64-linux-gnu/libxrt_coreutil.so.2.20.0").unlink()
    (tmp_path / "usr/lib/libxrt_coreutil.so.2.18.0").unlink()
    assert not findings(tmp_path)["XRT"].present
    write(tmp_path, "mine/lib/libxrt_coreutil.so.2.25.0", "")
    assert findings(tmp_path, XILINX_XRT=str(tmp_path / "mine"))["XRT"].detail.endswith("so.2.25.0 2.25.0")
