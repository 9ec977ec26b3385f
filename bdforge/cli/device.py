"""`bdforge device`: the emulated array as an NPU for other programs."""

import os
import secrets
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from bdforge.cli.options import DEFAULT_PRODUCT, completing, number
from bdforge.common.files import FileError
from bdforge.common.messages import clip_path
from bdforge.common.screen import say
from bdforge.devices import DEVICES, device_named
from bdforge.runtime.service import serve, serving
from bdforge.runtime.service.software_npu import preload_library, shown

app = typer.Typer()


@app.command(name="device", context_settings={"allow_interspersed_args": False})
def device_command(
    command: Annotated[
        list[str] | None, typer.Argument(help="A program and its arguments, behind --.", metavar="-- COMMAND...")
    ] = None,
    device: Annotated[
        str, typer.Option(help=f"The NPU that XRT finds: {', '.join(DEVICES)}.", autocompletion=completing(DEVICES))
    ] = DEFAULT_PRODUCT,
    log: Annotated[
        Path | None,
        typer.Option(help="File for what goes wrong on the device; a new one in the folder for such files."),
    ] = None,
    trace: Annotated[
        bool, typer.Option("--verbose", help="Write what programs ask of the device to the log, too.")
    ] = False,
    serve_file: Annotated[
        int | None,
        number("Serve what comes over this inherited socket; for programs.", "--serve", most=(1 << 31) - 1),
    ] = None,
) -> None:
    """Run a program on an NPU that is not there: XRT finds it, unmodified, and its contexts are emulated arrays.

    The `emulated` devices of hosts in C++ share its server.
    """
    if (serve_file is None) == (not command):
        raise typer.BadParameter("give a program to run: bdforge device -- COMMAND...")
    if serve_file is not None:
        return _serve(serve_file)
    product, library = device_named(device), preload_library()
    log = log or Path(tempfile.gettempdir(), f"bdforge-device-{secrets.token_hex(4)}.log")
    with serving() as name, shown(product, name, log, library, trace=trace) as variables:
        raise typer.Exit(_run(command or [], os.environ | variables))


def _serve(file: int) -> None:
    try:
        control = socket.socket(fileno=file)
    except OSError as error:
        raise typer.BadParameter(f"file {file} is no socket: {error.strerror}") from None
    serve(control, lambda warning: say(f"bdforge: warning: {warning}", err=True))


def _run(command: list[str], environ: dict[str, str]) -> int:
    """The program's exit code, 128 + n when signal n ended it; Ctrl-C is the program's affair."""
    try:
        program = subprocess.Popen(command, env=environ)
    except OSError as error:
        raise FileError(f"{clip_path(command[0])}: cannot be run: {error.strerror}") from None
    while True:
        try:
            code = program.wait()
            return code if code >= 0 else 128 - code
        except KeyboardInterrupt:
            continue
