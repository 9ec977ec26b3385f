"""What pyproject.toml cannot say: the folders beside the package become package data of a wheel.

Each has one home, the top of the tree, where builds and people find it; `bdforge.common.tree` knows both places.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SHARED = ("SConstruct", "designs", "examples", "host", "kernels", "site_scons", "templates")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", "*.so", ".sconsign*")


class BuildWithTree(build_py):
    """Copies the shared folders into `bdforge/share`; an editable installation uses them where they are."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        root, share = Path(__file__).resolve().parent, Path(self.build_lib, "bdforge", "share")
        shutil.rmtree(share, ignore_errors=True)
        share.mkdir(parents=True)
        for name in SHARED:
            if (root / name).is_dir():
                shutil.copytree(root / name, share / name, ignore=LEFT_OUT)
            else:
                shutil.copy2(root / name, share / name)


setup(cmdclass={"build_py": BuildWithTree})
