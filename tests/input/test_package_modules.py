"""Modules of the package that stand alone: numbers in files, questions to tools, kernels' requests, foreign endings."""

import re
import struct
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bdforge
from bdforge.common import compilers, pictures, tree, watched
from bdforge.common.binary import ImageError, piece, unpack, word
from bdforge.common.compilers import query
from bdforge.common.messages import Fault
from bdforge.common.pictures import drawing, new_picture, save_figure
from bdforge.core import python_kernel as kernel
from bdforge.core.python_kernel import acquire, acquire_equal, get_cascade, get_stream, put_cascade, put_stream, release
from support.differences import same

DATA = bytes(range(1, 11))
NUMBERS: dict[str, tuple[Any, tuple, Any]] = {
    "the first word": (word, (DATA, 0, "magic"), 0x04030201),
    "the last word": (word, (DATA, 6, "magic"), 0x0A090807),
    "a word and a byte short": (word, (DATA, 7, "magic"), "magic at 0x7 needs 4 bytes, but the data has 0xa"),
    "a word before": (word, (DATA, -1, "magic"), "magic at -0x1 needs 4 bytes"),
    "a word of nothing": (word, (b"", 0, "magic"), "magic at 0x0 needs 4 bytes, but the data has 0x0"),
    "no bytes at the end": (unpack, (DATA, "<", 10, "end"), ()),
    "no bytes behind it": (unpack, (DATA, "<", 11, "end"), "end at 0xb needs 0 bytes, but the data has 0xa"),
    "three numbers": (unpack, (DATA, "<BHB", 6, "head"), (7, 0x0908, 10)),
    "a part": (piece, (DATA, 2, 3, "name"), b"\3\4\5"),
    "all": (piece, (DATA, 0, 10, "name"), DATA),
    "the last byte": (piece, (DATA, 9, 1, "name"), b"\n"),
    "nothing at the end": (piece, (DATA, 10, 0, "name"), b""),
    "a byte too many": (piece, (DATA, 9, 2, "name"), "name at 0x9 has 0x2 bytes, but the data ends at 0xa"),
    "a part before": (piece, (DATA, -1, 1, "name"), "name at -0x1 has 0x1 bytes"),
    "a part of less than nothing": (piece, (DATA, 5, -1, "name"), "name at 0x5 has -0x1 bytes"),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_numbers_are_read_up_to_the_datas_last_byte(case: str):
    read, given, expected = NUMBERS[case]
    if not isinstance(expected, str):
        assert read(*given) == expected
        return
    with pytest.raises(ImageError, match=f"^{expected}"):
        pytest.fail(f"{case}: {read(*given)}")


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        (["sh", "-c", "echo out; echo err >&2; exit 3"], (3, "out\nerr\n")), (["sh", "-c", "cat"], (0, "")),
        (["sh", "-c", r"printf 'a\377'"], (0, "a�")), (["sh", "-c", "kill -9 $$"], (-9, "")),
    ],
)  # fmt: skip
def test_a_tool_answers_with_its_code_and_all_that_it_says(command: list, answer: tuple[int, str]):
    assert query(command) == answer


def test_a_tool_that_does_not_start_or_answer_is_not_there(monkeypatch):
    code, text = query([Path("/no/such/tool")])
    assert (code, "No such file" in text) == (127, True)
    asked = []

    def slow(words: list[str], **options: Any) -> None:
        asked.append((words, options["timeout"]))
        raise subprocess.TimeoutExpired(words, options["timeout"])

    monkeypatch.setattr(compilers.subprocess, "run", slow)
    assert query(["cc", Path("--version")]) == (127, "Command '['cc', '--version']' timed out after 30 seconds")
    assert asked == [(["cc", "--version"], 30)]


CPUINFO = "processor : 0\nmodel name : Zen\nflags : avx2\n\nprocessor : 1\nmodel name : Zen\nflags : avx2\nMHz : 3\n"


def test_a_processor_is_known_by_its_architecture_name_and_features(monkeypatch, tmp_path: Path):
    file = tmp_path / "cpuinfo"
    monkeypatch.setattr(compilers, "Path", lambda _: file)
    monkeypatch.setattr(compilers.platform, "machine", lambda: "x86_64")
    assert compilers.processor() == "x86_64"
    file.write_text(CPUINFO + "Features : fp\nCPU part : 0xd0c\n")
    assert compilers.processor().split("\n") == [
        "x86_64", "model name : Zen", "flags : avx2", "Features : fp", "CPU part : 0xd0c",
    ]  # fmt: skip


