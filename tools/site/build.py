"""The site: pages of the tree as they are, and pages made of the code, in a folder for each version.

Sphinx reads Markdown as CommonMark (MyST), so pages look as they do in the repository, and a link that leads nowhere is
a fault. Sources are laid out as in the tree, so their links hold; files beside pages become downloads.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import bdforge
from bdforge.cli.system_files import write_system_files
from tools.site import api, commands, operators, schemas

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build" / "site"
_HERE = Path(__file__).parent
_BESIDE = ("bdforge/devices", "designs", "examples")
"""Folders with files that pages link to."""
_LEADING = """<!doctype html>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={}/index.html">
<title>bdforge</title>
"""
_FIRST = """
```{toctree}
:hidden:

tutorials
how_to
reference
explanation
```
"""


def build(out: Path = SITE) -> int:
    """Build this version below `out`, its man page too; Sphinx' exit code, above 0 where it warns."""
    version = out / bdforge.__version__
    with TemporaryDirectory(prefix="bdforge-site-") as folder:
        source = Path(folder, "source")
        lay_out(source)
        shutil.rmtree(version, ignore_errors=True)
        if status := read_as_site(source, Path(folder, "doctrees"), version):
            return status
    write_system_files(version)
    list_versions(out)
    return 0


def lay_out(source: Path) -> None:
    """Pages of the tree, and those made of the code."""
    shutil.copytree(ROOT / "docs", source / "docs")
    shutil.copytree(_HERE / "pages", source, dirs_exist_ok=True)
    for page in ROOT.glob("*.md"):  # the README is the first page
        text = page.read_text(encoding="utf-8").replace("](README.md)", "](index.md)")
        first = page.name == "README.md"
        (source / ("index.md" if first else page.name)).write_text(text + _FIRST * first, encoding="utf-8")
    for name in _BESIDE:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "LICENSE", source)
    for part in (commands, operators, schemas, api):
        for name, text in part.pages().items():
            path = source / "reference" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def read_as_site(source: Path, doctrees: Path, made: Path) -> int:
    """Have Sphinx make the pages; its exit code, 1 for warnings."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "auto", "-b", "html"]
    command += ["-A", "playground=1"] if (made.parent / "playground" / "index.html").exists() else []
    return subprocess.run([*command, "-c", _HERE, "-d", doctrees, source, made], check=False, cwd=ROOT).returncode


def list_versions(out: Path) -> None:
    """Tell all versions what versions there are, by a script: pages opened from a disk may load no other data."""
    found = [page.parent.name for page in out.glob("[0-9]*/index.html")]
    newest_first = sorted(found, key=lambda name: [int(part) for part in name.split(".")], reverse=True)
    (out / "versions.js").write_text(f"var versions = {json.dumps(newest_first)};\n", encoding="utf-8")
    (out / ".nojekyll").touch()  # GitHub Pages would leave out folders like _static
    (out / "index.html").write_text(_LEADING.format(newest_first[0]), encoding="utf-8")
