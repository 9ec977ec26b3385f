"""Parts of the device server by themselves: what holders say, when a server is ended, what a software NPU shows."""

import hashlib
import json
import os
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bdforge.array.emulator import EmulationError
from bdforge.common.binary import ImageError
from bdforge.common.messages import Fault
from bdforge.devices import DEVICES, device_named
from bdforge.runtime.built_design import BuildError
from bdforge.runtime.service import origin, server, software_npu, wire
from bdforge.runtime.service.holder import hold
from bdforge.runtime.service.origin import Built, Configured
from bdforge.runtime.service.software_npu import BDF, SoftwareNpuError, preload_library, shown
from bdforge.runtime.service.wire import Status
from support.differences import same

LOADS: dict[str, tuple[Exception, Status, str]] = {
    "files of another build": (BuildError("no such image"), Status.BAD_INPUT, "no such image"),
    "what the array refuses": (EmulationError("tile (9, 9)"), Status.FAULT, "mine: tile (9, 9)"),
    "kernels that fall": (Fault("it fell"), Status.FAULT, "mine: it fell"),
    "memory": (MemoryError(), Status.FAULT, "mine: memory is used up; end other programs"),
    "a fault of its own": (
        KeyError(7), Status.FAULT, "a fault of bdforge itself, KeyError: 7; please report it",
    ),
}  # fmt: skip


class Unloadable:
    """A design whose loading fails."""

    def __init__(self, error: Exception):
        self.error = error

    def __str__(self) -> str:
        return "mine"

    def load(self) -> Any:
        raise self.error


@pytest.mark.parametrize("case", LOADS)
def test_a_holder_says_why_its_design_is_not_loaded(case: str):
    error, status, text = LOADS[case]
    ours, theirs = wire.connected()
    with ours, theirs:
        hold(theirs, Unloadable(error), print)  # type: ignore[arg-type]
        packet, _ = wire.receive(ours) or (b"", [])
    assert wire.parse_answer(packet) == (status, text)


class Server:
    """A process that ends when it is waited for, or only when it is killed."""

    def __init__(self, *, stuck: bool):
        self.stuck, self.told = stuck, []

    def wait(self, seconds: float | None = None) -> None:
        self.told.append(("wait", seconds))
        if self.stuck:
            raise subprocess.TimeoutExpired("server", seconds or 0)

    def kill(self) -> None:
        self.told.append(("kill", None))
        self.stuck = False


@pytest.mark.parametrize(
    ("stuck", "told"),
    [(False, [("wait", 10.0)]), (True, [("wait", 10.0), ("kill", None), ("wait", None)])],
    ids=["ends", "stuck"],
)
def test_a_server_has_ten_seconds_to_end(stuck: bool, told: list):
    process: Any = Server(stuck=stuck)
    software_npu._ended(process)
    assert process.told == told


CLOCKS = {"strix_halo": 1800, "strix": 1800, "krackan": 1800, "phoenix": 1000, "hawk_point": 1790}
"""MHz of the fastest power mode."""
NAMES = {
    "phoenix": ("NPU Phoenix", "0x1502", "0x00"), "hawk_point": ("NPU Phoenix", "0x1502", "0x00"),
    "strix": ("NPU Strix", "0x17f0", "0x10"), "strix_halo": ("NPU Strix Halo", "0x17f0", "0x11"),
    "krackan": ("NPU Krackan 1", "0x17f0", "0x20"),
}  # fmt: skip


@pytest.mark.parametrize("product", DEVICES)
def test_a_software_npu_answers_as_the_driver_does(product: str):
    """The structures of amdxdna_accel.h: a column's bytes, columns, rows; then rows, first row, channels and locks of
    cores, memtiles and shims (AM020, AM025, AM027)."""
    columns, mhz = 4 if product in ("phoenix", "hawk_point") else 8, CLOCKS[product]
    tiles = [struct.pack("<5H6x", *facts, 0) for facts in ((4, 2, 2, 16), (1, 1, 6, 64), (1, 0, 2, 16))]
    clock = struct.pack("<II", mhz, 0)
    assert software_npu._answers(device_named(product)) == {
        1: struct.pack("<IHHII", 1 << 25, columns, 6, 0, 0) + b"".join(tiles),
        2: bytes(8),
        3: b"MP-NPU Clock".ljust(16, b"\0") + clock + b"H Clock".ljust(16, b"\0") + clock,
        8: bytes(16),
        9: bytes(8),
        12: struct.pack("<5Q", mhz, 0, 0, 0, 0),
    }


