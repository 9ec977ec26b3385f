"""Memory that loads find something in."""

import pytest

from support import machine_code


@pytest.fixture
def filled_memory(monkeypatch):
    """Cores of this test start with 1, 2, 3 ... in the first KB of their own memory from 0x400 on."""
    empty = machine_code.memories

    def filled():
        memory = empty()
        own = memory.windows[3]
        assert own is not None
        own[0x400:0x480] = range(1, 0x81)
        return memory

    monkeypatch.setattr(machine_code, "memories", filled)
