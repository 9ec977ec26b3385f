"""Hardware contexts on the device server: they boot from their PDI, with or without the build that it comes from."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bdforge.array.images.xclbin import host_kernels_of, pdis
from bdforge.devices import mlir_device_named
from bdforge.devices.registers import address
from bdforge.devices.txn_format.codec import encode
from bdforge.devices.txn_format.operations import MaskPoll, Operation, Write
from bdforge.runtime.service import serving
from support.built_designs import PlannedDesign
from support.device_client import BAD_INPUT, DONE, FAULT, STUCK, DeviceClient, Job
from support.images import IMAGES
from support.raw_problem import add_xclbin, coded_xclbin

SIZES = (33, 40, 70)
KERNELS = ("zero_i32", "mm_i8_i2_i32", "unscale_i32")
LOCKS = {(0, 2): (0x1F000, 3, 5), (0, 1): (0xC0000, 63, 63), (1, 3): (0x1F000, 0, 1)}
"""Of the recorded xclbin, as its text has them: base address of the tile's locks, a lock, its value."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving() as name:
        yield name


@pytest.fixture
def client(server: str) -> DeviceClient:
    return DeviceClient(server)


@pytest.fixture
def marked(small: PlannedDesign, tmp_path: Path) -> PlannedDesign:
    """A build with an image whose cores have no machine code."""
    copy = PlannedDesign.load(shutil.copytree(small.folder, tmp_path / "marked"))
    add_xclbin(copy)
    return copy


def pdi_of(xclbin: bytes) -> bytes:
    (pdi,) = pdis(xclbin)
    return pdi


def polls(*wanted: tuple[tuple[int, int], int]) -> list[Operation]:
    """Waits until the recorded xclbin's locks have these values."""
    places = {tile: address(*tile, base + 16 * lock) for tile, (base, lock, _) in LOCKS.items()}
    return [MaskPoll(places[tile], value, 0x3F) for tile, value in wanted]


def run(client: DeviceClient, *operations: Operation) -> int:
    words, _ = client.share(encode(operations, mlir_device_named("npu2")))
    return client.run((words, []))[0]


def test_machine_code_needs_its_pdi_and_nothing_else(client: DeviceClient, small: PlannedDesign):
    assert client.configure("npu2_2col", pdi_of(coded_xclbin(small.mlir, small.plan))) == (DONE, "")
    job = Job(client, small, SIZES)
    assert client.run(job.run) == (DONE, "")
    assert job.right


def test_a_foreign_image_boots_as_its_registers_say(client: DeviceClient):
    assert client.configure("npu2", pdi_of(IMAGES["xclbin_small"])) == (DONE, "")
    assert run(client, *polls(*((tile, value) for tile, (_, _, value) in LOCKS.items()))) == DONE
    assert run(client, *polls(((0, 2), 4))) == STUCK


def test_contexts_of_one_configuration_have_arrays_of_their_own(server: str):
    first, second = DeviceClient(server), DeviceClient(server)
    for one in (first, second):
        assert one.configure("npu2", pdi_of(IMAGES["xclbin_small"])) == (DONE, "")
    (poll,) = polls(((1, 3), 9))
    assert isinstance(poll, MaskPoll)
    assert run(first, Write(poll.address, 9), poll) == DONE
    assert run(first, poll) == DONE
    assert run(second, *polls(((1, 3), 1))) == DONE


def test_a_run_that_failed_leaves_an_array_that_is_booted_anew(client: DeviceClient):
    client.configure("npu2", pdi_of(IMAGES["xclbin_small"]))
    (poll,) = polls(((1, 3), 1))
    assert isinstance(poll, MaskPoll)
    assert run(client, Write(poll.address, 0), poll) == STUCK
    assert run(client, poll) == DONE


def test_cores_without_machine_code_run_the_builds_kernels(client: DeviceClient, marked: PlannedDesign):
    image = marked.folder / "design.xclbin"
    assert host_kernels_of(image.read_bytes()) == dict.fromkeys([(0, 2), (0, 3), (1, 2), (1, 3)], KERNELS)
    assert client.configure("npu2_2col", pdi_of(image.read_bytes()), Path("/no/such.xclbin"), image) == (DONE, "")
    job = Job(client, marked, SIZES)
    assert client.run(job.run) == (DONE, "")
    assert job.right


@pytest.mark.parametrize(
    ("array", "edit", "status", "sentence"),
    [
        ("npu3", lambda pdi: pdi, BAD_INPUT, "a hardware context: unknown device 'npu3'"),
        ("npu2", lambda pdi: pdi[:400], FAULT, "the hardware context's configuration: "),
        ("npu2", lambda pdi: bytes(64), FAULT, "no xclbin, PDI, CDO or full ELF: the file starts with 00000000"),
        ("npu2_1col", lambda pdi: pdi, FAULT, "core (1, 3) is configured: column 1 is outside npu2_1col"),
    ],
)
def test_configurations_that_no_array_takes_are_told(client: DeviceClient, array, edit, status: int, sentence: str):
    found, text = client.configure(array, edit(pdi_of(IMAGES["xclbin_small"])))
    assert found == status
    assert sentence in text


@pytest.mark.slow
def test_what_runs_machine_code_is_compiled_before_the_first_run(
    monkeypatch: pytest.MonkeyPatch, small: PlannedDesign, tmp_path: Path
):
    """Hosts give up a run after some seconds; a compiler that fails shows when it is called."""
    compiler = tmp_path / "g++"
    compiler.write_text("#!/bin/sh\necho out of order >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with serving() as name:
        status, text = DeviceClient(name).configure("npu2_2col", pdi_of(coded_xclbin(small.mlir, small.plan)))
        assert status == FAULT
        assert text.endswith("out of order")
        assert DeviceClient(name).configure("npu2", pdi_of(IMAGES["xclbin_small"])) == (DONE, "")
