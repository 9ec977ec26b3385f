"""Programs of Python in forks of one process that has imported what they need: that takes each of them a second.

Output, exit codes, folders, environments and arguments are those of processes of their own.
"""

import atexit
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, NoReturn

SECONDS = 600  # against a hang only: a build of the whole library takes minutes on a slow machine
SCONS, BDFORGE = "SCons.Script:main", "bdforge.cli:main"


class Forks:
    """Forks of a process that has imported `modules`, those that are below `home` from there. It ends with this
    process.
    """

    def __init__(self, modules: Sequence[str], home: Path | None = None) -> None:
        self._folder = TemporaryDirectory(prefix="forks")
        self.address = f"{self._folder.name}/socket"
        words = [sys.executable, "-B", __file__, self.address, ",".join(modules), str(home or "")]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"
        atexit.register(self._end)

    def _end(self) -> None:
        self._process.communicate()
        self._folder.cleanup()

    def run(
        self, entry: str, *words: str, cwd: Path, environ: Mapping[str, str], device: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs `module:function` with arguments, the program's name first; output to `device` is not kept."""
        with open(os.devnull) as nothing, TemporaryFile() as kept, TemporaryFile() as err:
            with open(device or os.devnull, "wb") as lost:
                files = [nothing.fileno(), (lost if device else kept).fileno(), err.fileno()]
                code = ask(self.address, entry, words, str(cwd), environ, files)
            return subprocess.CompletedProcess(words, code, *(_whole(file) for file in (kept, err)))

    def program(self, path: Path, entry: str) -> None:
        """Writes an executable, for shells, that runs `module:function`."""
        path.write_text(
            f"#!{sys.executable} -IS\nimport os, sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n"
            f"from forked import ask\n"
            f"sys.exit(ask({self.address!r}, {entry!r}, sys.argv, os.getcwd(), os.environ, (0, 1, 2)))\n"
        )
        path.chmod(0o755)


@cache
def forks_of_programs() -> Forks:
    """Of `bdforge`, with what all its commands import, and `scons`: for all tests of this process."""
    from bdforge.cli.commands import HOMES  # not by programs that only ask

    return Forks(
        ["SCons.Script", "bdforge.cli.commands", *(f"bdforge.cli.{home}" for home in sorted({*HOMES.values()}))]
    )


def _whole(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def ask(
    address: str, entry: str, words: Sequence[str], folder: str, environ: Mapping[str, str], files: Sequence[int]
) -> int:
    """The exit code of an entry in a fork of the process at `address`; `files` are its standard streams."""
    with socket.socket(socket.AF_UNIX) as server:
        server.settimeout(SECONDS)
        server.connect(address)
        socket.send_fds(server, [b"."], files)
        server.sendall(json.dumps([entry, [*words], folder, dict(environ)]).encode() + b"\n")
        return int(server.makefile().readline())


def _serve(address: str, modules: Sequence[str], home: str) -> None:
    sys.path[0] = home or sys.path[0]
    for module in modules:
        import_module(module)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        print("ready", flush=True)
        while listener in select.select([listener, 0], [], [])[0]:  # else standard input has ended
            connection = listener.accept()[0]
            if not os.fork():
                _answer(connection)
            connection.close()
            with suppress(ChildProcessError):
                os.waitpid(-1, os.WNOHANG)


def _answer(connection: socket.socket) -> NoReturn:
    """Runs what is asked in a child, and says how it ended, also by a signal."""
    files = socket.recv_fds(connection, 1, 3)[1]
    asked = json.loads(connection.makefile().readline())
    if child := os.fork():
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with suppress(OSError):  # who asked has ended
            connection.sendall(f"{code}\n".encode())
        os._exit(0)
    connection.close()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    _run(*asked)


def _run(entry: str, words: list[str], folder: str, environ: dict[str, str]) -> NoReturn:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv, sys.path[0] = words, folder
    if scons := sys.modules.get("SCons.Script.SConscript"):
        scons.launch_dir = folder  # type: ignore[attr-defined]
    module, _, function = entry.partition(":")
    sys.exit(getattr(import_module(module), function)())


if __name__ == "__main__":
    _serve(sys.argv[1], sys.argv[2].split(","), sys.argv[3])
