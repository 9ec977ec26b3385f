"""A process that has one design on the array, and copies itself for each client."""

import gc
import os
import select
import signal
import socket
from contextlib import suppress
from dataclasses import dataclass

from bdforge.array.emulator import EmulationError
from bdforge.array.emulator.resident_design import Resident
from bdforge.common.messages import Fault
from bdforge.common.watched import WatchedChild, parted
from bdforge.runtime.built_design import BuildError
from bdforge.runtime.service.client_runner import ClientRunner, Tell, own_fault
from bdforge.runtime.service.origin import Wanted
from bdforge.runtime.service.wire import Status, receive, say


def hold(channel: socket.socket, wanted: Wanted, tell: Tell) -> None:
    """Load the design and say so on `channel`; then serve the clients that come over it, until it and they end."""
    try:
        resident = wanted.load()
    except BuildError as error:
        say(channel, Status.BAD_INPUT, error)
    except (EmulationError, Fault) as error:
        say(channel, Status.FAULT, f"{wanted}: {error}")
    except MemoryError:
        say(channel, Status.FAULT, f"{wanted}: memory is used up; end other programs")
    except Exception as error:
        say(channel, Status.FAULT, own_fault(error))
    else:
        gc.collect()
        gc.freeze()  # copies share what nobody touches
        say(channel, Status.DONE)
        Holder(channel, resident, tell).keep()


@dataclass(frozen=True)
class _Client:
    connection: socket.socket
    runner: WatchedChild
    ended: int  # readable when the runner has ended

    def close(self) -> None:
        self.connection.close()
        os.close(self.ended)


class Holder:
    """Starts a runner for each client, ends it when the client is gone, and tells the client when it ends by itself."""

    def __init__(self, channel: socket.socket, resident: Resident, tell: Tell):
        self._channel, self._resident, self._tell = channel, resident, tell
        self._poll = select.poll()
        self._poll.register(channel, select.POLLIN)
        self._clients: dict[int, _Client] = {}  # by both files that are watched

    def keep(self) -> None:
        """Until the server sends no more clients and the last one is gone."""
        while self._channel.fileno() >= 0 or self._clients:
            file = self._poll.poll()[0][0]  # one at a time: what is done for it may close others
            if file == self._channel.fileno():
                self._admit()
            elif file == (client := self._clients[file]).ended:
                self._bury(client)
            else:
                self._hung_up(client)

    def _admit(self) -> None:
        came = receive(self._channel)
        if came is None:
            self._poll.unregister(self._channel)
            self._channel.close()
            return
        for file in came[1]:
            self._start(socket.socket(fileno=file))

    def _start(self, connection: socket.socket) -> None:
        runner = parted()
        if runner is None:
            self._run(connection)
            os._exit(0)
        client = _Client(connection, runner, os.pidfd_open(runner.pid))
        self._poll.register(connection, select.POLLRDHUP)
        self._poll.register(client.ended, select.POLLIN)
        self._clients |= {connection.fileno(): client, client.ended: client}

    def _run(self, connection: socket.socket) -> None:
        """The copy's life."""
        self._channel.close()
        for client in {id(c): c for c in self._clients.values()}.values():
            client.close()
        say(connection, Status.DONE)
        ClientRunner(self._resident, self._tell).serve(connection)

    def _hung_up(self, client: _Client) -> None:
        self._poll.unregister(client.connection)
        with suppress(ProcessLookupError):
            os.kill(client.runner.pid, signal.SIGKILL)

    def _bury(self, client: _Client) -> None:
        code = os.waitstatus_to_exitcode(os.waitpid(client.runner.pid, 0)[1])
        if ending := client.runner.ending(code):
            say(client.connection, Status.FAULT, ending)
        for file in (client.connection.fileno(), client.ended):
            del self._clients[file]
            with suppress(KeyError):
                self._poll.unregister(file)
        client.close()
