"""What hosts and the device server say to each other, version 3.

Packets of a Unix socket of type SOCK_SEQPACKET, of little-endian words of 32 bits unless stated; addresses, bytes and
offsets have 64. A connection is one array: that of a loaded design, and of others of its image that the program loads.

- `OPEN`: 1, version, then text: the manifest's absolute path, or none to ask whether a server is there. With a file,
  that holds the PDI of a hardware context, the text is the array's name in MLIR and the paths of images that the PDI
  may come from, NUL between all of them. Is answered on the connection.
- `BUFFER`: 2, 0, address, bytes, offset in the file that comes with it, such as a memfd. No answer.
- `FREE`: 3, 0, address of a buffer. No answer.
- `RUN`: 4, how many runs, then for each: its form, how many arguments, address and bytes of its words, addresses of its
  arguments; with a pipe or socket, in which it is answered. An address may lie inside a buffer; 0 bytes are all up to
  its end.
- `SEQUENCE`: 5, 0, an address, then text: the absolute path of a full ELF and the name of one of its sequences, NUL
  between them; with a pipe, in which it is answered. Its words are then a buffer at that address, which is read only.

The form is `STREAM`, instruction words that patch the arguments in, or `CONTROL_CODE`, as XRT makes it of an ELF: the
configuration is loaded, and the words hold addresses already. An answer is a status, how many runs ended well, and
UTF-8 text: `DONE`, `BAD_INPUT` (the design cannot be loaded: its files, its manifest), `STUCK` (the array waits for
what never comes) or `FAULT` (whatever else), whose text says what and where. `RUN`s are executed in the order in which
they arrive, the array's state stays from run to run. A pipe that ends without an answer means that the runner's process
ended; then the connection holds a `FAULT` that says more, where anybody was left to say it.

A server is reached by a socket in the abstract namespace (BDFORGE_DEVICE_SOCKET holds its name), or by a socket that it
inherits (`bdforge device --serve FD`), over which the one who started it sends connections as files, one to each packet
of 1 byte. The server ends when that socket does.
"""

import os
import socket
import struct
from contextlib import suppress
from enum import IntEnum
from typing import NamedTuple

from bdforge.common.messages import bounded

VERSION = 3
PACKET_BYTES = 1 << 16
FILES_MAX = 4
_TWO = struct.Struct("<II")
_ADDRESS, _BUFFER, _RUN = struct.Struct("<IIQ"), struct.Struct("<IIQQQ"), struct.Struct("<IIQQ")
_ANSWER_BYTES = _TWO.size


class PacketKind(IntEnum):
    """What a client asks for."""

    OPEN = 1
    BUFFER = 2
    FREE = 3
    RUN = 4
    SEQUENCE = 5


class Status(IntEnum):
    """How something ended."""

    DONE = 0
    BAD_INPUT = 1
    FAULT = 2
    STUCK = 3


class RunForm(IntEnum):
    """What a run's words are."""

    STREAM = 0
    CONTROL_CODE = 1


class RunRequest(NamedTuple):
    """One run: what its words are and where they stand, and the addresses of its arguments."""

    form: RunForm
    address: int
    size: int
    arguments: tuple[int, ...]


class WireError(ValueError):
    """A packet that is none of this version."""


def connected(own: int = 0) -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET, own)


def receive(connection: socket.socket) -> tuple[bytes, list[int]] | None:
    """The next packet and the files that came with it; None when the other end is gone."""
    try:
        packet, files, _, _ = socket.recv_fds(connection, PACKET_BYTES, FILES_MAX)
    except ConnectionError:
        return None
    for file in files:
        os.set_inheritable(file, False)  # Python 3.11 drops the flags of recv_fds
    return (packet, files) if packet else None


def discard(files: list[int]) -> None:
    for file in files:
        os.close(file)


def answer_of(status: Status, text: object = "", runs: int = 0) -> bytes:
    return _TWO.pack(status, runs) + bounded(text).encode()


def parse_answer(packet: bytes) -> tuple[Status, str]:
    """Status and text of an answer; WireError for anything else."""
    if len(packet) < _ANSWER_BYTES or (status := int.from_bytes(packet[:4], "little")) not in list(Status):
        raise WireError("no answer of this version")
    return Status(status), packet[_ANSWER_BYTES:].decode(errors="replace")


def say(connection: socket.socket, status: Status, text: object = "") -> None:
    """Answer a client, who may be gone."""
    with suppress(OSError):
        connection.send(answer_of(status, text))


def text_to_open(packet: bytes) -> str:
    """The text of an OPEN; WireError where it is none, or of another version."""
    if len(packet) < _TWO.size or (head := _TWO.unpack_from(packet))[0] != PacketKind.OPEN:
        raise WireError("the first packet must be OPEN")
    if head[1] != VERSION:
        raise WireError(
            f"the program speaks version {head[1]} of the device's protocol, this bdforge {VERSION}; "
            "build the program with the bdforge that runs the device"
        )
    return os.fsdecode(packet[_TWO.size :])


def _numbers(layout: struct.Struct, packet: bytes, kind: str) -> tuple[int, ...]:
    """What stands behind a packet's head of two words; WireError where it is shorter or longer."""
    if len(packet) != layout.size:
        raise WireError(f"a {kind} of a wrong size")
    return layout.unpack(packet)[2:]


def buffer_of(packet: bytes) -> tuple[int, int, int]:
    """Address, bytes and offset of a BUFFER."""
    address, size, offset = _numbers(_BUFFER, packet, "BUFFER")
    return address, size, offset


def freed_by(packet: bytes) -> int:
    return _numbers(_ADDRESS, packet, "FREE")[0]


def sequence_of(packet: bytes) -> tuple[int, str, str]:
    """Address, path and name of a SEQUENCE."""
    if len(packet) <= _ADDRESS.size:
        raise WireError("a SEQUENCE of a wrong size")
    path, _, name = os.fsdecode(packet[_ADDRESS.size :]).partition("\0")
    return _ADDRESS.unpack_from(packet)[2], path, name


def runs_of(packet: bytes) -> list[RunRequest]:
    try:
        runs, at = [], _TWO.size
        for _ in range(_TWO.unpack_from(packet)[1]):
            form, count, address, size = _RUN.unpack_from(packet, at)
            at += _RUN.size
            runs.append(RunRequest(RunForm(form), address, size, struct.unpack_from(f"<{count}Q", packet, at)))
            at += 8 * count
    except (struct.error, ValueError):
        raise WireError("a RUN of a wrong size") from None
    if at != len(packet):
        raise WireError("a RUN of a wrong size")
    return runs
