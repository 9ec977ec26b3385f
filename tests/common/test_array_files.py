"""Host arrays in files: what is no array is told in a sentence, never as a traceback."""

import io
import pickle
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from bdforge.common.array_files import ArrayFileError, load_arrays, new_arrays, save_array
from support.differences import same


def save_arrays(
    folder: Path, paths: Sequence[Path], arrays: Sequence[np.ndarray], *, force: bool = False
) -> list[Path]:
    targets = new_arrays(folder, paths, force=force)
    for target, array in zip(targets, arrays, strict=True):
        save_array(target, array)
    return targets


def header(text: str, version: bytes = b"\x01\x00") -> bytes:
    return b"\x93NUMPY" + version + len(text).to_bytes(2 if version[0] == 1 else 4, "little") + text.encode()


def pickled() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([{}], object), allow_pickle=True)
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is not an .npy array, it is empty"),
        (b"12 13 14\n", "is not an .npy array, it begins with 31 32"),
        (b"PK\x03\x04", "is an .npz archive of several arrays"),
        (pickle.dumps([1]), "is a pickle, which is not read, since reading one runs code"),
        (pickled(), r"holds Python objects \(type object\), not numbers"),
        (header("{'descr': '<i4', 'fortran_order': False, 'shape': (9990000000000,)}"),
         "is cut off: 9990000000000 elements of int32 take 39960000000000 bytes, 0 are there"),
        (header("{'descr': '<i4', 'fortran_order': False, 'shape': (3, 5)}") + bytes(59),
         "is cut off: 3x5 elements of int32 take 60 bytes, 59 are there"),
        (header("(" * 9000), "its .npy header is damaged"),
        (header("[" * 90 + "]" * 90), "its .npy header is damaged"),
        (header("-" * 9000 + "1"), "its .npy header is damaged"),
        (header("{'descr': '<i4', 'fortran_order': False, 'shape': (-1, -1)}"), r"no array has the shape \(-1, -1\)"),
        (header("{'descr': '<i4', 'fortran_order': False, 'shape': (" + "1, " * 65 + ")}"), "no array has the shape"),
        (header("{'descr': '<i4', 'fortran_order': False, 'shape': (True,)}") + b"1234", "has the shape"),
        (header("{'descr': '<i4', 'fortran_order': False, 'shape': (0, 9223372036854775807)}"), "has the shape"),
        (header("{'descr': '|b1', 'fortran_order': False, 'shape': (0, 9223372036854775808)}"), "has the shape"),
        (header("{'descr': '<i4', 'fortran_order': False, 'shape': (1 << 62, 0, 4)}"), "header is damaged"),
        (header("{'descr': '<q99', 'fortran_order': False, 'shape': (1,)}"), "its .npy header is damaged"),
        (header("{'descr': [('a', '<i4', (9,) * 9)], 'fortran_order': False, 'shape': (1,)}"), "header is damaged"),
        (header("x", b"\x07\x00"), r"is an .npy of version 7.0"),
        (header("x" * 20_000), "its .npy header is damaged"),
        (header("{'descr': 'S0', 'fortran_order': False, 'shape': (10**0, 9999999999999999999999)}"), "damaged"),
        (header("{'descr': 'S0', 'fortran_order': False, 'shape': (9999999999999999999999,)}"), "without bytes"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_array_is_said(tmp_path: Path, content: bytes, reason: str):
    file = tmp_path / "a.npy"
    file.write_bytes(content)
    with pytest.raises(ArrayFileError, match=rf"a\.npy: .*{reason}"):
        load_arrays([file])


def test_an_array_has_64_dimensions_at_most(tmp_path: Path):
    """numpy's own limit, so a header with one more is made by hand."""
    np.save(tmp_path / "64.npy", np.zeros((1,) * 64, np.int8))
    assert load_arrays([tmp_path / "64.npy"])[0].ndim == 64
    with (tmp_path / "65.npy").open("wb") as file:
        np.lib.format.write_array_header_2_0(file, {"descr": "|i1", "fortran_order": False, "shape": (1,) * 65})
        file.write(b"\0")
    with pytest.raises(ArrayFileError, match="no array has the shape"):
        load_arrays([tmp_path / "65.npy"])


def test_files_of_one_name_are_written_beside_each_other(tmp_path: Path):
    paths = [tmp_path / "one" / "a.npy", tmp_path / "other" / "a.npy"]
    written = save_arrays(tmp_path / "out", paths, [np.array([1]), np.array([2])])
    assert [path.name for path in written] == ["0_a.npy", "1_a.npy"]
    assert [int(array[0]) for array in load_arrays(written)] == [1, 2]


def test_a_file_that_is_there_is_replaced_only_when_that_is_wished(tmp_path: Path):
    """Of several the last may be the one that is there: none is written then."""
    (kept,) = save_arrays(tmp_path, [Path("b.npy")], [np.array([1])])
    both = [Path("in/a.npy"), Path("b.npy")]
    with pytest.raises(ArrayFileError, match=rf"{kept} exists; choose another file, or replace it"):
        save_arrays(tmp_path, both, [np.array([2]), np.array([3])])
    assert [path.name for path in tmp_path.iterdir()] == ["b.npy"]
    assert load_arrays([kept])[0].tolist() == [1]
    written = save_arrays(tmp_path, both, [np.array([2]), np.array([3])], force=True)
    assert [(path.name, array.tolist()) for path, array in zip(written, load_arrays(written), strict=True)] == [
        ("a.npy", [2]), ("b.npy", [3]),
    ]  # fmt: skip


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
@pytest.mark.parametrize("shape", [(), (1,), (2, 0), (2, 3)])
@pytest.mark.parametrize("order", "CF")
def test_both_versions_of_headers_all_ranks_and_orders_are_read(tmp_path: Path, version: tuple[int, int], shape, order):
    given = np.asarray(np.arange(np.prod(shape), dtype=np.int16).reshape(shape), order=order)
    with (tmp_path / "a.npy").open("wb") as file:
        np.lib.format.write_array(file, given, version=version)
        file.write(b"what follows an array is left alone")
    (array,) = load_arrays([tmp_path / "a.npy"])
    same(array, given, f"version {version}")
