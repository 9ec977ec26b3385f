"""Published tables and figures beside ours: the table of them, what is compared, and that each entry runs."""

from collections import Counter
from dataclasses import replace
from itertools import product
from math import inf

import numpy as np
import pytest

from bdforge.common.files import read_csv
from bdforge.common.tree import tree
from bdforge.core.codegen.kernels import assembled
from bdforge.devices import device_named
from bdforge.operators.gemm import GemmProblem, load_spec
from bdforge.perf.bounds.case import case_of
from bdforge.perf.bounds.estimate import estimate
from bdforge.perf.errors import PerfError
from bdforge.perf.operator_rows import MEASURED_OPERATORS
from bdforge.perf.plots.figure import PlotError
from bdforge.perf.prompts import PROMPTS_FILE
from bdforge.perf.reproduce import Figure, PaperEntry, entries, entry_named, figures_csv, figures_of, summary
from bdforge.perf.reproduce.entries import FIGURES, GEMMS
from bdforge.perf.reproduce.entry_picture import picture
from bdforge.perf.reproduce.figures import COLUMNS, Published
from bdforge.perf.reproduce.producers import PRODUCERS
from tools.fit.evaluation import FITTED_SOURCES
from tools.fit.kernel_rates import sources as rated_sources

LONG = ("taka-tiles", "taka-5.3.1", "teir-6.2", "hipscope-kernels", "iree-1187")
"""Entries that rank every tile, or assemble programs of whole arrays."""


def small(name: str) -> PaperEntry:
    return replace(entry_named(name), rows=entry_named(name).rows[:1])


@pytest.mark.daily(every=4)
@pytest.mark.parametrize(
    "name", [pytest.param(e.name, marks=pytest.mark.slow) if e.name in LONG else e.name for e in entries()]
)
def test_every_entry_runs_small(name: str):
    found = figures_of(small(name))
    assert found
    for figure in found:
        assert figure.row
        assert figure.ours or figure.note
        assert all(0 < ours < inf for ours in figure.ours.values())


@pytest.mark.slow
def test_every_figure_is_expressed_here():
    missing = [figure for entry in entries() for figure in figures_of(entry) if not figure.ours]
    assert not missing


def test_the_table_is_whole():
    assert len(entries()) >= 24
    assert not [name for name, count in Counter(entry.name for entry in entries()).items() if count > 1]
    for entry in entries():
        assert entry.rows, f"{entry.name} has no rows"
        assert set(entry.quantities) <= set(PRODUCERS[entry.producer].quantities), entry.name
        for row in entry.rows:
            drawn = row.get("quantity") in entry.quantities
            assert drawn or any(row.get(name) for name in entry.quantities), f"{entry.name}: no figure: {row}"
            [Published.of(row[name]) for name in entry.quantities if row.get(name)]


def test_no_published_row_is_forgotten():
    used = {row["source"] for entry in entries() for row in entry.rows if row.get("source")}
    assert {row["source"] for path in (*GEMMS, MEASURED_OPERATORS, PROMPTS_FILE) for row in read_csv(path)} == used
    assert {row["entry"] for row in read_csv(FIGURES)} <= {entry.name for entry in entries()}


def test_entries_say_which_rows_were_fitted():
    fitted = {*FITTED_SOURCES, *rated_sources(), "casselc-implied"}
    for entry in entries():
        if entry.producer in ("gemm", "compiled operator", "prompt"):
            assert entry.fitted == any(row["source"] in fitted or "model" in row for row in entry.rows), entry.name


@pytest.mark.parametrize(
    ("text", "ours", "difference", "shown"),
    [
        ("4", 5.0, 0.25, "4"), ("46..49", 47.0, 0.0, "46..49"), ("46..49", 23.0, -0.5, "46..49"),
        ("46..49", 98.0, 1.0, "46..49"), ("..10", 3.0, 0.0, "..10"), ("..10", 12.5, 0.25, "..10"),
        ("8..", 4.0, -0.5, "8.."),
    ],
)  # fmt: skip
def test_differences_are_to_the_nearest_end_of_what_was_published(text, ours, difference, shown):
    published = Published.of(text)
    assert published.difference(ours) == pytest.approx(difference)
    assert str(published) == shown


