"""XRT by apt, with lists, state and sources of its own, so that any user can fetch packages of another suite.

Its headers and library are for compiling and linking hosts.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

SUITE = "forky"
"""The Debian suite whose XRT knows NPUs and whose packages are kept for years."""

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
APT_SECONDS = 50


class FetchError(RuntimeError):
    """Packages that cannot be had; the message says why in one line."""


class PrivateApt:
    """apt in `folder`, which it makes; the machine's mirror, proxy and credentials stay as configured."""

    def __init__(self, folder: Path):
        if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
            raise FetchError("apt-get and dpkg-deb are needed to fetch XRT's packages; this is no Debian or Ubuntu")
        self.folder = folder
        for part in ("sources.d", "lists/partial", "cache/archives/partial", "debs"):
            (folder / part).mkdir(parents=True)
        (folder / "status").touch()
        signed = f" [signed-by={KEYRING}]" if KEYRING.is_file() else ""
        (folder / "sources.list").write_text(f"deb{signed} {debian_mirror()} {SUITE} main\n")
        self._run("apt-get", "-qq", "update")

    def download(self, packages: Sequence[str]) -> list[Path]:
        """The packages' archives."""
        self._run("apt-get", "-qq", "download", *packages)
        return sorted((self.folder / "debs").glob("*.deb"))

    def depends(self, package: str) -> list[str]:
        """Names of the packages that one needs."""
        lines = self._run("apt-cache", "depends", package).splitlines()
        return [line.split(":", 1)[1].strip() for line in lines if line.strip().startswith("Depends:")]

    def _run(self, program: str, *arguments: str) -> str:
        return _apt(program, *self._options(), *arguments, cwd=self.folder / "debs")

    def _options(self) -> list[str]:
        places = {
            "Dir::Etc::sourcelist": "sources.list",
            "Dir::Etc::sourceparts": "sources.d",
            "Dir::State::lists": "lists",
            "Dir::State::status": "status",
            "Dir::Cache": "cache",
        }
        settings = {name: self.folder / place for name, place in places.items()} | {
            "APT::Sandbox::User": "",  # as root apt would fetch as a user who cannot write here
            "Acquire::Languages": "none",
            "Acquire::Check-Valid-Until": "false",  # a mirror that stands still is as good
            "Acquire::Retries": "1",
            "Acquire::http::Timeout": "10",
            "Acquire::https::Timeout": "10",
        }
        return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def debian_mirror() -> str:
    """The Debian mirror among this machine's apt sources; FetchError when there is none."""
    text = _apt("apt-get", "indextargets", "--format", "$(REPO_URI)")
    for uri in text.split():
        if urlsplit(uri).path.rstrip("/").endswith("/debian"):
            return uri
    raise FetchError("no Debian mirror among this machine's apt sources, so XRT's packages cannot be fetched")


def _apt(*command: str, cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, timeout=APT_SECONDS, stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FetchError(f"{command[0]}: {error}") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("E:")] or done.stderr.splitlines()
        raise FetchError(f"{command[0]} {command[-1]}: {' '.join(lines[:2]) or f'exit code {done.returncode}'}")
    return done.stdout


HEADER = "xrt/experimental/xrt_ext.h"  # of XRT with NPU support; an older one lacks it
LIBRARY = "libxrt_coreutil.so"


@dataclass(frozen=True, slots=True)
class XrtDevelopment:
    """Folders of an XRT: headers (`xrt/...` below it) and libxrt_coreutil."""

    include: Path
    library: Path


def find_development(wanted: str = "auto", environ: Mapping[str, str] = os.environ) -> XrtDevelopment | None:
    """The XRT to build with: below the prefix `wanted`, nowhere for "none"; for "auto" where XILINX_XRT says, then in
    XRT's usual places. None when there is none.
    """
    if wanted == "none":
        return None
    if wanted != "auto":
        return _below(Path(wanted))
    if folder := environ.get("XILINX_XRT"):
        return _below(Path(folder))
    found = (_below(prefix) for prefix in (Path("/opt/xilinx/xrt"), Path("/usr"), Path("/usr/local")))
    return next(filter(None, found), None)


def _below(prefix: Path) -> XrtDevelopment | None:
    include = prefix / "include"
    if not (include / HEADER).is_file():
        return None
    libraries = [prefix / "lib" / LIBRARY, *sorted(prefix.glob(f"lib/*/{LIBRARY}"))]  # lib/<multiarch> on Debian
    library = next((path.parent for path in libraries if path.exists()), None)
    return XrtDevelopment(include, library) if library else None