REQUESTS = [
    (acquire(3), kernel.AcquireLock(3, 1, False)), (acquire(3, 2), kernel.AcquireLock(3, 2, False)),
    (acquire_equal(63, 0), kernel.AcquireLock(63, 0, True)), (release(0), kernel.ReleaseLock(0, 1)),
    (release(0, -1), kernel.ReleaseLock(0, -1)), (get_cascade(), kernel.GetCascade(np.dtype(np.int32))),
    (get_cascade(np.int8), kernel.GetCascade(np.dtype(np.int8))), (put_cascade(b"ab"), kernel.PutCascade(b"ab")),
    (put_cascade(np.array([[1, 2], [3, 4]], np.int16).T), kernel.PutCascade(struct.pack("<4h", 1, 3, 2, 4))),
    (get_stream(), kernel.GetStream(0, np.dtype(np.int32), True)),
    (get_stream(1, np.float32), kernel.GetStream(1, np.dtype(np.float32), True)),
    (put_stream(1, 5), kernel.PutStream(1, b"\5\0\0\0", False, True)),
    (put_stream(0, -1, True), kernel.PutStream(0, b"\xff" * 4, True, True)),
    (put_stream(0, -(1 << 31)), kernel.PutStream(0, b"\0\0\0\x80", False)),
    (put_stream(0, (1 << 32) - 1), kernel.PutStream(0, b"\xff" * 4, False)),
    (put_stream(0, 1.5), kernel.PutStream(0, struct.pack("<f", 1.5), False)),
    (put_stream(0, np.float64(1.5)), kernel.PutStream(0, struct.pack("<f", 1.5), False)),
    (put_stream(0, np.float32(1.5)), kernel.PutStream(0, struct.pack("<f", 1.5), False)),
    (put_stream(0, np.int16(-2)), kernel.PutStream(0, struct.pack("<i", -2), False)),
    (put_stream(0, np.uint32(1 << 31)), kernel.PutStream(0, struct.pack("<I", 1 << 31), False)),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "request_"), REQUESTS)
def test_a_kernel_asks_for_what_it_says(asked: kernel.Request, request_: kernel.Request):
    assert asked == request_


@pytest.mark.parametrize("value", [-(1 << 31) - 1, 1 << 32, np.int64(1 << 40), "5", None])
def test_what_is_no_word_of_32_bits_is_not_sent(value: Any):
    with pytest.raises(ValueError, match=rf"{re.escape(repr(value))} is no word of 32 bits"):
        put_stream(0, value)


ENDINGS = [
    (b"\1", "k.so on core (0, 2)", 0, "k.so on core (0, 2): it ended the process (exit(0)); it has to return"),
    (b"\1", "k.so", 3, "k.so: it ended the process (exit(3)); it has to return"),
    (b"\1", "k.so", -9, "k.so: it ended the process (SIGKILL: Killed); it has to return"),
    (b"\0", "k.so", 0, ""),
    (b"\0", "k.so", 3, ""),
    (b"\0", "k.so", -11, "the process ended (SIGSEGV: Segmentation fault), after k.so, which may have written beyond"),
    (b"\0", "", -6, "the process ended (SIGABRT: Aborted)"),
]


@pytest.mark.parametrize(("state", "last", "code", "told"), ENDINGS)
def test_an_ending_is_told_by_what_ran_and_how_it_ended(state: bytes, last: str, code: int, told: str):
    note: Any = bytearray(state + watched.note_of(last))
    assert len(note) == 512
    found = watched.WatchedChild(1, note).ending(code)
    assert found == told or (told and found == f"{told} its arguments")


@pytest.mark.parametrize(("text", "kept"), [("x" * 511, 511), ("x" * 512, 511), ("é" * 300, 511), ("", 0)])
def test_a_note_has_room_for_511_bytes(text: str, kept: int):
    note = watched.note_of(text)
    assert (len(note), len(note.rstrip(b"\0"))) == (511, kept)


def test_foreign_code_is_noted_while_it_runs(monkeypatch):
    note = bytearray(512)
    monkeypatch.setattr(watched._Watch, "note", note)
    seen = []
    with pytest.raises(KeyError), watched.running("mine"):
        raise KeyError(seen.append((note[0], note[1:].rstrip(b"\0"))))
    assert seen == [(1, b"mine")]
    assert (note[0], note[1:].rstrip(b"\0")) == (0, b"mine"), "which ran last stays there"
    monkeypatch.setattr(watched._Watch, "note", None)
    with watched.running("nobody watches"):
        assert note[0] == 0


@pytest.mark.parametrize(("code", "left"), [("None", 0), ("0", 0), ("7", 7), ("'a sentence'", 1)])
def test_a_part_leaves_with_its_code(monkeypatch, code: str, left: int):
    ends: list[int] = []
    monkeypatch.setattr(watched.os, "_exit", ends.append)
    watched._leave(eval(code))
    assert ends == [left]


