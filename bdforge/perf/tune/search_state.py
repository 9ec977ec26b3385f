"""Where a search keeps its parts, so that an interrupted one goes on where it stopped."""

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bdforge.perf.errors import PerfError
from bdforge.perf.tune.candidate_search import Ranked, Search, SearchPart

SOURCES = Path(__file__).parents[3]


def identity(wanted: Search, root: Path = SOURCES) -> str:
    """Hash of everything that decides a search's result: what is wanted, all sources and data of models and array."""
    digest = hashlib.sha256(repr(wanted).encode())
    for package in ("bdforge", "bd_patterns"):
        for path in sorted(p for p in (root / package).rglob("*") if p.suffix in (".py", ".csv")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def default_state(wanted: Search) -> Path:
    """`bdforge/tune/<identity>.jsonl` in XDG_CACHE_HOME or ~/.cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "bdforge" / "tune" / f"{identity(wanted)}.jsonl"


@dataclass
class State:
    """Parts and emulated finalists of one search, in a file of JSON lines that grows with each of them."""

    path: Path
    identity: str
    parts: dict[int, SearchPart] = field(default_factory=dict)
    emulated: dict[tuple[int, ...], dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path, wanted: Search) -> "State":
        """Read what is there, if it is of the same search; PerfError for another's file or one that cannot be used."""
        state = cls(path, identity(wanted))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = list(_lines(path)) if path.exists() else []
            if lines and lines[0].get("search") != state.identity:
                raise PerfError(f"{path}: holds another search or other models' one; choose another file or remove it")
            for line in lines[1:]:
                state._take(line)
            state._write()
        except OSError as error:
            raise PerfError(f"{path}: cannot keep a search's state: {error.strerror}") from None
        return state

    def add(self, part: SearchPart) -> None:
        self.parts[part.m] = part
        self._append({"part": asdict(part)})

    def add_emulated(self, candidate: tuple[int, ...], facts: dict[str, Any]) -> None:
        """Keep what emulation said of a finalist."""
        self.emulated[candidate] = facts
        self._append({"emulated": facts, "candidate": candidate})

    def _take(self, line: dict[str, Any]) -> None:
        if "part" in line:
            part = line["part"]
            best = tuple(Ranked(b["time_us"], tuple(b["candidate"])) for b in part["best"])
            self.parts[part["m"]] = SearchPart(part["m"], part["examined"], part["legal"], best)
        elif "emulated" in line:
            self.emulated[tuple(line["candidate"])] = line["emulated"]

    def _write(self) -> None:
        """All of it: a line that was cut off when a search was killed goes."""
        lines = [{"search": self.identity}, *({"part": asdict(part)} for part in self.parts.values())]
        lines += [{"emulated": facts, "candidate": candidate} for candidate, facts in self.emulated.items()]
        fresh = self.path.with_name(f"{self.path.name}.new")
        fresh.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        fresh.replace(self.path)

    def _append(self, line: dict[str, Any]) -> None:
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps(line)}\n")
        except OSError as error:
            raise PerfError(f"{self.path}: cannot keep a search's state: {error.strerror}") from None


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """Whole lines; PerfError for a file of something else."""
    try:
        texts = path.read_text(encoding="utf-8").splitlines(keepends=True)
        for text in texts:
            if text.endswith("\n"):
                line = json.loads(text)
                if not isinstance(line, dict):
                    raise ValueError("a line is no object")
                yield line
    except ValueError as error:
        raise PerfError(f"{path}: is no state of a search ({error}); choose another file or remove it") from None
