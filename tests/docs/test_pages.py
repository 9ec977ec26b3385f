"""Pages made from models and plans: current, and as complete as they claim."""

import re

import pytest

from bdforge.operators.gemm import SpecError
from bdforge.operators.gemm.kernels import KERNELS
from tools.docs import family, features, kernel_costs
from tools.docs.__main__ import DOCS, PAGES
from tools.fit.kernel_rates import comparisons

LONG = ("accuracy", "family")
"""Pages whose numbers take half a minute to make; `./go sweep` compares them, and their parts have tests here."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in PAGES])
def test_a_page_is_current(name):
    assert (DOCS / f"{name}.md").read_text(encoding="utf-8") == PAGES[name](), f"run python -m tools.docs {name}"


def test_kernel_costs_have_every_kernel_and_every_published_tile():
    text = kernel_costs.page()
    assert all(f"| {kernel.multiply} |" in text for kernel in KERNELS.values())
    for row in comparisons():
        p = row.published
        assert f"| {p.device} | {'-'.join(p.types)} | {p.m} × {p.k} × {p.n} | {p.rho} | {p.macs_per_cycle} |" in text


@pytest.mark.slow
def test_the_family_names_what_is_refused_for_the_kernels_that_refuse_it(monkeypatch):
    few = {name: kernel for name, kernel in KERNELS.items() if kernel.multiply in ("mm_i8_i2_i32", "mm_bf16_bf16_f32")}
    monkeypatch.setattr(family, "KERNELS", few)
    lines = list(family.lines())
    assert ("int8 × int2", "npu2, npu1", "int32", "B row-major, B column-major, scale, bias, shift") in lines
    assert ("bf16 × bf16", "npu2, npu1", "bf16 of f32", "shift") in lines
    results = sum(len(made.split(", ")) * len(arrays.split(", ")) for _, arrays, made, _ in lines)
    assert results == len(family.rows_of_all())


def test_a_refused_choice_is_refused_by_the_plan():
    kernel, c = family.rows_of_all()[-1]
    column = next(column for column in family.COLUMNS if column.title == family.refused(kernel, c)[0])
    content = family.content_of(kernel, c)
    column.change(content)
    with pytest.raises(SpecError):
        family.planned(kernel, content)


def test_features_are_the_first_sentences_of_tests(tmp_path):
    for name, text in (
        ("tests/mlir/test_b.py", '"""Long, over\ntwo lines.\n\nMore."""\n'),
        ("tests/emulator/cores/test_a.py", "X = 1\n"),
        ("tests/emulator/helpers.py", '"""No test."""\n'),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert list(features.lines(tmp_path)) == [
        ("test_a", "`tests/emulator/cores/test_a.py`"),
        ("Long, over two lines", "`tests/mlir/test_b.py`"),
    ]


OPENED = [path for path in DOCS.rglob("*.md") if path.parent.name != "tutorials"]  # those have a test of their own


@pytest.mark.parametrize("path", OPENED, ids=lambda path: str(path.relative_to(DOCS)))
def test_a_page_opens_with_what_it_is_for_and_for_whom(path):
    title, blank, opening = path.read_text(encoding="utf-8").split("\n", 2)
    assert title.startswith("# ")
    assert blank == ""
    assert re.search(r"(^|[.:] )For (whoever|owners) ", opening.partition("\n\n")[0].replace("\n", " ")), path.name
