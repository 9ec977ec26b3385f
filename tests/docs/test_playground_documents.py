"""Documents in the playground: of archives and numpy alone Python makes of them what it does with pydantic."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import PIPE

import numpy as np
import pytest

from bdforge.cli.design_texts import rendered
from bdforge.cli.options import DEFAULT_PRODUCT
from bdforge.common.messages import InputError
from bdforge.design.document import document
from bdforge.devices import device_named
from bdforge.operators import load_spec, plan
from support.built_designs import ROOT
from tools.site.playground.assemble import pack_documents, pack_python

pytestmark = pytest.mark.slow

DOCUMENTS = sorted([*(ROOT / "examples/documents").glob("*.toml"), *(ROOT / "examples/puzzles").glob("[0-9]*.toml")])
LARGE = ("gemm_i8.toml", "13_gemm_4x8.toml")  # 4 x 8 cores
TRANSPOSE = (ROOT / "examples/documents/transpose.toml").read_text()
COPY = (ROOT / "examples/puzzles/01_copy.toml").read_text()
ASKED = """
import json, sys
sys.modules |= dict.fromkeys(("fcntl", "termios", "pty", "resource"))  # which Pyodide has not
sys.path[:0] = sys.argv[1:]
from tools.site.playground import session
session.add_documents(sys.argv[1].replace("bdforge.zip", "documents.zip"))
for line in sys.stdin:
    question, given = json.loads(line)
    answers = [json.loads(getattr(session, question)(*each)) for each in given]
    assert not {"pydantic_core", "ml_dtypes"} & sys.modules.keys()
    print(json.dumps(answers), flush=True)
