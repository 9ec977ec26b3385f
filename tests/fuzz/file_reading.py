"""A fuzz of everything that reads files: no traceback, no hang, no message over 4 KiB, nothing a terminal obeys.

    PYTHONPATH=.:tests python -m fuzz.file_reading --count 20000 --seed 1 [--kind toml]

prints how many inputs were accepted and refused, by format, and each fault with the mutation's seed; `--keep FOLDER`
keeps the files that led to faults. The exit code is 1 when there were any.
"""

import argparse
import resource
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from bdforge import weights
from bdforge.devices import device_named
from bdforge.emulator.verify import verify_design
from bdforge.files import read_text
from bdforge.messages import Fault, printable
from bdforge.operators.gemm import load_spec, plan_gemm
from bdforge.perf import estimate_table
from bdforge.runtime import BuiltDesign
from bdforge.runtime.arrays import load_arrays
from bdforge.txn import describe, insts
from fuzz.file_mutations import mutated
from fuzz.file_seeds import BESIDE, seeds

MESSAGE_MOST = 4096  # bytes
SECONDS = 30  # of one input, on a machine that is busy with other things too
MEMORY_BYTES = 4 << 30


def _weights(path: Path) -> None:
    names = [name for name, _ in weights.tensors(path)]
    weights.read(path, names[:1])


def _verify(path: Path) -> None:
    found = verify_design(read_text(path), str(path))
    for message in (*found.faults, *found.warnings):
        check_message(message)


def _estimate(path: Path) -> None:
    for fault in estimate_table(read_text(path), str(path))[1]:
        check_message(fault)


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "toml": ("design.toml", lambda path: plan_gemm(load_spec(path), device_named("strix_halo"))),
    "npy": ("array.npy", lambda path: load_arrays([path])),
    "mlir": ("design.mlir", _verify),
    "gguf": ("model.gguf", _weights),
    "safetensors": ("model.safetensors", _weights),
    "stream": ("insts.bin", lambda path: describe.describe(insts.read(path))),
    "manifest": ("manifest.json", lambda path: BuiltDesign.load(path.parent)),
    "csv": ("table.csv", _estimate),
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


def run(count: int, seed: int, kinds: list[str], keep: Path | None) -> int:
    """Reads `count` mutated files, the formats in turn; the exit code."""
    signal.signal(signal.SIGALRM, _stop)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    told: Counter[str] = Counter()
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            kind, case_seed = kinds[number % len(kinds)], seed * 1_000_000 + number
            content = case(kind, case_seed)
            found = outcome(kind, content, Path(folder))
            if found in ("accepted", "refused"):
                told[f"{kind} {found}"] += 1
                continue
            faults += 1
            print(f"{kind} {case_seed}: {found}", flush=True)
            if keep is not None:
                (keep / f"{kind}_{case_seed}").write_bytes(content)
    print(f"{count} inputs, {faults} faults; " + ", ".join(f"{what} {told[what]}" for what in sorted(told)))
    return 1 if faults else 0


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=READERS, action="append")
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    sys.exit(run(given.count, given.seed, given.kind or list(READERS), given.keep))


if __name__ == "__main__":
    main()
