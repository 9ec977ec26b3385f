"""As much of PyTorch as `bdforge.models.torch` uses, on numpy arrays, for its rules where PyTorch is missing."""

from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np


class Tensor:
    """An array with the methods that are called."""

    def __init__(self, array: np.ndarray):
        self.array = array

    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: self.array.dtype)

    def is_floating_point(self) -> bool:
        return self.array.dtype.kind == "f"

    def detach(self) -> "Tensor":
        return self

    def cpu(self) -> "Tensor":
        return self

    def float(self) -> "Tensor":
        return Tensor(self.array.astype(np.float32))

    def numpy(self) -> np.ndarray:
        return self.array

    def to(self, *how: Any) -> "Tensor":
        """To another's type, or to one that is named behind a place."""
        dtype = how[0].dtype if isinstance(how[0], Tensor) else np.dtype(how[-1])
        return Tensor(self.array.astype(dtype))

    def reshape(self, *shape: int) -> "Tensor":
        return Tensor(self.array.reshape(shape))

    def new_empty(self, shape: tuple[int, ...]) -> "Tensor":
        return Tensor(np.empty(shape, self.array.dtype))

    def __add__(self, other: "Tensor") -> "Tensor":
        return Tensor(self.array + other.array)

    def __mul__(self, factor: Any) -> "Tensor":
        return Tensor(self.array * factor)

    def __float__(self):
        return self.array.item()


class Module:
    """A module whose attributes may be modules."""

    def __call__(self, x: Tensor) -> Tensor:
        return self.forward(x)  # type: ignore[attr-defined]

    def named_modules(self, name: str = ""):
        yield name, self
        for key, value in list(vars(self).items()):
            if isinstance(value, Module):
                yield from value.named_modules(f"{name}.{key}" if name else key)

    def get_submodule(self, name: str) -> "Module":
        found = self
        for part in name.split(".") if name else ():
            found = getattr(found, part)
        return found


def plain_torch() -> ModuleType:
    """A module to stand in `sys.modules` as "torch"."""
    found: Any = ModuleType("torch")
    found.ops = SimpleNamespace()

    def custom_op(name: str, mutates_args: tuple, schema: str):
        package, _, short = name.partition("::")

        def register(function):
            setattr(found.ops, package, SimpleNamespace(**{short: function}))
            function.register_fake = lambda fake: setattr(function, "fake", fake)
            return function

        return register

    found.nn, found.library = SimpleNamespace(Module=Module), SimpleNamespace(custom_op=custom_op)
    found.uint8, found.float32, found.Tensor = np.dtype(np.uint8), np.dtype(np.float32), Tensor
    found.from_numpy = Tensor
    return found