"""
Ask = Callable[..., list[dict]]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """What the page is answered of questions with such arguments, by a Python that has what browsers have. It answers
    them all, as in a page: importing from archives takes it longest."""
    home = tmp_path_factory.mktemp("browser")
    pack_python(home / "bdforge.zip")
    pack_documents(home / "documents.zip")
    site = Path(np.__file__).parents[1]
    for name in ("numpy", "numpy.libs"):
        (home / name).symlink_to(site / name)

    command = [sys.executable, "-I", "-S", "-c", ASKED, str(home / "bdforge.zip"), str(home)]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True) as python:
        assert python.stdin is not None
        assert python.stdout is not None
        sent, answers = python.stdin, python.stdout

        def asked(*given: tuple, question: str = "check") -> list[dict]:
            print(json.dumps([question, given]), file=sent, flush=True)
            answer = answers.readline()
            assert answer, "it has ended, after what it says on stderr"
            return json.loads(answer)

        yield asked
        sent.close()


def said(messages: list[dict]) -> str:
    return "\n".join(message["text"] for message in messages)


def refused(file: str, shape: str = "") -> str:
    """What `bdforge render` says of a document here, with pydantic."""
    with pytest.raises(InputError) as caught:
        rendered(Path(file), DEFAULT_PRODUCT, [shape] if shape else None)
    return str(caught.value)


def test_every_example_and_puzzle_makes_the_same_mlir(ask: Ask):
    _same(ask, [path for path in DOCUMENTS if path.name not in LARGE])


def test_designs_of_many_cores_and_documents_of_every_operator_make_the_same_mlir(ask: Ask, tmp_path: Path):
    found = [path for path in DOCUMENTS if path.name in LARGE]
    specs = {spec.kind: spec for spec in map(load_spec, sorted((ROOT / "designs").glob("*.toml")))}
    assert len(specs) > 5
    for kind, spec in specs.items():
        found.append(tmp_path / f"{kind}.toml")
        found[-1].write_text(document(plan(spec, device_named(DEFAULT_PRODUCT)).whole))
    _same(ask, found)


def _same(ask: Ask, paths: list[Path]) -> None:
    answers = ask(*((path.read_text(), path.name, "") for path in paths))
    for path, answer in zip(paths, answers, strict=True):
        assert (answer["state"], answer["messages"]) == ("checked", []), path
        assert answer["mlir"] == rendered(path, DEFAULT_PRODUCT, [answer["shape"]] if answer["shape"] else None), path


PROBLEMS = "problems = [{ M = 48, N = 16 }, { M = 32, N = 32 }]"
SIZES = [
    ("", "", "", "16x16"),
    ("", "", "32x64", "32x64"),
    ("let =", f"{PROBLEMS}\nlet =", "", "48x16"),
    ("let =", f"{PROBLEMS}\nlet =", "16X32", "16x32"),
    ("M % side == 0 and", "M == 8 * side and", "", "128x16"),
]
"""Changes of the transpose, what is said of sizes, and those of the sequence that is made."""


def test_a_sequence_has_the_sizes_that_are_said_or_the_first_problems_or_the_smallest(ask: Ask, tmp_path: Path):
    texts = [TRANSPOSE.replace(old, new, 1) for old, new, _, _ in SIZES]
    answers = ask(*((text, "x.toml", shape) for text, (_, _, shape, _) in zip(texts, SIZES, strict=True)))
    for text, answer, (_, _, _, chosen) in zip(texts, answers, SIZES, strict=True):
        (tmp_path / "x.toml").write_text(text)
        assert answer["shape"] == chosen
        assert answer["mlir"] == rendered(tmp_path / "x.toml", DEFAULT_PRODUCT, [chosen])


AXES = 'axes = [{ size = "M" }, { size = "N" }]'
WRONG: dict[str, tuple[str, str]] = {
    "five dimensions": ('["M // side", "side"]', '[1, 1], [1, 1], ["M // side", "side"]'),
    "no bits": ('elements = "M * N", type = "i32" }, {', 'elements = "M * N", type = "i32", bits = -1 }, {'),
    "many bits": ('elements = "M * N", type = "i32" }, {', 'elements = "M * N", type = "i32", bits = 65 }, {'),
    "wide operands": ('"in", type = "int32"', '"in", bits = 1025, type = "int32"'),
    "a range of one end": ('"in", type = "int32"', '"in", values = [1], type = "int32"'),
    "a range of three ends": ('"in", type = "int32"', '"in", values = [1, 2, 3], type = "int32"'),
    "nine axes": (AXES, 'dims = [{ axis = 0, count = "M" }], axes = [' + 9 * '{ size = "M" }, ' + "]"),
    "a loop over axis 8": ('axes = [{ size = "M" }', 'dims = [{ axis = 8, count = "M" }], axes = [{ size = "M" }'),
    "a loop over no axis": ('axes = [{ size = "M" }', 'dims = [{ axis = -1, count = "M" }], axes = [{ size = "M" }'),
    "a loop beyond the axes": ('axes = [{ size = "M" }', 'dims = [{ axis = 2, count = "M" }], axes = [{ size = "M" }'),
    "a long write": ('{ task = "to_host"', "{ write = 64, values = [" + 1025 * "1, " + '] }, { task = "to_host"'),
    "nothing under way": ('sizes = ["M", "N"]', 'sizes = ["M", "N"]\nin_flight = 0'),
    "no room": ('sizes = ["M", "N"]', 'sizes = ["M", "N"]\nin_flight_max = 0'),
    "much room": ('sizes = ["M", "N"]', 'sizes = ["M", "N"]\nin_flight_max = 2147483648\nin_flight = 2147483648'),
    "a problem's name": ("let =", "problems = [{ M = 16, N = 16, name = 3 }]\nlet ="),
    "a problem's sizes": ("let =", "problems = [{ M = 16, K = 16 }]\nlet ="),
    "two unknown keys": ("let =", "lat = 1\nlot = 1\nlet ="),
    "an unknown ring": ('fill = "block"', 'fill = "blok"'),
    "an unknown key": ("let =", "lat ="),
    "no tokens": ("token = true, ", ""),
    "a flow from nowhere": ('from = "shim DMA 0"', 'from = "shim DMA 9"'),
    "no number of blocks": ("side = 16", "side = 64"),
    "much memory": ('elements = "side * side"', "elements = 1048576"),
    "no words": ('"block", elements = "side * side", type = "i32"', '"block", elements = 3, type = "i8"'),
    "another array": ('device = "npu2_1col"', 'device = "npu9"'),
}  # fmt: skip
"""Changes of the transpose, by what is wrong."""


def test_a_wrong_document_is_refused_in_the_same_words(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    texts = {what: TRANSPOSE.replace(*change, 1) for what, change in WRONG.items() if change[0] in TRANSPOSE}
    assert texts.keys() == WRONG.keys()
    answers = ask(*((text, "x.toml", "32x32") for text in texts.values()))
    for (what, text), answer in zip(texts.items(), answers, strict=True):
        Path("x.toml").write_text(text)
        assert (answer["state"], answer["mlir"]) == ("wrong", None), what
        assert said(answer["messages"]) == refused("x.toml", "32x32"), what


TOLD = [
    (TRANSPOSE, "17x16", "x: 17x16: 17 x 16 is no number of blocks", None),
    (TRANSPOSE, "16", "16 has 1 sizes; design takes 2: MxN", None),
    (TRANSPOSE, "16 x 16", "sizes: '16 x 16' is no MxN; write numbers with x between, such as 32x64", None),
    (TRANSPOSE.replace("M > 0 and", "M > 5000 and"), "", "sizes: no small powers of two are this design's", None),
    (COPY.replace("[[64, 1]]", "[[64, 1]"), "", "x.toml:16:64: is no TOML to use: Unclosed array", 16),
    ('kind = "gemm"\n', "", 'x.toml: is no document, whose kind = "design"', None),
    (
        COPY.replace("send =", "sent ="),
        "",
        "x.toml:16:30: {'sent': 'words', 'dims': [[64, 1]]} begins with none of",
        16,
    ),
]
"""Texts and sizes, what is told of them, and at which line of the text."""


def test_what_is_wrong_is_told_at_its_line(ask: Ask):
    answers = ask(*((text, "x.toml", shape) for text, shape, _, _ in TOLD))
    for answer, (_, _, told, line) in zip(answers, TOLD, strict=True):
        assert (answer["state"], answer["mlir"]) == ("wrong", None)
        assert told in answer["messages"][0]["text"]
        assert answer["messages"][0]["line"] == line


def test_what_is_wrong_with_its_mlir_is_told_at_its_line(ask: Ask):
    (answer,) = ask((COPY.replace("id = 1", "id = 17"), "x.toml", ""))
    (message,) = answer["messages"]
    assert (answer["state"], answer["said"]) == ("wrong", "")
    assert message["text"].startswith(f"x.toml's MLIR:{message['line']}:9: aie.dma_bd: bd_id = 17 is outside 0 to 15")
    assert "bd_id = 17" in answer["mlir"].splitlines()[message["line"] - 1]


def test_a_document_is_mended_and_runs(ask: Ask):
    task = json.dumps({"references": "def f(a):\n    return a\n", "reference": "f"})
    texts = [COPY, COPY.replace("[[64, 1]]", "[[96, 1]]")]
    hangs, runs = ask(*((text, "x.toml", task, None, 1000, "") for text in texts), question="run")
    assert (hangs["state"], runs["state"]) == ("failed", "right")
    (line,) = re.findall(r"memtile \(0, 1\) MM2S 0 .*x.toml's MLIR:(\d+):", hangs["fault"])[:1]
    assert "aie.dma" in hangs["mlir"].splitlines()[int(line) - 1]
    assert "all 96 elements equal the reference's" in runs["said"]
