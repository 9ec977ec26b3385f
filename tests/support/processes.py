"""How commands end, and processes below this one, by /proc."""

import mmap
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any


def ends(done: Any, code: int = 0) -> None:
    """A command or a CLI's run ends with an exit code; a failing test's report has what it printed."""
    assert getattr(done, "exit_code" if hasattr(done, "exit_code") else "returncode") == code


def children() -> dict[int, set[int]]:
    """Processes by the one that each descends from."""
    found: dict[int, set[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended
            found.setdefault(int(path.read_text().rpartition(")")[2].split()[1]), set()).add(int(path.parent.name))
    return found


def below(process: int) -> set[int]:
    """Processes that descend from one."""
    known, found = children(), set[int]()
    new = {process}
    while new := set().union(*(known.get(one, set()) for one in new)) - found:
        found |= new
    return found


def servers() -> set[int]:
    """Device servers that this process started."""
    own = children().get(os.getpid(), set())
    return {child for child in own if b"--serve" in Path(f"/proc/{child}/cmdline").read_bytes()}


def taken(processes: Iterable[int]) -> dict[str, int]:
    """Open files of processes, and kilobytes that are resident or held by their memory files."""
    files = kilobytes = 0
    for process in processes:
        with suppress(FileNotFoundError):  # it ended
            kilobytes += int(Path(f"/proc/{process}/statm").read_text().split()[1]) * mmap.PAGESIZE // 1024
            for file in Path(f"/proc/{process}/fd").iterdir():
                files += 1
                if "memfd:" in os.readlink(file):
                    kilobytes += file.stat().st_blocks // 2
    return {"files": files, "kilobytes": kilobytes}
