"""Tables of measurements: what is read, what is filled in, what is refused."""

import csv
import io
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bdforge.perf import PerfError, csv_rows, estimate, estimate_table, measured_rows, read_rows
from bdforge.perf.bounds.estimate import INTERVAL
from bdforge.perf.kernels.rates import compiled_kernels
from bdforge.perf.rows import ADDED, MEASURED, REQUIRED, row_from
from bdforge.perf.table import step_of_core

KRACKAN = {
    "device": "xdna2-krackan-AI7-350", "dtype_a": "i8", "dtype_b": "i8", "dtype_c": "i16", "m_ct": "128", "k_ct": "72",
    "n_ct": "112", "k_mt": "432", "rows": "4", "cols": "8", "b_layout": "col", "c_buffers": "1", "rho": "1",
    "M": "4096", "K": "4320", "N": "4480", "core_macs_per_cycle": "307.2",
}  # fmt: skip


def text(*rows: dict[str, str], columns=REQUIRED) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys([*columns, *(name for row in rows for name in row)])))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def modelled(*rows: dict[str, str]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(estimate_table(text(*rows), "in.csv")[0])))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("k_mt", "", "k_mt=432"),
        ("k_ct", "", "k_ct=64"),
        ("core_macs_per_cycle", "", "kernel rate=fitted form"),
        ("rows", "", "rows=4"),
        ("cols", "", "cols=8"),
        ("b_layout", "", "b_layout=row"),
        ("c_buffers", "", "c_buffers=2"),
        ("device", "", "device=npu2"),
        ("dtype_c", "", "dtype_c=int8"),
        ("M", "", "M=4096"),
        ("K", "", "K=3888"),
    ],
)
def test_an_unknown_field_is_filled_in_and_said(name, value, said):
    (row,) = modelled({**KRACKAN, name: value})
    assert row["assumed"] == said


def test_an_unknown_tile_becomes_the_fastest_that_fits():
    (row,) = modelled({**KRACKAN, "m_ct": "", "k_ct": "", "n_ct": "", "core_macs_per_cycle": ""})
    assert "tile=" in row["assumed"]
    m, k, n = (int(size) for size in row["assumed"].split("tile=")[1].split(";")[0].split("x"))
    assert 2 * m * k + 2 * k * n + 2 * m * n <= 63 * 1024
    assert (m, n) != (32, 32)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.sampled_from(MEASURED.read_text(encoding="utf-8").splitlines()[1:]), st.sets(st.sampled_from(REQUIRED)))
def test_no_set_of_unknown_fields_stops_the_estimate(line, unknown):
    header = MEASURED.read_text(encoding="utf-8").splitlines()[0]
    (fields,) = csv.DictReader(io.StringIO(f"{header}\n{line}\n"))
    (row,) = modelled({**fields, **dict.fromkeys(unknown, "")})
    assert math.isfinite(float(row["tops_modelled"]))
    assert float(row["time_us_modelled"]) > 0


def test_one_core_without_a_problem_gives_its_kernel():
    (row,) = modelled({**KRACKAN, "rows": "1", "cols": "1", "M": "", "K": "", "N": "", "clock_ghz": "1.0"})
    assert float(row["tops_modelled"]) == pytest.approx(2 * 307.2e9 / 1e12, rel=1e-3)
    assert "one core" in row["assumed"]


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("xdna2-strixhalo-395", "strix_halo"), ("Ryzen AI Max+ 395", "strix_halo"), ("xdna2-strixpoint-HX370", "strix"),
        ("xdna2-krackan-AI7-350", "krackan"), ("xdna-phoenix-7940HS", "phoenix"), ("Ryzen 7 8700G", "hawk_point"),
        ("xdna2", "npu2"), ("XDNA", "npu1"), ("npu1", "npu1"), ("strix_halo", "strix_halo"),
        ("npu5", "strix_halo"), ("Max 385", "strix_halo"), ("npu6", "krackan"), ("ai7-350", "krackan"),
        ("AI 5 340", "krackan"), ("npu4", "strix"), ("hx 375", "strix"), ("AI 9 365", "strix"), ("AI 7 360", "strix"),
        ("hawk point", "hawk_point"), ("8840U", "hawk_point"), ("8645HS", "hawk_point"), ("8845HS", "hawk_point"),
        ("7540U", "phoenix"), ("7640HS", "phoenix"), ("7840U", "phoenix"), ("7940HS", "phoenix"), ("aie2p", "npu2"),
        ("npu2 array", "npu2"), ("aie2", "npu1"), ("AIE-ML", "npu1"), ("npu2_4col", "npu2_4col"),
    ],
)  # fmt: skip
def test_devices_are_known_by_their_usual_names(name, device):
    assert row_from({**KRACKAN, "device": name, "cols": "4"}).case.device == device


