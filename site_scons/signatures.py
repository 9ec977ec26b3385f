"""SCons' signature database, made only when there is something to store: reading SConstruct writes nothing.

Where it cannot be written, a sentence says so instead of a traceback.
"""

import contextlib
import os
import sys

import SCons.dblite


class _Unwritten(dict):
    """Stands for a database without a file."""

    def __init__(self, name: str):
        super().__init__()
        self.name = name

    def sync(self):
        """Make the file, with what is stored."""
        if not self:
            return
        try:
            os.makedirs(os.path.dirname(self.name), exist_ok=True)
            database = _Database(self.name, "c")
        except OSError as error:
            _lost(self.name, error)
        for key, value in self.items():
            database[key] = value
        database.sync()


class _Database(SCons.dblite._Dblite):
    """SCons' own, which also tries to write when it is thrown away."""

    def sync(self):
        """Write it, whole or not at all."""
        try:
            super().sync()
        except OSError as error:
            self._needs_sync = False
            with contextlib.suppress(OSError):
                os.unlink(self._tmp_name)
            _lost(self._file_name, error)


def _lost(name: str, error: OSError):
    sys.stdout.flush()
    sys.stderr.write(f"scons: {name}: cannot be written: {error.strerror}; the next build makes more than it must.\n")
    raise SystemExit(2)


def open(name: str, flag: str = "c"):  # the name that SCons calls
    """The database called `name`."""
    exists = os.path.exists(name + SCons.dblite.DBLITE_SUFFIX)
    return _Database(name, flag) if exists else _Unwritten(name)
