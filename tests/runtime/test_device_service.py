"""The device server: designs, runs, faults, and clients and kernels that end in the middle."""

import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from bdforge.runtime.service import serving
from bdforge.runtime.service.server import HELD_MAX
from support.built_designs import PlannedDesign
from support.device_client import BAD_INPUT, DONE, FAULT, DeviceClient, Job
from support.processes import below, children, servers

GONE = (-1, "")


@pytest.fixture(scope="module")
def named() -> Iterator[tuple[str, int]]:
    others = servers()
    with serving() as name:
        (process,) = servers() - others
        yield name, process


@pytest.fixture(scope="module")
def server(named: tuple[str, int]) -> str:
    return named[0]


@pytest.fixture(scope="module")
def process(named: tuple[str, int]) -> int:
    return named[1]


@pytest.fixture
def client(server: str) -> DeviceClient:
    return DeviceClient(server)


@pytest.fixture
def copy(small: PlannedDesign, tmp_path: Path) -> Path:
    """The small design's folder, to change."""
    return shutil.copytree(small.folder, tmp_path / "copy")


def edited(folder: Path, edit: Callable[[dict], object]) -> Path:
    path = folder / "manifest.json"
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))
    return path


def manifest(design: PlannedDesign) -> Path:
    return design.folder / "manifest.json"


def test_a_loaded_design_runs_again_and_again(client: DeviceClient, small: PlannedDesign):
    assert client.open(manifest(small)) == (DONE, "")
    jobs = [Job(client, small, sizes, seed) for seed, sizes in enumerate([(33, 40, 70), (1, 1, 1), (64, 64, 128)])]
    for job in jobs:
        assert client.run(job.run) == (DONE, "")
        assert job.right
    again = [Job(client, small, (17, 36, 33), seed) for seed in range(3)]
    assert client.run(*(job.run for job in again)) == (DONE, "")
    assert all(job.right for job in again)


def test_clients_share_a_design_and_nothing_else(server: str, small: PlannedDesign):
    clients = [DeviceClient(server) for _ in range(3)]
    assert [client.open(manifest(small)) for client in clients] == [(DONE, "")] * 3
    jobs = [Job(client, small, (20, 40, 60), seed) for seed, client in enumerate(clients)]
    pipes = [client.start(job.run) for client, job in zip(clients, jobs, strict=True)]
    assert [os.read(pipe, 4096) for pipe in pipes] == [struct.pack("<II", 0, 1)] * 3
    assert all(job.right for job in jobs)


def test_a_fault_is_told_and_the_next_run_finds_the_design_loaded_again(client: DeviceClient, small: PlannedDesign):
    client.open(manifest(small))
    job = Job(client, small, (20, 40, 60))
    words, (a, b, _) = job.run
    short, _ = client.share(np.zeros(64, np.int32))
    status, text = client.run((words, [a, b, short]))
    assert status == FAULT
    assert "of argument 2, which has 256" in text
    assert client.run(job.run) == (DONE, "")
    assert job.right


def test_words_that_are_none_and_buffers_that_are_not_there_are_told(client: DeviceClient, small: PlannedDesign):
    client.open(manifest(small))
    job = Job(client, small, (20, 40, 60))
    job.stream[2] += 1
    status, text = client.run(job.run)
    assert (status, text.partition(":")[0]) == (FAULT, "instruction stream")
    assert client.run((job.words, [77])) == (FAULT, "a run names 1 bytes at 0x4d, where no buffer holds them")
    size = job.stream.nbytes
    client.socket.send(struct.pack("<IIQ", 3, 0, job.words))
    expected = f"a run names {size} bytes at {job.words:#x}, where no buffer holds them"
    assert client.run(job.run) == (FAULT, expected)


def test_a_manifest_that_is_not_the_files_is_refused(client: DeviceClient, copy: Path):
    path = edited(copy, lambda facts: facts["files"]["mlir"].update(sha256="0" * 64))
    status, text = client.open(path)
    assert status == BAD_INPUT
    assert "files.mlir.sha256 is not that of" in text
    assert "\n" not in text
    assert client.answer() == GONE


def test_what_the_array_refuses_to_load_is_told(client: DeviceClient, copy: Path):
    (copy / "small.mlir").write_text("module { aie.device(npu2_2col) { %t = aie.tile(9, 9) } }")
    status, text = client.open(copy / "manifest.json")
    assert status == FAULT
    assert "small.mlir:1" in text


def compile_library(folder: Path, source: str) -> None:
    """In place of the copy's kernels."""
    (folder / "k.c").write_text(source)
    library = next(folder.glob("kernels/*.so"))
    library.unlink()
    subprocess.run(["gcc", "-shared", "-fPIC", folder / "k.c", "-o", library], check=True)


def kernels_that(do: str, design: PlannedDesign) -> str:
    calls = "".join(f"void {name}(void) {{ {do} }}\n" for name in design.manifest.kernels)
    return f"#include <stdlib.h>\n#include <unistd.h>\n{calls}"


