"""Options of the command line at their limits: what is taken, and what is refused by the option's name."""

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from bdforge.cli import machine_code, texts, tune
from bdforge.cli.commands import app
from bdforge.cli.contract import _sizes, _strides
from bdforge.cli.device import _run
from bdforge.cli.options import layouts, print_or_write, print_warnings, problem, problems_of, sizes, whole_numbers
from bdforge.cli.run import _count
from bdforge.cli.timing import Timed, _named_cycles
from bdforge.common.files import FileError
from bdforge.devices.types import TypeNameError
from bdforge.operators import load_spec, operator_of
from bdforge.operators.gemm import GemmProblem
from support.built_designs import ROOT

DESIGN = str(ROOT / "designs" / "gemm_i8_i2_bitnet.toml")


@pytest.mark.parametrize(
    ("text", "axes", "found"),
    [
        ("1x2x3", "MKN", (1, 2, 3)), ("256,2560, 640", "MKN", (256, 2560, 640)), (" 4X5x6 ", "MKN", (4, 5, 6)),
        ("7", "L", (7,)), ("9" * 18, "L", (10**18 - 1,)), ("3x4", "MN", (3, 4)),
    ],
)  # fmt: skip
def test_sizes_are_numbers_from_one_on(text: str, axes: str, found: tuple[int, ...]):
    assert sizes(text, tuple(axes)) == found


@pytest.mark.parametrize(
    ("text", "axes", "example"),
    [
        ("0x2x3", "MKN", "MxKxN, three positive numbers such as 256x2560x640"),
        ("1x2", "MKN", "MxKxN, three positive numbers"),
        ("1x2x3x4", "MKN", "MxKxN, three positive numbers"),
        ("9" * 19, "L", "L, one positive number such as 256"),
        ("3x", "MN", "MxN, two positive numbers such as 256x2560"),
        ("-1", "L", "L, one positive number"),
        ("١", "L", "L, one positive number"),
    ],
)
def test_other_sizes_are_refused_with_an_example(text: str, axes: str, example: str):
    with pytest.raises(typer.BadParameter, match=f"is not {example}"):
        sizes(text, tuple(axes))


def test_sizes_of_a_design_of_one_size_are_refused():
    with pytest.raises(
        typer.BadParameter, match=r"'256': the design is of one size; \[sequence\] and \[\[operand\]\] make"
    ):
        sizes("256", ())


def test_shapes_of_an_option_keep_their_order():
    assert problem("1x2x3") == GemmProblem(1, 2, 3)
    spec = load_spec(DESIGN)
    found = problems_of(operator_of(spec), ["5x6x7", "1x2x3"])
    assert [each.sizes for each in found] == [{"M": 5, "K": 6, "N": 7}, {"M": 1, "K": 2, "N": 3}]
    assert problems_of(operator_of(spec), None) == []


def test_layouts_count_once_and_in_order():
    assert layouts("row,column,row") == ("row", "column")
    with pytest.raises(TypeNameError, match="diagonal"):
        layouts("row,diagonal")


def test_what_is_written_replaces_nothing_unasked(tmp_path, capsys):
    print_or_write("text\n", None, False, ": more")
    out = tmp_path / "out.txt"
    print_or_write("one\n", out, False, ": more")
    with pytest.raises(FileError, match=r"out\.txt exists"):
        print_or_write("two\n", out, False)
    assert out.read_text() == "one\n"
    print_or_write("two\n", out, True)
    assert out.read_text() == "two\n"
    assert capsys.readouterr().out.split("\n") == ["text", f"wrote {out}: more", f"wrote {out}", ""]


@pytest.mark.parametrize(("count", "lines", "last"), [(0, 0, ""), (1, 1, "warning: 0"), (10, 10, "warning: 9")])
def test_warnings_stand_apart_one_a_line(capsys, count: int, lines: int, last: str):
    print_warnings(map(str, range(count)))
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines()), "".join(err.splitlines()[-1:])) == ("", lines, last)
    print_warnings(map(str, range(13)))
    assert "3 more" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(("entry", "found"), [("f=0", ("f", 0.0)), ("mm=12.5", ("mm", 12.5)), ("f=1e3", ("f", 1000.0))])
def test_cycles_of_a_kernel_have_a_name_and_a_number(entry: str, found: tuple[str, float]):
    assert _named_cycles(entry) == found


@pytest.mark.parametrize("entry", ["f", "f=", "=3", "f=-1", "f=inf", "f=nan", "f=x"])
def test_other_cycles_are_refused(entry: str):
    with pytest.raises(typer.BadParameter, match="is not NAME=CYCLES, such as mm_i8_i2_i32=1200"):
        _named_cycles(entry)


@pytest.mark.parametrize(
    ("options", "name"),
    [(("strix", [], None), "--device"), ((None, ["f=3"], None), "--kernel-cycles"), ((None, [], 5), "--macs")],
)
def test_options_of_timed_runs_are_refused_without_timing(options, name: str):
    with pytest.raises(typer.BadParameter, match=f"{name} goes with --timing or --timeline"):
        Timed.given(False, None, *options)
    timed = Timed.given(True, None, *options)
    assert timed is not None
    assert (timed.options.timing is None, timed.options.kernels, timed.options.macs) == (
        options[0] is None, dict(map(_named_cycles, options[1])), options[2],
    )  # fmt: skip
    assert Timed.given(False, None, None, [], None) is None


@pytest.mark.parametrize(("operations", "text"), [(9_999_999, "9,999,999"), (10_000_000, "0.01 G"), (1, "1")])
def test_many_operations_are_counted_in_billions(operations: int, text: str):
    assert _count(operations) == text


