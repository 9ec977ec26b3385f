"""Private copies of Debian's packages: fetched by apt without root, unpacked in a cache, run with their libc.

apt has lists, state and sources of its own, so that any user can fetch packages of another suite.
"""

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

SUITE = "forky"
"""The Debian suite whose XRT knows NPUs, that has ggml, and whose packages are kept for years."""

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
APT_SECONDS = 50


class FetchError(RuntimeError):
    """Packages that cannot be had; the message says why in one line."""


class PrivateApt:
    """apt in `folder`, which it makes; the machine's mirror, proxy and credentials stay as configured."""

    def __init__(self, folder: Path):
        if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
            raise FetchError("apt-get and dpkg-deb are needed to fetch Debian's packages; this is no Debian or Ubuntu")
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
    raise FetchError("no Debian mirror among this machine's apt sources, so its packages cannot be fetched")


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


STAMP = "versions.json"  # written last: an interrupted fetch leaves none
UNPACK_SECONDS = 30
MULTIARCH = "x86_64-linux-gnu"
LOADER = "ld-linux-x86-64.so.2"


@dataclass(frozen=True, slots=True)
class Packages:
    """Unpacked packages. `root` holds `usr/`, `versions` are those of the packages by name; programs have libraries in
    `folders` below the others."""

    root: Path
    versions: Mapping[str, str]
    folders: tuple[str, ...] = ()

    @property
    def prefix(self) -> Path:
        """The `usr` folder, as `xrt=` and `ggml=` take it."""
        return self.root / "usr"

    @property
    def libraries(self) -> Path:
        """Folder of all shared libraries."""
        return self.prefix / "lib" / MULTIARCH

    def command(self, program: Path | str, *arguments: Path | str) -> list[str]:
        """The words that run a program with these libraries; a bare name is one of the packages'."""
        path = Path(program) if os.sep in str(program) else self.prefix / "bin" / program
        searched = ":".join(str(self.libraries / folder) for folder in ("", *self.folders))
        return [str(self.libraries / LOADER), "--library-path", searched, str(path), *map(str, arguments)]


def cache_folder(name: str) -> Path:
    """Where packages are kept: below XDG_CACHE_HOME."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bdforge" / name


Names = Callable[[PrivateApt], Sequence[str]]


def fetch(cache: Path, names: Names, finish: Callable[[Path], None] = lambda root: None) -> Packages:
    """The packages that `names` tells, from `cache` when they were fetched before. `finish` adds to the new folder.

    FetchError says why they cannot be had: no apt, no Debian mirror among this machine's sources, no network. Several
    processes may call it at once.
    """
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            root = cache / "root"
            if not (root / STAMP).is_file():
                _fetch(cache, root, names, finish)
            return Packages(root, json.loads((root / STAMP).read_text()))
    except OSError as error:
        raise FetchError(f"{cache}: {error.strerror or error}") from None


def _fetch(cache: Path, root: Path, names: Names, finish: Callable[[Path], None]) -> None:
    """Into a folder beside `root` that takes its place when it is whole."""
    shutil.rmtree(root, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="part-", dir=cache) as work:
        unpacked = Path(work) / "root"
        unpacked.mkdir()
        apt = PrivateApt(Path(work) / "apt")
        versions = {}
        for archive in apt.download(names(apt)):
            _unpack(archive, unpacked)
            name, version, _ = archive.name.split("_")
            versions[name] = version.replace("%3a", ":")
        finish(unpacked)
        (unpacked / STAMP).write_text(json.dumps(versions, indent=2))
        os.replace(unpacked, root)


def _unpack(archive: Path, root: Path) -> None:
    command = ["dpkg-deb", "-x", str(archive), str(root)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=UNPACK_SECONDS, check=False)
    if done.returncode:
        raise FetchError(f"{archive.name} cannot be unpacked: {done.stderr.strip()}")
