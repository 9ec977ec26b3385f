"""Modules of tests, which two processes import from both ends, where both would make them anew at the same time."""

import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest


def import_from_behind(config: pytest.Config) -> None:
    """Import the modules below the folders that are given from the last one on, in every second process of a run.

    Collection imports them from the first one on. Who comes first rewrites a module's asserts and keeps them in a file,
    which is most of a collection's time in a tree without such files; the other process reads them.
    """
    worker = getattr(config, "workerinput", {}).get("workerid", "gw0")
    if int(worker.removeprefix("gw")) % 2:
        given = (config.invocation_params.dir / argument for argument in config.args)
        for module in sorted((path for folder in given for path in folder.rglob("test_*.py")), reverse=True):
            _import(module)


def _import(module: Path) -> None:
    """As pytest does, to whom all faults are left."""
    if (folder := str(module.parent)) not in sys.path:
        sys.path.insert(0, folder)
    with suppress(Exception, pytest.skip.Exception):
        import_module(module.stem)
