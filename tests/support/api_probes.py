"""Uses of the AIE API that its headers accept or refuse (`tests/kernels/data/api_probes.toml`), as C++ to compile."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

LIST = Path(__file__).resolve().parents[1] / "kernels" / "data" / "api_probes.toml"

PRELUDE = """#include <aie_api/aie.hpp>
template <class T, unsigned N> using V = aie::vector<T, N>;
template <class T, unsigned N> using A = aie::accum<T, N>;
"""


@dataclass(frozen=True)
class Probe:
    """One use; the head of the list says what its keys mean."""

    name: str
    use: str
    on: Literal["both", "aie2", "aie2p", "none"]
    header: str
    given: str = ""
    why: str = ""
    inferred: bool = False

    def accepted(self, generation: str) -> bool:
        """Whether the headers of a generation (aie2, aie2p) take it."""
        return self.on in ("both", generation)


def probes() -> list[Probe]:
    """The whole list; an unknown key or a missing one raises TypeError."""
    return [Probe(**entry) for entry in tomllib.loads(LIST.read_text(encoding="utf-8"))["probe"]]


def unit(chosen: Iterable[Probe], prelude: str = PRELUDE) -> str:
    """A translation unit with one line for each, after the lines of the prelude."""
    return prelude + "".join(f"void probe{i}({probe.given}) {{ {probe.use} }}\n" for i, probe in enumerate(chosen))
