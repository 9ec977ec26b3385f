"""`bdforge reproduce`: the list, a table, files, and what it refuses."""

import csv
from pathlib import Path

import pytest

from bdforge.cli.json_figures import ReproducedFigure, ReproducedPapers
from bdforge.perf.reproduce import entries, entry_named
from bdforge.perf.reproduce.figures import COLUMNS


def test_all_are_listed(run):
    code, out, _ = run("reproduce")
    assert code == 0
    for entry in entries():
        assert any(
            line.split()[:1] == [entry.name] and line.split()[-1] == str(len(entry.rows)) for line in out.splitlines()
        )
    listed = ReproducedPapers.model_validate_json(run("reproduce", "--json")[1]).entries
    assert [(each.name, each.rows, each.figures) for each in listed] == [
        (entry.name, len(entry.rows), None) for entry in entries()
    ]


def test_a_table_is_printed_written_and_drawn(run):
    code, out, _ = run("reproduce", "taka-fig6", "-o", "f.csv", "--picture", "f.png")
    assert code == 0
    assert "taka-fig6: Fig. 6 of Striking the Balance" in out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert any(
        line.startswith("phoenix bf16 bf16 bf16 96x56x96") and " TOPS 1.27 1.315 +3.6%" in line for line in lines
    )
    assert "modelled: mean error 2.7%, median 3.6%, worst 4.5% of 3" in lines
    assert "parameters of the models were fitted to these rows, among others" in lines
    rows = list(csv.DictReader(Path("f.csv").read_text().splitlines()))
    assert [row["published"] for row in rows] == ["1.27", "3.12", *8 * [""], "..1"]
    assert all(float(row["modelled"]) > 0 for row in rows[:10])
    assert "k_mt 560 TOPS - 2.947" in lines
    assert Path("f.png").read_bytes().startswith(b"\x89PNG")


def test_other_processors_have_a_column_where_they_were_measured(run):
    code, out, _ = run("reproduce", "casselc-attention")
    assert code == 0
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert any(line.startswith("row quantity published on a CPU modelled") for line in lines)
    assert any(line.startswith("1024 tokens ms 12.69 5.507 ") for line in lines)
    assert " on a CPU" not in run("reproduce", "casselc-int4")[1]


def test_several_are_summed_up_together_and_kinds_stay_apart(run):
    code, out, _ = run("reproduce", "teir-table3", "casselc-int4")
    assert code == 0
    assert "together, modelled: mean error" in out
    assert "together, counted: mean error" in out
    code, out, _ = run("reproduce", "teir-table3", "casselc-int4", "--json")
    first, second = (entry.figures or [] for entry in ReproducedPapers.model_validate_json(out).entries)
    assert code == 0
    assert {figure.quantity for figure in first} == {"latency", "jump"}
    assert second[0].modelled_difference == pytest.approx(1 / 1.035 - 1, abs=1e-3)
    assert (second[0].emulated, second[0].cpu) == (None, None)


def test_objects_have_the_columns_of_files():
    assert tuple(ReproducedFigure.model_fields) == COLUMNS


def test_all_has_a_line_for_each(run, monkeypatch):
    quick = [entry_named(name) for name in ("taka-fig6", "taka-5.3.2", "teir-table3")]
    monkeypatch.setattr("bdforge.cli.reproduce.entries", lambda: quick)
    code, out, _ = run("reproduce", "--all")
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    for entry in quick:
        assert any(line[:1] == [entry.name] and "%," in " ".join(line) for line in lines)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("reproduce taka-table9", "'taka-table9' is no published table or figure; there are taka-table1"),
        ("reproduce --all taka-fig6", "--all and names of tables go each without the other"),
        ("reproduce taka-fig6 taka-5.3.2 --picture x.png", "a picture is of one table or figure"),
        ("reproduce --json --out x.csv taka-fig6", "--json goes without --out and --picture"),
    ],
)
def test_what_is_wrong_is_refused(refused, command, words):
    refused(command, words)