@pytest.mark.parametrize(("do", "how"), [("_exit(0);", "(exit(0))"), ("abort();", "(SIGABRT: Aborted)")])
def test_kernels_that_end_their_process_are_named_and_hurt_no_other(
    server: str, small: PlannedDesign, copy: Path, do: str, how: str
):
    compile_library(copy, kernels_that(do, small))
    clients = {path: DeviceClient(server) for path in (copy / "manifest.json", manifest(small))}
    assert [client.open(path) for path, client in clients.items()] == [(DONE, "")] * 2
    broken, sound = (Job(client, small, (20, 40, 60)) for client in clients.values())
    first, second = clients.values()
    assert first.run(broken.run) == GONE
    status, text = first.answer()
    assert status == FAULT
    assert f"it ended the process {how}; it has to return" in text
    assert any(name in text for name in small.manifest.kernels)
    assert second.run(sound.run) == (DONE, "")
    assert sound.right


def test_libraries_that_end_the_process_that_loads_them_are_told(
    client: DeviceClient, small: PlannedDesign, copy: Path
):
    ending = "__attribute__((constructor)) static void now(void) { _exit(5); }\n"
    compile_library(copy, kernels_that("", small) + ending)
    status, text = client.open(copy / "manifest.json")
    assert status == FAULT
    assert "loading it: it ended the process (exit(5))" in text


def test_a_rebuilt_design_is_loaded_anew(server: str, small: PlannedDesign, copy: Path):
    good = next(copy.glob("kernels/*.so")).read_bytes()
    compile_library(copy, kernels_that("_exit(0);", small))
    outcomes = []
    for content in (None, good):
        if content:
            next(copy.glob("kernels/*.so")).unlink()
            (copy / small.manifest.files["host_kernels"].path).write_bytes(content)
        client = DeviceClient(server)
        client.open(copy / "manifest.json")
        outcomes.append(client.run(Job(client, small, (20, 40, 60)).run))
    assert outcomes == [GONE, (DONE, "")]


def until(holds: Callable[[], bool]) -> bool:
    """Whether it holds within a minute."""
    end = time.monotonic() + 60
    while not (held := holds()) and time.monotonic() < end:
        time.sleep(0.01)
    return held


def test_the_run_of_a_client_that_is_gone_ends(server: str, process: int, small: PlannedDesign, copy: Path):
    compile_library(copy, kernels_that("for (;;) pause();", small))
    client = DeviceClient(server)
    assert client.open(copy / "manifest.json") == (DONE, "")
    before = below(process)
    os.close(client.start(Job(client, small, (20, 40, 60)).run))
    client.socket.close()
    assert until(lambda: len(below(process)) == len(before) - 1)
    other = DeviceClient(server)
    assert other.open(manifest(small)) == (DONE, "")


def test_strangers_are_answered_or_left(server: str, small: PlannedDesign):
    assert DeviceClient(server).open("", version=3)[0] == DONE
    status, text = DeviceClient(server).open(manifest(small), version=9)
    assert status == FAULT
    assert "version 9 of the device's protocol" in text
    for packet in (
        b"x",
        struct.pack("<II", 4, 1),
        struct.pack("<IIQQQ", 2, 0, 4096, 1 << 60, 0),
        struct.pack("<III", 4, 9, 9),
    ):
        client = DeviceClient(server)
        client.socket.send(packet)
        assert client.answer()[0] == FAULT
        client = DeviceClient(server)
        assert client.open(manifest(small)) == (DONE, "")
        client.socket.send(packet)
        assert client.answer() == GONE


@pytest.mark.slow
def test_the_four_designs_that_were_used_last_stay_loaded(
    server: str, process: int, small: PlannedDesign, tmp_path: Path
):
    assert HELD_MAX == 4
    holders: dict[int, int] = {}
    for i in (0, 1, 2, 3, 0, 4):
        folder = tmp_path / str(i)
        if i not in holders:
            shutil.copytree(small.folder, folder)
        before = below(process)
        client = DeviceClient(server)
        assert client.open(folder / "manifest.json") == (DONE, "")
        if i not in holders:
            (holders[i],) = children()[process] - before
        client.socket.close()
    stay = {holders[i] for i in (0, 2, 3, 4)}
    assert until(lambda: below(process) == stay), {i: holder in below(process) for i, holder in holders.items()}


@pytest.mark.slow
def test_nothing_is_left_of_a_server(small: PlannedDesign):
    others = servers()
    with serving() as name:
        (process,) = servers() - others
        client = DeviceClient(name)
        client.open(manifest(small))
        tree = below(process) | {process}
        assert len(tree) == 3
    assert not [one for one in tree if Path(f"/proc/{one}").exists()]
    with pytest.raises(ConnectionError):
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(f"\0{name}")


@pytest.mark.slow
def test_a_server_that_is_killed_takes_all_along(small: PlannedDesign, copy: Path):
    compile_library(copy, kernels_that("for (;;) pause();", small))
    others = servers()
    with serving() as name:
        (process,) = servers() - others
        client = DeviceClient(name)
        client.open(copy / "manifest.json")
        job = Job(client, small, (20, 40, 60))
        pipe = client.start(job.run)
        tree = below(process)
        os.kill(process, signal.SIGKILL)
        assert os.read(pipe, 1) == b""
        assert client.answer() == GONE
        assert until(lambda: not any(Path(f"/proc/{one}").exists() for one in tree))