@pytest.mark.parametrize("text", ["", "..", "four", "5..4", "-1", "0", "nan"])
def test_what_is_no_published_figure_is_refused(text: str):
    with pytest.raises(PerfError, match="published figure"):
        Published.of(text)


FOUND = [
    Figure("x", "a", "tops", "TOPS", Published.of("10"), {"modelled": 11.0, "emulated": 12.0}),
    Figure("x", "b", "tops", "TOPS", Published.of("10"), {"modelled": 7.0}),
    Figure("x", "c", "l1_kb", "KiB", Published.of("10..20"), {"counted": 15.0}),
    Figure("x", "d", "tops", "TOPS", Published.of("10"), {}, "has no kernel"),
]


def test_a_figure_whose_number_is_nowhere_printed_is_ours_alone():
    (figure,) = figures_of(
        replace(entry_named("taka-fig6"), rows=(entry_named("taka-fig6").rows[2],), quantities=("tops",))
    )
    assert figure.published is None
    assert figure.ours["modelled"] > 0
    assert figure.difference("modelled") is None
    assert not summary([figure])
    assert figures_csv([figure]).splitlines()[1].startswith("taka-fig6,k_mt 112,tops,TOPS,,,,2.7")


def of_rows(name: str, *rows: dict[str, str]) -> list[float]:
    """Ours of rows of figures of an entry, the first kind of each."""
    quantities = tuple(dict.fromkeys(row["quantity"] for row in rows))
    made = tuple({"row": "x"} | {key: row[key] for key in row if key not in quantities} for row in rows)
    found = figures_of(replace(entry_named(name), rows=made, quantities=quantities))
    return [next(iter(figure.ours.values())) for figure in found]


def test_depths_are_compared_each_at_whole_slabs():
    row = entry_named("taka-fig6").rows[-1]
    assert (row["k_mt"], row["over_k_mt"], row["K"]) == ("560", "224", "3920")
    deep, less, gain = of_rows(
        "taka-fig6",
        {**row, "quantity": "tops"}, {**row, "quantity": "tops", "k_mt": "224", "K": "4032"},
        {**row, "quantity": "gain_percent"},
    )  # fmt: skip
    assert gain == pytest.approx(100 * (deep / less - 1))


def test_sizes_are_averaged_as_each_is_modelled():
    spec, device = load_spec(tree() / "designs" / "gemm_i8_i8_i8_112x112x112.toml"), device_named("phoenix")
    row = {"design": spec.name, "device": "phoenix", "layout": "column", "lengths": "448,1300"}
    made = of_rows("taka-fig7-8-phoenix", *({**row, "quantity": q} for q in ("sizes", "mean_tops", "best_tops")))
    column = replace(spec, layouts=replace(spec.layouts, b="column"))
    tops = [
        estimate(case_of(column, device, GemmProblem(M, K, N))).tops
        for M, K, N in product((448, 1344), repeat=3)
    ]  # fmt: skip
    assert made == pytest.approx([8, sum(tops) / 8, max(tops)])


def test_a_faster_clock_loses_points_of_its_own_peak():
    row = entry_named("teir-grid").rows[0]
    saver, turbo, lost = of_rows(
        "teir-grid",
        {**row, "quantity": "percent_of_peak", "power": "saver"}, {**row, "quantity": "percent_of_peak"},
        {**row, "quantity": "points_lost", "power": "turbo", "over": "saver"},
    )  # fmt: skip
    assert lost == pytest.approx(saver - turbo)
    (gflops,) = of_rows("teir-grid", {**row, "quantity": "gflops"})
    assert turbo == pytest.approx(100 * gflops / (2 * 128 * 16 * 1.79))


def test_a_tile_of_parts_is_counted_for_all_its_calls_and_by_its_kind():
    row = {"device": "strix", "types": "int8,int8,int32", "tile": "32x16x16", "quantity": "bundles"}
    whole, parts = of_rows("npu-lut", row, {**row, "rho": "2"})
    sizes = ("DIM_M=32", "DIM_K=16", "DIM_N=16")
    assert whole == assembled("mm_i8_i8_i32", "aie2p", sizes).cycles
    assert parts == 2 * (assembled("mm_i8_i8_i32", "aie2p", (*sizes, "DIM_RHO=2")).cycles or 0) > whole
    looked_up = {**row, "kernel": "lut", "types": "int8,int2,int32", "tile": "64x24x8"}
    made, rate = of_rows("npu-lut", looked_up, {**looked_up, "quantity": "issued_rate"})
    assert rate == pytest.approx(64 * 24 * 8 / made)


