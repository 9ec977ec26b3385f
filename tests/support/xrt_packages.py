"""Debian's XRT: libraries, headers and tools, as `debian_packages` fetches them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from support.debian_packages import FetchError, Packages, PrivateApt, cache_folder, fetch

__all__ = ["FetchError", "Packages", "Python", "fetch_packages", "fetch_python", "python_stub"]

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
    return _modules(packages) / "pyxrt.pyi"


def _modules(packages: Packages) -> Path:
    return packages.prefix / "lib/python3/dist-packages"


@dataclass(frozen=True, slots=True)
class Python:
    """The interpreter that pyxrt is made for: `packages` run `program` with all libraries, given these variables."""

    packages: Packages
    program: Path
    variables: Mapping[str, str]


def fetch_python(xrt: Packages) -> Python:
    """Debian's Python of pyxrt's version beside XRT's packages; FetchError as `fetch_packages`."""
    modules = _modules(xrt)
    tag = next((path.name.split("-")[1] for path in modules.glob("pyxrt.cpython-*.so")), None)
    if tag is None:
        raise FetchError(f"{modules}: python3-xrt holds no pyxrt for CPython")
    name = f"python{tag[0]}.{tag[1:]}"
    names = (f"{name}-minimal", f"lib{name}-minimal", f"lib{name}-stdlib", "libexpat1")
    found = fetch(cache_folder(f"xrt-{name}"), lambda _: names)
    variables = {"PYTHONHOME": str(found.prefix), "PYTHONPATH": str(modules)}
    return Python(replace(xrt, folders=(str(found.libraries),)), found.prefix / "bin" / name, variables)


def _boost(apt: PrivateApt) -> list[str]:
    """The Boost libraries that XRT's tools need, and those that these need."""
    direct = [name for name in apt.depends("libxrt-utils") if name.startswith("libboost")]
    return list(dict.fromkeys([*direct, *(n for d in direct for n in apt.depends(d) if n.startswith("libboost"))]))
