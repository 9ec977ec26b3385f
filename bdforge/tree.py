"""Where templates, kernels, designs and the rules of builds lie.

In a checkout they are the folders beside this package; a wheel has copies of them inside of it (`setup.py`).
"""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
INSTALLED = "share"  # the folder of a wheel, in the package


def tree() -> Path:
    """The folder that holds SConstruct, designs, examples, host, kernels, site_scons and templates."""
    installed = PACKAGE / INSTALLED
    return installed if installed.is_dir() else PACKAGE.parent
