"""A client of the device server, written from the protocol's description alone."""

import mmap
import os
import socket
import struct
from pathlib import Path

import numpy as np

from bdforge.design.sequences.buffers import fetched
from support.built_designs import PlannedDesign
from support.gemm_problems import filled

DONE, BAD_INPUT, FAULT, STUCK = range(4)
PAGE = 4096


class DeviceClient:
    """One connection; arrays are shared when they are first used."""

    def __init__(self, name: str):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(f"\0{name}")
        self.socket.settimeout(60)
        self._end = PAGE
        self._sizes: dict[int, int] = {}

    def open(self, manifest: Path | str, version: int = 3) -> tuple[int, str]:
        """Status and text of the answer."""
        self.socket.send(struct.pack("<II", 1, version) + os.fsencode(manifest))
        return self.answer()

    def configure(self, array: str, pdi: bytes, *images: Path) -> tuple[int, str]:
        """Status and text for a hardware context's configuration, which may come from images."""
        file = os.memfd_create("pdi")
        os.write(file, pdi)
        text = b"\0".join(map(os.fsencode, (array, *images)))
        socket.send_fds(self.socket, [struct.pack("<II", 1, 3) + text], [file])
        os.close(file)
        return self.answer()

    def answer(self) -> tuple[int, str]:
        """What stands on the connection: status and text, (-1, "") for its end."""
        try:
            packet = self.socket.recv(8192)
        except ConnectionResetError:  # the end of a server that had not read all of what was sent to it
            packet = b""
        return (int.from_bytes(packet[:4], "little"), packet[8:].decode()) if packet else (-1, "")

    def share(self, content: np.ndarray) -> tuple[int, np.ndarray]:
        """A buffer's address and its memory, which holds `content`."""
        raw = np.ascontiguousarray(content).reshape(-1).view(np.uint8)
        file = os.memfd_create("test")
        os.ftruncate(file, len(raw))
        memory = np.frombuffer(mmap.mmap(file, len(raw)), np.uint8)
        memory[:] = raw
        address, self._end = self._end, self._end + (len(raw) // PAGE + 2) * PAGE
        socket.send_fds(self.socket, [struct.pack("<IIQQQ", 2, 0, address, len(raw), 0)], [file])
        os.close(file)
        self._sizes[address] = len(raw)
        return address, memory.view(content.dtype).reshape(content.shape)

    def start(self, *runs: tuple[int, list[int]]) -> int:
        """Start runs of (words, arguments); gives the file to read the answer from."""
        packet = struct.pack("<II", 4, len(runs))
        for stream, arguments in runs:
            packet += struct.pack("<IIQQ", 0, len(arguments), stream, self._sizes.get(stream, 4))
            packet += struct.pack(f"<{len(arguments)}Q", *arguments)
        ours, theirs = os.pipe()
        socket.send_fds(self.socket, [packet], [theirs])
        os.close(theirs)
        return ours

    def run(self, *runs: tuple[int, list[int]]) -> tuple[int, str]:
        """Status and text, (-1, "") when the runner ended without an answer."""
        with os.fdopen(self.start(*runs), "rb") as pipe:
            packet = pipe.read()
        return (int.from_bytes(packet[:4], "little"), packet[8:].decode()) if packet else (-1, "")


class Job:
    """A GEMM with its buffers on a connection."""

    def __init__(self, client: DeviceClient, design: PlannedDesign, sizes: tuple[int, int, int], seed: int = 1):
        self._planned, arrays, self.expected = filled(design, *sizes, seed)
        self.words, self.stream = client.share(np.asarray(self._planned.words(), np.uint32))
        shared = [client.share(array) for array in arrays]
        self.run = self.words, [number for number, _ in shared]
        self._c = shared[2][1]

    @property
    def right(self) -> bool:
        return np.array_equal(fetched(self._planned, [self._c] * 3)["C"], self.expected)