@pytest.mark.parametrize(("text", "least", "found"), [
    ("1, 1000000000", 1, [1, 10**9]), ("-5,0", -5, [-5, 0]), ("1000000001", 1, None), ("0", 1, None), ("1,", 1, None),
    ("-1", 0, None), ("1.5", 1, None), ("²", 1, None), ("\u0663", 1, None), ("9" * 5000, 1, None),
    ("", 0, None), ("--1", -9, None),
])  # fmt: skip
def test_lists_of_numbers_have_a_range(text: str, least: int, found: list[int] | None):
    if found is not None:
        assert whole_numbers(text, "--sizes", least) == found
        return
    with pytest.raises(typer.BadParameter, match=f"whole numbers from {least} to 1000000000"):
        whole_numbers(text, "--sizes", least)


def _numeric(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _numeric(command, (*path, name))
        for parameter in command.params:
            if parameter.type_descriptor.annotation in (int, float):
                yield (*path, name, parameter.opts[0]), parameter


def test_every_number_has_a_range():
    found = dict(_numeric(typer.main.get_command(app)))
    assert {("plot", "pattern", "--offset"), ("run", "--seed"), ("estimate", "--rate")} <= found.keys()
    del found["emulate", "--budget"], found["explain", "--budget"]  # whose parser knows its limit: 2e8 is a number, too
    del found["puzzle", "number"]  # whose callback tells how many there are
    assert [path for path, each in found.items() if None in (each.min, each.max) or each.callback is None] == []


def test_a_contractions_sizes_and_strides_are_read_in_order():
    assert _sizes("a=1, B=999999999999") == {"a": 1, "B": 999_999_999_999}
    assert _strides(None) == [None, None, None]
    assert _strides(["5,1", "", "7"]) == [[5, 1], None, [7]]
    for text in ("a=1000000000000", "ab=3", "a=", "a=1,,b=2", "a=-1"):
        with pytest.raises(typer.BadParameter, match="is no list of sizes such as a=384,b=376"):
            _sizes(text)
    for strides in ([], ["1"] * 2, ["1"] * 4):
        with pytest.raises(typer.BadParameter, match="give three"):
            _strides(strides)
    with pytest.raises(typer.BadParameter, match="whole numbers from"):
        _strides(["1", "a", "2"])


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -15 $$", 143)])
def test_a_program_on_the_device_ends_the_command_with_its_code(script: str, code: int):
    assert _run(["sh", "-c", script], {"PATH": "/usr/bin:/bin"}) == code
    with pytest.raises(FileError, match=r"/no/such: cannot be run: No such file"):
        _run(["/no/such"], {})


def test_the_highest_rate_of_a_core_is_taken(run):
    code, out, err = run("estimate", DESIGN, "--shape", "256x2560x640", "--rate", "512")
    assert code == 0, err
    assert "256x2560x640" in out


TIMES = {"": 0, "0": 0, "7": 7, "9" * 18: 10**18 - 1, "9" * 19: 0, "-1": 0, "1.5": 0, "\u0663": 0}


@pytest.mark.parametrize("text", TIMES)
def test_the_time_of_images_is_a_number_of_18_digits_at_most(monkeypatch, text: str):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", text)
    assert texts._seconds() == TIMES[text], f"SOURCE_DATE_EPOCH={text}"
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert texts._seconds() == 0


def test_wide_registers_are_shown_by_their_ends_from_65_characters_on():
    whole, wide = "0x9" + "7" * 61, "0x8" + "7" * 61 + "6"
    assert machine_code._digits(int(whole, 16)) == whole
    assert machine_code._digits(int(wide, 16)) == f"0x877777 ... x8{'7' * 61}6 (highest ... lowest)"


@pytest.mark.parametrize(("text", "core"), [
    ("0,2", (0, 2)), (" (0, 2) ", (0, 2)), ("(7,5", (7, 5)), ("999,000", (999, 0)), ("1000,0", None), ("0,1000", None),
    ("0,2,3", None), ("0", None), ("-1,2", None), ("0,  2", None),
])  # fmt: skip
def test_a_core_is_a_column_and_a_row_of_three_digits_at_most(text: str, core: tuple[int, int] | None):
    if core is not None:
        assert machine_code._place(text) == core
        return
    with pytest.raises(typer.BadParameter, match="is no core: write COLUMN,ROW, such as 0,2"):
        machine_code._place(text)


def test_constants_are_numbers_of_those_before_them():
    assert machine_code.defined([]) == {}
    assert machine_code.defined(["A=3", "B=A*2", "C=B+A"]) == {"A": 3, "B": 6, "C": 9}
    for wrong in ("A", "=3", ""):
        with pytest.raises(typer.BadParameter, match="is not NAME=NUMBER, such as TILE_M=64"):
            machine_code.defined([wrong])


@pytest.mark.parametrize(("entries", "found"), [
    ([], {}), (["rho=1", "k=64,128"], {"rho": (1,), "k": (64, 128)}), (["k=999999999"], {"k": (999999999,)}),
    (["k=1000000000"], None), (["k=0"], None), (["k=08"], None), (["k="], None), (["k=8,"], None), (["k"], None),
    (["depth=8"], None), (["rho=1", "rho=1"], None),
])  # fmt: skip
def test_fixed_values_of_a_search_have_nine_digits_at_most_and_each_name_once(entries, found):
    if found is not None:
        assert tune._fixed(entries, ("rho", "k")) == found
        return
    with pytest.raises(typer.BadParameter, match="each name once, such as"):
        tune._fixed(entries, ("rho", "k"))
