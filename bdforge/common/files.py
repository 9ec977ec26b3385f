"""Files that users name: read within bounds, written whole or not at all, and one sentence about whatever is wrong.

Readers take the exception type that their package raises. Text may begin with a byte order mark, which is dropped.
"""

import csv
import errno
import io
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import get_ident
from typing import Any, BinaryIO

from bdforge.common.messages import InputError, clip_path

TEXT_BYTES_MAX = 64 << 20
"""Of a text that is read: the largest designs that routing and planning write have some MiB."""
FILE_BYTES_MAX = 256 << 20
"""Of any file that is read at once, such as an image; weights are mapped instead."""
SETTINGS_BYTES_MAX = 1 << 20
"""Of a file of settings that people write, such as a design spec."""
KEY_PARTS_MAX = 64
"""Of a dotted key in TOML: the parser keeps every beginning of one."""
_KEY_PART = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*"""
_DOTTED = re.compile(rf"(?<![\w-])(?:{_KEY_PART}){{{KEY_PARTS_MAX}}}")
_OWN_PIPES = ("/dev/fd/", "/proc/self/fd/", "/dev/stdin")
"""Pipes that whoever started this process has given it."""


class FileError(InputError):
    """A file that cannot be read or written, or that must not be overwritten."""


@contextmanager
def named(path: Path | str, what: str, error: type[Exception] = FileError) -> Iterator[None]:
    """`error` with the path for what the system says while `what` ("read", "written") is done to it."""
    try:
        yield
    except OSError as fault:
        raise error(f"{clip_path(path)}: cannot be {what}: {fault.strerror or fault}") from None


@contextmanager
def alone(folder: Path, error: type[Exception] = FileError) -> Iterator[None]:
    """One process, and one of its threads, at a time in a folder, which is made; `error` where it cannot be."""
    import fcntl  # which the Python of browsers lacks

    with named(folder, "written", error):
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


@contextmanager
def opened(path: Path | str, error: type[InputError] = FileError) -> Iterator[BinaryIO]:
    """A file to read; `error` when it cannot be, and for what may have no end or nobody who writes: devices, pipes."""
    with named(path, "read", error):
        mode = os.stat(path).st_mode
        own = str(path).startswith(_OWN_PIPES) and stat.S_ISFIFO(mode)
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or own):
            kind = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
            raise error(f"{clip_path(path)}: cannot be read: it is {kind}; give a file")
        with Path(path).open("rb") as file:
            yield file


def read_bytes(path: Path | str, error: type[InputError] = FileError, most: int = FILE_BYTES_MAX) -> bytes:
    """Bytes of a file; `error` when it cannot be read (see `opened`) or holds more than `most` bytes."""
    with opened(path, error) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise error(f"{clip_path(path)}: cannot be read: more than {most} bytes, the limit for such files")
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
            f"{clip_path(path)}: cannot be read: not UTF-8 text (byte {content[fault.start]:#04x} in line {line})"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_toml(path: Path | str, error: type[InputError] = FileError) -> dict[str, Any]:
    """The content of a TOML file of at most SETTINGS_BYTES_MAX; `error` for anything that is none."""
    return parsed_toml(read_text(path, error, SETTINGS_BYTES_MAX), path, error)


def parsed_toml(text: str, path: Path | str, error: type[InputError] = FileError) -> dict[str, Any]:
    """The content of a TOML text, which messages name `path`; `error` for anything that is none."""
    if deep := _DOTTED.search(text):
        line = text.count("\n", 0, deep.start()) + 1
        raise error(f"{clip_path(path)}: is no TOML to use: a key of more than {KEY_PARTS_MAX} parts in line {line}")
    with _parsing(path, "TOML", error):
        return tomllib.loads(text)


def read_json(path: Path | str, error: type[InputError] = FileError) -> Any:
    """The content of a JSON file of at most TEXT_BYTES_MAX; `error` for anything that is none."""
    text = read_text(path, error)
    with _parsing(path, "JSON", error):
        return json.loads(text)


def read_csv(path: Path) -> list[dict[str, str]]:
    """Rows of one of this package's own tables, by column."""
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Rows as CSV, the names of the columns first."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


@contextmanager
def _parsing(path: Path | str, what: str, error: type[InputError]) -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise error(f"{clip_path(path)}: is no {what} to use: its brackets are nested hundreds deep") from None
    except ValueError as fault:  # tomllib and json raise kinds of it, int() does for numbers of thousands of digits
        reason = str(fault).partition("; use sys.set_int_max_str_digits")[0]
        raise error(f"{clip_path(path)}: is no {what} to use: {reason}") from None


def new_file(path: Path, force: bool = False, error: type[InputError] = FileError) -> Path:
    """`path` if a file can be made there, which with `force` may replace one; `error` otherwise."""
    with named(path, "written", error):
        mode = _mode(path)
        if mode is not None and stat.S_ISDIR(mode):
            raise error(f"{clip_path(path)} is a folder; name a file in it")
        if mode is not None and stat.S_ISREG(mode) and not force:
            raise error(f"{clip_path(path)} exists; choose another file, or replace it with --force")
        target = Path(os.path.realpath(path)) if path.is_symlink() else path  # a link stays one
        if not target.parent.is_dir():
            raise error(f"{clip_path(path)}: there is no folder {clip_path(target.parent)}")
        if not os.access(target.parent if mode is None or stat.S_ISREG(mode) else target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return path


def _mode(path: Path) -> int | None:
    """What kind of file is there, None for none; OSError for a path that cannot be one."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


@contextmanager
def whole(path: Path | str, error: type[InputError] = FileError) -> Iterator[BinaryIO]:
    """A file to write that appears whole or not at all; `error` when that fails.

    Devices are written to at once, and pipes that somebody reads.
    """
    path = Path(path)
    with named(path, "written", error):
        mode = _mode(path)
        if mode is not None and not stat.S_ISREG(mode):
            with _without_waiting(path) as file:
                yield file
            return
        target = Path(os.path.realpath(path))  # a link stays one
        part = target.with_name(f".{target.name[:200]}.{os.getpid()}-{get_ident()}.part")
        try:
            with part.open("wb") as file:
                yield file
            part.replace(target)
        finally:
            with suppress(OSError):  # the fault that led here says more
                part.unlink(missing_ok=True)


def _without_waiting(path: Path) -> BinaryIO:
    """A device or pipe to write to; OSError for a pipe that nobody reads."""
    descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)
    return open(descriptor, "wb")


def write_whole(path: Path | str, content: str | bytes, error: type[InputError] = FileError) -> None:
    """Write a file whole or not at all; `error` when that fails."""
    with whole(path, error) as file:
        file.write(content.encode() if isinstance(content, str) else content)
