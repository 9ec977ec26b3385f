"""Where templates, kernels, designs and the rules of builds lie.

In a checkout they are the folders beside this package; a wheel has copies of them inside of it (`setup.py`).
"""

import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
INSTALLED = "share"  # the folder of a wheel, in the package


def tree() -> Path:
    """The folder that holds SConstruct, designs, examples, host, kernels, site_scons and templates."""
    installed = PACKAGE / INSTALLED
    return installed if installed.is_dir() else PACKAGE.parent


def scons(*words: str, quiet: bool = False) -> tuple[int, str]:
    """SCons' exit code for targets and variables, by the rules of builds; what it says, too, where it is `quiet`."""
    command, shown = [sys.executable, "-m", "SCons", "-Q", *words], subprocess.STDOUT if quiet else None
    done = subprocess.run(
        command, cwd=tree(), check=False, text=True, errors="replace", stdout=subprocess.PIPE if quiet else None,
        stderr=shown,
    )  # fmt: skip
    return done.returncode, done.stdout or ""
