"""Which form a line of assembly means."""

import difflib
from collections.abc import Mapping
from functools import lru_cache

from bdforge.core.isa.bundle_codec import Isa
from bdforge.core.isa.errors import EncodeError
from bdforge.core.isa.forms import Instruction
from bdforge.core.isa.syntax import TOKEN, Mismatch, syntaxes

_SHOWN = 6


@lru_cache(maxsize=256)
def _hint(generation: str, mnemonic: str) -> str:
    near = difflib.get_close_matches(mnemonic, syntaxes(generation), 3)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def match(isa: Isa, text: str, symbols: Mapping[str, int], assume: bool = False) -> Instruction:
    """The instruction that `text` means; with `assume`, symbols that are not known yet fit anywhere.

    EncodeError for an unknown mnemonic, or with the reason of the form that fits best and the forms there are.
    """
    mnemonic, _, rest = text.strip().replace("\t", " ").partition(" ")
    known = syntaxes(isa.generation)
    candidates = known.get(mnemonic.lower())
    if candidates is None:
        raise EncodeError(
            f"{isa.generation} has no instruction {mnemonic[:40]!r}{_hint(isa.generation, mnemonic.lower())}"
        )
    tokens = TOKEN.findall(rest)
    refused: list[tuple[int, str, str]] = []
    for syntax in candidates:
        try:
            return syntax.parse(tokens, symbols, assume)
        except Mismatch as error:
            refused.append((error.done, str(error), syntax.shape))
    _, reason, shape = max(refused, key=lambda those: those[0])
    shapes = list(dict.fromkeys([shape, *(those[2] for those in refused)]))
    more = f" and {len(shapes) - _SHOWN} more" if len(shapes) > _SHOWN else ""
    raise EncodeError(f"{text.strip()[:80]}: {reason}; forms: {' | '.join(shapes[:_SHOWN])}{more}")
