"""Arrays of other things than numbers of this machine's byte order: converted or refused wherever an array enters."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from bdforge import emulate
from bdforge.common.array_files import ArrayFileError, load_arrays
from bdforge.common.arrays import host_array
from bdforge.common.messages import Fault, InputError
from bdforge.core import python_kernel as kernel
from bdforge.design.sequences import planned
from bdforge.devices.txn_format.codec import TxnError, decode
from bdforge.models import ModelError, Products
from bdforge.models.linear import TernaryLinear
from bdforge.models.tensors.tensor_operands import typed
from bdforge.runtime import Loaded, OperandError
from support.differences import same
from support.idle_backend import IdleBackend
from support.scaled_rows import DEVICE, PROGRAM, arrays

WORDS = np.arange(4, dtype=np.int32)
SWAPPED = WORDS.astype(">i4")
OTHERS = {
    "text in bytes": WORDS.view("S4"), "text": WORDS.view("U1"), "bytes": WORDS.view("V4"),
    "objects": WORDS.astype(object),
    "records": WORDS.view([("a", "<i2"), ("b", "<i2")]), "dates": np.zeros(4, "M8[s]"),
    "durations": np.zeros(4, "m8[s]"),
    "complex": np.zeros(4, np.complex64), "masked": np.ma.masked_less(WORDS, 2), "a list": [1, 2],
    "strings": np.array(["a", "b"], np.dtypes.StringDType()),
}  # fmt: skip
"""None of them numbers, most of 4 bytes each."""

TYPES = [">i2", ">u4", ">f4", ">f8", np.dtype(ml_dtypes.bfloat16).newbyteorder(">")]


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_the_other_byte_order_is_converted(dtype: Any, order: Any):
    values = np.asarray([[1, 2, 3], [4, 5, 600]], order=order)
    found = host_array(values.astype(dtype, order="K"), "x", InputError)
    assert (found.dtype.isnative, found.dtype.itemsize) == (True, np.dtype(dtype).itemsize)
    assert (found.flags.c_contiguous, found.flags.f_contiguous) == (order == "C", order == "F")
    same(found.astype(np.float64), values.astype(found.dtype).astype(np.float64), str(dtype))


@pytest.mark.parametrize("dtype", [np.int8, np.bool_, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_numbers_of_this_machine_are_taken_as_they_are(dtype: Any):
    array = np.zeros((2, 3), dtype)
    assert host_array(array, "x", InputError, in_place=True) is array
    matrix = array.view(np.matrix)
    found = host_array(matrix, "x", InputError, in_place=True)
    assert type(found) is np.ndarray
    assert np.shares_memory(found, array)


SEQUENCE = "aie.device(npu2_1col) {{ aie.runtime_sequence @go(%x: memref<4x{}>) {{ }} }}"


class Device(IdleBackend):
    """Keeps the buffers of the last run."""

    def run(self, planned: Any, buffers: Any, timeout_seconds: float) -> tuple[str, ...]:
        self.buffers = [buffer.copy() for buffer in buffers]
        return ()


def rows(device: Any = None) -> Loaded:
    device = Device() if device is None else device
    design: Any = SimpleNamespace(
        program=PROGRAM, name="rows", array=DEVICE, sequence=lambda sizes: planned(PROGRAM, sizes, DEVICE)
    )
    return Loaded(design, device)


def products() -> Callable[[Any], Any]:
    found = Products.__new__(Products)
    linear = TernaryLinear("layer", (4, 1), np.ones(1))
    return lambda codes: found(linear, codes, np.ones(1))


IN_PLACE: dict[str, tuple[type[Fault], Callable[[Any], Any]]] = {
    "emulate, integers": (Fault, lambda x: emulate(SEQUENCE.format("i32"), [x])),
    "emulate, 64 bits": (Fault, lambda x: emulate(SEQUENCE.format("i64"), [x])),
    "emulate, instructions": (Fault, lambda x: emulate(SEQUENCE.format("i32"), [x], instructions=b"")),
    "a sequence's buffers": (OperandError, lambda x: rows().run(rows().design.sequence({"m": 6, "n": 8}), [x])),
}
READ: dict[str, tuple[type[Fault], Callable[[Any], Any]]] = {
    "a call": (OperandError, lambda x: rows()(x, x)),
    "a packed operand": (OperandError, lambda x: rows().pack(B=x)),
    "packed data": (OperandError, lambda x: rows().packed(x, n=8)),
    "einsum": (OperandError, lambda x: typed(x, "int32", 0)),
    "products of a model": (ModelError, products()),
}
ENTRIES = IN_PLACE | READ


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("array", OTHERS.values(), ids=OTHERS)
def test_what_is_no_array_of_numbers_is_refused_where_it_enters(entry: str, array: Any):
    error, take = ENTRIES[entry]
    with pytest.raises(error, match=r"must hold numbers|must be a numpy array|masked"):
        take(array)


@pytest.mark.parametrize("entry", IN_PLACE)
def test_an_array_of_the_other_order_is_not_written_in_place(entry: str):
    error, take = IN_PLACE[entry]
    with pytest.raises(error, match="byte order"):
        take(SWAPPED)


def test_operands_of_the_other_order_are_converted():
    device, given = Device(), arrays()
    scales = np.arange(8, dtype=np.float32)
    rows(device)(**given, s=scales.astype(">f4"))  # type: ignore[arg-type]
    same(device.buffers[2], scales)
    same(rows().pack(B=given["B"], s=scales.astype(">f4")).buffers[2], scales)
    words = np.ascontiguousarray(rows().pack(B=given["B"]).data).view("<i4")
    same(rows().packed(words.astype(">i4"), n=8).data.view("<i4"), words)
    same(typed(SWAPPED, "int32", 0), WORDS)


def test_codes_of_a_product_are_int8():
    with pytest.raises(ModelError, match="int8, int32 was given"):
        products()(SWAPPED)


@pytest.mark.parametrize(
    ("name", "refused"), [("V4", True), ("S4", True), ("M8[s]", True), ("c8", True), (">i4", False)]
)
def test_files_of_the_other_order_are_converted_and_those_of_no_numbers_refused(
    tmp_path: Path, name: str, refused: bool
):
    np.save(tmp_path / "a.npy", WORDS.astype(name) if not refused else np.zeros(4, name))
    if refused:
        with pytest.raises(ArrayFileError, match=r"a\.npy: holds .*, not numbers"):
            load_arrays([tmp_path / "a.npy"])
        return
    (found,) = load_arrays([tmp_path / "a.npy"])
    assert found.dtype == np.int32
    same(found, WORDS)


def test_two_raw_bytes_in_a_file_are_what_numpy_keeps_of_bfloat16(tmp_path: Path):
    given = np.array([1.5, -2], ml_dtypes.bfloat16)
    np.save(tmp_path / "a.npy", given)
    same(load_arrays([tmp_path / "a.npy"])[0], given)


def test_what_kernels_send_is_numbers_in_the_cores_order():
    sixteen = np.arange(16, dtype=np.int32)
    assert kernel.put_cascade(sixteen.astype(">i4")) == kernel.put_cascade(sixteen)
    for text in (np.bytes_(b"abcd"), np.str_("a"), np.void(b"abcd")):
        with pytest.raises(InputError, match="numbers"):
            kernel.put_stream(0, text)
    with pytest.raises(InputError, match="numbers"):
        kernel.put_cascade(np.full(16, "a"))


@pytest.mark.parametrize("words", [np.array([1.5]), np.array([b"12"]), np.zeros((2, 2), np.uint32)], ids=str)
def test_instruction_words_are_a_vector_of_integers(words: np.ndarray):
    with pytest.raises(TxnError, match="vector of integers"):
        decode(words)


def test_instruction_words_of_the_other_order_have_the_same_values():
    """The header announces 16 bytes, so a swapped word 3 would be refused for its length."""
    words = np.array([0x06010100, 0x0104, 0, 16], np.uint32)
    assert decode(words).header == decode(words.astype(">u4")).header
