"""The device server: takes clients in, and gives each to the process that holds its design."""

import ctypes
import os
import select
import signal
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bdforge.common.watched import WatchedChild, parted
from bdforge.runtime.built_design import BuildError
from bdforge.runtime.service.client_runner import Tell
from bdforge.runtime.service.holder import hold
from bdforge.runtime.service.origin import Built, Wanted, configured
from bdforge.runtime.service.wire import Status, WireError, connected, discard, parse_answer, receive, say, text_to_open

HELD_MAX = 4
"""Designs that stay loaded, the last ones used; of others only clients keep a holder."""
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


def serve(control: socket.socket, tell: Tell) -> None:
    """Serve until `control` ends: the clients that come over it, and those of listening sockets that do (`wire`).

    `tell` takes what users should read. No process is left when this returns, or when this process is killed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the client, with which this ends
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)  # runners of a killed holder become this process' to wait for
    server = _Server(control, tell)
    try:
        server.run()
    finally:
        server.end()


@dataclass(eq=False)
class _Held:
    """A holder: its process, the way to it, and clients that wait until it is ready."""

    process: WatchedChild
    ended: int  # readable when the process has ended
    channel: socket.socket
    waiting: list[socket.socket]
    ready: bool = False


class _Server:
    def __init__(self, control: socket.socket, tell: Tell):
        self._control, self._tell = control, tell
        self._poll = select.poll()
        self._sockets: dict[int, socket.socket] = {}  # listening ones, and clients that have not said what they want
        self._held: dict[tuple, _Held] = {}  # by what they hold, the last one used comes last
        self._dismissed: list[_Held] = []
        self._poll.register(control, select.POLLIN)

    def run(self) -> None:
        """Until the control socket ends."""
        while True:
            file = self._poll.poll()[0][0]  # one at a time: what is done for it may close others
            if file == self._control.fileno():
                if (came := receive(self._control)) is None:
                    return
                for given in came[1]:
                    self._admit(socket.socket(fileno=given))
            elif file in self._sockets:
                self._hear(self._sockets[file])
            else:
                self._hear_holder(file)

    def end(self) -> None:
        """End all holders, and wait for whatever is left below them."""
        for held in [*self._held.values(), *self._dismissed]:
            with suppress(ProcessLookupError):
                os.kill(held.process.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while True:
                os.wait()

    def _admit(self, arrived: socket.socket) -> None:
        self._sockets[arrived.fileno()] = arrived
        self._poll.register(arrived, select.POLLIN)

    def _hear(self, arrived: socket.socket) -> None:
        if arrived.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            with suppress(OSError):  # gone again
                client, _ = arrived.accept()
                self._admit(client) if _is_ours(client) else client.close()
            return
        self._poll.unregister(arrived)
        del self._sockets[arrived.fileno()]
        try:
            wanted = _asked_for(arrived)
        except WireError as error:
            say(arrived, Status.FAULT, error)
        except BuildError as error:
            say(arrived, Status.BAD_INPUT, error)
        else:
            if wanted is not None:
                self._give(arrived, wanted)
                return
            say(arrived, Status.DONE)
        arrived.close()

    def _give(self, client: socket.socket, wanted: Wanted) -> None:
        """A client to the holder of its design, which may have to be started; the oldest of too many are dismissed."""
        key = wanted.key
        held = self._held.pop(key, None)
        if held is None:
            held = self._hold(client, wanted)
        elif held.ready:
            self._send(held, client)
        else:
            held.waiting.append(client)
        self._held[key] = held
        ready = [key for key, held in self._held.items() if held.ready]
        for old in ready[: max(0, len(self._held) - HELD_MAX)]:
            self._dismiss(old)

    def _hold(self, client: socket.socket, wanted: Wanted) -> _Held:
        channel, theirs = connected()
        process = parted()
        if process is None:
            for own in (channel, client):
                own.close()
            self._forget_all()
            hold(theirs, wanted, self._tell)
            os._exit(0)
        theirs.close()
        held = _Held(process, os.pidfd_open(process.pid), channel, [client])
        for file in (channel.fileno(), held.ended):
            self._poll.register(file, select.POLLIN)
        return held

    def _forget_all(self) -> None:
        """In a new process: nothing that belongs to the server stays open."""
        for held in [*self._held.values(), *self._dismissed]:
            held.channel.close()
            os.close(held.ended)
            for client in held.waiting:
                client.close()
        for arrived in self._sockets.values():
            arrived.close()
        self._control.close()

    def _hear_holder(self, file: int) -> None:
        for key, held in self._held.items():
            if file == held.channel.fileno() and not held.ready:
                self._loaded(key, held)
                return
            if file in (held.channel.fileno(), held.ended):
                self._dismiss(key)
                return
        for held in self._dismissed:
            if file == held.ended:
                self._bury(held)
                return

    def _loaded(self, key: tuple, held: _Held) -> None:
        """A holder says whether its design is loaded, or has ended without a word."""
        if (came := receive(held.channel)) is None:
            self._dismiss(key)
            return
        status, text = parse_answer(came[0])
        held.ready = status is Status.DONE
        for client in held.waiting:
            if held.ready:
                self._send(held, client)
            else:
                say(client, status, text)
                client.close()
        held.waiting.clear()
        if not held.ready:
            self._dismiss(key)

    def _send(self, held: _Held, client: socket.socket) -> None:
        with suppress(OSError):  # it has ended: the client sees its connection end
            socket.send_fds(held.channel, [b"\0"], [client.fileno()])
        client.close()

    def _dismiss(self, key: tuple) -> None:
        """Send a holder no more clients: it ends when it has none."""
        held = self._held.pop(key)
        self._poll.unregister(held.channel)
        held.channel.close()
        self._dismissed.append(held)

    def _bury(self, held: _Held) -> None:
        code = os.waitstatus_to_exitcode(os.waitpid(held.process.pid, 0)[1])
        for client in held.waiting:
            say(client, Status.FAULT, held.process.ending(code) or f"loading the design ended with exit({code})")
            client.close()
        self._poll.unregister(held.ended)
        os.close(held.ended)
        self._dismissed.remove(held)


def _asked_for(client: socket.socket) -> Wanted | None:
    """What a client wants to have loaded; None when it only asks, or is gone."""
    if (came := receive(client)) is None:
        return None
    packet, files = came
    try:
        text = text_to_open(packet)
        if files:
            array, *images = text.split("\0")
            return configured(array, files[0], images)
        return Built(Path(text)) if text else None
    finally:
        discard(files)


def _is_ours(client: socket.socket) -> bool:
    """Whether a client belongs to the same user: names of the abstract namespace are open to all."""
    peer = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return struct.unpack("iII", peer)[1] == os.getuid()
