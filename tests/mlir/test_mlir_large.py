"""A lowered whole-array design loads; how fast is for `benchmarks/mlir_loading.py`."""

from bdforge.array.mlir import parse
from bdforge.array.mlir.array_ops import CoreOp
from bdforge.array.mlir.bd_ops import DmaBdOp
from support.lowered_design import design


def test_a_lowered_whole_array_design_loads():
    operations = list(parse(design(5_000)).walk())
    assert sum(isinstance(op, CoreOp) for op in operations) == 32
    assert sum(isinstance(op, DmaBdOp) for op in operations) >= 40 * 6
