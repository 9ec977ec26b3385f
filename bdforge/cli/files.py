"""Files that commands read and write."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class FileError(ValueError):
    """A file that cannot be read or written, or that must not be overwritten."""


@contextmanager
def named(path: Path, what: str) -> Iterator[None]:
    """FileError with the path for what the system says while `what` ("read", "written") is done to it."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{path}: cannot be {what}: {error.strerror or error}") from None


def read_text(path: Path) -> str:
    """Text of a file; FileError when it cannot be read."""
    try:
        with named(path, "read"):
            return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise FileError(f"{path}: cannot be read: not UTF-8 text") from None


def read_bytes(path: Path) -> bytes:
    """Bytes of a file; FileError when it cannot be read."""
    with named(path, "read"):
        return path.read_bytes()


def new_file(path: Path) -> Path:
    """`path` if a new file can be made there; FileError otherwise."""
    if path.exists():
        raise FileError(f"{path} exists; choose another file or remove it")
    if not path.parent.is_dir():
        raise FileError(f"{path}: there is no folder {path.parent}")
    return path
