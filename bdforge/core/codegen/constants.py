"""Constants of a core program: those that loops read, in registers that calls leave alone."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

_SHORT = range(-1024, 1024)  # of a constant in one slot
LOOP_WEIGHT = 8  # how often a loop is taken to go round


def load(register: str, text: str) -> str:
    """The instruction that makes a register hold a number or a name's address."""
    short = text.lstrip("-").isdigit() and int(text) in _SHORT and not register.startswith("p")
    return f"{'mova' if short else 'movxm'} {register}, #{text}"


class Constants:
    """Counts how often constants are read, by their texts; `kept` are those that have a register."""

    def __init__(self, kept: Mapping[str, str]) -> None:
        self.kept = kept
        self._weight = 1
        self._reads: Counter[str] = Counter()

    @contextmanager
    def loop(self) -> Iterator[None]:
        """What is read inside is read often."""
        self._weight *= LOOP_WEIGHT
        yield
        self._weight //= LOOP_WEIGHT

    def read(self, text: str) -> str | None:
        """The register of a constant, None for one that must be loaded."""
        self._reads[text] += self._weight
        return self.kept.get(text)

    def best(self, registers: Sequence[str]) -> dict[str, str]:
        """Registers for what loops have read most; a program without loops keeps nothing."""
        often = [text for text, reads in self._reads.most_common() if reads >= LOOP_WEIGHT]
        return dict(zip(often, registers, strict=False))
