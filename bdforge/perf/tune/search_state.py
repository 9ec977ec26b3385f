"""Where a search keeps its parts, so that an interrupted one goes on where it stopped."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from bdforge.common.compilers import folder
from bdforge.common.files import named, write_whole
from bdforge.perf.errors import PerfError
from bdforge.perf.tune.candidate_search import Search, SearchPart
from bdforge.perf.tune.emulated_finalists import EmulatedFinalist
from bdforge.perf.tune.space import Candidate

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
    return folder() / "tune" / f"{identity(wanted)}.jsonl"


@dataclass
class State:
    """Parts and emulated finalists of one search, in a file of JSON lines that grows with each of them.

    Of a finalist that cannot run the reason is kept.
    """

    path: Path
    parts: dict[int, SearchPart] = field(default_factory=dict)
    emulated: dict[Candidate, EmulatedFinalist | str] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path, wanted: Search) -> "State":
        """Read what is there, if it is of the same search; PerfError for another's file or one that cannot be used."""
        state, head = cls(path), _Line(identity(wanted))
        with named(path, "kept as a search's state", PerfError):
            path.parent.mkdir(parents=True, exist_ok=True)
            texts = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        whole = [text for text in texts if text.endswith(b"\n")]  # one was cut off if a search was killed
        try:
            found = [_LINE.validate_json(text) for text in whole]
        except ValidationError as error:
            raise PerfError(f"{path}: is no state of a search ({error.errors()[0]['msg']}); {_OTHER}") from None
        if found and found[0] != head:
            raise PerfError(f"{path}: holds another search or other models' one; {_OTHER}")
        for line in found[1:]:
            state._take(line)
        write_whole(path, b"".join(whole) or _text(head), PerfError)
        return state

    def add(self, part: SearchPart) -> None:
        self.parts[part.m] = part
        self._append(_Line(part=part))

    def add_emulated(self, candidate: Candidate, found: EmulatedFinalist | str) -> None:
        """Keep what emulation said of a finalist."""
        self.emulated[candidate] = found
        self._append(_Line(candidate=candidate, emulated=found))

    def _take(self, line: "_Line") -> None:
        if line.part:
            self.parts[line.part.m] = line.part
        if line.candidate:
            self.emulated[line.candidate] = line.emulated

    def _append(self, line: "_Line") -> None:
        with named(self.path, "kept as a search's state", PerfError), self.path.open("ab") as file:
            file.write(_text(line))


@dataclass(frozen=True)
class _Line:
    """A line of the file: whose it is, a part, or a finalist."""

    search: str = ""
    part: SearchPart | None = None
    candidate: Candidate | None = None
    emulated: EmulatedFinalist | str = ""


_LINE = TypeAdapter(_Line)
_OTHER = "choose another file or remove it"


def _text(line: _Line) -> bytes:
    return _LINE.dump_json(line, exclude_defaults=True) + b"\n"
