"""Running a tool: whole outputs or none."""

import pytest

from bdforge.runtime.toolchain import ToolError, run_tool


def shell(text: str, *arguments) -> list:
    return ["sh", "-c", text, "tool", *arguments]


def test_outputs_appear_together_after_success(tmp_path):
    first, second = tmp_path / "out" / "a b.bin", tmp_path / "out" / "c.bin"
    command = shell('echo 1 >"$1"; test ! -e "$3"; echo 2 >"${2#--name=}"; echo done', first, f"--name={second}", first)
    assert run_tool(command, [first, second]) == "done\n"
    assert (first.read_text(), second.read_text()) == ("1\n", "2\n")
    assert sorted(path.name for path in first.parent.iterdir()) == ["a b.bin", "c.bin"]


def test_a_failure_keeps_the_old_output_and_shows_text_and_command(tmp_path):
    output = tmp_path / "lib.so"
    output.write_text("old")
    with pytest.raises(ToolError, match="sh failed with exit code 3; to repeat: sh -c") as caught:
        run_tool(shell('echo half >"$1"; echo why; exit 3', output), [output])
    assert caught.value.output == "why\n"
    assert str(output) in str(caught.value)
    assert output.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["lib.so"]


def test_success_without_an_output_is_a_failure(tmp_path):
    with pytest.raises(ToolError, match=r"succeeded but did not write .*b\.bin"):
        run_tool(shell('echo 1 >"$1"', tmp_path / "a.bin"), [tmp_path / "a.bin", tmp_path / "b.bin"])
    assert not list(tmp_path.iterdir())


def test_a_tool_that_does_not_start_is_named(tmp_path):
    with pytest.raises(ToolError, match="/no/such/tool does not start: No such file"):
        run_tool(["/no/such/tool"], [tmp_path / "a.bin"])


def test_a_killed_tool_names_the_signal(tmp_path):
    with pytest.raises(ToolError, match="sh failed with signal 9"):
        run_tool(shell("kill -9 $$"), [tmp_path / "a.bin"])


def test_names_that_the_tool_fills_in_are_staged_too(tmp_path):
    outputs = [tmp_path / "insts_a.bin", tmp_path / "insts_b.bin"]
    command = shell('for n in a b; do echo $n >"$(echo "${1#--name=}" | sed "s/{1}/$n/")"; done')
    run_tool([*command, f"--name={tmp_path}/insts_{{1}}.bin"], outputs)
    assert [path.read_text() for path in outputs] == ["a\n", "b\n"]
    assert sorted(tmp_path.iterdir()) == outputs


def test_a_tool_without_outputs_works_where_it_is_told(tmp_path):
    assert run_tool(shell("echo 1 >made; echo said"), [], tmp_path) == "said\n"
    assert [path.name for path in tmp_path.iterdir()] == ["made"]
    with pytest.raises(ToolError, match=f"to repeat: cd {tmp_path} && sh -c 'exit 2'"):
        run_tool(shell("exit 2"), [], tmp_path)


def test_a_tool_may_write_by_a_name_of_its_own(tmp_path):
    """That name comes first; the output's own will do too."""
    first, second = tmp_path / "a.bin", tmp_path / "b.bin"
    command = shell('d=$(dirname "$1"); echo own >"$d/main_a.bin"; echo no >"$1"; echo two >"$2"', first, second)
    run_tool(command, [first, second], written=lambda name: f"main_{name}")
    assert (first.read_text(), second.read_text()) == ("own\n", "two\n")
    assert sorted(tmp_path.iterdir()) == [first, second]


def test_a_tool_gets_its_folder_its_environment_and_no_input(tmp_path):
    (tmp_path / "work").mkdir()
    said = run_tool(
        shell('pwd; echo "$MADE_UP"; cat; echo err >&2; echo "$1" >"$1"', tmp_path / "out.txt"),
        [tmp_path / "out.txt"], tmp_path / "work", {"MADE_UP": "given", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert said.splitlines() == [str(tmp_path / "work"), "given", "err"]
    assert ".part-" in (tmp_path / "out.txt").read_text()


def test_words_that_only_contain_an_output_are_left_alone(tmp_path):
    output = tmp_path / "a.bin"
    said = run_tool(shell('echo "$1 $2 $3"; echo >"$4"', f"{output}.txt", "{0}", f"x={output.name}", output), [output])
    assert said == f"{output}.txt {{0}} x=a.bin\n"
