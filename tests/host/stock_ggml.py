"""Stock ggml with our backend and the programs that tests run with it, built once."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from library_builds import WITH_XRT, built

from support.built_designs import PlannedDesign, build, spec_content
from support.ggml_packages import FetchError, Packages, fetch_ggml

HOST = WITH_XRT / "host"
BACKEND = HOST / "lib" / "libggml-bdforge.so"


@cache
def stock_ggml() -> Packages:
    """The packages, with which libggml-bdforge.so and the programs are built; skips where they cannot be had."""
    try:
        packages = fetch_ggml()
    except FetchError as error:
        pytest.skip(f"ggml's packages: {error}")
    built(WITH_XRT, "ggml-tests", f"ggml={packages.prefix}", "xrt=none", "optimise=no")
    return packages


def small_design(folder: Path, **more: Any) -> PlannedDesign:
    """int8 x int2 to int32 unless `more` says otherwise, called as its folder; deep tiles are fast to emulate."""
    return build(folder, spec_content(16, 256, 64, rows=1, columns=2, **more), folder.name)


def ours(design: Path, **more: str) -> dict[str, str]:
    """The variables that make ggml load us: on the emulated array, BDFORGE_GGML_... as in `more`."""
    chosen = {"design": str(design), "device": "emulated", "counts": "1"} | more
    return {"GGML_BACKEND_PATH": str(BACKEND)} | {
        f"BDFORGE_GGML_{name.upper()}": value for name, value in chosen.items()
    }
