"""Reading from either format: which is chosen, fused tensors, and messages."""

import os

import numpy as np
import pytest

from bdforge.models.weights import WeightError, check_shape, fuse, read, tensors, write_packed
from support.differences import same
from support.weight_files import ternary, write_gguf_i2s, write_safetensors_bitnet

WRITERS = [write_gguf_i2s, write_safetensors_bitnet]


@pytest.fixture
def matrices():
    return {"gate": (ternary(1, 256, 12), 0.5), "up": (ternary(2, 256, 8), 2.0), "down": (ternary(3, 128, 16), 1.0)}


@pytest.mark.parametrize("write", WRITERS)
def test_the_format_is_told_by_content_not_by_name(tmp_path, matrices, write):
    path = write(tmp_path / "weights.bin", matrices)
    assert sorted(tensors(path)) == [("down", (128, 16)), ("gate", (256, 12)), ("up", (256, 8))]
    assert sorted(tensors(str(path))) == sorted(tensors(path))


@pytest.mark.parametrize("write", WRITERS)
def test_fused_tensors_stand_side_by_side_and_keep_their_scales(tmp_path, matrices, write):
    fused = read(write(tmp_path / "w", matrices), ["up", "gate"])
    same(fused.weights, np.hstack([matrices["up"][0], matrices["gate"][0]]), strict=True)
    assert fused.weights.flags.c_contiguous
    assert (fused.name, fused.shape, fused.scales) == ("up + gate", (256, 20), (2.0, 0.5))
    same(fused.column_scales(), np.array([2.0] * 8 + [0.5] * 12, np.float32), strict=True)


def test_matrices_of_several_files_fuse(tmp_path, matrices):
    gate = read(write_gguf_i2s(tmp_path / "a", matrices), ["gate"])
    up = read(write_safetensors_bitnet(tmp_path / "b", matrices), "up")
    assert fuse([gate, up]).columns == (12, 8)


@pytest.mark.parametrize("write", WRITERS)
def test_tensors_of_unequal_depth_do_not_fuse(tmp_path, matrices, write):
    with pytest.raises(WeightError, match="need one K: gate has K = 256, down has K = 128"):
        read(write(tmp_path / "w", matrices), ["gate", "down"])


@pytest.mark.parametrize("write", WRITERS)
def test_a_missing_tensor_is_answered_with_the_nearest_names(tmp_path, matrices, write):
    path = write(tmp_path / "w", matrices)
    with pytest.raises(WeightError, match=r"w: has no tensor 'gaet'; the nearest of its 3 ternary matrices: gate, "):
        read(path, ["gaet"])


@pytest.mark.parametrize("write", WRITERS)
def test_a_file_without_matrices_says_so(tmp_path, write):
    path = write(tmp_path / "w", {})
    assert tensors(path) == []
    with pytest.raises(WeightError, match="has no tensor 'gate', nor any other ternary matrix"):
        read(path, ["gate"])


@pytest.mark.parametrize("write", WRITERS)
def test_at_least_one_name_is_needed(tmp_path, matrices, write):
    with pytest.raises(WeightError, match="no tensor named"):
        read(write(tmp_path / "w", matrices), [])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b"GGU", "it begins with 47 47 55"),
        (b"FUGG" + bytes(40), "neither GGUF nor safetensors"),
        (b"PK\x03\x04" + bytes(40), "it begins with 50 4b 03 04"),
        (b"\xff" * 8 + b"{}", "neither GGUF nor safetensors"),
    ],
)
def test_files_of_no_known_format_are_refused(tmp_path, content, reason):
    path = tmp_path / "w"
    path.write_bytes(content)
    for call in (tensors, lambda path: read(path, ["w"])):
        with pytest.raises(WeightError, match=reason):
            call(path)


def test_paths_that_are_no_files_are_refused(tmp_path):
    with pytest.raises(WeightError, match="nowhere: cannot be read: No such file"):
        tensors(tmp_path / "nowhere")
    with pytest.raises(WeightError, match="not a regular file"):
        tensors(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(WeightError, match="not a regular file"):
        tensors(tmp_path / "pipe")


def test_a_matrix_of_another_shape_is_refused(tmp_path, matrices):
    gate = read(write_gguf_i2s(tmp_path / "w", matrices), ["gate"])
    check_shape(gate, 256, 12)
    with pytest.raises(WeightError) as caught:
        check_shape(gate, 256, 16)
    assert str(caught.value) == "tensor gate is 256 x 12, expected 256 x 16 (K x N)"
    with pytest.raises(WeightError, match="it is the transpose"):
        check_shape(gate, 12, 256)


def test_packed_weights_are_written_whole_and_never_over_others(tmp_path):
    path = tmp_path / "packed.npy"
    first, second = (ternary(seed, 8, 32).view(np.uint8) for seed in (4, 5))
    write_packed(path, first)
    with pytest.raises(WeightError, match="exists already"):
        write_packed(path, second)
    same(np.load(path), first, strict=True)
    write_packed(path, second, force=True)
    same(np.load(path), second, strict=True)
    with pytest.raises(WeightError, match="cannot be written"):
        write_packed(tmp_path / "nowhere" / "packed.npy", first)
    assert os.listdir(tmp_path) == ["packed.npy"]
