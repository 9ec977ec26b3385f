"""Poison mode: reading memory that nobody wrote is an error.

Tile memory starts as a pattern instead of zeros, and each byte remembers whether a DMA, a core's store, the controller
or an initial value has written it. Kernels get plain views, so what they read cannot be told: a kernel call counts as
writing all of its arguments, and a kernel that needs zeros shows it by the pattern in its results.
"""

from collections.abc import Callable, Iterable

import numpy as np

from bdforge.array.emulator.errors import PoisonError

PATTERN = 0xA5


def poisoned(memory: np.ndarray) -> np.ndarray:
    """Fill `memory` (bytes) with the pattern; nobody has written any of it."""
    memory[:] = PATTERN
    return np.zeros(memory.nbytes, bool)


def check_written(written: np.ndarray, places: slice | np.ndarray, where: Callable[[], str], hint: str = "") -> None:
    """PoisonError unless every byte of the words at `places` was written; a row of `written` is a word."""
    known = written[places].all(axis=1)
    if not known.all():
        number = int(np.argmin(known))
        first = places.start + number if isinstance(places, slice) else int(places[number])
        raise PoisonError(
            f"{where()} reads {int((~known).sum())} words that nobody wrote, the first at word {first} of the tile's "
            f"memory; give the buffer an initial value or wait for who fills it{hint if first == 0 else ''}"
        )


class PoisonedView(np.ndarray):
    """A buffer's memory as a core sees it: loads check that the elements were written, stores mark them.

    Basic indexing keeps track; views that reinterpret the memory (`view`, `reshape`) do not.
    """

    written: np.ndarray | None
    name: str

    def __array_finalize__(self, base: object) -> None:
        self.written, self.name = None, getattr(base, "name", "")

    @classmethod
    def of(cls, view: np.ndarray, written: np.ndarray, name: str) -> "PoisonedView":
        """`view` with the bytes of `written` beside it."""
        result = view.view(cls)
        result.written, result.name = written.reshape(*view.shape, view.itemsize), name
        return result

    def __getitem__(self, index):
        result = super().__getitem__(index)
        if self.written is None:
            return result
        written = self.written[index]
        if isinstance(result, PoisonedView):
            result.written = written
        elif not written.all():
            place = list(index) if isinstance(index, tuple) else index
            raise PoisonError(f"element {place} of buffer {self.name} is read, but nobody wrote it")
        return result

    def __setitem__(self, index, value) -> None:
        if isinstance(value, PoisonedView) and value.written is not None and not value.written.all():
            raise PoisonError(f"buffer {value.name} is copied, but nobody wrote all of it")
        super().__setitem__(index, value)
        if self.written is not None:
            self.written[index] = True


def checked_load(array: np.ndarray, index: tuple[int, ...], where: Callable[[], str]):
    """One element as a Python number; PoisonError with its place where nobody wrote it."""
    try:
        return array[index].item()
    except PoisonError as error:
        raise PoisonError(f"{error}{where()}") from None


def mark_written(views: Iterable[PoisonedView]) -> None:
    """Count all bytes of views as written: a kernel had them."""
    for view in views:
        if view.written is not None:
            view.written[...] = True