def test_a_command_alone_goes_on_in_a_child(monkeypatch):
    """Programs that call bdforge stay one process, as does what is a child already."""
    monkeypatch.setattr(watched, "parted", lambda: pytest.fail("it parted"))
    watched.part()
    seen = []
    assert watched.as_command(lambda: seen.append(watched._Watch.command) or 5) == 5
    assert (seen, watched._Watch.command) == ([True], False)
    with pytest.raises(KeyError):
        watched.as_command(lambda: {}[3])
    assert not watched._Watch.command
    monkeypatch.setattr(watched._Watch, "note", bytearray(512))
    assert watched.as_command(lambda: watched.part()) is None


def test_what_was_raised_is_told_with_its_line():
    def failing(error: BaseException) -> BaseException:
        try:
            raise error
        except BaseException as caught:
            return caught

    line = rf" \({Path(__file__).name}:\d+\)"
    for error, told in (
        (Fault("as it is"), "as it is"), (KeyError(3), f"KeyError: 3{line}"),
        (AssertionError(), f"AssertionError{line}"),
        (SystemExit(), rf"it called exit\(\){line}; it has to return"),
        (SystemExit(0), rf"it called exit\(0\){line}; it has to return"),
        (SystemExit("bye"), rf"it called exit\('bye'\){line}; it has to return"),
    ):  # fmt: skip
        assert re.fullmatch(told, watched.described(failing(error))), told
    assert watched.described(ValueError("never raised")) == "ValueError: never raised"


def test_the_tree_is_the_checkout_or_what_a_wheel_brought(monkeypatch, tmp_path: Path):
    monkeypatch.setattr(tree, "PACKAGE", tmp_path / "bdforge")
    assert tree.tree() == tmp_path
    (tmp_path / "bdforge/share").mkdir(parents=True)
    assert tree.tree() == tmp_path / "bdforge/share"


@pytest.mark.parametrize("quiet", [False, True])
def test_scons_runs_by_the_rules_of_the_tree(monkeypatch, quiet: bool):
    asked: list[Any] = []
    done = SimpleNamespace(returncode=3, stdout="said" if quiet else None)
    monkeypatch.setattr(tree.subprocess, "run", lambda words, **how: asked.append((words, how)) or done)
    assert tree.scons("design=a", "host", quiet=quiet) == (3, "said" if quiet else "")
    ((words, how),) = asked
    assert (words, how["cwd"]) == ([sys.executable, "-m", "SCons", "-Q", "design=a", "host"], tree.tree())
    kept = tree.subprocess.PIPE if quiet else None
    assert (how["stdout"], how["stderr"]) == (kept, tree.subprocess.STDOUT if quiet else None)


def test_the_package_offers_four_names_and_no_other():
    assert sorted(bdforge.__all__) == ["Result", "__version__", "einsum", "emulate", "load"]
    assert {*bdforge.__all__, "__doc__"} <= {*dir(bdforge)}
    homes = {name: getattr(bdforge, name).__module__.split(".")[1] for name in bdforge.__all__ if name[0] != "_"}
    assert homes == {"Result": "array", "einsum": "models", "emulate": "array", "load": "runtime"}
    with pytest.raises(AttributeError, match="module 'bdforge' has no attribute 'run'"):
        bdforge.run  # noqa: B018


class Picture:
    """A figure that writes down how it is saved."""

    def savefig(self, file: Any, **options: Any) -> None:
        file.write(repr(options).encode())


def test_pictures_are_png_or_svg_and_the_same_every_time(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(pictures, "fonts", nullcontext)  # matplotlib's, which takes its time
    for name, metadata in (("a.png", None), ("a.svg", {"Date": None})):
        assert new_picture(tmp_path / name, False, Fault) == tmp_path / name  # type: ignore[arg-type]
        save_figure(Picture(), tmp_path / name, Fault, dpi=9)  # type: ignore[arg-type]
        same((tmp_path / name).read_text(), repr({"format": name[2:], "metadata": metadata, "dpi": 9}), name)
        with pytest.raises(ValueError, match=f"{name} exists; choose another file"):
            new_picture(tmp_path / name, False, Fault)  # type: ignore[arg-type]
        assert new_picture(tmp_path / name, True, Fault)  # type: ignore[arg-type]
    for name in ("a.jpg", "png", "a.PNG"):
        with pytest.raises(Fault, match=rf"{name}: pictures are written as \.png or \.svg; choose such a name"):
            new_picture(tmp_path / name, False, Fault)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(Fault, match="pictures need matplotlib"):  # before anything is computed for one
        new_picture(tmp_path / "b.png", False, Fault)  # type: ignore[arg-type]
    with pytest.raises(Fault, match=r"pictures need matplotlib, which is not installed; pip install"), drawing(Fault):  # type: ignore[arg-type]
        import matplotlib  # noqa: F401
