"""A private copy of Debian's XRT packages: fetched by apt without root, unpacked in a cache, run with their libc."""

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bdforge.xrt.apt import FetchError, PrivateApt

STAMP = "versions.json"  # written last: an interrupted fetch leaves none
UNPACK_SECONDS = 30
MULTIARCH = "x86_64-linux-gnu"
LOADER = "ld-linux-x86-64.so.2"

PACKAGES = (
    "libxrt2", "libxrt-npu2", "libxrt-dev", "libxrt-utils", "libxrt-utils-npu", "python3-xrt",
    "libc6", "libstdc++6", "libgcc-s1", "libssl3t64", "libzstd1", "zlib1g", "libuuid1", "uuid-dev", "linux-libc-dev",
)  # fmt: skip
"""What compiling, linking and running a host and XRT's tools takes; Boost's names carry versions and are asked for."""


@dataclass(frozen=True, slots=True)
class XrtPackages:
    """Unpacked packages. `root` holds `usr/`; `versions` are those of the packages by name."""

    root: Path
    versions: Mapping[str, str]

    @property
    def prefix(self) -> Path:
        """The `usr` folder, as `xrt=` takes it."""
        return self.root / "usr"

    @property
    def libraries(self) -> Path:
        """Folder of all shared libraries."""
        return self.prefix / "lib" / MULTIARCH

    @property
    def python_stub(self) -> Path:
        """pyxrt's stub."""
        return self.prefix / "lib/python3/dist-packages/pyxrt.pyi"

    def command(self, program: Path | str, *arguments: Path | str) -> list[str]:
        """The words that run a program with these libraries; a bare name is one of the packages'."""
        path = Path(program) if os.sep in str(program) else self.prefix / "bin" / program
        return [str(self.libraries / LOADER), "--library-path", str(self.libraries), str(path), *map(str, arguments)]


def default_cache() -> Path:
    """Where packages are kept: below XDG_CACHE_HOME."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bdforge" / "xrt"


def fetch_packages(cache: Path | None = None) -> XrtPackages:
    """The packages, from `cache` when they were fetched before.

    FetchError says why they cannot be had: no apt, no Debian mirror among this machine's sources, no network. Several
    processes may call it at once.
    """
    cache = cache or default_cache()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            root = cache / "root"
            if not (root / STAMP).is_file():
                _fetch(cache, root)
            return XrtPackages(root, json.loads((root / STAMP).read_text()))
    except OSError as error:
        raise FetchError(f"{cache}: {error.strerror or error}") from None


def _fetch(cache: Path, root: Path) -> None:
    """Into a folder beside `root` that takes its place when it is whole."""
    shutil.rmtree(root, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="part-", dir=cache) as work:
        unpacked = Path(work) / "root"
        unpacked.mkdir()
        apt = PrivateApt(Path(work) / "apt")
        versions = {}
        for archive in apt.download([*PACKAGES, *_boost(apt)]):
            _unpack(archive, unpacked)
            name, version, _ = archive.name.split("_")
            versions[name] = version.replace("%3a", ":")
        (unpacked / STAMP).write_text(json.dumps(versions, indent=2))
        os.replace(unpacked, root)


def _boost(apt: PrivateApt) -> list[str]:
    """The Boost libraries that XRT's tools need, and those that these need."""
    direct = [name for name in apt.depends("libxrt-utils") if name.startswith("libboost")]
    return list(dict.fromkeys([*direct, *(n for d in direct for n in apt.depends(d) if n.startswith("libboost"))]))


def _unpack(archive: Path, root: Path) -> None:
    command = ["dpkg-deb", "-x", str(archive), str(root)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=UNPACK_SECONDS, check=False)
    if done.returncode:
        raise FetchError(f"{archive.name} cannot be unpacked: {done.stderr.strip()}")
