"""What pyproject.toml cannot say: folders beside the package become package data of a wheel, which has man pages, too.

Each folder has one home, the top of the tree, where builds and people find it; `bdforge.common.tree` knows both places.
Man pages and shells' completion are made from the command line, so that building needs what running does.
"""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SHARED = ("SConstruct", "designs", "examples", "host", "kernels", "site_scons", "templates")
ROOT = Path(__file__).resolve().parent
NEEDED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", "*.so", ".sconsign*")


class BuildWithTree(build_py):
    """Copies the shared folders into `bdforge/share`; an editable installation uses them where they are.

    What systems look for below `share` of an environment goes there.
    """

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        share = Path(self.build_lib, "bdforge", "share")
        shutil.rmtree(share, ignore_errors=True)
        share.mkdir(parents=True)
        for name in SHARED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, share / name, ignore=LEFT_OUT)
            else:
                shutil.copy2(ROOT / name, share / name)
        self._add_system_files(Path(self.build_lib).resolve().with_name("system"))

    def _add_system_files(self, made: Path) -> None:
        shutil.rmtree(made, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "bdforge.cli.system_files", made / "share"], cwd=ROOT, check=True)
        files = [path for path in sorted(made.rglob("*")) if path.is_file()]
        self.distribution.data_files = [(str(path.parent.relative_to(made)), [str(path)]) for path in files]


setup(cmdclass={"build_py": BuildWithTree}, setup_requires=NEEDED)
