"""What `bdforge doctor` finds on machines made up in a folder."""

import ctypes
import struct

import pytest

from bdforge.toolchain import doctor
from bdforge.xrt import machine as machines

LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max stack size            8388608              unlimited            bytes
Max locked memory         {}              unlimited            bytes
Max open files            20000                20000                files
"""


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


def write(tmp_path, path: str, text: str) -> None:
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text(text)


@pytest.mark.parametrize(
    ("limit", "enough", "detail"),
    [
        ("8388608", False, "8192 KiB for this process"),
        ("67108864", False, "65536 KiB for this process"),
        ("67108865", True, "65536 KiB for this process"),
        ("unlimited", True, "unlimited"),
    ],
)
def test_the_process_own_limit_of_locked_memory_counts(tmp_path, limit, enough, detail):
    write(tmp_path, "proc/self/limits", LIMITS.format(limit))
    finding = findings(tmp_path)["locked memory"]
    assert (finding.present, finding.detail, finding.needed) == (enough, detail, True)
    assert "prlimit --memlock=unlimited" in finding.remedy


def test_limits_that_cannot_be_read_are_said(tmp_path):
    assert findings(tmp_path)["locked memory"].detail.startswith(f"unknown: {tmp_path}/proc/self/limits: No such file")
    write(tmp_path, "proc/self/limits", "Max locked memory\n")
    assert findings(tmp_path)["locked memory"].detail.endswith("limits does not say")


GROUP = "sys/bus/pci/drivers/amdxdna/0000:c5:00.1/iommu_group/type"


@pytest.mark.parametrize(
    ("files", "fine", "detail"),
    [
        ({}, True, "no IOMMU groups, nothing is translated"),
        ({"sys/kernel/iommu_groups/0/type": "DMA"}, False, "addresses are translated, or the kernel's default decides"),
        (
            {"sys/kernel/iommu_groups/0/type": "DMA", "proc/cmdline": "quiet iommu=pt ro\n"},
            True,
            "passed through (kernel command line: iommu=pt)",
        ),
        (
            {"sys/kernel/iommu_groups/0/type": "DMA", "proc/cmdline": "amd_iommu=on", GROUP: "DMA-FQ\n"},
            False,
            "the NPU's group is of type DMA-FQ (kernel command line: amd_iommu=on)",
        ),
        (
            {"sys/kernel/iommu_groups/0/type": "DMA", "proc/cmdline": "quiet", GROUP: "identity\n"},
            True,
            "the NPU's group is of type identity",
        ),
    ],
)
def test_address_translation_is_told_from_command_line_and_groups(tmp_path, files, fine, detail):
    for path, text in files.items():
        write(tmp_path, path, text)
    finding = findings(tmp_path)["address translation (IOMMU)"]
    assert (finding.present, finding.detail, finding.needed) == (fine, detail, False)
    assert "iommu=pt" in finding.remedy


def driver(mode: int, *clocks: tuple[bytes, int]):
    """An ioctl that answers as amdxdna does: a parameter, the size and the address of a buffer."""
    answers = {9: bytes([mode]) + bytes(7), 3: b"".join(struct.pack("<16sII", *clock, 0) for clock in clocks)}

    def ioctl(device: int, number: int, argument: bytes) -> int:
        parameter, size, address = struct.unpack("<IIQ", argument)
        assert (number, size) == (0xC0106447, len(answers[parameter]))
        ctypes.memmove(address, answers[parameter], size)
        return 0

    return ioctl


@pytest.mark.parametrize(("mode", "name", "fine"), [(0, "default", True), (1, "low", False), (4, "turbo", True)])
def test_clock_and_power_mode_are_asked_of_the_driver(tmp_path, monkeypatch, mode, name, fine):
    write(tmp_path, "dev/accel/accel0", "")
    monkeypatch.setattr(machines, "ioctl", driver(mode, (b"MP-NPU Clock", 1267), (b"H Clock", 1800)))
    finding = findings(tmp_path)["clock and power mode"]
    assert (finding.present, finding.needed) == (fine, False)
    assert finding.detail == f"mode {name}, MP-NPU Clock 1267 MHz, H Clock 1800 MHz now (it rises with the first work)"


def test_a_driver_that_does_not_tell_its_clock_is_no_fault(tmp_path):
    write(tmp_path, "dev/accel/accel0", "")
    finding = findings(tmp_path)["clock and power mode"]
    assert (finding.present, finding.needed, finding.detail) == (False, False, "the driver does not tell")


def test_a_compiler_in_its_folder_is_found(tmp_path):
    (tmp_path / "peano/bin").mkdir(parents=True)
    for name in ("clang++", "ld.lld"):
        program = tmp_path / "peano/bin" / name
        program.write_text("#!/bin/sh\necho made-up 1.0\n")
        program.chmod(0o755)
    found = findings(tmp_path, PEANO_INSTALL_DIR=str(tmp_path / "peano"))
    assert found["Peano clang++"].present
    assert "made-up 1.0" in found["Peano clang++"].detail