def test_synchronous_bds_are_told_by_a_column_or_by_the_notes():
    notes = {"notes": "BD reconfiguration NOT overlapped with DMA"}
    cases = [
        row_from({**KRACKAN, **more}).case for more in ({}, notes, {"bd_overlap": "no"}, {**notes, "bd_overlap": "yes"})
    ]
    assert [case.bd_overlap for case in cases] == [True, False, False, True]


def test_unknown_layouts_slabs_and_overlap_are_those_of_the_types_and_of_the_notes():
    packed = row_from({**KRACKAN, "dtype_b": "i2", "b_layout": ""}).case
    assert (packed.b_layout, packed.assumed) == ("packed", ("b_layout=packed",))
    wide = {"dtype_a": "bf16", "dtype_b": "bf16", "dtype_c": "bf16"}
    assert row_from({**KRACKAN, **wide, "k_mt": ""}).case.k_mt == 216  # half as many elements in as many bytes
    noted = row_from({**KRACKAN, "notes": "without BD overlap"}).case
    assert noted.assumed == ("bd_overlap=no (source and notes)",)
    alone = {**KRACKAN, "rows": "1", "cols": "1", "M": "", "K": "", "N": ""}
    assert row_from(alone).case.c_buffers == 2  # whatever the table says, without the wait for C
    assert row_from({**alone, "M": "128"}).case.c_buffers == 1


@pytest.mark.parametrize(
    ("a", "b", "c", "types"),
    [("i16", "", "", ("int16", "int16", "int16")), ("i8", "i4", "", ("int8", "int4", "int8")),
     ("bf16", "", "f32", ("bf16", "bf16", "f32")), ("", "", "i32", ("int8", "int8", "int32")),
     ("", "i2", "", ("int8", "int2", "int8"))],
)  # fmt: skip
def test_unknown_types_are_that_of_a_and_a_s_is_int8(a: str, b: str, c: str, types: tuple[str, ...]):
    found = row_from({**KRACKAN, "dtype_a": a, "dtype_b": b, "dtype_c": c, "b_layout": "packed"}).case
    assert (found.a, found.b, found.c) == types
    assert found.assumed == tuple(
        f"dtype_{side}={name}" for side, told, name in zip("abc", (a, b, c), types, strict=True) if not told
    )


WHOLE = ("m_ct", "k_ct", "n_ct", "k_mt", "rows", "cols", "c_buffers", "rho", "M", "K", "N")


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("value", ["0.5", "1.5"])
def test_parts_of_a_whole_are_refused_by_name(name: str, value: str):
    with pytest.raises(PerfError, match=f"^{name} is '{value}', not a whole number$"):
        row_from({**KRACKAN, name: value})


@pytest.mark.parametrize(("k_mt", "whole"), [("216", 19 * 216), ("432", 9 * 432), ("576", 7 * 576), ("5040", 5040)])
def test_an_unknown_k_is_the_nearest_number_of_slabs_to_4096_and_one_at_least(k_mt: str, whole: int):
    assert whole == row_from({**KRACKAN, "K": "", "k_mt": k_mt}).case.K


