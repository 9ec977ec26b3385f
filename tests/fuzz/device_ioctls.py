"""A fuzz of the software NPU: no ioctl of a program may crash it, hang it, or hurt its device server.

    PYTHONPATH=.:tests python -m fuzz.device_ioctls --seconds 60 --seed 1

Each seed is a process below the preloaded library with a few hundred calls: fields are right (handles, addresses,
packets for a loaded array), random, or near a limit; configurations are the design's, with machine code, or changed in
a word or two. Exit code 1 when a process ended by a signal or took more than a
minute, or when the server does not serve a sound program afterwards.
"""

import argparse
import ctypes
import os
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random

from bdforge.array.images.xclbin import pdis
from bdforge.devices import device_named
from bdforge.runtime.service import serving
from bdforge.runtime.service.software_npu import preload_library, shown
from support.built_designs import ROOT, build, spec_content
from support.raw_npu import BO_INFO, COMMAND, CONFIGURE, CREATE_BO, CREATE_CONTEXT, EXECUTE, HEAP, WAIT, RawNpu
from support.raw_npu import main as use
from support.raw_problem import XCLBIN, coded_xclbin, write_problem

SECONDS = 60
CALLS = 300
STRUCTURES = {
    9: 8,
    0x40: 56,
    0x41: 8,
    0x42: 24,
    0x43: 32,
    0x44: 48,
    0x45: 24,
    0x46: 56,
    0x47: 16,
    0x48: 16,
    0x49: 16,
    0x4A: 24,
}
"""Bytes by number of the ioctl (Linux, `amdxdna_accel.h`); 9 is DRM's GEM_CLOSE."""
EDGES = (0, 1, 2, 3, 5, 8, 4095, 4096, 1 << 20, 1 << 26, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 62, (1 << 64) - 1)
OPCODES = (0, 0, 19, 20, 21, 22, 31)