@pytest.mark.parametrize("product", DEVICES)
def test_a_software_npu_shows_files_as_a_machine_that_has_one(monkeypatch, tmp_path: Path, product: str):
    monkeypatch.setenv("LD_PRELOAD", "")
    name, device_id, revision = NAMES[product]
    columns, array = (4, "npu1") if product in ("phoenix", "hawk_point") else (8, "npu2")
    with shown(device_named(product), "socket", tmp_path / "log", Path("/lib.so")) as variables:
        folder = Path(variables["BDFORGE_NPU"])
        device = folder / "sys/devices/pci0000:00/0000:c5:00.1"
        for link in ("sys/bus/pci/devices", "sys/bus/pci/drivers/amdxdna"):
            assert (folder / link / BDF).resolve() == device.resolve(), link
        texts = {path.name: path.read_text() for path in device.iterdir() if path.is_file()}
        assert texts == {
            "device_type": "0\n", "vbnv": f"{name}\n", "vendor": "0x1022\n", "device": f"{device_id}\n",
            "revision": f"{revision}\n", "subsystem_vendor": "0x1022\n", "subsystem_device": f"{device_id}\n",
            "fw_version": "0.0.0.0\n",
        }  # fmt: skip
        assert (device / "accel/accel0").is_dir()
        assert (folder / "sys/module/amdxdna").is_dir()
        assert (folder / "dev/accel/accel0").is_file()
        parts = [f"{array}_{count}col" for count in range(1, columns)]
        assert (folder / "info/arrays").read_text().split("\n") == ["4", *parts, array, ""]
        for parameter, content in software_npu._answers(device_named(product)).items():
            same((folder / "info" / str(parameter)).read_bytes().hex(), content.hex(), f"answer {parameter}")
    assert not folder.exists()


def test_folders_of_killed_processes_are_removed_at_the_next_start(monkeypatch, tmp_path: Path):
    """Those of processes that live stay, and files of others' names."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(software_npu, "_YOUNG_SECONDS", -1.0)
    (tmp_path / "bdforge-npu-log").touch()
    (tmp_path / "other").mkdir()
    device, words = device_named("phoenix"), ("socket", tmp_path / "log", Path("/lib.so"))
    with shown(device, *words) as living:
        if not (child := os.fork()):
            kept = shown(device, *words)
            kept.__enter__()
            os._exit(0)
        os.waitpid(child, 0)
        (left,) = {*tmp_path.glob("bdforge-npu-*")} - {Path(living["BDFORGE_NPU"]), tmp_path / "bdforge-npu-log"}
        monkeypatch.setattr(software_npu, "_YOUNG_SECONDS", 60.0)
        with shown(device, *words):
            assert left.is_dir(), "it may be one whose process has not locked it yet"
        monkeypatch.setattr(software_npu, "_YOUNG_SECONDS", -1.0)
        with shown(device, *words):
            assert Path(living["BDFORGE_NPU"], "info").is_dir()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bdforge-npu-log", "other"]


@pytest.mark.parametrize(("before", "preload"), [("", "/lib.so"), ("/other.so", "/lib.so:/other.so")])
@pytest.mark.parametrize("trace", [False, True])
def test_programs_find_a_software_npu_by_their_environment(monkeypatch, tmp_path, before: str, preload: str, trace):
    monkeypatch.setenv("LD_PRELOAD", before)
    monkeypatch.chdir(tmp_path)
    asked = {"trace": True} if trace else {}
    with shown(device_named("phoenix"), "socket", Path("log"), Path("/lib.so"), **asked) as variables:
        assert variables == {
            "BDFORGE_DEVICE_SOCKET": "socket", "BDFORGE_NPU": variables["BDFORGE_NPU"],
            "BDFORGE_DEVICE_LOG": f"{tmp_path}/log", "LD_PRELOAD": preload,
        } | ({"BDFORGE_DEVICE_TRACE": "1"} if trace else {})  # fmt: skip


def test_the_library_is_the_one_that_is_named_or_built(monkeypatch, tmp_path: Path):
    built, named = tmp_path / "built.so", tmp_path / "named.so"
    monkeypatch.setattr(software_npu, "_BUILT", built)
    for variable, file, way in (
        (None, built, "build it with scons cpp, or name it by BDFORGE_NPU_LIBRARY"),
        (str(named), named, "unset or correct BDFORGE_NPU_LIBRARY"),
    ):
        monkeypatch.setenv("BDFORGE_NPU_LIBRARY", variable or "")
        with pytest.raises(
            SoftwareNpuError, match=f"{file}: there is no such library, which shows an NPU to programs; {way}"
        ):
            preload_library()
        file.touch()
        assert preload_library() == file


def of_manifest(folder: Path) -> Built:
    (folder / "k.so").write_bytes(b"kernels")
    os.utime(folder / "k.so", ns=(5, 5))
    (folder / "manifest.json").write_text(json.dumps({"files": {"host_kernels": {"path": "k.so"}}}))
    return Built(folder / "manifest.json")


def another_file(folder: Path) -> None:
    (folder / "new.so").write_bytes(b"kernels")
    (folder / "new.so").rename(folder / "k.so")


SPACED = '{"files": {"host_kernels": {"path": "k.so"} }}'
BUILDS: dict[str, tuple[Callable[[Path], object], int]] = {
    "the manifest": (lambda folder: (folder / "manifest.json").write_text(SPACED), 5),
    "a longer file": (lambda folder: (folder / "k.so").write_bytes(b"kernels!"), 5),
    "a later file": (lambda folder: (folder / "k.so").write_bytes(b"kernelz"), 6),
    "another file of its name": (another_file, 5),
    "no file": (lambda folder: (folder / "k.so").unlink(), 5),
    "no manifest": (lambda folder: (folder / "manifest.json").unlink(), 5),
}
"""What changes, and the time in ns that the kernels' file has then; it was 5."""


