"""Pages followed as a reader does: lines typed into a shell, files saved and changed, what is printed compared.

`bdforge` and `scons` run in forks of a process that has imported them, where a line does not ask for whole processes.
"""

import os
import re
import subprocess
from pathlib import Path

from support.built_designs import ROOT
from support.forked import BDFORGE, SCONS, forks_of_programs

SECONDS = 600  # against a hang only
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TYPED = re.compile(r"^\$ (?P<line>.*)\n(?P<printed>(?:(?!\$ ).*\n)*)", re.MULTILINE)


def forked_programs(folder: Path) -> Path:
    """A folder for PATH with `bdforge` and `scons`."""
    folder.mkdir()
    for name, entry in (("bdforge", BDFORGE), ("scons", SCONS)):
        forks_of_programs().program(folder / name, entry)
    return folder


def shell(folder: Path, lines: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Lines of bash, run in a folder; variables that would change what is printed are not this process's."""
    kept = {name: value for name, value in os.environ.items() if name not in ("SCONSFLAGS", "COLUMNS")}
    kept |= {"PYTHONPATH": str(ROOT)} | environ
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", lines], cwd=folder, env=kept, text=True, capture_output=True,
        timeout=SECONDS, check=False,
    )  # fmt: skip


def run_line(folder: Path, line: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """A line, which must end with 0, or the exit code that its comment tells."""
    done = shell(folder, line, **environ)
    told = re.search(r"exit code (\d)", line)
    assert done.returncode == int(told[1] if told else 0), f"{line}\n{done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


def untimed(line: str) -> str:
    """A line without what differs from run to run: blanks, widths of rules, and seconds of this machine."""
    return re.sub(r"\b\d+\.\d( s\b|$)", "some s", re.sub("─+", "─", " ".join(line.split())))


def follow(page: str, folder: Path, **environ: str) -> None:
    """Do what a tutorial says, from top to bottom.

    Behind a line that ends with "`file`:" stands what to save there, to append where it says so, or a change as a
    diff. In a `console` each line behind `$` runs and prints the lines below it, `...` for any number.
    """
    here = folder
    for block in FENCED.finditer(page):
        language, body = block.groups()
        if language == "console":
            for typed in TYPED.finditer(body):
                here = _type(here, typed["line"], typed["printed"], environ)
            continue
        lead = page[: block.start()].rstrip().rpartition("\n")[2]
        if named := re.search(r"`([\w./]+)`(?: back)?:$", lead):
            _save(here / named[1], body, lead, language)


def _save(file: Path, body: str, lead: str, language: str) -> None:
    if language == "diff":
        before, after = (_side(body, sign) for sign in "-+")
        text = file.read_text(encoding="utf-8")
        assert text.count(before) == 1, f"{file.name} has not once:\n{before}"
        body = text.replace(before, after)
    elif "ppend" in lead:
        body = file.read_text(encoding="utf-8") + body
    file.parent.mkdir(exist_ok=True)
    file.write_text(body, encoding="utf-8")


def _side(diff: str, sign: str) -> str:
    return "".join(line[1:] for line in diff.splitlines(keepends=True) if line[0] in (sign, " "))


def _type(here: Path, line: str, printed: str, environ: dict[str, str]) -> Path:
    """Run a line; the folder after it."""
    if line.startswith("cd "):
        return here / line.removeprefix("cd ")
    done = run_line(here, line, **environ)
    shown = [untimed(one) for one in printed.splitlines()]
    real = [untimed(one) for one in (done.stdout + done.stderr).splitlines()]
    pattern = "".join(r"(?:.*\n)*" if one == "..." else re.escape(one) + "\n" for one in shown)
    assert re.fullmatch(pattern, "".join(f"{one}\n" for one in real)), f"{line}\nprints:\n{done.stdout}{done.stderr}"
    return here
