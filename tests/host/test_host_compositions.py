"""Compositions run by the C++ library: Python's words, changes of configuration included, and batches of layers."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from library_builds import c_program, run

from bdforge.runtime import BuiltDesign, load
from bdforge.runtime.composition import CompositionForm, compose
from support import cached_tokens
from support.cached_tokens import BF16, DIM, HEADS
from support.coded_folders import LAYER, SMALL, coded
from support.differences import same

PRODUCT = {
    "design": "product", "name": "c", "sizes": {"M": "tokens", "K": 64, "N": 64},
    "tensors": {"A": "codes", "B": "wc", "C": "next"},
}  # fmt: skip
IN_PLACE = {
    "steps": [*LAYER["steps"], PRODUCT],
    "outputs": ["next", "sum", "codes", "scales"],
    "in_place": {"next": "x"},
    "buffers": {"state": ["x"], "weights": ["w", "wa", "wb", "w2", "wc"], "kept": ["sum", "codes", "scales"]},
}

COLUMNS = {"wa": 128, "wb": 64, "wc": 64}


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    for name in SMALL:
        coded(folder, name)
    return folder


def composed(built: Path, name: str, **changes: object) -> Path:
    form = CompositionForm.model_validate(LAYER | changes)
    compose(form, name, lambda design: BuiltDesign.load(built / design)).write(built / name)
    return built / name


@pytest.fixture(scope="module")
def layer(steps: Path) -> Path:
    return composed(steps, "layer")


@pytest.mark.slow
def test_a_composition_is_run_and_verified_by_the_library(build: Path, layer: Path):
    options = ["-d", "emulated", "--verify", "-i", "2", "--warmup", "0", "-s", "tokens=21"]
    done = run(build / "bin" / "bdforge-run", "-x", layer / "layer.xclbin", *options)
    assert (done.returncode, done.stderr) == (0, "")
    assert "verified: " in done.stdout


def test_changes_that_are_missing_are_told(build: Path, layer: Path, tmp_path: Path):
    for file in layer.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes() if file.suffix != ".bin" else b"1234")
    done = run(build / "bin" / "bdforge-run", "-x", tmp_path / "layer.xclbin", "-d", "emulated", "-s", "tokens=21")
    assert done.returncode != 0
    assert "files.configurations.sha256 is not that of" in done.stderr


def weights_of(rng: np.random.Generator) -> dict[str, np.ndarray]:
    norms = {name: rng.normal(1, 0.2, 64).astype(ml_dtypes.bfloat16) for name in ("w", "w2")}
    matrices = {name: rng.integers(-1, 2, (64, columns), np.int8) for name, columns in COLUMNS.items()}
    return norms | matrices


@pytest.mark.slow
def test_layers_in_one_batch_make_what_pythons_list_makes(steps: Path, tmp_path: Path):
    """By the C API: states stay where they are, weights, codes and scales are each layer's own."""
    tokens, layers, kept = 9, 2, ("codes", "scales")
    folder, rng = composed(steps, "in_place", **IN_PLACE), np.random.default_rng(3)
    loaded = load(folder)
    state = loaded.prepared(tokens=tokens)
    states = [state, *(state.beside(*kept) for _ in range(layers - 1))]
    state.arrays["x"][...] = x = rng.normal(size=(tokens, 64)).astype(ml_dtypes.bfloat16)
    (tmp_path / "x").write_bytes(x.tobytes())
    weights = [weights_of(rng) for _ in range(layers)]
    for number, one in enumerate(weights):
        for name, array in one.items():
            (tmp_path / f"{number}.{name}").write_bytes(array.tobytes())
    loaded.run_batch([(one, {"weights": loaded.pack(**w)}) for one, w in zip(states, weights, strict=True)])
    expected = {f"{i}.{name}": one.arrays[name] for i, one in enumerate(states) for name in kept}
    done = run(
        c_program(tmp_path, Path(__file__).parent / "c_layers.c"), folder / "in_place.xclbin", "emulated", tmp_path,
        str(tokens), str(layers),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    for name, array in (expected | {"next": state.arrays["next"]}).items():
        found = np.frombuffer((tmp_path / name).read_bytes(), array.dtype).reshape(array.shape)
        same(found, array, name)
    assert len({array.tobytes() for array in expected.values()}) == len(expected), "each layer has its own"


def test_a_cache_grows_where_it_is(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory):
    """By the C API, with Python's bits: 18 tokens, then one, and some more."""
    pieces = [18, 1, 4]
    built = cached_tokens.built(tmp_path_factory) / "cached"
    x = np.random.default_rng(2).normal(size=(sum(pieces), HEADS + 2, DIM)).astype(BF16)
    angles = np.tile((np.arange(DIM) < DIM // 2).astype(BF16), (len(x), 1))
    for name, array in (("x", x), ("angles", angles)):
        (tmp_path / name).write_bytes(array.tobytes())
    loaded = load(built)
    state, expected, first = loaded.prepared(tokens=len(x), keys=len(x)), [], 0
    for count in pieces:
        one = loaded.resized(state, tokens=count, keys=first + count)
        one.arrays["x"][...], one.arrays["angles"][...] = x[first : first + count], angles[first : first + count]
        one()
        expected.append(one.arrays["y"].copy())
        first += count
    words = [built / "cached.xclbin", "emulated", tmp_path, str(len(x)), *map(str, pieces)]
    done = run(c_program(tmp_path, Path(__file__).parent / "c_cache.c"), *words)
    assert (done.returncode, done.stderr) == (0, "")
    found = np.frombuffer((tmp_path / "y").read_bytes(), BF16).reshape(len(x), HEADS, DIM)
    same(found, np.concatenate(expected), "y")
