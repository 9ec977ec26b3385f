"""A program that uses an NPU by ioctls alone, without XRT, below the library of the software NPU.

`python -m support.raw_npu RUNS FOLDER` loads FOLDER's design.xclbin, runs words.bin on the operands 0.bin, 1.bin, ...
so often, and writes the last operand back. After a tenth of the runs and after the last it prints a line and waits for
one.
"""

import ctypes
import mmap
import os
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bdforge.array.images.xclbin import pdis

NODE = "/dev/accel/accel0"
GEM_CLOSE, CREATE_CONTEXT, DESTROY_CONTEXT, CONFIGURE, CREATE_BO, BO_INFO = 9, 0x40, 0x41, 0x42, 0x43, 0x44
SYNC_BO, EXECUTE, GET_INFO, WAIT, GET_ARRAY = 0x45, 0x46, 0x47, 0x49, 0x4A
SHARE, HEAP, DEVICE, COMMAND = 1, 2, 3, 4
COMPLETED = 4


@dataclass(frozen=True)
class RawBuffer:
    """A buffer object and its memory."""

    handle: int
    address: int
    memory: mmap.mmap


class RawNpu:
    """The device, opened once."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.ioctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p)
        self.file = self._libc.open(NODE.encode(), os.O_RDWR)

    def call(self, number: int, content: bytes) -> tuple[int, bytes]:
        """errno or 0, and what then stands in the structure."""
        structure = ctypes.create_string_buffer(content, len(content))
        failed = self._libc.ioctl(self.file, 0xC0006400 | number, structure)
        return (ctypes.get_errno() if failed else 0), structure.raw

    def require(self, number: int, content: bytes) -> bytes:
        """The structure; OSError when the driver refuses."""
        error, answer = self.call(number, content)
        if error:
            raise OSError(error, f"{os.strerror(error)} (ioctl {number:#x})")
        return answer

    def made(self, content: bytes) -> tuple[int, int, int, int]:
        """Handle, map offset, the host's address and the device's of what CREATE_BO makes."""
        handle = struct.unpack_from("<I", self.require(CREATE_BO, content), 28)[0]
        info = self.require(BO_INFO, struct.pack("<QQIIQQQ", 0, 0, handle, 0, 0, 0, 0))
        return handle, *struct.unpack_from("<QQQ", info, 24)

    def buffer(self, size: int, kind: int = SHARE) -> RawBuffer:
        """A buffer object, mapped."""
        handle, offset, _, address = self.made(wanted(size, kind))
        return RawBuffer(handle, address, mmap.mmap(self.file, size, offset=offset))

    def holding(self, content: bytes, size: int = 0, at: int = 0) -> RawBuffer:
        """A buffer object as large as its content, or larger, which lies `at` bytes behind its start."""
        buffer = self.buffer(max(size, at + len(content)))
        buffer.memory[at : at + len(content)] = content
        return buffer

    def close(self, buffer: RawBuffer) -> None:
        """Give a buffer object back."""
        buffer.memory.close()
        self.require(GEM_CLOSE, struct.pack("<II", buffer.handle, 0))

    def created(self, tiles: int = 8) -> int:
        """The handle of a context without units."""
        answer = self.require(CREATE_CONTEXT, bytes(36) + struct.pack("<5I", tiles, 0, 0, 0, 0))
        return struct.unpack_from("<I", answer, 48)[0]

    def configure(self, context: int, pdis: Sequence[bytes]) -> int:
        """errno of giving a context these units; those of one content share its buffer."""
        codes = {pdi: self.holding(pdi) for pdi in pdis}
        content = struct.pack("<Q", len(pdis)) + b"".join(struct.pack("<II", codes[pdi].handle, 0) for pdi in pdis)
        units = ctypes.create_string_buffer(content, len(content))
        answer, _ = self.call(CONFIGURE, struct.pack("<IIQII", context, 0, ctypes.addressof(units), len(content), 0))
        for code in codes.values():
            self.close(code)
        return answer

    def context(self, *pdis: bytes) -> int:
        """The handle of a context with these units."""
        handle = self.created()
        if error := self.configure(handle, pdis):
            raise OSError(error, f"{os.strerror(error)} (units)")
        return handle

    def loaded(self, folder: Path) -> tuple[RawBuffer, list[RawBuffer]]:
        """The words and the operands that a folder holds."""
        words, *operands = (self.holding(path.read_bytes()) for path in (folder / "words.bin", *operand_files(folder)))
        return words, operands

    def packet(
        self, words: RawBuffer, count: int, operands: Sequence[RawBuffer], masks: Sequence[int] = (1,)
    ) -> RawBuffer:
        """A command that runs instruction words on operands, on the unit that is the lowest bit of the first mask."""
        payload = struct.pack(f"<QQI{len(operands)}Q", 3, words.address, count, *(one.address for one in operands))
        return self.command(0, masks, payload)

    def command(self, opcode: int, masks: Sequence[int], payload: bytes) -> RawBuffer:
        """A command packet; chains have no masks."""
        content = struct.pack(f"<{len(masks)}I", *masks) + payload
        head = 1 | max(len(masks) - 1, 0) << 10 | len(content) // 4 << 12 | opcode << 23
        packet = self.buffer(max(4 + len(content), 4096), COMMAND)
        packet.memory[: 4 + len(content)] = struct.pack("<I", head) + content
        return packet

    def execute(self, context: int, packet: RawBuffer) -> int:
        """The number of the command."""
        packet.memory[0] = packet.memory[0] & 0xF0 | 1
        done = self.require(EXECUTE, execution(context, packet))
        return struct.unpack_from("<Q", done, 48)[0]

    def wait(self, context: int, number: int, milliseconds: int = 0) -> None:
        """Until the command has ended; OSError with ETIME when it has not."""
        self.require(WAIT, struct.pack("<IIQ", context, milliseconds, number))


def operand_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("[0-9].bin"))


def wanted(size: int, kind: int, table: int = 0) -> bytes:
    """CREATE_BO; `table` is the address of what tells of the program's own memory."""
    return struct.pack("<QQQII", 0, table, size, kind, 0)


def execution(context: int, packet: RawBuffer, kind: int = 0, count: int = 1) -> bytes:
    """What asks for a command."""
    return bytes(16) + struct.pack("<IIQQIIQ", context, kind, packet.handle, 0, count, 0, 0)


def main(runs: int, folder: Path) -> None:
    """The runs, each with a command and a buffer of its own as well."""
    npu = RawNpu()
    npu.buffer(64 << 20, HEAP)
    context = npu.context(pdis((folder / "design.xclbin").read_bytes())[0])
    words, operands = npu.loaded(folder)
    for run in range(runs):
        packet, other = npu.packet(words, len(words.memory) // 4, operands), npu.buffer(1 << 20)
        other.memory[:: mmap.PAGESIZE] = bytes(256)
        npu.wait(context, npu.execute(context, packet))
        if (state := packet.memory[0] & 15) != COMPLETED:
            raise SystemExit(f"run {run} ended with state {state}")
        npu.close(packet)
        npu.close(other)
        if run in (runs // 10, runs - 1):
            print(run, flush=True)
            sys.stdin.readline()
    operand_files(folder)[-1].write_bytes(operands[-1].memory[:])
    npu.require(DESTROY_CONTEXT, struct.pack("<II", context, 0))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
