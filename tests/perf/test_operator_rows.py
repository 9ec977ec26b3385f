"""Tables of measured operators: what is read of each, refused, and modelled, against sums by hand."""

import csv
import io
from dataclasses import replace

import pytest

from bdforge.devices.timing import STRIX, STRIX_HALO, joined_times
from bdforge.perf import PerfError, estimate, estimate_table
from bdforge.perf.bounds.compiled_operator import CompiledOperator, OperatorForm, compiled_operators
from bdforge.perf.bounds.estimate import INTERVAL, OVERLAP_EXPONENT
from bdforge.perf.operator_rows import MEASURED_OPERATORS, OperatorRow, measured_operators, operator_row
from bdforge.perf.rows import Row

SUM = {"device": "xdna2-strix-npu4-turbo", "operator": "EltwiseAdd", "types": "bf16,bf16,bf16", "shape": "1048576",
       "config": "8/1/2048", "ms": "0.175", "source": "Xilinx/mlir-air@e9"}  # fmt: skip


def case_of(**changes: str) -> CompiledOperator:
    row = operator_row(SUM | changes)
    assert isinstance(row, OperatorRow)
    return row.case


# operator, shape, config, types: form, elements and rows of a core, columns, bytes read and written
READ = [
    ("EltwiseAdd", "1048576", "8/1/2048", "bf16", ("add", 131072, 0, 8, 4 << 20, 2 << 20)),
    ("EltwiseAdd", "4194304", "scaling: cols 4", "bf16", ("add", 1 << 20, 0, 4, 16 << 20, 8 << 20)),
    ("ReLU", "64x512", "4/2", "f32", ("add", 4096, 0, 4, 1 << 17, 1 << 17)),
    ("GELU", "4194304", "8/2/4096", "bf16", ("gelu", 262144, 0, 8, 8 << 20, 8 << 20)),
    ("SiLU_Mul", "2097152", "8/1/4096", "bf16", ("silu_mul", 262144, 0, 8, 8 << 20, 4 << 20)),
    ("RMSNorm", "2048×1536", "8", "bf16", ("rmsnorm", 393216, 0, 8, 6 << 20, 6 << 20)),
    ("RoPE", "16384x128", "8/1", "bf16", ("rope", 262144, 0, 8, 8 << 20, 4 << 20)),
    ("GEMV", "1024×3072", "8/4/4", "bf16,bf16,f32", ("gemv", 393216, 0, 8, 6 << 20, 4096)),
    ("FlashAttention", "512x1024 d64/64 heads 32/8", "causal", "bf16",
     ("attention_d64", 512 * 1024, 512, 8, 128 * (32 * 512 + 16 * 1024), 128 * 32 * 512)),
    ("attention", "64x64 d256/256 heads 8/1", "", "bf16",
     ("attention_d128", 2 * 8 * 64 * 64 / 32, 2 * 8 * 64 / 32, 8, 512 * (512 + 128), 512 * 512)),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "shape", "config", "types", "wanted"), READ)
def test_a_row_tells_what_a_core_does_and_what_dram_moves(operator, shape, config, types, wanted):
    found = case_of(operator=operator, shape=shape, config=config, types=types)
    assert (
        found.operator, found.elements, found.rows, found.columns, found.read_bytes, found.write_bytes,
    ) == wanted  # fmt: skip


@pytest.mark.parametrize(("changes", "said"), [
    ({"operator": "Frobnicate"}, "operator 'Frobnicate' is not known; known: add, attention, "),
    ({"shape": "12x"}, "shape is '12x'; it is sizes such as 1024x1024"),
    ({"shape": "0"}, "shape is '0'"),
    ({"shape": "9" * 11}, "shape is '99999999999'"),
    ({"operator": "attention"}, "of attention it is `2048x2048 d64/64 heads 32/8`"),
    ({"operator": "GEMM", "shape": "8x8x8"}, "of a GEMM it has `herd 8x4 tile m/k_mt/k/n`"),
    ({"config": "9/1"}, "9 columns of 1 cores; the array has 8 of 4"),
    ({"config": "8/5"}, "8 columns of 5 cores"),
    ({"device": "toaster"}, "device 'toaster' names no known product"),
    ({"dispatch": "pigeon"}, "dispatch is 'pigeon'; it is xrt or elf or raw or runlist, or empty"),
    ({"ms": "-1"}, "ms is '-1', not a positive number"),
    ({"ms": "soon"}, "ms is 'soon'"),
])  # fmt: skip
def test_what_cannot_be_read_is_refused(changes: dict[str, str], said: str):
    with pytest.raises(PerfError) as caught:
        operator_row(SUM | changes)
    assert said in str(caught.value)


def test_unknown_types_are_refused_and_none_are_bf16():
    with pytest.raises(PerfError, match=r"types: .*bf17"):
        operator_row(SUM | {"types": "bf17"})
    assert case_of(types="") == replace(case_of(), assumed=("types=bf16", *case_of().assumed))


