"""Files that users name: read within bounds, written whole or not at all, and one sentence about whatever is wrong.

Readers take the exception type that their package raises. Text may begin with a byte order mark, which is dropped.
"""

import json
import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import get_ident
from typing import Any, BinaryIO

from bdforge.messages import InputError, path_word

TEXT_BYTES_MAX = 64 << 20
"""Of a text that is read: the largest designs that routing and planning write have some MiB."""
SETTINGS_BYTES_MAX = 1 << 20
"""Of a file of settings that people write, such as a design spec."""


class FileError(InputError):
    """A file that cannot be read or written, or that must not be overwritten."""


@contextmanager
def named(path: Path | str, what: str, error: type[InputError] = FileError) -> Iterator[None]:
    """`error` with the path for what the system says while `what` ("read", "written") is done to it."""
    try:
        yield
    except OSError as fault:
        raise error(f"{path_word(path)}: cannot be {what}: {fault.strerror or fault}") from None


def read_bytes(path: Path | str, error: type[InputError] = FileError, most: int | None = None) -> bytes:
    """Bytes of a file; `error` when it cannot be read or holds more than `most` bytes."""
    with named(path, "read", error), Path(path).open("rb") as file:
        if most is None:
            return file.read()
        content = file.read(most + 1)
    if len(content) > most:
        raise error(f"{path_word(path)}: cannot be read: more than {most} bytes, the limit for such files")
    return content


def read_text(path: Path | str, error: type[InputError] = FileError, most: int = TEXT_BYTES_MAX) -> str:
    """Text of a file, newlines made plain; `error` when it cannot be read, is too long or not UTF-8."""
    return decoded(read_bytes(path, error, most), path, error)


def decoded(content: bytes, path: Path | str, error: type[InputError] = FileError) -> str:
    """Text of a file's bytes, newlines made plain; `error` with the path when they are not UTF-8."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = content.count(b"\n", 0, fault.start) + 1
        raise error(
            f"{path_word(path)}: cannot be read: not UTF-8 text (byte {content[fault.start]:#04x} in line {line})"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_toml(path: Path | str, error: type[InputError] = FileError) -> dict[str, Any]:
    """The content of a TOML file of at most SETTINGS_BYTES_MAX; `error` for anything that is none."""
    text = read_text(path, error, SETTINGS_BYTES_MAX)
    with _parsing(path, "TOML", error):
        return tomllib.loads(text)


def read_json(path: Path | str, error: type[InputError] = FileError) -> Any:
    """The content of a JSON file of at most TEXT_BYTES_MAX; `error` for anything that is none."""
    text = read_text(path, error)
    with _parsing(path, "JSON", error):
        return json.loads(text)


@contextmanager
def _parsing(path: Path | str, what: str, error: type[InputError]) -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise error(f"{path_word(path)}: is no {what} to use: its brackets are nested hundreds deep") from None
    except ValueError as fault:  # tomllib and json raise kinds of it, int() does for numbers of thousands of digits
        reason = str(fault).partition("; use sys.set_int_max_str_digits")[0]
        raise error(f"{path_word(path)}: is no {what} to use: {reason}") from None


def new_file(path: Path, force: bool = False) -> Path:
    """`path` if a file can be made there, which with `force` may replace one; FileError otherwise."""
    if path.is_dir():
        raise FileError(f"{path_word(path)} is a folder; name a file in it")
    if path.is_file() and not force:
        raise FileError(f"{path_word(path)} exists; choose another file, or replace it with --force")
    if not path.parent.is_dir():
        raise FileError(f"{path_word(path)}: there is no folder {path_word(path.parent)}")
    return path


@contextmanager
def whole(path: Path | str, error: type[InputError] = FileError) -> Iterator[BinaryIO]:
    """A file to write that appears whole or not at all; `error` when that fails. Devices are written to at once."""
    path = Path(path)
    with named(path, "written", error):
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
            return
        target = path.resolve()  # a link stays one
        part = target.with_name(f".{target.name[:200]}.{os.getpid()}-{get_ident()}.part")
        try:
            with part.open("wb") as file:
                yield file
            part.replace(target)
        finally:
            with suppress(OSError):  # the fault that led here says more
                part.unlink(missing_ok=True)


def write_whole(path: Path | str, content: str | bytes, error: type[InputError] = FileError) -> None:
    """Write a file whole or not at all; `error` when that fails."""
    with whole(path, error) as file:
        file.write(content.encode() if isinstance(content, str) else content)
