"""A device server for the programs that a process starts."""

import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bdforge.runtime.service.wire import connected

SOCKET_VARIABLE = "BDFORGE_DEVICE_SOCKET"
"""Names the server that programs connect to; without it, hosts in C++ start one of their own."""
END_SECONDS = 10.0


@contextmanager
def serving() -> Iterator[str]:
    """A server while the context lasts; gives its name, for SOCKET_VARIABLE."""
    name = f"bdforge-{secrets.token_hex(16)}"
    control, theirs = connected()
    with control, theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"\0{name}")
        listener.listen()
        words = [sys.executable, "-m", "bdforge.cli", "device", "--serve", str(theirs.fileno())]
        server = subprocess.Popen(words, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        theirs.close()
        socket.send_fds(control, [b"\0"], [listener.fileno()])
        try:
            listener.close()
            yield name
        finally:
            control.close()
            _ended(server)


def _ended(server: subprocess.Popen) -> None:
    try:
        server.wait(END_SECONDS)
    except subprocess.TimeoutExpired:  # the machine is that busy
        server.kill()  # whatever is below it ends with it
        server.wait()