def test_places_of_edges_count_from_both_ends():
    """Places from the slowest and from the fastest make 16 for each of 15 tiles, but for those as fast as another."""
    row = {"device": "hawk_point", "types": "bf16,bf16,bf16"}
    tiles = [f"{m}x64x{n}" for m in (64, 68, 72, 76) for n in (64, 68, 72, 76) if (m, n) != (64, 64)]
    places = of_rows(
        "teir-fig12",
        *({**row, "tile": tile, "quantity": q} for tile in tiles for q in ("slowest_place", "fastest_place")),
    )
    assert {slow + fast for slow, fast in zip(places[::2], places[1::2], strict=True)} <= {15, 16}
    assert min(places) == 1
    assert max(places) == 15


def test_a_step_is_made_of_its_stages():
    row = entry_named("gpt2-step").rows[0]
    names = ("products_ms", "dispatch_ms", "copies_ms", "turns_ms", "step_ms")
    *stages, whole = of_rows("gpt2-step", *({**row, "quantity": name} for name in names))
    assert sum(stages) == pytest.approx(whole, rel=0.01)
    first, second, third = sorted(stages, reverse=True)[:3]
    assert (first, second + third > first) == (stages[0], False), "products first, as published"


def test_what_a_source_measured_on_its_processor_stands_beside():
    (figure,) = figures_of(small("casselc-attention"))
    assert {name: str(found) for name, found in figure.elsewhere.items()} == {"cpu": "1.697"}
    assert figures_csv([figure]).splitlines()[1].startswith("casselc-attention,512 tokens,ms,ms,4.593,1.697,,")
    rows = [row for entry in entries() for row in entry.rows]
    assert all(Published.of(row[name]) for row in rows for name in ("cpu", "igpu") if row.get(name))


def test_kinds_are_summed_up_apart():
    found = {each.kind: each for each in summary(FOUND)}
    assert found.keys() == {"modelled", "counted", "emulated"}
    modelled = found["modelled"]
    assert (modelled.count, modelled.mean, modelled.median, modelled.worst) == (
        2, pytest.approx(0.2), pytest.approx(0.2), pytest.approx(0.3),
    )  # fmt: skip
    assert str(modelled) == "modelled: mean error 20.0%, median 20.0%, worst 30.0% of 2"
    assert (found["counted"].worst, found["emulated"].count) == (0.0, 1)


def test_a_csv_has_a_line_for_each_figure_and_blanks_where_there_is_none():
    lines = figures_csv(FOUND).splitlines()
    assert lines[0] == ",".join(COLUMNS)
    assert lines[2:] == [
        "x,b,tops,TOPS,10,,,7,,,-0.3,,,",
        "x,c,l1_kb,KiB,10..20,,,,15,,,0,,",
        "x,d,tops,TOPS,10,,,,,,,,,has no kernel",
    ]


def test_published_memory_of_designs_is_what_is_counted():
    """Of all rows but those whose C or B has bytes that a type does not tell; 0.1 % is what one decimal rounds."""
    found = [f for e in ("taka-table1", "taka-table2", "taka-table3") for f in figures_of(entry_named(e))]
    counted = [figure for figure in found if "counted" in figure.ours]
    assert len(counted) >= 32
    assert max(abs(figure.difference("counted") or 0) for figure in counted) < 0.0015


def test_sequences_write_three_bds_for_a_token_as_published():
    (used, renewed) = figures_of(replace(entry_named("taka-4.4"), rows=entry_named("taka-4.4").rows[:2]))
    assert (used.ours, renewed.ours) == ({"counted": 15}, {"counted": 3})