@pytest.mark.parametrize(("k", "k_mt"), [("72", 72), ("73", 144), ("300", 360), ("4320", 432), ("", 432)])
def test_an_unknown_slab_is_long_enough_for_requests_and_no_deeper_than_k(k: str, k_mt: int):
    """366.4 bytes on Krackan with 8 columns (6.602 ns at 55.5 GB/s): six steps of 72."""
    assert row_from({**KRACKAN, "K": k, "k_mt": ""}).case.k_mt == k_mt


def test_short_names_of_columns_are_accepted():
    short = {name: value for name, value in KRACKAN.items() if name not in ("m_ct", "k_ct", "n_ct", "cols")}
    header = [name for name in REQUIRED if name in short]
    rows = read_rows(text({**short, "m": "128", "k": "72", "n": "112", "columns": "8"}, columns=header), "in.csv")
    assert (rows[0].case.m, rows[0].case.M, rows[0].case.columns) == (128, 4096, 8)


def test_missing_columns_are_named_all_at_once():
    with pytest.raises(PerfError, match=r"in.csv: missing columns device, k_mt, rho; add them, empty where a value is"):
        read_rows(text(columns=[name for name in REQUIRED if name not in ("rho", "device", "k_mt")]), "in.csv")


def test_every_wrong_field_is_named_with_its_line():
    wrong = {**KRACKAN, "m_ct": "1.5", "K": "-3", "b_layout": "diag", "dtype_b": "i9", "device": "toaster", "rows": "9"}
    with pytest.raises(PerfError) as error:
        read_rows(text(KRACKAN, wrong), "in.csv")
    lines = str(error.value).splitlines()
    assert len(lines) == 6
    assert all(line.startswith("in.csv: line 3: ") for line in lines)
    assert "in.csv: line 3: b_layout: unknown order 'diag'; known: row, column, packed; or empty when unknown" in lines


NO_NUMBERS = [*["0", "-0.0", "1e31", "1e300", "nan", "inf", "²", "1,5", "٣", "1_000", "0x10", "1e"], "x" * 9999]
CORE = {**KRACKAN, "rows": "1", "cols": "1", "M": "", "K": "", "N": ""}


@pytest.mark.daily(every=8)
@pytest.mark.parametrize(
    "row", [KRACKAN, CORE, {**KRACKAN, "m_ct": ""}], ids=["a design", "one core", "without a tile"]
)
@pytest.mark.parametrize("name", ["k_mt", "rho", "K", "n_ct", "tops", "time_us", "clock_ghz", "core_macs_per_cycle"])
@pytest.mark.parametrize("value", NO_NUMBERS)
def test_a_number_that_is_none_is_refused_whether_the_row_needs_it_or_not(row, name: str, value: str):
    with pytest.raises(PerfError, match=rf"^{name} is .*, not a positive number") as refused:
        row_from({**row, name: value})
    assert len(str(refused.value)) < 300


def test_a_row_has_a_field_for_every_column():
    table = text(KRACKAN)
    with pytest.raises(PerfError, match=r"in\.csv: line 3: has 1 fields, the table 17 columns"):
        read_rows(table + "x\n", "in.csv")
    assert len(read_rows(table, "in.csv")) == 1


def test_each_row_of_a_table_is_told_of():
    told: list[int] = []
    estimate_table(text(KRACKAN, {**KRACKAN, "M": "x"}, KRACKAN), "in.csv", lambda: told.append(1))
    assert len(told) == 3


@pytest.mark.parametrize("broken", [",".join(REQUIRED) + "\n" + "x" * 200_000, "x" * 200_000, ""])
def test_a_file_that_is_no_table_is_refused(broken):
    with pytest.raises(PerfError, match=r"^in.csv: (line \d+: )?(no CSV|missing columns)"):
        read_rows(broken, "in.csv")


