"""The one error of this package."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from bdforge.messages import InputError

NAMES_COMPARED_MAX = 4096  # looking for a near name must stay quick even in a file with a million tensors


class WeightError(InputError):
    """Weights that cannot be read, packed or used. The message names file, tensor, fault, limit and next step."""


def missing_tensor(path: Path, name: str, known: Sequence[str]) -> WeightError:
    """The error for tensor `name`, which `path` does not hold: says the nearest of the `known` names."""
    if not known:
        return WeightError(f"{path}: has no tensor {name!r}, nor any other ternary matrix; give another file")
    near = get_close_matches(name, known[:NAMES_COMPARED_MAX], n=3, cutoff=0.0)
    return WeightError(
        f"{path}: has no tensor {name!r}; the nearest of its {len(known)} ternary matrices: {', '.join(near)}"
    )
