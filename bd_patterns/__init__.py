"""Access patterns of DMAs: their algebra, their legality in buffer descriptors."""

from bd_patterns.encoding import encode_dims
from bd_patterns.granules import GRANULE_BITS, to_granules
from bd_patterns.legality import Runs, problems, require_legal
from bd_patterns.pattern import Pattern, PatternError, compose

__all__ = [
    "GRANULE_BITS",
    "Pattern",
    "PatternError",
    "Runs",
    "compose",
    "encode_dims",
    "problems",
    "require_legal",
    "to_granules",
]
