"""The designs that `einsum` runs on where none is named: one for integers and one for floats, built when needed."""

import hashlib
import re
from importlib.metadata import version
from pathlib import Path

from bdforge.common import compilers
from bdforge.common.files import FileError, alone, read_bytes
from bdforge.common.messages import bounded, clip_path, warn_once
from bdforge.common.tree import scons, tree
from bdforge.runtime import BuildError

VARIABLE = "BDFORGE_EINSUM"
"""The folder of the built design that `einsum` runs on where none is given."""
FLOATS, INTEGERS = ("phoenix", "gemm_bf16_bf16_f32_64x64x64"), ("strix_halo", "gemm_i8_i8_i32_96x64x96")
"""Products and designs; bf16 x bf16 to f32 is AIE2's."""
_SAID = 1500  # of what a build said


def default_design(operand: object) -> Path:
    """The folder of a built design for operands like this one; BuildError where it cannot be built.

    What stands in `build/` of this folder is taken, else what was built once into bdforge's cache. Says once which.
    """
    dtype = getattr(operand, "dtype", None)
    integers = re.search(r"\bu?int\d", str(dtype))  # of numpy, or of others
    product, name = INTEGERS if integers else FLOATS
    here, kept = Path("build", product, name), _cache(name)
    for folder in (here, kept / product / name):
        if (folder / "manifest.json").is_file():
            _say(name, product, f"in {clip_path(folder)}")
            return folder
    _say(name, product, f"which is built into {clip_path(kept)} first, in about half a minute")
    _build(kept, product, name)
    return kept / product / name


def _say(name: str, product: str, where: str) -> None:
    warn_once(f"einsum runs on {name} for {product}, {where}; name another design with on= or {VARIABLE}")


def _cache(name: str) -> Path:
    """`bdforge/designs` in XDG_CACHE_HOME or ~/.cache, by what such a build is made of."""
    sources = [path for part in ("kernels", "templates") for path in sorted((tree() / part).rglob("*"))]
    made_of = hashlib.sha256(version("bdforge").encode())
    for path in (tree() / "designs" / f"{name}.toml", *(path for path in sources if path.is_file())):
        made_of.update(read_bytes(path, FileError))
    return compilers.folder() / "designs" / made_of.hexdigest()[:20]


def _build(folder: Path, product: str, name: str) -> None:
    """All that emulation needs, by SCons; one process at a time."""
    with alone(folder, BuildError):
        if (folder / product / name / "manifest.json").is_file():  # another process was first
            return
        code, said = scons(f"device={product}", f"design={name}", f"build={folder}", "host", quiet=True)
    if code:
        said = bounded(said.strip(), _SAID)
        raise BuildError(f"einsum: {name} cannot be built ({said}); name a built design with on= or {VARIABLE}")