def test_what_is_filled_in_is_said():
    found = case_of(device="", config="", types="", source="")
    assert found.assumed == ("device=npu2", "types=bf16", "config=8 cores in 8 columns")


def test_a_run_takes_the_slower_of_cores_and_port_and_a_dispatch():
    """262,144 elements on a core of 2 cycles each at 1.8 GHz, 1 and 2 MB at Strix Halo's port, 158 us of dispatch."""
    case = CompiledOperator("add", 262144, 10, 8, 1e6, 2e6, STRIX_HALO)
    forms = {"add": OperatorForm(2.0, 180.0)}
    parallel = case.parallel_us(forms)
    assert parallel["compute"] == pytest.approx((2 * 262144 + 1800) / 1800)
    assert parallel["DRAM bandwidth"] == pytest.approx(max(3e6 / 67.4, 2e6 / 55.3) / 1e3)
    assert parallel["shim channel"] == pytest.approx(2e6 / 16 / 14.4 / 0.95 / 1e3)
    assert case.time_us(forms) == pytest.approx(joined_times([*parallel.values()], OVERLAP_EXPONENT) + 158)


def test_bounds_and_ranges_are_those_of_the_shipped_forms():
    small, large, moved = (case_of(shape=shape) for shape in ("8192", "67108864", "16777216"))
    assert (small.bound, large.bound) == ("dispatch", "compute")
    assert replace(moved, elements=1.0).bound == "DRAM bandwidth"
    assert large.time_range_us == pytest.approx([large.time_us() * share for share in INTERVAL])
    assert {row.case.operator for row in measured_operators() if isinstance(row, OperatorRow)} == {
        *compiled_operators()
    }


def test_dispatch_is_that_of_full_elfs_where_the_source_says_so():
    assert case_of().timing.dispatch_ns == STRIX.elf_dispatch_ns
    assert case_of(source="someone").timing.dispatch_ns == STRIX.dispatch_ns
    assert case_of(source="someone", note="in a runlist of 16").timing.dispatch_ns == 14_500
    assert case_of(dispatch="raw").timing.dispatch_ns == STRIX.raw_dispatch_ns
    assert case_of(source="someone", notes="in a runlist of 16").timing.dispatch_ns == 14_500


def test_a_gemm_of_a_herd_is_modelled_with_m_over_columns():
    row = operator_row(
        SUM | {"operator": "GEMM", "shape": "512x768x1152", "config": "direct herd 8x4 tile 64/256/32/96"}
    )
    assert isinstance(row, Row)
    case = row.case
    assert (case.M, case.K, case.N, case.m, case.k, case.n, case.k_mt) == (1152, 768, 512, 96, 32, 64, 256)
    assert (case.rows, case.columns) == (4, 8)
    assert {case.a_layout, case.b_layout, case.c_layout} == {"column"}
    assert (case.compiler, case.dispatch) == ("air-direct", "elf")
    assert row.time_us == pytest.approx(175)
    assert row.tops == pytest.approx(2 * 512 * 768 * 1152 / 175e6, rel=1e-5)
    a, b, c = case.dram_traffic()  # B of the source is A turned: runs of its n along N, read once for every panel of M
    assert (a.run_bytes, a.size_bytes) == (2 * 96, 2 * 768 * 1152)
    assert (b.run_bytes, b.size_bytes) == (2 * 256, 2 * 512 * 768 * 3)
    assert (c.run_bytes, c.size_bytes) == (2 * 96, 2 * 512 * 1152)


def test_a_table_of_operators_gets_the_columns_of_gemms():
    text, faults = estimate_table(MEASURED_OPERATORS.read_text(encoding="utf-8"), "in.csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert (len(rows), faults) == (101, [])
    for row, known in zip(rows, measured_operators(), strict=True):
        us = known.case.time_us() if isinstance(known, OperatorRow) else estimate(known.case).time_us
        assert float(row["time_us_modelled"]) == pytest.approx(us, rel=1e-5)
        assert float(row["time_us_low"]) == pytest.approx(us * INTERVAL[0], rel=1e-5)
        assert row["estimate_of"] == "design"
        assert row["shape"] == known.fields["shape"]


def test_faulty_rows_of_operators_are_named_by_line_and_the_others_modelled():
    table = "device,operator,types,shape,config\nstrix,GELU,bf16,65536,8/1\nstrix,GELU,bf16,6x,8/1\n"
    text, faults = estimate_table(table, "in.csv")
    assert len(text.splitlines()) == 2
    assert faults == ["in.csv: line 3: shape is '6x'; it is sizes such as 1024x1024"]
    with pytest.raises(PerfError, match="missing columns shape, config"):
        estimate_table("device,operator,types\nstrix,GELU,bf16\n", "in.csv")
