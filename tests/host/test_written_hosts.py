"""Written designs run from C++, by bdforge-run and the library: what they compute is numpy's at any size."""

from pathlib import Path

import numpy as np
import pytest
from host_programs import probed
from library_builds import ROOT, run, sanitized_build

from bdforge.devices import device_named
from bdforge.operators import load_spec, plan
from support.built_designs import build_plan

DESIGNS = {
    "documents/transpose.toml": ("a", "b", lambda x: x.T),
    "project/designs/transpose.toml": ("X", "Y", lambda x: x.T + np.int32(3)),
}
"""Input, output, and the output as numpy computes it; the one is a document, the other a template with a sequence."""
SIZES = [(16, 32), (48, 16)]


@pytest.fixture(scope="module", params=DESIGNS)
def design(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Which one, and where its xclbin would lie in what a build leaves."""
    planned = plan(load_spec(ROOT / "examples" / request.param), device_named("strix_halo"))
    home = ROOT / "examples" / "project" if "project" in request.param else ROOT
    built = build_plan(tmp_path_factory.mktemp("written"), planned, home)
    return request.param, built.folder / f"{planned.spec.name}.xclbin"


def given(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(rows).integers(-(1 << 24), 1 << 24, (rows, columns), np.int32)


@pytest.mark.parametrize(("rows", "columns"), SIZES)
def test_bdforge_run_computes_what_numpy_does(design: tuple[str, Path], tmp_path: Path, rows: int, columns: int):
    name, image = design
    source, target, function = DESIGNS[name]
    np.save(tmp_path / "in.npy", given(rows, columns))
    files = ["--in", f"{source}={tmp_path / 'in.npy'}", "--out", f"{target}={tmp_path / 'out.npy'}"]
    words = ["-x", image, "-s", f"M={rows}", "-s", f"N={columns}", *files, "-d", "emulated", "-i", "1", "--warmup", "0"]
    done = run(sanitized_build() / "bin" / "bdforge-run", *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"problem: {rows} x {columns}" in done.stdout
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), function(given(rows, columns)))


def test_one_loaded_design_serves_jobs_of_any_size(design: tuple[str, Path], tmp_path: Path):
    name, image = design
    source, target, function = DESIGNS[name]
    orders = []
    for i, (rows, columns) in enumerate(SIZES):
        (tmp_path / f"{i}.in").write_bytes(given(rows, columns).tobytes())
        orders.append(f"M={rows} N={columns} {source} {tmp_path / str(i)}.in {target} {tmp_path / str(i)}.out")
    refused = "M=17 N=16 " + orders[0].partition("N=32 ")[2]
    *done, told = probed("jobs", image, lines=[*orders, refused])
    assert done == ["ok", "ok"]
    assert told.startswith(f"{image.stem}: ")
    assert "17" in told
    for i, (rows, columns) in enumerate(SIZES):
        found = np.frombuffer((tmp_path / f"{i}.out").read_bytes(), np.int32).reshape(columns, rows)
        np.testing.assert_array_equal(found, function(given(rows, columns)))
