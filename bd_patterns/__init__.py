"""Access patterns of DMAs: their algebra, whether they fit buffer descriptors."""

from bd_patterns.legality import Runs, problems, require_legal, static_fits
from bd_patterns.pattern import Pattern, PatternError, compose

__all__ = ["Pattern", "PatternError", "Runs", "compose", "problems", "require_legal", "static_fits"]
