"""Files are read within bounds and written whole or not at all; what is wrong is one sentence with the path."""

import subprocess
import sys
from pathlib import Path

import pytest

from bdforge.files import (
    SETTINGS_BYTES_MAX,
    FileError,
    new_file,
    read_bytes,
    read_json,
    read_text,
    read_toml,
    write_whole,
)


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


def test_an_endless_file_is_not_read_to_its_end():
    with pytest.raises(FileError, match="/dev/zero: cannot be read: more than 1000 bytes"):
        read_bytes("/dev/zero", most=1000)


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


FILLS_UP = """
import resource, sys
from bdforge.files import FileError, write_whole
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
