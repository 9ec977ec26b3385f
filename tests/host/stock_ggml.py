"""Stock ggml with our backend and the programs that tests run with it, built once."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from library_builds import FOREIGN, SANITIZED, SANITIZERS, built, sanitizer_runtime

from support.built_designs import PlannedDesign, build, spec_content
from support.ggml_packages import FetchError, Packages, fetch_ggml

HOST = SANITIZED / "host"
BACKEND = HOST / "lib" / "libggml-bdforge.so"


@cache
def stock_ggml() -> Packages:
    """The packages, with which libggml-bdforge.so and the programs are built; skips where they cannot be had."""
    try:
        packages = fetch_ggml()
    except FetchError as error:
        pytest.skip(f"ggml's packages: {error}")
    built(SANITIZED, "ggml-tests", f"ggml={packages.prefix}", "xrt=none", f"sanitize={SANITIZERS}")
    return packages


def small_design(folder: Path, **more: Any) -> PlannedDesign:
    """int8 x int2 to int32 unless `more` says otherwise, called as its folder; deep tiles are fast to emulate."""
    return build(folder, spec_content(16, 256, 64, rows=1, columns=2, **more), folder.name)


def ours(design: Path, **more: str) -> dict[str, str]:
    """The variables that make ggml load us: on the emulated array, BDFORGE_GGML_... as in `more`."""
    chosen = {"design": str(design), "device": "emulated", "counts": "1"} | more
    loaded = FOREIGN | {"GGML_BACKEND_PATH": str(BACKEND), "LD_PRELOAD": sanitizer_runtime()}
    return loaded | {f"BDFORGE_GGML_{name.upper()}": value for name, value in chosen.items()}
