"""What a call prints, as lines."""

from collections.abc import Callable

import pytest


@pytest.fixture
def printed(monkeypatch, capfd) -> Callable[..., list[str]]:
    """Lines that a call prints, each blank once; those of standard error with `err`."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def printed(call: Callable[[], object], *, err: bool = False) -> list[str]:
        call()
        out, told = capfd.readouterr()
        return [" ".join(line.split()) for line in (told if err else out).splitlines()]

    return printed
