"""A fuzz of everything that reads files: no traceback, no hang, no message over 4 KiB, nothing a terminal obeys.

    PYTHONPATH=.:tests python -m fuzz.file_reading --count 20000 --seed 1 [--kind toml]

prints how many inputs were accepted and refused, by format, and each fault with the mutation's seed; `--keep FOLDER`
keeps the files that led to faults. The exit code is 1 when there were any.
"""

import argparse
import io
import re
import resource
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from itertools import chain
from pathlib import Path
from random import Random

import numpy as np

from bdforge.array.emulator import emulate
from bdforge.array.emulator.verification import verify_design
from bdforge.array.explain.explanation_tables import explanation_parts
from bdforge.array.explain.image_explanation import explain
from bdforge.array.images.programs import read_programs
from bdforge.array.images.read import read_image
from bdforge.array.mlir import Era, convert
from bdforge.array.show.container import image_tables
from bdforge.array.txn import insts
from bdforge.cli.commands import app
from bdforge.cli.ending import ended
from bdforge.common.array_files import load_arrays
from bdforge.common.files import read_bytes, read_text
from bdforge.common.messages import Fault, printable
from bdforge.common.screen import as_text
from bdforge.core.isa.assembler import assemble
from bdforge.core.isa.disassembler import disassemble
from bdforge.core.isa.hazards import check_program, check_source
from bdforge.design import render
from bdforge.design.document import design_of, document
from bdforge.design.template import load_template_spec, render_template
from bdforge.devices import device_named
from bdforge.devices.txn_format import describe
from bdforge.models import weights
from bdforge.operators.gemm import load_spec, plan_gemm
from bdforge.perf import estimate_table
from bdforge.runtime import BuiltDesign
from fuzz.file_mutations import mutated
from fuzz.file_seeds import BESIDE, BESIDE_TEMPLATE, TEMPLATES_OF_PROJECT, seeds
from fuzz.hostile_texts import HOSTILE

MESSAGE_MOST = 4096  # bytes
SECONDS = 30  # of one input, on a machine that is busy with other things too
MEMORY_BYTES = 4 << 30
STEPS = 1_000_000  # of all cores and channels
ELEMENTS_MOST = 1 << 16  # of an array that a design is given
DTYPES = {"i8": np.int8, "i16": np.int16, "i32": np.int32}
_SEQUENCE, _ARGUMENT = re.compile(r"aie\.runtime_sequence[^(]*\(([^)]*)\)"), re.compile(r"memref<(\d+)x(i8|i16|i32)>")
_RETURNING = re.compile(r"func\.func\s+(?:private\s+)?@([\w$.]+)\s*\([^)]*\)\s*->")


def _weights(path: Path) -> None:
    names = [name for name, _ in weights.tensors(path)]
    weights.read(path, names[:1])


def _verify(path: Path) -> None:
    found = verify_design(read_text(path), str(path))
    for message in (*found.faults, *found.warnings):
        check_message(message)


class Kernels(dict):
    """Every function exists, and returns 1 where the text declares a result."""

    def __init__(self, text: str):
        super().__init__()
        self.returning = set(_RETURNING.findall(text))

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str):
        value = 1 if name in self.returning else None
        return lambda *arguments: value

    def get(self, name, default=None):
        return self[name]


def _design(path: Path) -> None:
    """A design, run with arrays of zeros as its sequence asks for; of every other text in an order by chance."""
    text = path.read_bytes().decode(errors="surrogateescape")
    asked = _ARGUMENT.findall(found[1] if (found := _SEQUENCE.search(text)) else "")
    arrays = [np.zeros(min(int(size[:9]), ELEMENTS_MOST), DTYPES[element]) for size, element in asked]
    schedule = ("in-order", "random")[len(text) % 2]
    emulate(text, arrays, Kernels(text), budget=STEPS, schedule=schedule, seed=1, permissive=["buffer-arguments"])


def _estimate(path: Path) -> None:
    for fault in estimate_table(read_text(path), str(path))[1]:
        check_message(fault)


def _container(path: Path) -> None:
    """As `bdforge show`, `explain` and `disasm` of an image do."""
    data = read_bytes(path)
    as_text(explanation_parts(explain(data), path.name), 80)
    as_text(image_tables(read_image(data)), 100)
    for program in read_programs(data, sparse=True):
        list(disassemble(program))
        check_program(program)


def _image(path: Path) -> None:
    """As those, and `bdforge emulate`."""
    _container(path)
    emulate("", [], device="npu2", image=read_bytes(path), budget=1_000_000)


def _program(path: Path) -> None:
    for program in read_programs(read_bytes(path)):
        list(disassemble(program, latencies=True))


def _assembly(path: Path) -> None:
    program = assemble(read_text(path), "aie2p", path.name)
    check_source(program)
    program.elf()


def _convert(path: Path) -> None:
    convert(read_text(path), Era.MARCH, path.name)


def _template(path: Path) -> None:
    render_template(load_template_spec(BESIDE_TEMPLATE), path.parent)


def _template_spec(path: Path) -> None:
    render_template(load_template_spec(path), TEMPLATES_OF_PROJECT)


