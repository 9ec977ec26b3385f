"""`bdforge generate` and `bdforge bench` on a tiny BitNet."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tools.bitnet.content import config, random_content
from tools.bitnet.write import write_gguf


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    content = random_content(config(128, 128, 1, 2, 1, 64, 90, 24), 4)
    return write_gguf(tmp_path_factory.mktemp("model") / "model.gguf", content)


@pytest.fixture
def command(run, monkeypatch):
    """`bdforge generate` with a model that says what it was given: its tokens 65, 10, 200."""
    seen: dict[str, Any] = {"vocabulary": 256}

    def opened(*given: Any) -> Any:
        seen["opened"] = tuple(" ".join(map(str, one)) if isinstance(one, list) else str(one) for one in given)
        config = SimpleNamespace(vocab_size=seen["vocabulary"])
        return SimpleNamespace(config=config, check=lambda ids: None, products=SimpleNamespace(ledger=()))

    def generate(model: Any, ids: list[int], sampler: Any, most: int, micro: int) -> list[int]:
        seen.update(ids=ids, sampler=sampler, most=most, micro=micro)
        return [65, 10, 200]

    for name, stand_in in (("opened", opened), ("generate", generate), ("summary", lambda model: "a model")):
        monkeypatch.setattr(f"bdforge.cli.models.{name}", stand_in)
    return lambda *options: (run("generate", "m.gguf", *options), seen)


def test_tokens_are_numbers_for_numbers_and_characters_for_a_text(command):
    (code, out, _), seen = command("--prompt-ids", "3, 1 4")
    assert (code, seen["ids"], out.split("\n")[:2]) == (0, [3, 1, 4], ["a model", "3 1 4 65 10 200 "])
    (code, out, _), seen = command("--prompt", "Aé")
    assert (code, seen["ids"], out.split("\n")[:3]) == (0, [65, 0xC3, 0xA9], ["a model", "AéA", "\\xc8"])


@pytest.mark.parametrize(("vocabulary", "code"), [(255, 0), (256, 0), (257, 2)])
def test_a_text_is_for_vocabularies_of_bytes(command, vocabulary: int, code: int):
    _, seen = command("--prompt-ids", "1")
    seen["vocabulary"] = vocabulary
    (found, _, err), _ = command("--prompt", "A")
    assert (found, "--prompt is for 256 tokens at most" in err) == (code, bool(code))
    assert command("--prompt-ids", "1")[0][0] == 0


@pytest.mark.parametrize(("options", "found"), [
    ((), (32, 0, (0.0, 0, 1.0, 0), ("m.gguf", "build/strix_halo/gemm_i8_i2_bf16", "emulated", "estimate", "None"))),
    (("-n", "1", "-ub", "4", "--temperature", "0.5", "--top-k", "7", "--top-p", "0.25", "--seed", "9", "--design", "d",
      "--design", "e", "--device", "xrt", "--split", "cpu", "--override", "a=1", "--override", "b=2"),
     (1, 4, (0.5, 7, 0.25, 9), ("m.gguf", "d e", "xrt", "cpu", "a=1 b=2"))),
])  # fmt: skip
def test_each_option_reaches_its_place_and_has_its_default(command, options, found):
    (code, _, _), seen = command("--prompt-ids", "1", *options)
    drawn = seen["sampler"]
    assert (code, seen["most"], seen["micro"]) == (0, *found[:2])
    assert (drawn.temperature, drawn.top_k, drawn.top_p, drawn.seed) == found[2]
    assert seen["opened"] == found[3]


@pytest.mark.parametrize(("repetitions", "rates", "shown"), [
    (1, [999, 10], "10.00 ± 0.00"), (3, [999, 10, 12, 14], "12.00 ± 2.00"),
])  # fmt: skip
def test_a_bench_leaves_its_first_run_out_of_mean_and_spread(run, monkeypatch, repetitions, rates, shown):
    """Prompts are one step, generated tokens one each; 0 is no test."""
    monkeypatch.delenv("COLUMNS", raising=False)
    model = SimpleNamespace(
        check_length=lambda count: None, embedding=np.zeros((2, 3)), layers=[], products=SimpleNamespace(ledger=()),
        config=SimpleNamespace(num_hidden_layers=7, vocab_size=2),
    )  # fmt: skip
    asked: list[tuple[int, int, int]] = []
    monkeypatch.setattr("bdforge.cli.models.opened", lambda *given: model)
    left = iter(rates * 3)

    def rate(model: Any, ids: list[int], tokens: int, at_once: int, micro: int) -> float:
        asked.append((tokens, at_once, micro))
        return float(next(left))

    monkeypatch.setattr("bdforge.cli.models._rate", rate)
    code, out, _ = run("bench", "m", "-p", "5,8", "-n", "0,3", "-r", str(repetitions), "--device", "xrt", "-ub", "4")
    assert (code, asked) == (0, [entry for entry in ((5, 5, 4), (8, 8, 4), (3, 1, 4)) for _ in rates])
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in out.splitlines() if "|" in line]
    assert rows[0][-1] == "t/s (measured)"
    assert [(row[0], row[5], row[6], row[7]) for row in rows[2:]] == [
        ("bitnet 7L", "4", test, shown) for test in ("pp5", "pp8", "tg3")
    ]


@pytest.fixture
def generate(run, model, small):
    """A command on the model, whose output comes from a process of its own: exit code, lines of output, errors."""

    def generate(verb: str, *options: str) -> tuple[int, list[str], str]:
        code, out, err = run(verb, str(model), "--design", str(small.folder), *options)
        return code, out.splitlines(), err

    return generate


@pytest.mark.slow
def test_tokens_come_behind_the_prompt_and_the_table_behind_them(generate):
    code, lines, err = generate("generate", "--prompt-ids", "3,1,4", "-n", "2", "--split", "array")
    assert (code, err) == (0, "")
    assert lines[0].startswith("BitNet of 1 layers, 128 / 128, 2 heads on 1, vocabulary 90; 0.02 MB of packed weights")
    assert re.fullmatch(r"3 1 4 (\d+ ){2}", lines[1])
    assert re.fullmatch(r"peak memory [\d,]+ MB \(measured\)", lines[-1])
    rows = {tuple(line.split()[:3]): line for line in lines}
    assert rows["qkv", "emulated", "array"].split()[-3] == "1"  # the last: a token alone
    assert "no design for it" in "".join(lines)
    again = generate("generate", "--prompt-ids", "3 1 4", "-n", "2", "--split", "cpu", "--micro-batch", "2")[1]
    assert again[1] == lines[1]
    assert not any("emulated array" in line for line in again)
    assert "CPU faster" in "".join(generate("generate", "--prompt-ids", "3", "-n", "1")[1])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--prompt-ids", "1", "--prompt", "a"), "give either --prompt-ids or --prompt"),
        ((), "give either --prompt-ids or --prompt"),
        (("--prompt-ids", "1;2"), "give whole numbers"),
        (("--prompt-ids", "90"), "the vocabulary has tokens 0 to 89, not 90"),
        (("--prompt-ids", "1", "-n", "0"), "give whole numbers from 1"),
        (("--prompt-ids", "1", "--device", "abacus"), "choose emulated or xrt"),
        (("--prompt-ids", "1", "--split", "half"), "choose estimate, array, cpu"),
        (("--prompt-ids", "1", "--override", "hidden_act"), "give NAME=VALUE, such as hidden_act=relu2"),
        (("--prompt-ids", "1", "--override", "hidden_act=gelu"), "hidden_act 'gelu' is not one of relu2, silu"),
        (("--prompt-ids", "1", "--override", "act=silu"), "nothing is called 'act' here; overridden can be hidden"),
        (("--prompt-ids", "1", "--top-p", "0"), "top-p lies above 0 and ends at 1"),
        (("--prompt-ids", "1", "--design", "nowhere"), "build the design first (scons host, or bdforge build)"),
        (
            ("--prompt-ids", "1", "--design", "krackan/mine"),
            "first (scons device=krackan design=mine host, or bdforge build)",
        ),
        (("--prompt-ids", ",".join(["1"] * 25)), "25 tokens are more than the 24 positions of this model"),
    ],
)
def test_what_cannot_be_generated_is_refused(generate, options, reason):
    code, lines, err = generate("generate", *options, *(() if "--split" in options else ("--split", "cpu")))
    assert code == 2
    assert reason in " ".join(re.sub("[│╭╮╰╯─]", " ", err).split())
    assert not any("Traceback" in line for line in (*lines, err))


@pytest.mark.slow
def test_bench_prints_llama_benchs_columns(generate):
    code, lines, _ = generate("bench", "-p", "5,8", "-n", "0,2", "-r", "2", "--split", "cpu", "-ub", "4")
    assert code == 0
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    columns = ["model", "size", "params", "backend", "split", "ub", "test", "t/s (emulated, no NPU)"]
    assert table[0] == columns
    assert [row[:7] for row in table[2:]] == [
        ["bitnet 1L", "0.07 MiB", "0.11 M", "bdforge emulated", "cpu", "4", test] for test in ("pp5", "pp8", "tg2")
    ]
    assert all(re.fullmatch(r"\d+\.\d\d ± \d+\.\d\d", row[7]) for row in table[2:])
    assert re.fullmatch(r"peak memory [\d,]+ MB \(measured\)", lines[-1])
    lines = generate("bench", "-p", "0", "-n", "0", "--nmse", "7", "--split", "array")[1]
    rows = [line.strip() for line in lines if line.strip().startswith(("bf16", "float32"))]
    assert [re.sub(r"\d\.\de-\d\d +\d of 7$", "", row).strip() for row in rows] == ["bf16", "float32"]
    assert generate("bench", "--nmse", "25", "--split", "cpu")[0] == 2
    assert generate("bench", "-p", "25", "--split", "cpu")[0] == 2
    assert generate("bench", "-p", "-1", "--split", "cpu")[0] == 2