def test_rounding_diverges_by_what_brute_force_says():
    """bfloat16 keeps eight bits: numbers are cut to 2^-8 of their power of two, to the nearest, ties to even."""
    (figure,) = figures_of(
        replace(entry_named("gpt2-divergence"), rows=({"row": "x", "sizes": "8x40x24", "divergence_percent": "0.06"},))
    )
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((8, 40)), rng.standard_normal((40, 24))

    def cut(x: np.ndarray) -> np.ndarray:
        unit = 2.0 ** (np.floor(np.log2(np.abs(x))) - 7)
        return np.round(x / unit) * unit

    expected = 100 * np.abs(cut(a) @ cut(b) - a @ b).mean() / np.abs(a @ b).mean()
    assert figure.ours["counted"] == pytest.approx(expected, rel=1e-3)


def sums(changes: str, sizes: str) -> PaperEntry:
    """A run of our sums of bf16 as if it were published."""
    row = {"row": "sums", "design": "add_bf16", "device": "strix", "set": changes, "sizes": sizes, "ms": "0.1"}
    return replace(entry_named("taka-4.4"), rows=(row,), quantities=("ms",))


def test_a_row_that_cannot_be_expressed_says_why():
    (figure,) = figures_of(sums("tile:7", "1048576"))
    assert not figure.ours
    assert "14 bytes are not a multiple of 64" in figure.note
    with pytest.raises(PerfError, match="is no published table or figure; there are taka-table1, "):
        entry_named("taka-table9")


@pytest.mark.slow
def test_full_runs_the_array_too():
    (figure,) = figures_of(sums("tile:1024,array.rows:1", "16384"), full=True)
    assert figure.ours.keys() == {"modelled", "emulated"}
    assert figure.ours["emulated"] == pytest.approx(figure.ours["modelled"], rel=0.2)


@pytest.mark.slow
def test_rounding_by_machine_code_is_that_of_operands_and_a_little_more():
    entry = replace(small("gpt2-divergence"), rows=entry_named("gpt2-divergence").rows[1:2])
    (figure,) = figures_of(entry, full=True)
    assert figure.ours["counted"] < figure.ours["emulated"] < 1.1 * figure.ours["counted"]


@pytest.mark.slow
def test_a_gemm_is_emulated_beside_its_model_and_what_awaiting_costs():
    (tops,) = figures_of(replace(small("taka-table3"), quantities=("tops",)), full=True)
    assert tops.ours["emulated"] == pytest.approx(tops.ours["modelled"], rel=0.15)
    (loss,) = figures_of(replace(small("taka-5.3.3"), quantities=("loss_percent",)), full=True)
    assert 10 < loss.ours["emulated"] < 30


@pytest.mark.slow
def test_a_configuration_is_written_in_the_time_of_its_writes():
    """Or its packets, 4.8 KB by a stream of 4 bytes a cycle: a run takes a dispatch, 78.6 us, and little more."""
    quantities = ("write_us", "packets_run_us", "program_packets_run_us", "one_packet_run_us")
    row = {"row": "x", "design": "gemm_i8_i8_i32_one_core", "device": "strix"} | dict.fromkeys(quantities, "1")
    entry = replace(entry_named("iree-1187"), rows=(row,), quantities=quantities)
    writes, whole, programs, packet = (figure.ours["modelled"] for figure in figures_of(entry))
    assert 0 < writes < 100, "a thirty-second of what a whole array takes"
    assert 78.6 < packet < programs < whole < 78.6 + 2
    assert packet == pytest.approx(78.6 + 3 * 4 / 4 / 1800)


@pytest.mark.parametrize(
    "name",
    [
        "taka-fig6",
        "casselc-tile-ab",
        "air-rope",
        "gpt2-step",
        pytest.param("taka-fig7-8-phoenix", marks=pytest.mark.slow),
    ],
)
def test_an_entry_is_drawn_by_the_plot_it_names(name: str):
    entry = entry_named(name)
    axes = picture(entry, figures_of(entry)).axes[0]
    _, labels = axes.get_legend_handles_labels()
    assert any(label.startswith("modelled") for label in labels)
    published = entry.picture != "parity" and entry.published  # there it is an axis
    assert any(label.startswith("published") for label in labels) == published
    assert (entry.picture == "parity") == axes.get_xlabel().startswith("published")


def test_nothing_of_ours_is_no_picture():
    with pytest.raises(PlotError, match="air-rope: no figure of ours is there to be drawn"):
        picture(entry_named("air-rope"), FOUND[3:])
