"""SCons' signature database, made only when there is something to store: reading SConstruct writes nothing."""

import os

import SCons.dblite


class _Unwritten(dict):
    """Stands for a database without a file."""

    def __init__(self, name: str):
        super().__init__()
        self.name = name

    def sync(self):
        if not self:
            return
        os.makedirs(os.path.dirname(self.name), exist_ok=True)
        database = SCons.dblite.open(self.name, "c")
        for key, value in self.items():
            database[key] = value
        database.sync()


def open(name: str, flag: str = "c"):  # the name that SCons calls
    """The database called `name`."""
    exists = os.path.exists(name + SCons.dblite.DBLITE_SUFFIX)
    return SCons.dblite.open(name, flag) if exists else _Unwritten(name)
