"""Arrays of other libraries and in other orders: taken as they lie, copied with a word, or refused."""

import logging
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from bdforge.common.arrays import host_array
from bdforge.common.messages import InputError, warn_once
from bdforge.design.sequences.buffers import placed
from support.differences import same
from support.scaled_rows import PROGRAM, arrays, sequence


class Shown:
    """An array that numpy gets by `__array__`."""

    def __init__(self, array: np.ndarray):
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.array


class Lent:
    """An array that numpy gets by DLPack, on a device (1: the host's memory)."""

    def __init__(self, array: np.ndarray, device: int = 1):
        self.array, self.device = array, device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, **given: Any) -> Any:
        if self.device != 1:
            raise BufferError("it lies on another device")
        return self.array.__dlpack__(**given)


class Tensor(Lent):
    """As PyTorch's: one that has a gradient lends nothing, and numpy is told of no bfloat16."""

    def __init__(self, array: np.ndarray, device: int = 1, grad: bool = False):
        super().__init__(array, device)
        self.grad, self.dtype = grad, f"torch.{array.dtype.name}"

    def detach(self) -> "Tensor":
        return Tensor(self.array, self.device)

    def __dlpack__(self, **given: Any) -> Any:
        if self.grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        return super().__dlpack__(**given)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu()")


KINDS: dict[str, Callable[[np.ndarray], Any]] = {
    "array": Shown, "DLPack": Lent, "tensor": Tensor, "tensor with a gradient": lambda a: Tensor(a, grad=True),
}  # fmt: skip
VALUES = np.arange(12, dtype=np.int16).reshape(3, 4)


@pytest.mark.parametrize("values", [VALUES, VALUES.T, VALUES[:, ::2]], ids=["rows", "columns", "gaps"])
@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_others_are_taken_as_they_lie(kind: str, values: np.ndarray):
    found = host_array(KINDS[kind](values), "x", InputError)
    same(found, values, kind)
    assert (found.strides, np.shares_memory(found, values)) == (values.strides, True)


def test_memory_that_is_written_in_place_is_the_others_own():
    values = VALUES.copy()
    host_array(Tensor(values), "x", InputError, in_place=True)[...] = 7
    same(values, np.full((3, 4), 7, np.int16))
    values.flags.writeable = False
    for kind in (Shown, Lent):
        with pytest.raises(InputError, match=r"^x .*written in place"):
            host_array(kind(values), "x", InputError, in_place=True)


@pytest.mark.parametrize(
    "given",
    [Lent(VALUES, 2), Tensor(VALUES, 2), Shown("text"), Shown([1, "a", None]), Shown],  # type: ignore[arg-type]
    ids=["another device", "a tensor there", "text", "objects", "a class"],
)  # fmt: skip
def test_what_shows_the_host_no_numbers_is_refused(given: Any):
    with pytest.raises(InputError, match=r"^x"):
        host_array(given, "x", InputError)


def test_tensors_of_bfloat16_are_taken_by_their_words(monkeypatch):
    """numpy has no DLPack of bfloat16; PyTorch views its words as int16."""
    values = np.array([[1.5, -2]], ml_dtypes.bfloat16)
    tensor = Tensor(values)
    monkeypatch.setattr(Tensor, "view", lambda self, dtype: Lent(self.array.view(dtype)), raising=False)
    monkeypatch.setattr("bdforge.common.arrays.import_module", lambda name: np)
    found = host_array(tensor, "x", InputError)
    assert np.shares_memory(found, values)
    same(found, values)


@pytest.mark.parametrize("order", [np.ascontiguousarray, np.asfortranarray, lambda a: np.repeat(a, 2, 1)[:, ::2]])
def test_operands_in_any_order_are_the_same_and_a_copy_is_told_once(caplog, order: Callable):
    given = {name: order(array) for name, array in arrays().items()}
    warn_once.cache_clear()
    for _ in range(2):
        for staged in (0, 8):
            found, wanted = (placed(sequence(ldb=staged), one) for one in (given, arrays()))
            same(found[0].reshape(-1), wanted[0].reshape(-1), "A")
            same(found[1].reshape(-1), wanted[1].reshape(-1), "B")
    moved = [name for name, array in given.items() if not (array if name == "A" else array.T).flags.c_contiguous]
    in_place = [operand.name for operand in PROGRAM.operands if operand.name in moved and operand.name != "A"]
    assert [record.args[0].split()[1] for record in caplog.records] == in_place  # type: ignore[union-attr,index]
    assert all((record.name, record.levelno) == ("bdforge", logging.WARNING) for record in caplog.records)