def test_lines_with_blank_fields_behind_them_are_read():
    (long,) = read_rows(",".join(REQUIRED) + "\r\nnpu2" + "," * 40 + "\r\n", "in.csv")
    assert long.case.device == "npu2"


def test_times_follow_from_tops_where_a_table_gives_only_those():
    row = row_from({**KRACKAN, "tops": "30.77"})
    assert row.time_us == pytest.approx(5152.6, rel=1e-4)
    assert all(row.time_us for row in measured_rows() if row.tops)


@pytest.mark.parametrize(
    ("name", "most"),
    [("rows", 4), ("cols", 8), ("c_buffers", 2), ("M", 1 << 30), ("rho", 1 << 30), ("clock_ghz", 1 << 30)],
)
def test_the_largest_number_of_a_column_is_read_and_the_next_refused(name: str, most: int):
    row_from({**KRACKAN, name: str(most)})
    with pytest.raises(PerfError, match=rf"^{name} is .*{most + 1}\b.*\b{most}\b"):
        row_from({**KRACKAN, name: str(most + 1)})


@pytest.mark.parametrize(("said", "kept"), [("yes", 1.0), ("no", 0.0), ("", 0.0), ("YES", 1.0)])
def test_b_stays_where_its_column_says_so(said: str, kept: float):
    assert row_from({**KRACKAN, "b_resident": said}).case.b_kept == kept


@pytest.mark.parametrize("name", ["b_resident", "bd_overlap"])
def test_yes_and_no_are_all_that_such_columns_say(name: str):
    with pytest.raises(PerfError, match=f"{name} is 'maybe'; it is (yes or no|no or yes), or empty"):
        row_from({**KRACKAN, name: "maybe"})


@pytest.mark.parametrize(("k_mt", "whole"), [("432", 432), ("433", 504), ("72", 72), ("1", 72)])
def test_slabs_are_whole_steps_of_k(k_mt: str, whole: int):
    assert row_from({**KRACKAN, "k_mt": k_mt}).case.k_mt == whole


@pytest.mark.parametrize(("rho", "cycles"), [("1", 51), ("2", 102)])
def test_a_core_alone_is_one_step_with_the_switches_of_a_fitted_kernel(rho: str, cycles: int):
    alone = {**KRACKAN, "rows": "1", "cols": "1", "M": "", "K": "", "N": "", "rho": rho}
    published, fitted = (row_from({**alone, "core_macs_per_cycle": rate}) for rate in ("307.2", ""))
    found = estimate(published.case)
    assert step_of_core(found)[0] == pytest.approx(found.kernel.cycles / 1.8e3)
    assert step_of_core(found)[2] == "compute"
    assert step_of_core(replace(found, core=replace(found.core, stream_in=found.kernel.cycles)))[2] == "compute"
    slow = step_of_core(replace(found, core=replace(found.core, stream_in=found.kernel.cycles + 1)))
    assert (slow[0], slow[2]) == (pytest.approx((found.kernel.cycles + 1) / 1.8e3), "L1 stream")
    found = estimate(fitted.case)
    assert step_of_core(found)[0] == pytest.approx((found.kernel.cycles + cycles) / 1.8e3)


@pytest.mark.parametrize(("changes", "alone"), [
    ({"rows": "1", "cols": "1"}, True), ({"rows": "1", "cols": "2"}, False), ({"rows": "2", "cols": "1"}, False),
    ({"rows": "1", "cols": "1", "K": "72"}, False), ({}, False),
])  # fmt: skip
def test_a_core_alone_has_one_row_one_column_and_no_problem(changes: dict[str, str], alone: bool):
    fields = {**KRACKAN, "M": "", "K": "", "N": "", **changes}
    row = row_from(fields)
    assert row.core_only is alone
    (found,) = modelled(fields)
    time_us = step_of_core(estimate(row.case))[0] if alone else estimate(row.case).time_us
    assert float(found["time_us_modelled"]) == pytest.approx(time_us, rel=1e-5)