def _document(path: Path) -> None:
    design = design_of(read_text(path), path.name)
    render(design_of(document(design), "again"))


def _command(path: Path) -> None:
    """A command line, an argument each line; what it says is checked, and that it ends as it should."""
    words = path.read_bytes().decode(errors="replace").replace("\0", "").split("\n")
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), chdir(path.parent):
        try:
            sys.argv = ["bdforge", *words]
            code = _ended()
        finally:
            sys.argv = ["fuzz"]
    if code not in (0, 1, 2):
        raise BadMessageError(f"exit code {code}: {err.getvalue()[:300]}")
    if code and len(err.getvalue().encode(errors="replace")) > MESSAGE_MOST:
        raise BadMessageError(f"{len(err.getvalue())} characters: {err.getvalue()[:100]!r}")
    if code:
        raise Fault("refused")


def _ended() -> int:
    try:
        ended(app)
    except SystemExit as end:
        return int(end.code or 0)


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "toml": ("design.toml", lambda path: plan_gemm(load_spec(path), device_named("strix_halo"))),
    "document": ("document.toml", _document),
    "npy": ("array.npy", lambda path: load_arrays([path])),
    "mlir": ("design.mlir", _verify),
    "design": ("design.mlir", _design),
    "gguf": ("model.gguf", _weights),
    "safetensors": ("model.safetensors", _weights),
    "stream": ("insts.bin", lambda path: describe.describe(insts.read(path))),
    "manifest": ("manifest.json", lambda path: BuiltDesign.load(path.parent)),
    "csv": ("table.csv", _estimate),
    "mlir 1.4": ("design.mlir", _convert),
    "template": ("transpose.mlir.j2", _template),
    "template spec": ("mine.toml", _template_spec),
    "assembly": ("program.s", _assembly),
    "elf": ("core.elf", _program),
    "cdo": ("design.cdo", _image),
    "pdi": ("design.pdi", _image),
    "xclbin": ("design.xclbin", _image),
    "container": ("design.elf", _container),
    "command": ("words", _command),
}
"""By format: a file's name, and what reads it as a command would."""


class Hang(BaseException):
    """An input that took longer than SECONDS."""


class BadMessageError(Exception):
    """A message that is too long, or that a terminal would obey."""


def check_message(message: str) -> None:
    """BadMessageError for a message that should not be printed as it is."""
    if len(message.encode(errors="surrogatepass")) > MESSAGE_MOST:
        raise BadMessageError(f"{len(message)} characters: {message[:100]!r}")
    if printable(message) != message or not message.strip():
        raise BadMessageError(f"not printable: {message[:200]!r}")


def outcome(kind: str, content: bytes, folder: Path) -> str:
    """`accepted`, `refused`, or what went wrong."""
    name, read = READERS[kind]
    path = folder / name
    path.write_bytes(content)
    for other in BESIDE.get(kind, ()):
        (folder / other).parent.mkdir(exist_ok=True)
        (folder / other).touch()
    signal.alarm(SECONDS)
    try:
        read(path)
    except Fault as fault:
        try:
            check_message(str(fault))
        except BadMessageError as error:
            return f"BadMessageError: {error}"
        return "refused"
    except Hang:
        return f"no end after {SECONDS} s"
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)[-4:]
        place = " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in reversed(frames))
        return f"{type(error).__name__}: {str(error)[:200]!r} at {place}"
    finally:
        signal.alarm(0)
    return "accepted"


def case(kind: str, seed: int) -> bytes:
    """The mutated file of a seed."""
    random = Random(f"{kind} {seed}")
    return mutated(random, kind, random.choice(seeds()[kind]))


def _stop(*_: object) -> None:
    raise Hang


def mutants(count: int, seed: int, kinds: list[str]) -> Iterator[tuple[str, object, bytes]]:
    """Kind, seed and content of `count` mutated files, the formats in turn."""
    for number in range(count):
        kind, case_seed = kinds[number % len(kinds)], seed * 1_000_000 + number
        yield kind, case_seed, case(kind, case_seed)


def run(cases: Iterable[tuple[str, object, bytes]], keep: Path | None) -> int:
    """Reads files of (kind, name, content); the exit code."""
    signal.signal(signal.SIGALRM, _stop)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    told: Counter[str] = Counter()
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        for kind, name, content in cases:
            found = outcome(kind, content, Path(folder))
            if found in ("accepted", "refused"):
                told[f"{kind} {found}"] += 1
                continue
            faults += 1
            print(f"{kind} {name}: {found}", flush=True)
            if keep is not None:
                (keep / f"{kind}_{name}").write_bytes(content)
    count = told.total() + faults
    print(f"{count} inputs, {faults} faults; " + ", ".join(f"{what} {told[what]}" for what in sorted(told)))
    return 1 if faults else 0


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=READERS, action="append")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--hostile", action="store_true", help="and texts that nobody writes by hand, each once")
    given = parser.parse_args()
    texts = HOSTILE if given.hostile else {}
    hostile = (("design", name, text.encode(errors="surrogatepass")) for name, text in texts.items())
    sys.exit(run(chain(hostile, mutants(given.count, given.seed, given.kind or list(READERS))), given.keep))


if __name__ == "__main__":
    main()
