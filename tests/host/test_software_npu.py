"""The software NPU as programs without XRT see it: by ioctls alone."""

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from library_builds import ROOT, npu_library, replace_kernels, run

from bdforge.devices import device_named
from bdforge.runtime.service.software_npu import LIBRARY_VARIABLE, shown
from fuzz import device_ioctls
from support.built_designs import PlannedDesign, build, spec_content
from support.differences import same
from support.processes import below, servers, taken
from support.raw_problem import XCLBIN, coded_xclbin, read_result, write_problem

SIZES = (20, 40, 60)
KILOBYTES = 2048  # that the processes of one program may grow by, whatever it runs


@pytest.fixture(scope="module")
def library() -> Path:
    return npu_library()


@pytest.fixture
def environ(library: Path, device_server: str, tmp_path: Path) -> Iterator[Mapping[str, str]]:
    """Of programs that find an NPU."""
    with shown(device_named("strix_halo"), device_server, tmp_path / "log", library) as variables:
        yield os.environ | variables | {"PYTHONPATH": str(ROOT / "tests")}


def designs(folder: Path, count: int) -> list[tuple[PlannedDesign, np.ndarray]]:
    """Builds with operands of their own, and the C of each."""
    made = [build(folder / str(i), spec_content(16, 16, 32)) for i in range(count)]
    return [(design, write_problem(design, SIZES, seed)) for seed, design in enumerate(made)]


def run_at_once(folder: Path, environ: Mapping[str, str], processes: int, runs: int) -> list[dict[str, int]]:
    """What programs and the server's processes take after a tenth of the runs and at the end; all get the right C."""
    made = designs(folder, processes)
    words = [[sys.executable, "-m", "support.raw_npu", str(runs), str(design.folder)] for design, _ in made]
    pipe = subprocess.PIPE
    started = [subprocess.Popen(one, env=environ, stdin=pipe, stdout=pipe, text=True) for one in words]
    seen = []
    for _ in range(2):
        assert all(program.stdout and program.stdout.readline() for program in started)
        seen.append(taken({process for server in servers() for process in below(server)}))
        seen.append(taken(program.pid for program in started))
        for program in started:
            print(file=program.stdin, flush=True)
    assert [program.wait(60) for program in started] == [0] * processes
    for design, expected in made:
        same(read_result(design, SIZES), expected)
    return seen


def check_flat(seen: list[dict[str, int]], programs: int):
    """Neither the server's processes (even) nor the programs (odd) have grown."""
    for early, late in zip(seen[:2], seen[2:], strict=True):
        assert late["files"] <= early["files"], seen
        assert late["kilobytes"] - early["kilobytes"] < KILOBYTES * programs, seen


@pytest.mark.slow
def test_programs_run_side_by_side_and_give_back_what_they_take(environ: Mapping[str, str], tmp_path: Path):
    """Each run has a buffer of 1 MiB of its own, so that a leak of one shows within a few."""
    check_flat(run_at_once(tmp_path, environ, 2, 20), 2)


def test_an_xclbin_of_machine_code_runs_alone_in_a_folder(environ: Mapping[str, str], tmp_path: Path):
    ((design, expected),) = designs(tmp_path, 1)
    alone = tmp_path / "alone"
    alone.mkdir()
    for file in design.folder.glob("*.bin"):
        shutil.copy(file, alone)
    (alone / XCLBIN).write_bytes(coded_xclbin(design.mlir, design.plan))
    words = [sys.executable, "-m", "support.raw_npu", "1", alone]
    subprocess.run(words, env=environ, input=b"\n", stdout=subprocess.DEVNULL, check=True, timeout=60)
    shutil.copy(alone / "2.bin", design.folder)
    same(read_result(design, SIZES), expected)


