"""Debian's XRT: libraries, headers and tools, as `debian_packages` fetches them."""

from pathlib import Path

from support.debian_packages import FetchError, Packages, PrivateApt, cache_folder, fetch

__all__ = ["FetchError", "Packages", "fetch_packages", "python_stub"]

PACKAGES = (
    "libxrt2", "libxrt-npu2", "libxrt-dev", "libxrt-utils", "libxrt-utils-npu", "python3-xrt",
    "libc6", "libstdc++6", "libgcc-s1", "libssl3t64", "libzstd1", "zlib1g", "libuuid1", "uuid-dev", "linux-libc-dev",
)  # fmt: skip
"""What compiling, linking and running a host and XRT's tools takes; Boost's names carry versions and are asked for."""


def fetch_packages(cache: Path | None = None) -> Packages:
    """The packages, from `cache` when they were fetched before; FetchError says why they cannot be had."""
    return fetch(cache or cache_folder("xrt"), lambda apt: [*PACKAGES, *_boost(apt)])


def python_stub(packages: Packages) -> Path:
    """pyxrt's stub."""
    return packages.prefix / "lib/python3/dist-packages/pyxrt.pyi"


def _boost(apt: PrivateApt) -> list[str]:
    """The Boost libraries that XRT's tools need, and those that these need."""
    direct = [name for name in apt.depends("libxrt-utils") if name.startswith("libboost")]
    return list(dict.fromkeys([*direct, *(n for d in direct for n in apt.depends(d) if n.startswith("libboost"))]))
