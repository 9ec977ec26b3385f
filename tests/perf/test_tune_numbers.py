"""`bdforge tune DESIGN`: the free numbers that operators declare, judged by plans and by what runs cost."""

from itertools import product
from math import prod
from typing import Any

import pytest

from bdforge.devices import device_named
from bdforge.devices.timing import timing_of
from bdforge.operators import OPERATORS, SpecError, load_spec, plan, spec_from
from bdforge.operators.elementwise import ElementwiseSpec
from bdforge.perf import PerfError
from bdforge.perf.bounds.operator_bound import cost_estimate
from bdforge.perf.timed import timed
from bdforge.perf.tune import free_numbers
from bdforge.perf.tune.free_numbers import tune_numbers

HALO = device_named("strix_halo")
ADD = {
    "kind": "elementwise",
    "function": "add",
    "type": "int8",
    "tile": 2048,
    "array": {"rows": 1, "columns": 1},
    "problems": [{"length": 2000}],
}
GEMV = {
    "kind": "gemv", "types": {"a": "int8", "w": "int2", "c": "int32"}, "tile": {"k": 640, "n": 32},
    "array": {"columns": 1}, "problems": [{"M": 1, "K": 1280, "N": 256}, {"M": 1, "K": 640, "N": 128}],
}  # fmt: skip
FIXED = {"tile.k": (60, 320, 640), "tile.n": (32, 64), "array.channels": (1, 2)}


def placed(content: dict, numbers: dict[str, int]) -> dict:
    """Content with numbers at their places, by hand."""
    tables = {name: dict(table) if isinstance(table, dict) else table for name, table in content.items()}
    for place, value in numbers.items():
        table, _, key = place.rpartition(".")
        (tables[table] if table else tables)[key] = value
    return tables


def test_every_choice_that_a_plan_takes_is_modelled_and_the_fastest_is_first():
    found = tune_numbers(GEMV, "small", HALO, fixed=FIXED, finalists=0)
    times = {}
    for numbers in product(*FIXED.values()):
        chosen = dict(zip(FIXED, numbers, strict=True))
        try:
            made = plan(spec_from(placed(GEMV, chosen), "small"), HALO)
        except SpecError:
            continue
        times[numbers] = sum(cost_estimate(made, p, timing_of(HALO)).time_us for p in made.problems)
    assert (found.examined, found.legal) == (12, len(times))
    assert 0 < len(times) < 12, "60 is no multiple of 8"
    assert {tuple(v for _, v in choice.numbers): choice.modelled_us for choice in found.best} == pytest.approx(times)
    assert found.best[0].modelled_us <= 1.001 * min(times.values())
    assert found.given is not None
    assert found.given.modelled_us == pytest.approx(times[640, 32, 1], rel=0.5)


def test_finalists_are_timed_on_the_emulated_array():
    found = tune_numbers(ADD, "small", HALO, fixed={"tile": (64, 512)}, finalists=2)
    times = [timed(choice.plan, choice.plan.problems[0], "ideal").seconds * 1e6 for choice in found.best]
    assert [choice.time_us for choice in found.best] == times == sorted(times)
    assert found.best[0].numbers == (("tile", 512),), "calls of 64 elements each take as long as their locks"


@pytest.mark.parametrize("name", ["add_i8", "gemv_i8_i2", "gemv_bf16"])
def test_an_operator_s_own_design_is_among_the_choices_of_its_free_numbers(name: str):
    spec: Any = load_spec(f"designs/{name}.toml")
    free = OPERATORS[spec.kind].free(spec, HALO)
    facts = spec.form.model_dump()
    for place, values in free.items():
        table, _, key = place.rpartition(".")
        own = (facts[table] if table else facts)[key]
        assert own is None or own in values
        assert len(set(values)) == len(values)
    assert 1 < prod(map(len, free.values())) <= free_numbers.CHOICES_MOST


@pytest.mark.parametrize(
    ("content", "fixed", "message"),
    [
        (ADD | {"problems": []}, {}, "small: has no problems to be fast at"),
        (ADD, {"k": (1,)}, "k is no free number of elementwise; free are tile"),
        (ADD, {"tile": (63,)}, "small: no choice of tile can be built for its problems"),
        (ADD, {"tile": tuple(range(20_001))}, "20,001 choices exceed the 20,000 of a search; --fix some of tile"),
    ],
)
def test_what_cannot_be_tuned_is_refused(content, fixed, message: str):
    with pytest.raises(PerfError, match=message):
        tune_numbers(content, "small", HALO, fixed=fixed)


def test_the_command_writes_a_design_that_can_be_planned(run, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'kind = "elementwise"\nfunction = "add"\ntype = "int8"\ntile = 64\nnarrowing = { shift = 1 }\n\n'
        '[array]\ncolumns = 1\n\n[[problems]]\nname = "few"\nlength = 2000\n'
    )
    code, printed, told = run("tune", str(path), "--fix", "tile=64,512", "--finalists", "1")
    assert (code, "2 designs of 2 choices can be built") == (0, told.partition(";")[0].strip())
    (tmp_path / "tuned.toml").write_text(printed)
    spec = load_spec(tmp_path / "tuned.toml")
    assert isinstance(spec, ElementwiseSpec)
    assert spec.form.tile in (64, 512)
    assert (spec.form.narrowing.shift, spec.form.array.columns, spec.problems[0].sizes) == (1, 1, {"length": 2000})
    assert "# - as it was: its own numbers:" in printed
    assert "emulated" in printed
    assert plan(spec, HALO)
    code, _, told = run("tune", str(path), "--fix", "m=8")
    assert code == 2
    assert "names are tile" in " ".join(told.split())
    code, _, told = run("tune", str(path), "--shapes", "8x8x8")
    assert code == 2
    assert "go without a design" in " ".join(told.split())


def test_a_gemm_s_design_is_tuned_in_the_space_of_gemms(run, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'kind = "gemm"\n[types]\na = "int8"\nb = "int2"\nc = "int32"\n[layouts]\nb = "packed"\n[tile]\nm = 64\nk = 64\n'
        "n = 64\n[buffers]\nk_mt = 64\n[[problems]]\nM = 64\nK = 32\nN = 64\n"
    )
    limits = ("--finalists", "0", "--fix", "m=8", "--fix", "k=8", "--fix", "rho=1")
    by_design = run("tune", str(path), *limits)
    by_options = run("tune", "--shapes", "64x32x64", *limits)
    assert by_design[:2] == by_options[:2]
    assert by_design[0] == 0
