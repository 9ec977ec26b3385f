"""How the command line ends on what nobody should give it: one sentence and the documented exit code."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bdforge.cli.ending import ended
from input.command import ROOT, bdforge, message_of, refused, started
from support.small_designs import loopback
from support.weight_files import ternary, write_gguf_i2s

DESIGN = ROOT / "designs" / "gemm_i8_i2_bitnet.toml"


def given(folder: Path, content: str | bytes, name: str = "given") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


TOML = {
    "escapes": ('"\\u001b[31m" = 1\nkind = "gemm"', "unexpected key"),
    "keys": ('kind = "gemm"\n' + "".join(f"k{i} = 1\n" for i in range(40_000)), "and 39992 more"),
}


@pytest.mark.parametrize("name", TOML)
def test_hostile_specs_are_refused_in_a_sentence(tmp_path, name):
    content, reason = TOML[name]
    assert reason in refused("render", given(tmp_path, content, "d.toml"))


@pytest.mark.slow
def test_a_problem_of_millions_of_steps_is_refused():
    assert "takes more than 16384 steps" in refused("render", DESIGN, "--shape", "1048576,64,1048576")


@pytest.mark.parametrize("command", [("render", DESIGN, "--shape", "256,256,512"), ("checks",)], ids=lambda c: c[0])
def test_output_that_cannot_be_written_is_said(command):
    message = message_of(bdforge(*command, device=Path("/dev/full")), code=1)
    assert message == "bdforge: the output cannot be written: No space left on device\n"


@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_fault():
    command = f"'{sys.executable}' -m bdforge.cli render '{DESIGN}' | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


@pytest.mark.slow
def test_output_in_an_encoding_that_lacks_a_character_is_escaped(tmp_path):
    text = given(tmp_path, "// é → \n" + loopback(), "d.mlir")
    ended = started("convert", text, "--dialect", "march", PYTHONIOENCODING="koi8-r")
    assert ended.code == 0
    assert "\\u2192" in ended.out


@pytest.mark.slow
@pytest.mark.parametrize("wait", [0.02, 0.2, 0.6])
def test_an_interrupt_at_any_time_leaves_no_traceback(wait):
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {[str(ROOT), *sys.path]!r}\n"
         "from bdforge.cli import main; print(flush=True); sys.argv = ['bdforge', 'checks']; main()"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()  # the interpreter itself has started; what it does before that is not ours
    time.sleep(wait)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode in (0, 130, -signal.SIGINT)
    assert err == ""


def test_an_interrupt_before_the_command_line_is_read_leaves_no_traceback(capfd):
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as end:
        ended(interrupted)
    assert (end.value.code, capfd.readouterr()) == (130, ("", ""))


def test_no_module_prints_text_of_files_as_it_is():
    """`screen.say` shows control characters; typer.echo and print send them."""
    found = [
        f"{path.name}: {line.strip()}"
        for path in (ROOT / "bdforge").rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if ("typer.echo(" in line or "click.echo(" in line) and path.name != "screen.py"
    ]
    assert not found


def test_names_with_escapes_are_shown_not_sent(tmp_path):
    names = ["\x1b[31mred\x1b]0;title\x07", "b\nc"]
    file = write_gguf_i2s(tmp_path / "m.gguf", {name: (ternary(1, 128, 4), 1.0) for name in names})
    ended = bdforge("weights", "list", file)
    assert ended.code == 0
    assert ended.out == "\\x1b[31mred\\x1b]0;title\\x07  128 x 4\nb\\nc  128 x 4\n"


def test_a_symbol_with_escapes_is_shown_not_sent(tmp_path):
    text = loopback().replace('sym_name = "', 'sym_name = "\\1B[2J', 1)
    assert "\\1B" in text
    ended = bdforge("show", given(tmp_path, text, "d.mlir"))
    assert ended.code == 0
    assert "\x1b" not in ended.out
    assert "\\x1b[2J" in ended.out