class Caller:
    """One process' calls."""

    def __init__(self, seed: int, folder: Path):
        self.random, self.npu = Random(seed), RawNpu()
        self.words = (folder / "words.bin").read_bytes()
        self.npu.buffer(64 << 20, HEAP)
        (self.pdi,) = pdis((folder / XCLBIN).read_bytes())
        self.contexts = [0, self.npu.context(self.pdi)]
        size = max(4096, len(self.words), len(self.pdi))
        self.buffers = [self.npu.buffer(size, kind) for kind in (1, 1, 1, COMMAND)]
        self.scratch = ctypes.create_string_buffer(1 << 12)

    def field(self, bits: int) -> int:
        """A value that may be right."""
        buffer = self.random.choice(self.buffers)
        known = (buffer.handle, buffer.address, self.random.choice(self.contexts), ctypes.addressof(self.scratch))
        value = self.random.choice((*known, self.random.choice(EDGES), self.random.getrandbits(bits)))
        return value & ((1 << bits) - 1)

    def fields(self, size: int) -> bytes:
        """A structure of words."""
        return b"".join(self.field(32).to_bytes(4, "little") for _ in range(size // 4))

    def make(self) -> None:
        """A buffer object, often a sound one."""
        size = self.random.choice((1, 64, 4096, 1 << 16, self.field(40)))
        done, answer = self.npu.call(CREATE_BO, struct.pack("<QQQII", 0, 0, size, self.random.choice((1, 2, 3, 4)), 0))
        if done == 0:
            self.npu.call(BO_INFO, bytes(16) + answer[28:32] + bytes(28))

    def fill(self) -> None:
        """Instruction words, a command that runs them, or what may be one; a word or two of it are changed."""
        *memories, packet = self.buffers
        payload = struct.pack("<QQI", 3, memories[0].address, len(self.words) // 4)
        payload += b"".join(self.random.choice(memories).address.to_bytes(8, "little") for _ in range(3))
        head = self.random.choice(OPCODES) << 23 | self.random.choice((0, 3, 12, 40, 0x7FF)) << 12
        anything = struct.pack("<II", head, self.random.choice((0, 1, 2))) + self.fields(160)
        target, content = self.random.choice(
            (
                (memories[0], self.words),
                (memories[1], self.pdi),
                (packet, struct.pack("<II", (1 + len(payload) // 4) << 12, 1) + payload),
                (self.random.choice(self.buffers), anything),
            )
        )
        changed = bytearray(content)
        for _ in range(self.random.choice((0, 0, 1, 2))):
            struct.pack_into("<I", changed, 4 * self.random.randrange(len(changed) // 4), self.field(32))
        target.memory[: len(changed)] = bytes(changed)

    def context(self) -> None:
        """A context, and what may be its units."""
        done, answer = self.npu.call(
            CREATE_CONTEXT, bytes(36) + struct.pack("<5I", 4 * self.random.randrange(10), *bytes(4))
        )
        if done == 0:
            self.contexts.append(struct.unpack_from("<I", answer, 48)[0])
        units = self.random.choice((0, 1, 2, 33))
        self.scratch.raw = (struct.pack("<Q", units) + self.fields(8 * units)).ljust(1 << 12, b"\0")
        place, size = ctypes.addressof(self.scratch), self.random.choice((8 * units + 8, self.field(32)))
        self.npu.call(CONFIGURE, struct.pack("<IIQII", self.random.choice(self.contexts), 0, place, size, 0))

    def command(self) -> None:
        """A command, and a wait."""
        context = self.random.choice((self.contexts[1], self.random.choice(self.contexts)))
        handle = self.random.choice((self.buffers[-1], self.random.choice(self.buffers))).handle
        done, answer = self.npu.call(EXECUTE, bytes(16) + struct.pack("<IIQQIIQ", context, 0, handle, 0, 1, 0, 0))
        if done == 0:
            self.npu.call(WAIT, struct.pack("<IIQ", context, 20, struct.unpack_from("<Q", answer, 48)[0]))

    def anything(self) -> None:
        """Any ioctl; a wait without a limit would wait rightly."""
        number = self.random.choice((*STRUCTURES, self.random.randrange(256)))
        content = self.fields(STRUCTURES.get(number, 64))
        self.npu.call(number, content[:4] + b"\1\0\0\0" + content[8:] if number == WAIT else content)

    def run(self) -> None:
        """All calls."""
        for _ in range(CALLS):
            self.random.choice(
                (self.make, self.fill, self.fill, self.context, self.command, self.command, self.anything)
            )()


def faults(folder: Path, seeds: range, seconds: float) -> list[str]:
    """What went wrong with a process of each seed, as many as `seconds` allow, and with a sound run afterwards."""
    found, end, done = [], time.monotonic() + seconds, 0
    for seed in seeds:
        if time.monotonic() > end:
            break
        if fault := _ending(_calls, seed, folder):
            found.append(f"seed {seed}: {fault}")
        done += 1
    if fault := _ending(use, 1, folder):
        found.append(f"afterwards: {fault}")
    print(f"{done} processes of {CALLS} calls, {len(found)} faults", *found, sep="\n")
    return found


def _calls(seed: int, folder: Path) -> None:
    Caller(seed, folder).run()


def _ending(do: Callable[..., object], *arguments: object) -> str:
    """How a child ended that does something; "" when it did."""
    if not (child := os.fork()):
        try:
            do(*arguments)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    ended = os.pidfd_open(child)
    late = not select.select([ended], [], [], SECONDS)[0]
    if late:
        os.kill(child, signal.SIGKILL)
    os.close(ended)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return f"no end after {SECONDS} s" if late else f"exit code {code}" if code else ""


def run(folder: Path, library: Path, server: str, seeds: range, seconds: float) -> int:
    """The exit code of a process below the library that looks for faults."""
    words = [sys.executable, "-m", "fuzz.device_ioctls", "--seed", str(seeds.start), "--count", str(len(seeds))]
    words += ["--seconds", str(seconds), "--below", str(folder)]
    with shown(device_named("strix_halo"), server, folder / "log", library) as environ:
        everything = os.environ | environ | {"PYTHONPATH": str(ROOT / "tests")}
        done = subprocess.run(words, env=everything, input=b"\n\n", stderr=subprocess.DEVNULL, check=False)
        return done.returncode


def prepared(folder: Path) -> Path:
    """The folder of a design with machine code, and of a problem for it."""
    design = build(folder, spec_content(16, 16, 32))
    write_problem(design, (20, 40, 60))
    (folder / XCLBIN).write_bytes(coded_xclbin(design.mlir, design.plan))
    return folder


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1 << 30)
    parser.add_argument("--below", type=Path, metavar="FOLDER", help="This process is below the library.")
    given = parser.parse_args()
    seeds = range(given.seed, given.seed + given.count)
    if given.below is not None:
        sys.exit(bool(faults(given.below, seeds, given.seconds)))
    with tempfile.TemporaryDirectory() as folder, serving() as name:
        sys.exit(run(prepared(Path(folder)), preload_library(), name, seeds, given.seconds))


if __name__ == "__main__":
    main()
