"""What hosts and the device server say to each other, version 1.

Packets of a Unix socket of type SOCK_SEQPACKET, of little-endian words of 32 bits unless stated. A connection is one
loaded design; a program that loads two has two.

- `OPEN`: 1, version, then bytes: the manifest's absolute path, or none to ask whether a server is there. Is answered on
  the connection.
- `BUFFER`: 2, number, then 64 bits: bytes; with a file to map, such as a memfd. No answer.
- `FREE`: 3, number. No answer.
- `RUN`: 4, how many runs, then for each: number of the buffer with its instruction words, how many arguments, numbers
  of their buffers; with a pipe, in which it is answered.

An answer is a status and UTF-8 text: `DONE`, `BAD_INPUT` (the design cannot be loaded: its files, its manifest) or
`FAULT` (whatever else), whose text says what and where. Clients number their buffers; `RUN`s are executed in the order
in which they arrive, the array's state stays from run to run. A pipe that ends without an answer means that the
runner's process ended; then the connection holds a `FAULT` that says more, where anybody was left to say it.

A server is reached by a socket in the abstract namespace (BDFORGE_DEVICE_SOCKET holds its name), or by a socket that it
inherits (`bdforge device --serve FD`), over which the one who started it sends connections as files, one to each packet
of 1 byte. The server ends when that socket does.
"""

import os
import socket
import struct
from contextlib import suppress
from enum import IntEnum

from bdforge.messages import told

VERSION = 1
PACKET_BYTES = 1 << 16
FILES_MAX = 4
_TWO = struct.Struct("<II")
_BUFFER = struct.Struct("<IIQ")


class Packet(IntEnum):
    """What a client asks for."""

    OPEN = 1
    BUFFER = 2
    FREE = 3
    RUN = 4


class Status(IntEnum):
    """How something ended."""

    DONE = 0
    BAD_INPUT = 1
    FAULT = 2


class WireError(ValueError):
    """A packet that is none of this version."""


def connected(own: int = 0) -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET, own)


def receive(connection: socket.socket) -> tuple[bytes, list[int]] | None:
    """The next packet and the files that came with it; None when the other end is gone."""
    try:
        packet, files, _, _ = socket.recv_fds(connection, PACKET_BYTES, FILES_MAX, socket.MSG_CMSG_CLOEXEC)
    except ConnectionError:
        return None
    return (packet, files) if packet else None


def discard(files: list[int]) -> None:
    """Close what came with a packet."""
    for file in files:
        os.close(file)


def answer_of(status: Status, text: object = "") -> bytes:
    """An answer's packet."""
    return struct.pack("<I", status) + told(text).encode()


def parse_answer(packet: bytes) -> tuple[Status, str]:
    """Status and text of an answer; WireError for anything else."""
    if len(packet) < 4 or (status := int.from_bytes(packet[:4], "little")) not in list(Status):
        raise WireError("no answer of this version")
    return Status(status), packet[4:].decode(errors="replace")


def say(connection: socket.socket, status: Status, text: object = "") -> None:
    """Answer a client, who may be gone."""
    with suppress(OSError):
        connection.send(answer_of(status, text))


def path_to_open(packet: bytes, files: list[int]) -> str:
    """The manifest that an OPEN asks for; WireError where it is none, or of another version."""
    discard(files)
    if len(packet) < _TWO.size or (head := _TWO.unpack_from(packet))[0] != Packet.OPEN:
        raise WireError("the first packet must be OPEN")
    if head[1] != VERSION:
        raise WireError(
            f"the program speaks version {head[1]} of the device's protocol, this bdforge {VERSION}; "
            "build the program with the bdforge that runs the device"
        )
    return os.fsdecode(packet[_TWO.size :])


def buffer_of(packet: bytes) -> tuple[int, int]:
    """Number and bytes of a BUFFER."""
    try:
        return _BUFFER.unpack(packet)[1:]
    except struct.error:
        raise WireError("a BUFFER of a wrong size") from None


def freed_by(packet: bytes) -> int:
    """The number in a FREE."""
    try:
        return _TWO.unpack(packet)[1]
    except struct.error:
        raise WireError("a FREE of a wrong size") from None


def runs_of(packet: bytes) -> list[tuple[int, list[int]]]:
    """Numbers of instruction words and arguments of each run of a RUN."""
    if len(packet) % 4 or len(packet) < 8:
        raise WireError("a RUN of a wrong size")
    words = list(struct.unpack(f"<{len(packet) // 4}I", packet))
    runs, at = [], 2
    for _ in range(words[1]):
        if at + 2 > len(words) or at + 2 + words[at + 1] > len(words):
            raise WireError("a RUN that ends too early")
        end = at + 2 + words[at + 1]
        runs.append((words[at], words[at + 2 : end]))
        at = end
    return runs