@pytest.mark.parametrize("case", BUILDS)
def test_a_build_is_another_one_when_its_files_are(tmp_path: Path, case: str):
    built = of_manifest(tmp_path)
    key = built.key
    assert Built(tmp_path / "manifest.json").key == key
    change, time_ns = BUILDS[case]
    change(tmp_path)
    if (kernels := tmp_path / "k.so").exists():
        os.utime(kernels, ns=(time_ns, time_ns))
    assert built.key != key


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"files": 3}', '{"files": {"mlir": 3}}', '{"files": {"mlir": {}}}', "[" * 100_000]
)
def test_a_manifest_that_says_nothing_is_known_by_its_path(tmp_path: Path, text: str):
    (tmp_path / "manifest.json").write_text(text)
    assert Built(tmp_path / "manifest.json").key == (f"{tmp_path}/manifest.json",)


def test_a_configuration_is_known_by_its_array_its_bytes_and_its_build(tmp_path: Path):
    of_manifest(tmp_path)
    image = tmp_path / "a.xclbin"
    found = [
        Configured("npu2", b"pdi"), Configured("npu1", b"pdi"), Configured("npu2", b"pdj"),
        Configured("npu2", b"pdi", image, {}), Configured("npu2", b"pdi", tmp_path / "other/a.xclbin", {}),
    ]  # fmt: skip
    assert len({one.key for one in found}) == 5
    assert Configured("npu2", b"pdi", tmp_path / "b.xclbin", {}).key == found[3].key, "another image of the same build"
    assert [str(one) for one in found[2:4]] == ["the hardware context's configuration", str(image)]


def opened(monkeypatch, resident: str, device: str = "strix_halo", array: str = "npu2_2col") -> list:
    """In the place of a built design: made for `device` and `array`, while its text is for `resident`; what boots."""
    booted: list = []

    def boot(*image: bytes) -> Any:
        booted.append(image)
        return SimpleNamespace(device=resident)

    facts = SimpleNamespace(device=device, mlir_device=array)
    design = SimpleNamespace(resident=boot, manifest=facts, mlir_file="a.mlir")
    monkeypatch.setattr(origin.BuiltDesign, "load", lambda folder: design)
    return booted


@pytest.mark.parametrize(
    ("device", "array", "resident", "said"),
    [
        ("strix_halo", "npu2_2col", "npu2_2col", None), ("krackan", "npu2", "npu2", None),
        ("phoenix", "npu1_1col", "npu1_1col", None),
        ("strix_halo", "npu2", "npu2_2col", r"is for strix_halo \(npu2\), but a\.mlir is for npu2_2col"),
        ("phoenix", "npu2_2col", "npu2_2col", r"is for phoenix \(npu2_2col\), but a\.mlir is for npu2_2col"),
        ("strix", "npu1", "npu1", r"is for strix \(npu1\), but"), ("gpu", "npu2", "npu2", "unknown device 'gpu'"),
        ("strix", "npu9", "npu2", "unknown device 'npu9'"),
    ],
)  # fmt: skip
def test_a_build_is_for_the_product_and_the_array_that_it_says(monkeypatch, tmp_path, device, array, resident, said):
    booted = opened(monkeypatch, resident, device, array)
    built = Built(tmp_path / "manifest.json")
    if said is None:
        assert built.load().device == resident
        assert booted == [()]
        return
    with pytest.raises(
        BuildError, match=f"{built.manifest}: .*{said}.*; build the design again|{built.manifest}: {said}"
    ):
        built.load()


