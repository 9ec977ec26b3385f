"""Where calls that Linux alone has are missing, as on macOS, commands start all the same."""

import subprocess
import sys

import pytest

WITHOUT_LINUX = """
import importlib, os, select, socket
for owner, names in ((os, ("sched_getaffinity", "sched_setaffinity", "pidfd_open", "memfd_create", "posix_fallocate")),
                     (socket, ("SO_PEERCRED",)), (select, ("epoll",))):
    for name in names:
        if hasattr(owner, name):
            delattr(owner, name)
from bdforge.cli.commands import HOMES
for home in {*HOMES.values()}:
    importlib.import_module(f"bdforge.cli.{home}")
importlib.import_module("bdforge.models.tensors")
from bdforge.common.compilers import processors
assert processors() == os.cpu_count()
"""


@pytest.mark.slow
def test_every_command_is_imported_without_what_linux_alone_has():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_LINUX], text=True, capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
