"""What running on the NPU needs, on machines made up in a folder."""

import ctypes
import struct

import pytest

from bdforge.runtime import npu as machines
from bdforge.runtime.npu import Finding

LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max stack size            8388608              unlimited            bytes
Max locked memory         {}              unlimited            bytes
Max open files            20000                20000                files
"""


def findings(tmp_path) -> dict[str, Finding]:
    return {finding.name: finding for finding in machines.machine(tmp_path)}


@pytest.mark.parametrize(
    ("present", "fault", "needed", "fails"),
    [
        (True, "", True, False), (False, "", True, True), (False, "", False, False), (True, "bad", True, True),
        (True, "bad", False, True), (True, "", False, False),
    ],
)  # fmt: skip
def test_what_is_bad_or_needed_and_missing_fails(present: bool, fault: str, needed: bool, fails: bool):
    assert Finding("x", present, "", fault=fault, needed=needed).fails is fails
    assert (Finding("x", True, "").needed, Finding("x", True, "").purposes) == (True, ("npu",))


def test_a_bare_machine_lacks_all_but_what_is_in_order_without(tmp_path):
    found = findings(tmp_path)
    assert [(name, one.present) for name, one in found.items()] == [
        ("kernel driver amdxdna", False), ("NPU device node", False), ("access to the NPU", False),
        ("locked memory", False), ("address translation (IOMMU)", True), ("clock and power mode", False),
        ("pyxrt", machines.binding().present),
    ]  # fmt: skip


@pytest.mark.parametrize(("groups", "seen"), [([4, 7], "yes"), ([4], "no"), ([], "no")])
def test_the_render_group_is_looked_for_among_this_process_groups(tmp_path, monkeypatch, groups: list[int], seen: str):
    write(tmp_path, "dev/accel/accel0", "")

    def named(gid: int):
        if gid != 7:
            raise KeyError(gid)
        return machines.grp.struct_group(("render", "x", 7, []))

    monkeypatch.setattr(machines.os, "getgroups", lambda: groups)
    monkeypatch.setattr(machines.grp, "getgrgid", named)
    assert findings(tmp_path)["access to the NPU"].detail == f"read and write (render group: {seen})"


@pytest.mark.parametrize(
    ("loaded", "found", "present"), [(True, False, True), (False, True, True), (False, False, False)]
)
def test_pyxrt_is_there_when_it_is_loaded_or_can_be(monkeypatch, loaded: bool, found: bool, present: bool):
    monkeypatch.setitem(machines.sys.modules, "pyxrt", machines if loaded else None)
    monkeypatch.setattr(machines.importlib.util, "find_spec", lambda name: found or None)
    assert machines.binding().present is present


def test_a_node_that_may_not_be_opened_is_named(tmp_path, monkeypatch):
    for name in ("accel0", "accel1"):
        write(tmp_path, f"dev/accel/{name}", "")
    may = machines.os.access
    monkeypatch.setattr(machines.os, "access", lambda path, mode: path.name != "accel1" and may(path, mode))
    found = findings(tmp_path)
    node = tmp_path / "dev/accel"
    assert found["NPU device node"].detail == f"{node}/accel0, {node}/accel1"
    assert not found["access to the NPU"].present
    assert found["access to the NPU"].detail.startswith(f"cannot open {node}/accel1 (render group: ")


@pytest.mark.parametrize(("open_", "wanted"), [(machines.os.R_OK, False), (machines.os.R_OK | machines.os.W_OK, True)])
def test_a_node_is_read_and_written(tmp_path, monkeypatch, open_: int, wanted: bool):
    write(tmp_path, "dev/accel/accel0", "")
    monkeypatch.setattr(machines.os, "access", lambda path, mode: mode & open_ == mode)
    assert findings(tmp_path)["access to the NPU"].present is wanted


def test_what_is_missing_first_is_told_with_its_remedy(tmp_path):
    assert machines.first_missing(tmp_path).startswith("kernel driver amdxdna: not loaded; Linux 6.14 or newer has it")
    (tmp_path / "sys/module/amdxdna").mkdir(parents=True)
    assert machines.first_missing(tmp_path).startswith("NPU device node: no /dev/accel/accel*; load the driver")
    write(tmp_path, "dev/accel/accel0", "")
    write(tmp_path, "proc/self/limits", LIMITS.format("8388608"))
    assert machines.first_missing(tmp_path).startswith("locked memory: 8192 KiB for this process; XRT locks 64 MiB")


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


@pytest.mark.parametrize(("mode", "name", "fine"), [
    (0, "default", True), (1, "low", False), (2, "medium", False), (3, "high", True), (4, "turbo", True),
    (5, "number 5", True),
])  # fmt: skip
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