@pytest.mark.parametrize(("device", "columns"), [("phoenix", 4), ("npu1_2col", 2), ("strix", 8), ("npu2_3col", 3)])
def test_an_array_has_no_more_columns_than_its_device(device: str, columns: int):
    assert row_from({**KRACKAN, "device": device, "cols": str(columns)}).case.columns == columns
    assert row_from({**KRACKAN, "device": device, "cols": ""}).case.columns == columns
    with pytest.raises(PerfError, match=f"^cols is {columns + 1}; the most is {columns}$"):
        row_from({**KRACKAN, "device": device, "cols": str(columns + 1)})


def test_what_stands_beside_a_row_says_what_was_modelled():
    (row,) = modelled({**KRACKAN, "tops_modelled": "old"})
    assert list(row)[-len(ADDED) :] == list(ADDED)
    assert row["estimate_of"] == "design"
    low, time, high = (float(row[f"time_us_{name}"]) for name in ("low", "modelled", "high"))
    assert (low, high) == (pytest.approx(INTERVAL[0] * time, rel=1e-5), pytest.approx(INTERVAL[1] * time, rel=1e-5))


GOOD = text(KRACKAN).splitlines()
BAD_LINES = {
    "blanks": ("," * 15, "every field is blank; remove the line"),
    "spaces": (" , " * 15, "every field is blank; remove the line"),
    "nul": (GOOD[1].replace("i8", "i\0", 1), "dtype_a: holds control characters"),
    "escape": (GOOD[1] + "\x1b[31m", "core_macs_per_cycle: holds control characters"),
    "long": (GOOD[1] + ",1,2", "has 19 fields, the table 17 columns"),
    "open_quote": (GOOD[1].replace("i8", '"i8', 1), "unexpected end of data"),
    "quote_inside": (GOOD[1].replace("i8", '"i"8', 1), "expected after"),
    "huge_field": (GOOD[1] + "9" * 200_000, "field larger than field limit"),
    "number": (GOOD[1].replace("128", "9" * 5000, 1), "m_ct is '9"),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_row_is_told_by_its_line_and_the_rest_modelled(name):
    line, fault = BAD_LINES[name]
    after = [] if name == "open_quote" else [GOOD[1]]
    found, faults = estimate_table("\n".join([*GOOD, line, *after]) + "\n", "in.csv")
    assert len(found.splitlines()) == 2 + len(after)
    assert [fault.startswith("in.csv: line 3: ") for fault in faults] == [True]
    assert fault in faults[0]
    with pytest.raises(PerfError, match=r"in\.csv: line 3: "):
        read_rows("\n".join([*GOOD, line]), "in.csv")


def test_a_table_without_any_good_row_is_refused():
    with pytest.raises(PerfError, match="every field is blank"):
        estimate_table(f"{GOOD[0]}\n{',' * 15}\n", "in.csv")


def test_columns_that_are_there_twice_are_refused():
    header = GOOD[0] + ",m,\x1b[2Jx,\x1b[2Jx"
    with pytest.raises(PerfError, match=r"columns m_ct, \\x1b\[2Jx are there twice"):
        read_rows(f"{header}\n", "in.csv")


def test_a_table_of_too_many_rows_is_left(monkeypatch):
    monkeypatch.setattr(csv_rows, "ROWS_MAX", 3)
    found, faults = estimate_table("\n".join([GOOD[0], *[GOOD[1]] * 5]), "in.csv")
    assert len(found.splitlines()) == 4
    assert faults == ["in.csv: line 5: more than 3 rows are not read; split the table"]
    whole, none = estimate_table("\n".join([GOOD[0], *[GOOD[1]] * 3]), "in.csv")
    assert (len(whole.splitlines()), none) == (4, [])


SAID = [  # what source and notes say, other fields, and what a case then has
    ({"notes": "B resident in memtiles"}, {"b_kept": 1.0}),
    ({"notes": "B held in memtile and replayed"}, {"b_kept": 1.0}),
    ({"notes": "no resident B"}, {"b_kept": 0.0}),
    ({"notes": "B re-read per row block", "source": "x-nonresidentB"}, {"b_kept": 0.0}),
    ({"notes": "B resident in memtile when K<=4096"}, {"b_kept": 0.0}),
    ({"notes": "B resident in memtile when K<=4320"}, {"b_kept": 1.0}),
    ({"notes": "operators/flm/gemm", "K": "1024", "k_mt": "", "n_ct": "64"}, {"b_kept": 1.0, "compiler": "peano"}),
    ({"notes": "operators/flm/gemm"}, {"b_kept": 0.0, "compiler": "peano"}),
    ({"notes": "B resident", "b_resident": "no"}, {"b_kept": 0.0}),
    ({"notes": "fused-cast herd 8x4"}, {"compiler": "air-fused-cast", "rows": 4, "columns": 8, "M": 4480, "N": 4096}),
    ({"notes": "xchesscc; not Peano"}, {"compiler": "xchesscc"}),
    ({"source": "amd/IRON"}, {"compiler": "peano"}),
    ({"source": "amd/IRON", "compiler": "mine"}, {"compiler": "mine"}),
    ({"notes": "grouped submissions"}, {"dispatch": "runlist"}),
    ({"dispatch": "raw"}, {"dispatch": "raw"}),
    ({"source": "Xilinx/mlir-air"}, {"dispatch": "elf"}),
    ({"rows": "8", "cols": "4"}, {"rows": 4, "columns": 8, "m": 112, "n": 128, "a_layout": "row"}),
    ({"k_mt": "", "notes": "whole_array example"}, {"k_mt": 72}),
    ({"k_mt": "", "notes": "whole_array example", "b_layout": "packed"}, {"k_mt": 432}),
    ({"source": "amd/IRON", "m_ct": "", "k_ct": "", "n_ct": "", "k_mt": ""}, {"m": 64, "k": 64, "n": 64, "k_mt": 64}),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "wanted"), SAID)