REFUSED = {
    errno.EINVAL: (
        "0 units", "33 units", "4097 handles", "64 MiB and 1 of configuration", "0 of 2 runs in a chain",
        "3 of 2 runs in a chain", "buffer of 0 bytes", "buffer of type 0", "buffer of type 5", "sync behind its end",
        "sync a byte too much", "sync no direction", "context of 0 tiles", "context of 6 tiles", "context of 36 tiles",
        "wait for command 3", "chain in a chain", "submission of 2 commands", "memory in 2 pieces", "memory at 0",
        "heap and a page", "no heap", "units that are 8 bytes too long for their size", "units once more",
    ),
    errno.EBUSY: ("buffer of type 2",),  # there is a heap
    errno.ENOMEM: ("more than the last page", "all memory and a page"),
    errno.EOPNOTSUPP: ("submission of type 1", "memory in 0 pieces", "configuration of kind 1",
                       "facts of kind 99", "array of kind 1", "number 0x3f", "number 0x48", "number 0x4b",
                       "configuration cut short, then the whole"),
    errno.ENOENT: ("closed twice", "units of no context", "destroyed again", "chain whose 601st run is none"),
    errno.EFAULT: ("structure nowhere",),
    errno.ENOSPC: ("contexts in 191 bytes",),
}  # fmt: skip
TAKEN = (
    "1 units", "32 units", "4096 handles", "64 MiB and 0 of configuration", "2 of 2 runs in a chain",
    "buffer of 1 bytes", "buffer of type 1", "buffer of type 3", "buffer of type 4", "heap but a page",
    "sync whole buffer", "sync to its end", "context of 4 tiles", "context of 32 tiles",
    "wait for command 2", "contexts in 192 bytes", "memory in 1 pieces", "largest heap", "all memory",
    "units in the size that they have", "destroyed", "configuration alone, then the whole",
)  # fmt: skip
LOADING = "control code with a configuration"
OFFERED = "offset of the address", "not mapped", "behind the heap"
ANSWERS = {
    "run behind 31 other images": 4, "run behind 32 other images": 8,
    "run with masks (0,)": [0, 4], "run with masks (3, 0)": [0, 4],
    "run with masks (1, 0, 0)": [0, 4], "run with masks (1, 0, 0, 0)": [0, 4],
    "run with masks (2,)": [0, 8], "run with masks (4,)": [errno.EINVAL, 1],  # unit 1 is of no known image, 2 is none
    "operand at the end of its buffer": [errno.EINVAL, 1],
    "second of three runs fails": [0, 5, 4, 5, 6, 1],  # error of the chain; completed, error, abort; which run
    "run that gets stuck": [0, 8], "what it wrote by then": True,
    f"{LOADING} to the end of its buffer": [0, 4], f"{LOADING} a byte more": [errno.EINVAL, 1],
    f"{LOADING} preemptible": [0, 4], f"{LOADING} of an ELF": [0, 4], f"{LOADING} of opcode 23": [errno.EINVAL, 1],
    "context as it is told": [[1, 0, 2, 1, 1, 13, 13, 0, 0, 3], [1, 0, 2, 0, 1, 13, 13, 0, 0, 3], [1, 64], [2, 64]],
    "wait of 1 ms": errno.ETIME, "submissions and completions of a run that goes on": [1, 0],
    "run of a context that is destroyed": 6,
    "configuration alone": [0, 4], "configuration cut short": [0, 4],
    "handle of a sync object": 0, "bytes of the firmware's version": 16,
    "buffer shared": [*OFFERED], "buffer command": [*OFFERED],
    "buffer of the heap": ["no offset", "mapped", "in the heap"],
    "buffer the program's own": ["no offset", "its own", "behind the heap"],
}  # fmt: skip
"""errno of submissions with states of packets (1: not run, 4: completed, 5: error, 6: abort, 8: timed out, as a
configuration of no known image brings no kernels); a context's columns, submissions, completions, errors; buffers."""
TOLD = ("command 2: TIMEOUT", "command 6, run 1 of a chain: ERROR", "command 7: TIMEOUT")
"""Of the context with two units, whose second one was loaded in between."""


@pytest.mark.slow
def test_the_device_takes_the_last_value_of_each_limit_and_refuses_the_next(environ: Mapping[str, str], tmp_path: Path):
    ((design, _),) = designs(tmp_path / "sound", 1)
    endless = build(tmp_path / "endless", spec_content(16, 16, 32))
    replace_kernels(endless.folder, endless.plan, "for (;;) pause();")
    write_problem(endless, SIZES)
    words = ("-m", "support.npu_limits", design.folder, endless.folder)
    done = run(sys.executable, *words, environ=dict(environ))
    assert done.returncode == 0, done.stderr
    refused = {name: number for number, names in REFUSED.items() for name in names}
    expected, found = refused | dict.fromkeys(TAKEN, 0) | ANSWERS, json.loads(done.stdout)
    wrong = {
        name: (found.get(name), expected.get(name))
        for name in found | expected
        if found.get(name) != expected.get(name)
    }
    assert not wrong, f"errno, states or facts, found and expected: {wrong}"
    reports = [line.split(": deadlock")[0] for line in done.stderr.splitlines()]
    assert "ABORT" not in done.stderr  # of a context that its program has destroyed
    assert all(any(told in line for line in reports) for told in TOLD), done.stderr


@pytest.mark.slow
def test_a_thousand_runs_of_eight_programs_stay_flat(environ: Mapping[str, str], tmp_path: Path):
    check_flat(run_at_once(tmp_path, environ, 8, 1000), 8)


def test_copies_of_a_descriptor_are_the_device(environ: Mapping[str, str], tmp_path: Path):
    program = tmp_path / "descriptors"
    source = ROOT / "tests" / "host" / "c_descriptors.c"
    subprocess.run(["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", source, "-o", program], check=True)
    done = run(program, environ=dict(environ))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_no_ioctl_hurts_the_program_or_the_server(library: Path, device_server: str, tmp_path: Path, seed: int):
    folder = device_ioctls.prepared(tmp_path)
    assert device_ioctls.run(folder, library, device_server, range(seed, seed + 1), 60) == 0


@pytest.mark.slow
def test_the_command_shows_the_device_and_ends_as_its_program(library: Path, tmp_path: Path):
    here = {LIBRARY_VARIABLE: str(library)}
    script = "cat /sys/bus/pci/drivers/amdxdna/*/vbnv; exit 5"
    command = [sys.executable, "-m", "bdforge.cli", "device", "--device", "krackan", "--", "sh", "-c", script]
    done = run(*command, environ=here)
    assert (done.returncode, done.stdout) == (5, "NPU Krackan 1\n")
