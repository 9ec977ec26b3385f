"""`bdforge generate` and `bdforge bench` on a tiny BitNet."""

import re
import sys
from pathlib import Path

import pytest

from bdforge.cli import main
from tools.bitnet.content import config, random_content
from tools.bitnet.write import write_gguf


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    content = random_content(config(128, 128, 1, 2, 1, 64, 90, 24), 4)
    return write_gguf(tmp_path_factory.mktemp("model") / "model.gguf", content)


@pytest.fixture
def generate(monkeypatch, capfd, tmp_path, model, small):
    """A command on the model, whose output comes from a process of its own: exit code, lines of output, errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")  # nothing is folded, whatever runs the tests says

    def generate(verb: str, *options: str) -> tuple[int, list[str], str]:
        monkeypatch.setattr(sys, "argv", ["bdforge", verb, str(model), "--design", str(small.folder), *options])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capfd.readouterr()
        return int(end.value.code or 0), out.splitlines(), err

    return generate


def test_tokens_come_behind_the_prompt_and_the_table_behind_them(generate):
    code, lines, err = generate("generate", "--prompt-ids", "3,1,4", "-n", "2", "--split", "array")
    assert (code, err) == (0, "")
    assert lines[0].startswith("BitNet of 1 layers, 128 / 128, 2 heads on 1, vocabulary 90; 0.02 MB of packed weights")
    assert re.fullmatch(r"3 1 4 (\d+ ){2}", lines[1])
    rows = {tuple(line.split()[:3]): line for line in lines}
    assert rows["qkv", "emulated", "array"].split()[-3] == "1"  # the last: a token alone
    assert "element-wise on the array needs another configuration" in "".join(lines)
    again = generate("generate", "--prompt-ids", "3 1 4", "-n", "2", "--split", "cpu", "--micro-batch", "2")[1]
    assert again[1] == lines[1]
    assert not any("emulated array" in line for line in again)
    assert "CPU faster" in "".join(generate("generate", "--prompt-ids", "3", "-n", "1")[1])


def test_a_model_of_characters_takes_and_gives_text(generate):
    code, lines, _ = generate("generate", "--prompt", "AB", "-n", "2", "--temperature", "1", "--split", "cpu")
    assert code == 0
    assert lines[1].startswith("AB")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--prompt-ids", "1", "--prompt", "a"), "give either --prompt-ids or --prompt"),
        ((), "give either --prompt-ids or --prompt"),
        (("--prompt-ids", "1;2"), "give whole numbers, with commas"),
        (("--prompt-ids", "90"), "the vocabulary has tokens 0 to 89, not 90"),
        (("--prompt-ids", "1", "-n", "0"), "give one number from 1 on"),
        (("--prompt-ids", "1", "--device", "abacus"), "choose emulated or xrt"),
        (("--prompt-ids", "1", "--split", "half"), "choose estimate, array, cpu"),
        (("--prompt-ids", "1", "--top-p", "0"), "top-p lies above 0 and ends at 1"),
        (("--prompt-ids", "1", "--design", "nowhere"), "build the design first (scons host)"),
        (("--prompt-ids", "1", "--design", "krackan/mine"), "first (scons device=krackan design=mine host)"),
        (("--prompt-ids", ",".join(["1"] * 25)), "25 tokens are more than the 24 positions of this model"),
    ],
)
def test_what_cannot_be_generated_is_refused(generate, options, reason):
    code, lines, err = generate("generate", *options, *(() if "--split" in options else ("--split", "cpu")))
    assert code == 2
    assert reason in " ".join(re.sub("[│╭╮╰╯─]", " ", err).split())
    assert not any("Traceback" in line for line in (*lines, err))


def test_bench_prints_llama_benchs_columns(generate):
    code, lines, _ = generate("bench", "-p", "5,8", "-n", "0,2", "-r", "2", "--split", "cpu", "-ub", "4")
    assert code == 0
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    columns = ["model", "size", "params", "backend", "split", "ub", "test", "t/s (emulated, no NPU)"]
    assert table[0] == columns
    assert [row[:7] for row in table[2:]] == [
        ["bitnet 1L", "0.05 MiB", "0.11 M", "bdforge emulated", "cpu", "4", test] for test in ("pp5", "pp8", "tg2")
    ]
    assert all(re.fullmatch(r"\d+\.\d\d ± \d+\.\d\d", row[7]) for row in table[2:])
    assert generate("bench", "-p", "25", "--split", "cpu")[0] == 2
    assert generate("bench", "-p", "-1", "--split", "cpu")[0] == 2