def test_what_source_and_notes_say_of_a_design_counts(fields: dict[str, str], wanted: dict[str, object]):
    case = row_from(KRACKAN | fields).case
    assert {name: getattr(case, name) for name in wanted} == wanted


def test_an_unknown_way_to_hand_over_is_refused():
    with pytest.raises(PerfError, match="dispatch is 'pigeon'; it is xrt or elf or raw or runlist, or empty"):
        row_from(KRACKAN | {"dispatch": "pigeon"})


def test_a_compiler_s_own_form_counts_where_there_is_one_for_the_types():
    """Of a tile's 8192 elements each takes so many cycles behind its steps, each slab of K so many in between."""
    rate = {"core_macs_per_cycle": "", "dtype_a": "bf16", "dtype_b": "bf16", "dtype_c": "bf16", "m_ct": "64"}
    plain, peano, cast = (
        row_from(KRACKAN | rate | {"compiler": name}).case for name in ("", "peano", "air-fused-cast")
    )
    (form,) = (form for (name, _), form in compiled_kernels().items() if name == "air-fused-cast")
    steps, slabs = 4320 / 72, 4320 / 432
    found = estimate(cast).core
    assert found.kernel - 51 == pytest.approx(form.cycles(64, 72, 112))
    assert found.ends == pytest.approx((form.cycles_per_result or 0) * 64 * 112 + form.cycles_per_slab * slabs)
    assert found.compute == pytest.approx(steps * found.kernel + found.ends)
    assert estimate(peano).core.compute > estimate(plain).core.compute
    int8 = replace(row_from(KRACKAN).case, core_macs_per_cycle=None)
    assert estimate(replace(int8, compiler="peano")).time_us == estimate(int8).time_us  # nobody gives peano's int8
