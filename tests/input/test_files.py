"""Files are read within bounds and written whole or not at all; what is wrong is one sentence with the path."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bdforge.array.emulator.cores.core import frames_of
from bdforge.array.images.image_build import program_of
from bdforge.common import files
from bdforge.common.array_files import load_arrays
from bdforge.common.files import (
    SETTINGS_BYTES_MAX,
    FileError,
    new_file,
    read_bytes,
    read_json,
    read_text,
    read_toml,
    whole,
    write_whole,
)
from bdforge.common.messages import Fault
from bdforge.devices import device_named
from bdforge.models import weights


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "given"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("a = " + "9" * 5001, r"4300 digits"),
        ("a = " + "[" * 20_000, "nested hundreds deep"),
        ("a = [", r"at end of document"),
        ("a = 1\na = 2\n", r"line 2"),
        ('a = "\x1b"', r"line 1"),
        (b"a = 1\nb = '\xff'", r"not UTF-8 text \(byte 0xff in line 2\)"),
        ("#" * (SETTINGS_BYTES_MAX + 1), rf"more than {SETTINGS_BYTES_MAX} bytes"),
    ],
)
def test_hostile_toml_is_refused_in_a_sentence(tmp_path, content, reason):
    with pytest.raises(FileError, match=reason) as caught:
        read_toml(written(tmp_path, content))
    assert str(caught.value).startswith(f"{tmp_path / 'given'}: ")
    assert "sys." not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[" * 100_000, "nested hundreds deep"),
        ('{"a":' * 100_000, "nested hundreds deep"),
        ("9" * 5001, "4300 digits"),
        ("", "Expecting value"),
        ("{}{}", "Extra data"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_hostile_json_is_refused_in_a_sentence(tmp_path, content, reason):
    with pytest.raises(FileError, match=reason):
        read_json(written(tmp_path, content))


def test_a_byte_order_mark_and_foreign_newlines_are_no_matter(tmp_path):
    assert read_toml(written(tmp_path, b"\xef\xbb\xbfa = 1\r\nb = 2\r\n")) == {"a": 1, "b": 2}
    assert read_text(written(tmp_path, b"\xef\xbb\xbfa\r\nb\rc\n")) == "a\nb\nc\n"
    assert read_json(written(tmp_path, b"\xef\xbb\xbf[1]")) == [1]


@pytest.mark.parametrize("most", [0, 1, 5])
def test_a_file_of_the_limit_is_read_and_a_byte_more_is_refused(tmp_path, most):
    assert read_bytes(written(tmp_path, "x" * most), most=most) == b"x" * most
    assert read_text(written(tmp_path, "x" * most), most=most) == "x" * most
    assert read_bytes(written(tmp_path, "x" * 99)) == b"x" * 99
    path = written(tmp_path, "x" * (most + 1))
    for read in (read_bytes, read_text):
        with pytest.raises(FileError, match=f"cannot be read: more than {most} bytes, the limit for such files"):
            read(path, most=most)


def test_settings_have_a_mib_and_other_texts_64(tmp_path):
    assert (SETTINGS_BYTES_MAX, files.TEXT_BYTES_MAX) == (1 << 20, 64 << 20)
    assert read_toml(written(tmp_path, "#" * SETTINGS_BYTES_MAX)) == {}
    assert read_json(written(tmp_path, "1" + " " * SETTINGS_BYTES_MAX)) == 1


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"\xff", "byte 0xff in line 1"), (b"a\n\x80", "byte 0x80 in line 2"), (b"a\n\n\xc3(", "byte 0xc3 in line 3")],
)
def test_the_byte_that_is_no_text_is_told_with_its_line(tmp_path, content: bytes, told: str):
    with pytest.raises(FileError, match=rf"cannot be read: not UTF-8 text \({told}\)"):
        read_text(written(tmp_path, content))


KINDS = "a device|a pipe|a socket|is a directory|symbolic links|not a regular"
READERS = {
    "bytes": read_bytes,
    "text": read_text,
    "toml": read_toml,
    "json": read_json,
    "npy": lambda p: load_arrays([p]),
    "weights": weights.tensors,
    "object": frames_of,
    "program": lambda p: program_of(p, device_named("strix_halo").generation),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("kind", ["zero", "pipe", "socket", "folder", "loop"])
def test_what_is_no_file_is_not_read(tmp_path, monkeypatch, kind: str, read):
    """A pipe has nobody who writes: opening it would wait for ever."""
    path = Path("/dev/zero") if kind == "zero" else Path(kind)
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    if kind == "pipe":
        os.mkfifo(path)
    if kind == "socket":
        socket.socket(socket.AF_UNIX).bind(kind)
    if kind == "folder":
        path.mkdir()
    if kind == "loop":
        path.symlink_to(path)
    with pytest.raises(Fault, match=rf"(?i)({KINDS})"):
        read(path)


def test_a_pipe_that_this_process_was_given_is_read():
    reading, writing = os.pipe()
    os.write(writing, b"module {}")
    os.close(writing)
    assert read_text(f"/dev/fd/{reading}") == "module {}"
    os.close(reading)


@pytest.mark.parametrize("text", [
    "a" + ".a" * 50_000 + " = 1", "[" + "a." * 50_000 + "a]", "x = 1\n" + ".".join(['"b c"'] * 65) + " = 2",
    "a . " * 64 + "a = 1",
])  # fmt: skip
def test_keys_of_many_parts_are_refused(tmp_path, text: str):
    """The parser keeps every beginning of a key: 50,000 parts took 8 GB."""
    with pytest.raises(FileError, match=r"a key of more than 64 parts in line [12]"):
        read_toml(written(tmp_path, text))
    found = read_toml(written(tmp_path, ".".join("a" * 64) + " = 1\n# " + "a" * 900_000))
    assert len(json.dumps(found)) == 64 * 6 + 64 + 1


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("kind", ["loop", "a folder's", "nowhere", "long", "read-only"])
def test_a_path_that_cannot_be_written_is_known_before(tmp_path, monkeypatch, kind: str, force: bool):
    path = tmp_path / ("x" * 300 if kind == "long" else "new")
    if kind == "loop":
        path.symlink_to(path)
    if kind == "a folder's":
        path.symlink_to(tmp_path)
    if kind == "nowhere":
        path.symlink_to(tmp_path / "no" / "file")
    if kind == "read-only":  # root may write everywhere
        monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(FileError, match=f"{path.name[:99]}.*(cannot be written|is a folder|there is no folder)"):
        new_file(path, force)


def test_a_pipe_is_written_to_where_somebody_reads(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(FileError, match="pipe: cannot be written: No such device or address"):
        write_whole(new_file(pipe), "x")
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(new_file(pipe), "x")
    assert os.read(reading, 9) == b"x"
    os.close(reading)


@pytest.mark.parametrize("name", ["missing", ".", "missing/deeper"])
def test_what_is_no_file_is_named(tmp_path, name):
    with pytest.raises(FileError, match=f"{tmp_path / name}: cannot be read: "):
        read_text(tmp_path / name)


def test_a_file_is_replaced_whole(tmp_path):
    path = written(tmp_path, "old")
    write_whole(path, "new")
    assert path.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["given"]


def test_a_link_stays_one(tmp_path):
    path = written(tmp_path, "old")
    link = tmp_path / "link"
    link.symlink_to(path)
    write_whole(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"


def test_a_device_is_written_to():
    with pytest.raises(FileError, match="/dev/full: cannot be written: No space left on device"):
        write_whole("/dev/full", "x")


def test_a_new_file_is_none_that_exists(tmp_path):
    with pytest.raises(FileError, match="exists; choose another"):
        new_file(written(tmp_path, ""))
    with pytest.raises(FileError, match="there is no folder"):
        new_file(tmp_path / "no" / "file")
    assert new_file(tmp_path / "given", force=True) == tmp_path / "given"
    assert new_file(tmp_path / "new") == tmp_path / "new"
    for force in (False, True):
        with pytest.raises(FileError, match="is a folder; name a file in it"):
            new_file(tmp_path, force)


@pytest.mark.parametrize("name", ["new", "x" * 255])
def test_what_fails_while_it_is_written_leaves_nothing(tmp_path, name: str):
    """The name may be as long as a file system allows: the part's is no longer."""
    with pytest.raises(KeyError), whole(tmp_path / name) as file:
        raise KeyError(file.write(b"half"))
    assert not list(tmp_path.iterdir())
    write_whole(tmp_path / name, "é")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(name, "é".encode())]
    write_whole(tmp_path / name, b"\xff")
    assert (tmp_path / name).read_bytes() == b"\xff"
    with pytest.raises(FileError, match=f"{tmp_path}/no/{name}: cannot be written: No such file or directory"):
        write_whole(tmp_path / "no" / name, "x")


FILLS_UP = """
import resource, sys
from bdforge.common.files import FileError, write_whole
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    write_whole(sys.argv[1], "x" * 100_000)
except FileError as error:
    print(error)
"""


def test_a_disk_that_fills_up_leaves_the_old_file_and_no_part(tmp_path):
    path = written(tmp_path, "old")
    done = subprocess.run([sys.executable, "-c", FILLS_UP, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == f"{path}: cannot be written: File too large\n"
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["given"]
