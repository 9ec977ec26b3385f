"""`bdforge balance`: three steps, and the command that goes on from there."""

import shlex

import pytest


def test_the_walk_is_told_in_three_steps_and_goes_on_with_tune(run):
    arguments = ("balance", "--types", "int8,int8,int32", "--shape", "512x256x512", "--device", "phoenix")
    code, out, _ = run(*arguments)
    assert code == 0
    for step in ("1. One core: the fastest of", "2. The array: ", "3. Down the ranking"):
        assert step in out
    line = next(line for line in out.splitlines() if "bdforge tune" in line)
    words = shlex.split(line.partition(": bdforge ")[2])
    code, toml, _ = run(*words, "--finalists", "0", "--state", "search.jsonl")
    assert code == 0
    assert "rho = 1" in toml


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--b-layout", "diagonal"), "unknown order 'diagonal'"),
        (("--shape", "7"), "is not MxKxN"),
        (("--kernel", "best"), "kernel 'best' is not one of"),
        (("--types", "int8"), "are not A,B,C"),
    ],
)
def test_wrong_requests_are_one_message(run, options, message):
    code, out, err = run("balance", *options)
    assert (code, out) == (2, "")
    assert message in " ".join(err.replace("│", " ").split())
