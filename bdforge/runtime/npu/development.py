"""XRT's headers and library, for compiling and linking hosts against them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

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
