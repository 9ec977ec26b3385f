"""Programs in examples/, which are no package: each as a module of its own."""

import runpy
from pathlib import Path
from types import SimpleNamespace

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name: str, run_as: str = "example") -> SimpleNamespace:
    """What `examples/<name>` defines when it runs under the name `run_as`."""
    return SimpleNamespace(**runpy.run_path(str(EXAMPLES / name), run_name=run_as))
