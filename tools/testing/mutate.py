"""Plants single faults in Python files, one at a time, and runs the tests that reach them: `./go mutate [FILES]`.

Files on disk stay as they are: each run of tests is a process that reads a faulty tree in the file's place. Programs
that tests start read the file itself.
"""

import ast
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tools.testing.affected import mirrored  # noqa: E402
from tools.testing.mutants import Mutant, mutants_of  # noqa: E402
from tools.testing.mutation_runs import in_processes, reached_lines, with_fault  # noqa: E402

PATIENCE, LEAST_SECONDS = 5, 5  # a fault counts as found when tests take so many times as long as without it
NOT_FOUND = (0, 5)  # exit codes of pytest: all passed, or a fault took all parameters of the tests away


def tests_of(path: Path) -> list[str]:
    """The folder of tests that mirrors a file's package, or all tests if there is none."""
    return [os.path.relpath(mirrored(ROOT / path, ROOT) or ROOT / "tests", ROOT)]


def survivors(path: Path, tests: list[str], sample: int, jobs: int) -> Iterator[tuple[Mutant, bool]]:
    """Each fault that no test finds, and whether any test reaches it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    reached, seconds = reached_lines(path, tests)
    every = reached.get(0, set())
    mutants = mutants_of(tree)
    if 0 < sample < len(mutants):
        mutants = random.Random(0).sample(mutants, sample)
    chosen = {}
    for mutant in mutants:
        found = set().union(*(reached.get(line, ()) for line in range(mutant.statement, mutant.line + 1)))
        chosen[mutant] = every if "" in found else found
    works = (
        (m, lambda m=m, t=t: with_fault(path, m.planted(tree), t), PATIENCE * seconds + LEAST_SECONDS)
        for m, t in chosen.items()
        if t
    )
    yield from ((mutant, False) for mutant, found in chosen.items() if not found)
    yield from ((mutant, True) for mutant, code in in_processes(works, jobs) if code in NOT_FOUND)
    print(f"{os.path.relpath(path)}: {len(mutants)} faults planted", file=sys.stderr)


def changed() -> list[Path]:
    """Python files of the packages that differ from the last commit."""
    command = ["git", "-C", str(ROOT), "diff", "--name-only", "HEAD", "--", "bdforge/*.py", "bd_patterns/*.py"]
    return [ROOT / name for name in subprocess.check_output(command, text=True).split() if (ROOT / name).exists()]


def main(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Files to plant faults in; by default those that changed.")
    ] = None,
    tests: Annotated[
        list[str] | None, typer.Option(help="Tests to run; by default the folder of the file's package.")
    ] = None,
    sample: Annotated[int, typer.Option(help="So many faults of each file, drawn with a fixed seed; 0: all.")] = 0,
    jobs: Annotated[int, typer.Option(help="Faults tried at the same time.")] = 2,
) -> None:
    """Name each fault that the tests do not find; exit code 1 if there are any."""
    os.chdir(ROOT)
    count = 0
    for path in [file.resolve() for file in files] if files else changed():
        lines = path.read_text(encoding="utf-8").splitlines()
        name = os.path.relpath(path)
        for mutant, reached in survivors(path, tests or tests_of(Path(name)), sample, jobs):
            count += 1
            print(
                f"{name}:{mutant}{'' if reached else ' (no test comes here)'}\n    {lines[mutant.line - 1].strip()}",
                flush=True,
            )
    sys.exit(f"{count} faults were not found" if count else 0)


if __name__ == "__main__":
    typer.run(main)
