"""The page of a run, for `bdforge emulate --html`."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import typer

from bdforge.array.emulator.module_choice import choose, zero_arrays
from bdforge.array.mlir import parsed
from bdforge.array.mlir.sequence_ops import RuntimeSequenceOp
from bdforge.array.show.page import page
from bdforge.array.show.page.run_record import RunRecord
from bdforge.cli.options import write
from bdforge.common.messages import Fault
from bdforge.common.screen import say


@dataclass(frozen=True)
class PageOfRun:
    """Where a page is written, the text that runs, and which device and sequence of it, as far as it can be read."""

    path: Path
    text: str
    name: str
    device: str | None
    sequence: RuntimeSequenceOp | None

    @classmethod
    def of(
        cls, path: Path | None, text: str, name: str, sequence: str | None, module: str | None, by_words: bool
    ) -> "PageOfRun | None":
        """None without a path; a usage error for an image, which has no text to show."""
        if path is None:
            return None
        if not text:
            raise typer.BadParameter(f"{name} is an image: --html shows a run beside its MLIR", param_hint="--html")
        with suppress(Fault):  # the run will tell
            device, entry = choose(parsed(text, name), sequence, module, name, runs_words=by_words)
            return cls(path, text, name, device.symbol, entry)
        return cls(path, text, name, module, None)


def zeros(shown: PageOfRun | None) -> list[np.ndarray]:
    """Zeros for the host buffers of a sequence whose run is shown, and a word about them; none without a page."""
    arrays = [] if shown is None else zero_arrays(shown.sequence)
    if arrays:
        say(f"{len(arrays)} host buffers of zeros, since no --arg gives others", err=True)
    return arrays


@contextmanager
def recorded(shown: PageOfRun | None, permissive: Collection[str], force: bool) -> Iterator[list[RunRecord]]:
    """Observers that record a run for its page, which is written at the end: of a run that fails, too."""
    if shown is None:
        yield []
        return
    record, fault = RunRecord(), ""
    try:
        yield [record]
    except Fault as error:
        fault = " ".join([str(error), *getattr(error, "__notes__", ())])
        raise
    finally:
        made = page(shown.text, shown.name, shown.device, permissive, record, fault)
        write(shown.path, made.html, force)
