"""Commands that say or plan something start without the dialects and the emulated array, which take a second."""

import subprocess
import sys

import pytest
import typer
from typer.core import TyperGroup

from bdforge.cli.commands import HOMES, app
from bdforge.cli.summaries import summaries
from support.built_designs import ROOT

LOADED = """
import sys
from bdforge.cli import main
try:
    main()
finally:
    print(sorted({"xdsl", "bdforge.array.emulator.api", "matplotlib"} & sys.modules.keys()))
"""


@pytest.mark.daily("--help")
@pytest.mark.parametrize("words", ["--help", "--version", f"plan {ROOT}/designs/gemm_i8_i2_bitnet.toml"])
def test_the_dialects_are_not_imported(words: str):
    command = [sys.executable, "-c", LOADED, *words.split()]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_list_of_commands_is_read_as_they_are():
    whole = typer.main.get_command(app)
    assert isinstance(whole, TyperGroup)
    told = {name: found for home in {*HOMES.values()} for name, found in summaries(home).items()}
    assert told == {name: ((one.help or "").split("\n\n")[0], one.hidden) for name, one in whole.commands.items()}
