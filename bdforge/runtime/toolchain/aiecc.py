"""How each version of aiecc is called, and which form of the dialect it reads.

Sources: mlir-aie's history to 760932a4 (2026-08-21) and its releases' dates; `#nnnn` is the pull request that brought a
change. Wheels are called 0.0.1.YYYYMMDDHH+sha until May 2026, then X.Y.Z or X.Y.Z.devN+gsha, N commits after a tag.
"""

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from bdforge.array.mlir import Era
from bdforge.common.compilers import query
from bdforge.runtime.toolchain.find import Tool

DEVICE = "main"  # name of an aie.device that has none, as ours
_VERSION = re.compile(r"\b(\d+)\.(\d+)\.(\d+)(?:\.dev(\d+)|\.\d{8,})?")

Version = tuple[int, int, int, int | None]


class CoreCompiler(StrEnum):
    """Which compiler of cores aiecc takes unless it is told."""

    VENDOR = "vendor"
    PEANO = "peano"


NEWEST_KNOWN = (1, 4, 5)
"""The newest release of which anything was read (October 2026)."""


@dataclass(frozen=True, slots=True)
class AieccForm:
    """What a version of aiecc reads and how it is called; `era` is None for builds that no text of one form suits."""

    era: Era | None
    get_options: bool  # --get-xclbin instead of --aie-generate-xclbin (#3364), no host program to leave out
    backend: CoreCompiler  # the vendor's has to be switched off, by options that #3501 removed
    alloc_scheme: bool  # whether it takes --alloc-scheme, which #3746 may drop
    known_by: str

    def command(self, program: str, peano: str, mlir: str, xclbin: str, insts: str | None) -> list[str]:
        """Words that make an xclbin of `mlir`, and instruction words by the pattern `insts` (`insts_pattern`).

        Stack checks of newer versions stay on: what they find overflows into buffers.
        """
        words = [program, *self._backend_options(), "--peano", peano, f"--tmpdir={mlir}.prj"]
        if self.alloc_scheme:
            words.append("--alloc-scheme=basic-sequential")  # every address is in the text; no scheme may move them
        words += ["--get-xclbin" if self.get_options else "--aie-generate-xclbin", f"--xclbin-name={xclbin}"]
        if insts is not None:
            option = "--get-npu-insts" if self.get_options else "--aie-generate-npu-insts"
            words += [option, f"--npu-insts-name={insts}"]
        return [*words, mlir]

    def _backend_options(self) -> list[str]:
        options = ["--no-xchesscc", "--no-xbridge"] if self.backend is CoreCompiler.VENDOR else []
        return options if self.get_options else [*options, "--no-compile-host"]

    @property
    def insts_pattern(self) -> str:
        """Name for each sequence's words: {1} is the sequence; later {0} alone is filled in, `<device>_<sequence>`."""
        return "insts_{0}.bin" if self.get_options else "insts_{1}.bin"

    def written_name(self, name: str) -> str:
        """What it calls the file `insts_<sequence>.bin`."""
        sequence = name.removeprefix("insts_")
        return f"insts_{DEVICE}_{sequence}" if self.get_options and name != sequence else name


def form_of(aiecc: Tool, wanted: Era | None = None) -> AieccForm:
    """The form of a found aiecc; `wanted` decides what its version does not tell, and the text in any case.

    An unknown newer version is taken for one of the newest form; without a version its --help tells.
    """
    found = form_of_version(aiecc.version) if aiecc else _march("no aiecc is found")
    if found is None:
        found = _by_help(_help(aiecc.path), wanted)
    elif aiecc and not _surely_has_scheme(aiecc.version):
        found = replace(found, alloc_scheme="alloc-scheme" in _help(aiecc.path))
    return found if wanted is None else replace(found, era=wanted)


def form_of_version(text: str) -> AieccForm | None:
    """The form of a version by its number; None where the text holds none."""
    version = version_of_text(text)
    if version is None:
        return None
    known_by, (*release, dev) = f"version {text}", version
    if tuple(release) == (1, 3, 5) and _mixed_build(dev):
        return AieccForm(None, False, CoreCompiler.VENDOR, True, known_by)
    if tuple(release) < (1, 3, 5) or (tuple(release) == (1, 3, 5) and dev is not None and dev < 5):
        return _march(known_by)
    late = tuple(release) > (1, 4, 0)
    return _modern(known_by, True, CoreCompiler.PEANO if late else CoreCompiler.VENDOR)


def version_of_text(text: str) -> Version | None:
    """(major, minor, patch, N of devN) of a wheel's version or of what --version prints; None where it is LLVM's."""
    found = _VERSION.search(text)
    if found is None or "llvm" in text.lower():
        return None
    return int(found[1]), int(found[2]), int(found[3]), None if found[4] is None else int(found[4])


def aiecc_fault(aiecc: Tool) -> str | None:
    """Why no text suits a found aiecc, or None."""
    if form_of(aiecc).era is not None:
        return None
    return f"{aiecc.version} reads neither form of the dialect, but a mix that no release has"


def aiecc_note(aiecc: Tool) -> str:
    """Which text a found aiecc gets, by what that is known, and whether it is newer than all that is known."""
    form, version = form_of(aiecc), version_of_text(aiecc.version)
    if form.era is None:
        return ""
    note = f"gets the {form.era} form by {form.known_by}"
    if version is None or version[:3] <= NEWEST_KNOWN:
        return note
    newest = ".".join(map(str, NEWEST_KNOWN))
    return f"{note}; newer than {newest}, the last of which anything was read, and taken for the same"


def _mixed_build(dev: int | None) -> bool:
    """1.3.5.dev5 (#3225) to dev59 (before #3306); a release 1.3.5 was never seen."""
    return dev is None or 5 <= dev < 60


def _surely_has_scheme(version: str) -> bool:
    """Up to 1.4.3; #3746, open when that was tagged, drops the choice."""
    found = version_of_text(version)
    return found is not None and found[:3] <= (1, 4, 3)


def _march(known_by: str) -> AieccForm:
    return AieccForm(Era.MARCH, False, CoreCompiler.VENDOR, True, known_by)


def _modern(known_by: str, alloc_scheme: bool, backend: CoreCompiler = CoreCompiler.PEANO) -> AieccForm:
    return AieccForm(Era.MODERN, True, backend, alloc_scheme, known_by)


def _by_help(text: str, wanted: Era | None) -> AieccForm:
    """March's options stand in its --help; those since #3364 do not."""
    march = "aie-generate-xclbin" in text if wanted is None else wanted is Era.MARCH
    known_by = "its --help, for it tells no version" if wanted is None else f"dialect={wanted}, for it tells no version"
    return _march(known_by) if march else _modern(known_by, "alloc-scheme" in text)


def _help(program: Path | None) -> str:
    return "" if program is None else query([program, "--help"])[1]
