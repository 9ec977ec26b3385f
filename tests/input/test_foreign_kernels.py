"""Kernels that end, crash or raise: the user learns kernel, core, what was raised and where."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from bdforge.array.emulator import KernelError, emulate
from bdforge.common import watched
from bdforge.core.python_kernel import release
from bdforge.runtime import KernelLibraryError, load_kernels
from input.command import ROOT, bdforge, refused

TEXT = """module {
  aie.device(npu2) {
    %t = aie.tile(1, 3)
    %b = aie.buffer(%t) {sym_name = "b"} : memref<8xi32>
    func.func private @probe(memref<8xi32>) -> ()
    %c = aie.core(%t) {
      func.call @probe(%b) : (memref<8xi32>) -> ()
      aie.end
    }
  }
}
"""
CALL = "d.mlir:7:7: probe on core (1, 3)"
PYTHON = {
    "sys_exit": ("import sys\ndef probe(b):\n    sys.exit(0)\n", f"{CALL}: it called exit(0) (k.py:3)"),
    "exit_in_words": ("def probe(b):\n    raise SystemExit('bye')\n", f"{CALL}: it called exit('bye') (k.py:2)"),
    "key": ("def probe(b):\n    {}[3]\n", f"{CALL}: KeyError: 3 (k.py:2)"),
    "deeper": ("import numpy as np\ndef inner(b):\n    return np.reshape(b, (3, 3))\ndef probe(b):\n    inner(b)\n",
               f"{CALL}: ValueError: cannot reshape array of size 8 into shape (3,3) (k.py:3)"),
    "nameless": ("def probe(b):\n    assert False\n", f"{CALL}: AssertionError (k.py:2)"),
    "steps": ("import sys\ndef probe(b):\n    sys.exit(0)\n    yield\n", f"{CALL}: it called exit(0) (k.py:3)"),
    "hard_exit": ("import os\ndef probe(b):\n    os._exit(0)\n",
                  f"{CALL}: it ended the process (exit(0)); it has to return"),
    "killed": ("import os, signal\ndef probe(b):\n    os.kill(os.getpid(), signal.SIGKILL)\n",
               f"{CALL}: it ended the process (SIGKILL: Killed)"),
    "generator_exit": ("def probe(b):\n    raise GeneratorExit\n", f"{CALL}: GeneratorExit (k.py:2)"),
    "steps_exit": ("def probe(b):\n    raise GeneratorExit\n    yield\n", f"{CALL}: GeneratorExit (k.py:2)"),
    "of_its_own": ("class Odd(BaseException): ...\ndef probe(b):\n    raise Odd('x')\n", f"{CALL}: Odd: x (k.py:3)"),
    "stops": ("def probe(b):\n    raise StopIteration\n", f"{CALL}: StopIteration (k.py:2)"),
    "wordless": ("class Odd(Exception):\n    def __str__(self):\n        raise self\ndef probe(b):\n    raise Odd\n",
                 f"{CALL}: Odd: <Odd> (k.py:5)"),
    "unspeakable": ("class Odd:\n    def __repr__(self):\n        raise OSError\ndef probe(b):\n    return Odd()\n",
                    f"{CALL} returned <Odd>, but the design declares it without results"),
    "control": ("def probe(b):\n    raise ValueError('\\x1b[2J' + 'x' * 1000000)\n",
                f"{CALL}: ValueError: \\x1b[2Jxxx"),
}  # fmt: skip
IMPORTS = {
    "exit": ("import sys\nsys.exit(0)\n", "k.py: it called exit(0) (k.py:2)"),
    "generator_exit": ("raise GeneratorExit\n", "k.py: GeneratorExit (k.py:1)"),
    "raises": ("1 / 0\n", "k.py: ZeroDivisionError: division by zero (k.py:1)"),
    "no_python": ("def probe(:\n", "k.py: SyntaxError: "),
}
COMPILED = {
    "exits": ("#include <stdlib.h>\nvoid probe(int* b) { exit(0); }", f"{CALL}: it ended the process (exit(0))"),
    "crashes": ("void probe(int* b) { *(volatile int*)0 = 1; }",
                f"{CALL}: it ended the process (SIGSEGV: Segmentation fault)"),
    "aborts": ("#include <stdlib.h>\nvoid probe(int* b) { abort(); }", f"{CALL}: it ended the process (SIGABRT"),
    "constructor": ("#include <stdlib.h>\n__attribute__((constructor)) void start(void) { exit(0); }",
                    "k.so: loading it: it ended the process (exit(0))"),
}  # fmt: skip


def compiled(folder: Path, source: str) -> Path:
    (folder / "k.c").write_text(source)
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-O1", "-o", "k.so", "k.c"], cwd=folder, check=True)
    return folder / "k.so"


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("d.mlir").write_text(TEXT)


@pytest.mark.parametrize("name", PYTHON)
def test_a_python_kernel_that_fails_is_named(name):
    source, message = PYTHON[name]
    Path("k.py").write_text(source)
    assert refused("emulate", "d.mlir", "--kernels", "k.py", code=1).startswith(f"bdforge: {message}")


@pytest.mark.parametrize("name", IMPORTS)
def test_a_module_that_fails_is_named(name):
    source, message = IMPORTS[name]
    Path("k.py").write_text(source)
    assert refused("emulate", "d.mlir", "--kernels", "k.py").startswith(f"bdforge: {message}")


@pytest.mark.parametrize("name", COMPILED)
def test_a_compiled_kernel_that_ends_the_process_is_named(tmp_path, name):
    source, message = COMPILED[name]
    compiled(tmp_path, source)
    assert refused("emulate", "d.mlir", "--kernels", "k.so", code=1).startswith(f"bdforge: {message}")


def test_a_symbol_of_data_is_no_kernel(tmp_path):
    library = compiled(tmp_path, "int probe[8] = {1};")
    with pytest.raises(KernelLibraryError, match=r"k\.so: its symbol probe is data, not a function"):
        load_kernels(library)["probe"]
    message = refused("emulate", "d.mlir", "--kernels", "k.so", code=1)
    assert message.startswith("bdforge: d.mlir:7:7: k.so: its symbol probe is data")


def test_a_kernel_that_works_ends_as_ever(tmp_path):
    compiled(tmp_path, "void probe(int* b) { b[0] = 7; }")
    ended = bdforge("emulate", "d.mlir", "--kernels", "k.so")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == "d.mlir: ended (emulated), 0 host buffers, 1 named tile buffers\n"


def test_in_a_program_of_others_a_kernel_that_exits_is_an_exception():
    def probe(b):
        raise SystemExit(0)

    with pytest.raises(KernelError, match=r"probe on core \(1, 3\): it called exit\(0\) \(test_foreign_kernels"):
        emulate(TEXT, kernels={"probe": probe})


SHORT = "import bdforge.common.watched as w; w.PATIENCE_SECONDS = 0.06\nfrom bdforge.cli import main\nmain()"


@pytest.mark.slow
def test_a_compiled_kernel_without_an_end_is_named_and_ctrl_c_ends_it(tmp_path):
    """Such a kernel sees no signal of Python's: the process that waits for it ends it."""
    compiled(tmp_path, "void probe(volatile int* b) { for (;;) b[0]; }")
    command = [sys.executable, "-c", SHORT, "emulate", "d.mlir", "--kernels", "k.so"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as run:
        assert run.stderr is not None
        told = [run.stderr.readline() for _ in range(2)]
        run.send_signal(signal.SIGINT)  # to the parent alone: a terminal tells both
        run.wait(20)
    assert run.returncode == 130
    assert [CALL in line and "without an end" in line for line in told] == [True, True]


@pytest.mark.parametrize("steps", [False, True])
def test_a_kernel_without_an_end_is_named_again_and_again(monkeypatch, caplog, steps: bool):
    monkeypatch.setattr(watched, "PATIENCE_SECONDS", 0.03)
    monkeypatch.setattr(watched._Watch, "telling", False)  # a thread of another test may look in some seconds only

    def loop(b):
        while len(caplog.messages) < 2:
            pass

    def loop_in_steps(b):
        yield from ()
        loop(b)

    emulate(TEXT, kernels={"probe": loop_in_steps if steps else loop})
    where = "<string>:7:7: probe on core (1, 3): it has run for 0 s without an end"
    assert [where in message for message in caplog.messages] == [True] * 2


def test_short_kernels_are_not_told_of(monkeypatch, caplog):
    monkeypatch.setattr(watched, "PATIENCE_SECONDS", 0.4)  # longer than a busy machine may keep one
    until = time.monotonic() + 0.6

    def probe(b):
        time.sleep(0.001)

    while time.monotonic() < until:
        emulate(TEXT, kernels={"probe": probe})
    assert caplog.messages == []


WRITES = {
    "before": ("b[-1] = 0x01010101;", "it wrote 4 bytes beside its arguments, the first at byte 1020 of core"),
    "behind": ("for (int i = 0; i < 16; ++i) b[i] = 7;", "0 bytes behind the end of buffer @b, which has 32 bytes"),
    "before the memory": ("b[-256 - 9] = 0x01010101;", "at byte -36 of core (1, 3)"),
    "behind the memory": ("b[16384 - 256] = 1;", "at byte 65536 of core (1, 3)"),
    "inside": ("for (int i = 0; i < 8; ++i) b[i] = 7;", ""),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_compiled_kernel_that_writes_beside_its_arguments_is_named(tmp_path, name: str):
    code, said = WRITES[name]
    text = TEXT.replace('{sym_name = "b"}', '{sym_name = "b", address = 1024 : i32}')
    kernels = load_kernels(compiled(tmp_path, f"void probe(int* b) {{ {code} }}"))
    if not said:
        assert emulate(text, kernels=kernels, poison=True).buffers["b"].tolist() == [7] * 8
        return
    with pytest.raises(KernelError, match=r"probe on core \(1, 3\): it wrote") as told:
        emulate(text, kernels=kernels, poison=True)
    assert said in str(told.value)


def test_steps_of_a_kernel_are_watched_each_and_dmas_in_between_are_not_blamed():
    """A view of numpy's as_strided reaches what lies beside, as an address does."""

    def probe(b):
        wide = np.lib.stride_tricks.as_strided(b, (9,))
        yield release(48)
        wide[8] = 1

    with pytest.raises(KernelError, match="0 bytes behind the end of buffer @b"):
        emulate(TEXT, kernels={"probe": probe}, poison=True)


def test_an_interrupt_in_a_kernel_stays_one():
    def probe(b):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        emulate(TEXT, kernels={"probe": probe})
