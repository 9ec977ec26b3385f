"""One set of products, and what lies behind it, in several threads at once: right, or refused."""

import numpy as np
import pytest

from bdforge.models import ModelError, Products
from bdforge.models.bitnet.cache import Cache
from bdforge.models.split import Ledger, Split
from bdforge.models.weights import TernaryMatrix
from bdforge.runtime import load
from support.differences import same
from support.threads import together

THREADS = 6


@pytest.mark.parametrize("rule", ["array", "cpu"])
def test_products_are_each_threads_own(summing, rule: str):
    """The same shape, other rows: integers, so that every product is exact."""
    products = Products(load(summing.folder), Split(summing.plan, rule))
    rng = np.random.default_rng(3)
    weights = rng.integers(-1, 2, (64, 32), np.int8)
    linear = products.resident("w", TernaryMatrix(weights, ("w",), (32,), (0.5,)))
    rows = rng.integers(-128, 128, (THREADS, 5, 64), np.int8)
    found = together(lambda codes: [products(linear, codes, np.ones(5, np.float32)) for _ in range(2)], rows)
    for codes, both in zip(rows, found, strict=True):
        for got in both:
            same(got, codes.astype(np.float32) @ weights / 2, "products")
    assert [entry.calls for entry in products.ledger] == [2 * THREADS]


def test_a_ledger_counts_every_call():
    ledger = Ledger()

    def count(part: int) -> None:
        for turn in range(300):
            with ledger.timed(f"{turn}", "CPU", "", 1.0):
                assert len([*ledger]) <= 300

    together(count, range(THREADS))
    assert {(entry.calls, entry.npu_us) for entry in ledger} == {(THREADS, float(THREADS))}


def test_a_cache_is_one_sequences():
    """States of two callers in one cache would be those of no text."""
    cache = Cache(1, 1, 4)
    with cache.held(), pytest.raises(ModelError, match="cache"), cache.held():
        pytest.fail("two at once")
    with cache.held():
        assert cache.length == 0
