"""What `bdforge run` says of padding."""

import pytest

from bdforge.cli.bench import padding
from bdforge.operators.gemm import sequence


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ((32, 16, 64), "none"),
        ((40, 16, 100), "M 40→64, N 100→128"),
        ((1, 16, 64), "M 1→32, A and C staged"),
        ((32, 20, 64), "K 20→32"),
    ],
)
def test_padding_is_told_by_size(small, sizes, text):
    assert padding(sequence(small.plan, *sizes)) == text
