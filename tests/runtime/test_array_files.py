"""Host arrays in files: what is no array is told in a sentence, never as a traceback."""

from pathlib import Path

import numpy as np
import pytest

from bdforge.runtime.arrays import ArrayFileError, load_arrays, save_arrays


@pytest.mark.parametrize("content", [b"", b"\x93", b"\x93NUMPY", b"\x93NUMPY\x01\x00", b"PK\x03\x04", b"12 13 14\n"])
def test_a_file_that_is_no_array_is_named(tmp_path: Path, content: bytes):
    file = tmp_path / "a.npy"
    file.write_bytes(content)
    with pytest.raises(ArrayFileError, match=r"a\.npy: not an \.npy array"):
        load_arrays([file])


def test_an_array_without_elements_is_an_array(tmp_path: Path):
    (file,) = save_arrays(tmp_path / "out", [Path("a.npy")], [np.zeros((0, 3), np.int16)])
    (array,) = load_arrays([file])
    assert (array.shape, array.dtype) == ((0, 3), np.int16)