def test_a_configuration_boots_alone_or_with_the_build_that_lists_its_image(monkeypatch, tmp_path: Path):
    alone: list = []
    monkeypatch.setattr(origin, "Resident", lambda *given, **named: alone.append((given[1:], named)))
    Configured("npu2", b"pdi").load()
    assert alone == [(({},), {"image": b"pdi"})]
    image = tmp_path / "a.xclbin"
    image.write_bytes(b"image")
    booted = opened(monkeypatch, "npu2_2col")
    listed, other = hashlib.sha256(b"image").hexdigest(), hashlib.sha256(b"other").hexdigest()
    for text in (
        None,
        "[]",
        "{}",
        '{"files": []}',
        '{"files": {"a": 3}}',
        json.dumps({"files": {"a": {"sha256": other}}}),
    ):
        if text is not None:
            (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(
            BuildError, match=r"its cores \(0, 2\) have no machine code but kernels of the host \(zero\)"
        ):
            Configured("npu2_2col", b"pdi", image, {(0, 2): ("zero", "zero")}).load()
    with pytest.raises(
        BuildError, match=r"kernels of the host \(none\), and no manifest\.json beside the file lists it"
    ):
        Configured("npu2_2col", b"pdi", image, {(0, 2): ()}).load()
    (tmp_path / "manifest.json").write_text(json.dumps({"files": {"a": {"sha256": other}, "b": {"sha256": listed}}}))
    assert Configured("npu2_2col", b"pdi", image, {}).load().device == "npu2_2col"
    assert booted == [(b"pdi",)]
    with pytest.raises(BuildError, match=r"the hardware context is an array npu2, but a\.mlir is for npu2_2col"):
        Configured("npu2", b"pdi", image, {}).load()


def test_what_a_client_opens_is_a_build_a_configuration_or_nothing(monkeypatch):
    asked: list = []
    monkeypatch.setattr(
        server, "configured", lambda array, file, images: asked.append((array, os.pread(file, 9, 0), images))
    )
    for text, content, found in (
        (b"/a/manifest.json", None, Built(Path("/a/manifest.json"))), (b"", None, None),
        (b"npu2", b"pdi", ("npu2", b"pdi", [])), (b"npu2\0/a\0/b", b"pdj", ("npu2", b"pdj", ["/a", "/b"])),
    ):  # fmt: skip
        ours, theirs = wire.connected()
        with ours, theirs:
            file = os.memfd_create("pdi")
            os.write(file, content or b"")
            wire.socket.send_fds(ours, [struct.pack("<II", 1, 3) + text], [] if content is None else [file])
            os.close(file)
            given = server._asked_for(theirs)
            assert (asked.pop() if content else given) == found, text
            ours.close()
            assert server._asked_for(theirs) is None


def image_of(folder: Path, content: bytes, *, listed: bool = False) -> str:
    """An image's path; `listed` by the manifest beside it."""
    folder.mkdir()
    (folder / "a.xclbin").write_bytes(content)
    files = {"xclbin": {"sha256": hashlib.sha256(content).hexdigest()}} if listed else {}
    (folder / "manifest.json").write_text(json.dumps({"files": files}))
    return str(folder / "a.xclbin")


def test_a_configuration_is_looked_for_in_the_images_that_a_program_has_opened(monkeypatch, tmp_path: Path):
    """It is that of a marked xclbin which holds it: of the first one that its build lists, else of the last one."""

    def marked(data: bytes) -> dict:
        if data.endswith(b"broken"):
            raise ImageError("cut short")
        return {(0, 2): ("zero",)} if data.endswith(b"mark") else {}

    monkeypatch.setattr(origin, "host_kernels_of", marked)
    right, file = b"xclbin2\0 PDI mark", os.memfd_create("pdi")
    os.write(file, b"PDI")
    none = {"elf": b"\x7fELF PDI mark", "other": b"xclbin2\0 PDX mark", "coded": b"xclbin2\0 PDI"}
    paths = {name: image_of(tmp_path / name, content, listed=True) for name, content in none.items()}
    paths |= {name: image_of(tmp_path / name, right) for name in ("alone", "copy")}
    paths |= {name: image_of(tmp_path / name, right, listed=True) for name in ("built", "again")}
    paths["missing"] = str(tmp_path / "missing.xclbin")
    for opened_, found in (
        ((), None), (("elf",), None), (("other",), None), (("coded",), None), (("missing",), None),
        (("alone",), "alone"), (("alone", "copy"), "copy"), (("built", "alone"), "built"),
        (("alone", "built"), "built"), (("built", "again"), "built"),
        (("elf", "coded", "alone", "missing", "other"), "alone"),
    ):  # fmt: skip
        got = origin.configured("npu2", file, [paths[name] for name in opened_])
        wanted = Configured("npu2", b"PDI")
        if found is not None:
            wanted = Configured("npu2", b"PDI", Path(paths[found]), {(0, 2): ("zero",)})
        assert got == wanted, f"{opened_}: that of {got.image}"
    broken = image_of(tmp_path / "broken", b"xclbin2\0 PDI broken")
    with pytest.raises(BuildError, match=rf"^{broken}: cut short$"):
        origin.configured("npu2", file, [broken])
    with pytest.raises(BuildError, match=r"^a hardware context: unknown device 'npu9'"):
        origin.configured("npu9", file, [])
    os.close(file)
