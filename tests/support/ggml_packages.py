"""Stock ggml and llama.cpp: Debian's packages, and from npm an older release with another API version of backends."""

import dataclasses
import fcntl
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from support.debian_packages import FetchError, Packages, cache_folder, fetch

__all__ = ["FetchError", "Packages", "fetch_ggml", "fetch_older_ggml", "op_tests"]

PACKAGES = (
    "libggml0", "libggml-dev", "libllama0", "libllama-dev", "llama.cpp-tools", "libc6", "libgcc-s1", "libgomp1",
    "libstdc++6", "libssl3t64", "zlib1g", "libzstd1",
)  # fmt: skip
OLDER = "@node-llama-cpp/linux-x64@3.22.1"  # ggml 0.25.1
NPM_SECONDS = 60


def fetch_ggml() -> Packages:
    """Debian's packages, from the cache when they were fetched before; FetchError says why they cannot be had."""
    found = fetch(cache_folder("ggml"), lambda apt: PACKAGES, _show_backends)
    return dataclasses.replace(found, folders=("llama",))


def op_tests(packages: Packages) -> Path:
    """test-backend-ops."""
    return packages.prefix / "libexec" / packages.libraries.name / "ggml" / "test-backend-ops"


def _show_backends(root: Path) -> None:
    """ggml looks for backends beside the program, which is the loader for those that run with their own libc."""
    libraries = Packages(root, {}).libraries
    for backend in libraries.glob("ggml/backends*/*.so"):
        (libraries / backend.name).symlink_to(backend.relative_to(libraries))


def fetch_older_ggml() -> Path:
    """The folder of the older release's libraries, which run with this machine's libc; FetchError as `fetch_ggml`."""
    cache = cache_folder("ggml-older")
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (cache / "package").is_dir():
            _fetch_older(cache)
    return cache / "package" / "bins" / "linux-x64"


def _fetch_older(cache: Path) -> None:
    if not shutil.which("npm"):
        raise FetchError("npm is not installed")
    with tempfile.TemporaryDirectory(prefix="part-", dir=cache) as work:
        try:
            words = ["npm", "pack", "--silent", OLDER]
            done = subprocess.run(words, cwd=work, capture_output=True, text=True, timeout=NPM_SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise FetchError(f"npm: {error}") from None
        archives = list(Path(work).glob("*.tgz"))
        if done.returncode or len(archives) != 1:
            raise FetchError(f"npm pack {OLDER}: {' '.join(done.stderr.split())[:200]}")
        with tarfile.open(archives[0]) as archive:
            archive.extractall(work, filter="data")
        os.replace(Path(work) / "package", cache / "package")
