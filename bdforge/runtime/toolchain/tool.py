"""A tool of the build, found or not, and the search for it."""

import os
import shutil
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bdforge.common.compilers import query

Verdict = Callable[[Path], str | None]
"""Why a file that was found cannot be used, or None."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool, its place (None: not found), its version, where it was looked for, and how to get it."""

    name: str
    path: Path | None
    version: str
    searched: tuple[str, ...]
    remedy: str

    def __bool__(self) -> bool:
        return self.path is not None

    @property
    def root(self) -> Path | None:
        """Root of the installation: the folder that holds `bin/`."""
        return self.path.parent.parent if self.path else None

    @property
    def missing(self) -> str:
        """What is missing, where it was looked for and how to get it."""
        return f"{self.name}: looked in {'; '.join(self.searched)}\n    get it: {self.remedy}"


@dataclass(frozen=True, slots=True)
class ToolSearch:
    """Where to look for a tool, in order: a variable, folders, PATH.

    A variable that is set decides: when the tool is not below it, nothing else is tried, since another
    version would then be used without a word.
    """

    files: tuple[str, ...]  # relative to the variable's folder and to `folders`, in order of preference
    variable: str | None = None
    folders: tuple[tuple[str, Path], ...] = ()  # (what it is, where)
    programs: tuple[str, ...] = ()  # names on PATH
    check: Verdict | None = None  # of programs on PATH only

    def run(self, environ: Mapping[str, str]) -> tuple[Path | None, tuple[str, ...]]:
        """The file (None: nowhere) and the places that were searched."""
        searched: list[str] = []
        for description, found in self._candidates(environ):
            searched.append(description)
            if found is not None:
                return found, tuple(searched)
        return None, tuple(searched)

    def _candidates(self, environ: Mapping[str, str]) -> Iterator[tuple[str, Path | None]]:
        if self.variable and (folder := environ.get(self.variable)):
            found = _first_file(Path(folder), self.files)
            yield f"{self.variable}={folder}{'' if found else f' (holds no {self.files[0]})'}", found
            return
        if self.variable:
            yield f"{self.variable} (not set)", None
        for what, folder in self.folders:
            yield f"{what} ({folder})", _first_file(folder, self.files)
        if self.programs:
            yield self._on_path(environ)

    def _on_path(self, environ: Mapping[str, str]) -> tuple[str, Path | None]:
        for program in self.programs:
            if not (found := shutil.which(program, path=environ.get("PATH", os.defpath))):
                continue
            if self.check and (reason := self.check(Path(found))):
                return f"PATH ({found}: {reason})", None
            return "PATH", Path(found)
        return "PATH", None


def _first_file(folder: Path, files: Sequence[str]) -> Path | None:
    return next((folder / file for file in files if (folder / file).is_file()), None)


def site_packages() -> Path:
    """Folder into which this Python installs wheels."""
    return Path(sysconfig.get_path("platlib"))


def version_of(program: Path | None) -> str:
    """First line that `program --version` prints; "unknown" when it fails, "" without a program."""
    if program is None:
        return ""
    code, text = query([program, "--version"])
    return first_line(text) if code == 0 and text.strip() else "unknown"


def first_line(text: str) -> str:
    """First line with something on it, or ""."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
