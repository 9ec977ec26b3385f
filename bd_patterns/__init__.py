"""Access patterns of DMAs: their algebra, their legality in buffer descriptors, a GEMM's reorders and walks."""

from bd_patterns.encoding import encode_dims
from bd_patterns.gemm import (
    a_micro_tiles,
    b_column_blocks,
    b_column_major_elementwise,
    b_column_major_micro_tiles,
    b_micro_tiles,
    c_columns,
    c_rows,
)
from bd_patterns.granules import GRANULE_BITS, to_granules
from bd_patterns.grid import (
    Feed,
    Grid,
    Problem,
    RuntimeParameters,
    Storage,
    Tiling,
    WalkError,
    line_sizes,
    runtime_parameters,
)
from bd_patterns.legality import Runs, problems, require_legal
from bd_patterns.pattern import Pattern, PatternError, compose
from bd_patterns.schedule import AwaitC, Release, Start, schedule
from bd_patterns.walk import Step, Transfer, walk

__all__ = [
    "GRANULE_BITS",
    "AwaitC",
    "Feed",
    "Grid",
    "Pattern",
    "PatternError",
    "Problem",
    "Release",
    "Runs",
    "RuntimeParameters",
    "Start",
    "Step",
    "Storage",
    "Tiling",
    "Transfer",
    "WalkError",
    "a_micro_tiles",
    "b_column_blocks",
    "b_column_major_elementwise",
    "b_column_major_micro_tiles",
    "b_micro_tiles",
    "c_columns",
    "c_rows",
    "compose",
    "encode_dims",
    "line_sizes",
    "problems",
    "require_legal",
    "runtime_parameters",
    "schedule",
    "to_granules",
    "walk",
]
