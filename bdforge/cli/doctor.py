"""`bdforge doctor`: what is here, what is missing, and how to get it."""

from collections.abc import Collection, Sequence
from typing import Annotated

import typer

import bdforge
from bdforge.cli.json_output import Examination
from bdforge.cli.options import AsJson
from bdforge.common.screen import say_prose
from bdforge.runtime.npu import Finding
from bdforge.runtime.toolchain.doctor import PURPOSES, examine

app = typer.Typer()


@app.command()
def doctor(
    purposes: Annotated[
        list[str] | None,
        typer.Option(
            "--for",
            help=f"Only what one of {', '.join(PURPOSES)} needs; exit code 1 when some of it is missing; repeatable.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Tell what building for and running on a real NPU needs, what of it is here, and how to get the rest."""
    for purpose in purposes or []:
        if purpose not in PURPOSES:
            raise typer.BadParameter(f"{purpose!r} is not one of {', '.join(PURPOSES)}", param_hint="--for")
    asked = set(purposes or PURPOSES)
    own = Finding("bdforge", True, bdforge.__version__, purposes=tuple(PURPOSES))
    findings = [finding for finding in (own, *examine()) if asked & set(finding.purposes)]
    if as_json:
        Examination.of(findings).print()
    else:
        _print(findings, asked)
    if purposes and any(finding.fails for finding in findings):
        raise typer.Exit(1)


def _print(findings: Sequence[Finding], asked: Collection[str]) -> None:
    for finding in findings:
        _print_finding(finding)
    for purpose in (name for name in PURPOSES if name in asked):
        failing = [finding.name for finding in findings if finding.fails and purpose in finding.purposes]
        what = f"{len(failing)} missing or bad: {', '.join(failing)}" if failing else "all there"
        say_prose(f"{purpose} ({PURPOSES[purpose]}): {what}")


def _print_finding(finding: Finding) -> None:
    word = ("missing" if finding.needed else "check") if not finding.present else "bad" if finding.fault else "ok"
    say_prose(f"{word:7}  {finding.name}: {finding.detail}")
    if finding.fault:
        say_prose(f"         {finding.fault}")
    if not finding.present or finding.fault:
        say_prose(f"         {finding.remedy}")
