"""`bdforge device`: the emulated array as a device for other programs."""

import os
import socket
import subprocess
from typing import Annotated

import typer

from bdforge.files import FileError
from bdforge.messages import path_word
from bdforge.runtime.service import SOCKET_VARIABLE, serve, serving
from bdforge.screen import say

app = typer.Typer()


@app.command(name="device", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def device_command(
    command: Annotated[
        list[str] | None, typer.Argument(help="A program and its arguments, behind --.", metavar="-- COMMAND...")
    ] = None,
    serve_file: Annotated[
        int | None, typer.Option("--serve", help="Serve what comes over this inherited socket; for programs.")
    ] = None,
) -> None:
    """Run a program beside a server of the emulated array, which its `emulated` devices then share."""
    if (serve_file is None) == (not command):
        raise typer.BadParameter("give a program to run: bdforge device -- COMMAND...")
    if serve_file is not None:
        return _serve(serve_file)
    with serving() as name:
        raise typer.Exit(_run(command or [], os.environ | {SOCKET_VARIABLE: name}))


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
        raise FileError(f"{path_word(command[0])}: cannot be run: {error.strerror}") from None
    while True:
        try:
            code = program.wait()
            return code if code >= 0 else 128 - code
        except KeyboardInterrupt:
            continue
