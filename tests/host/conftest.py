"""One build of the library, and one device server for the programs that the tests of a session run."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from host_programs import probed
from library_builds import sanitized_build

from bdforge.runtime.service import SOCKET_VARIABLE, serving


@pytest.fixture(scope="session", autouse=True)
def device_server() -> Iterator[str]:
    """Its name, which programs find in their environment."""
    with serving() as name:
        os.environ[SOCKET_VARIABLE] = name
        yield name
        del os.environ[SOCKET_VARIABLE]


@pytest.fixture(scope="session")
def probe() -> Callable[[list[str]], list[str]]:
    """What C++ makes of programs: words as a list, or an error's kind and text."""
    return lambda lines: probed("programs", lines=lines)


@pytest.fixture(scope="session")
def build() -> Path:
    """The folder of the library and its programs, with sanitizers."""
    return sanitized_build()
