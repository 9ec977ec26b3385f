"""Which cases of a family run daily: the mark `daily` names them, or takes every so many; the sweep runs all others.

    @pytest.mark.daily("int8", "block floats")  # these ids: one of each kind
    @pytest.mark.daily(every=8)  # the first, the ninth ...

It stands on a parametrized test whose cases go through the same code.
"""

from collections import Counter, defaultdict

import pytest


class DailyCases:
    """Marks cases `slow` that are not daily, and refuses a mark that names no case."""

    def __init__(self) -> None:
        self.numbers = Counter[str]()
        self.ids: dict[str, set[str]] = defaultdict(set)
        self.named: dict[str, set[str]] = {}

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        if (mark := item.get_closest_marker("daily")) is None:
            return
        test, bracket, case = item.nodeid.partition("[")
        number, case = self.numbers[test], case.removesuffix("]") if bracket else ""
        self.numbers[test] += 1
        self.ids[test].add(case)
        self.named[test] = set(mark.args)
        if number % mark.kwargs["every"] if "every" in mark.kwargs else case not in mark.args:
            item.add_marker("slow")

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config) -> None:
        if not any("::" in argument for argument in config.args):  # else only some cases are collected
            for test, named in self.named.items():
                if unknown := named - self.ids[test]:
                    raise pytest.UsageError(f"{test}: no case is called {', '.join(map(repr, sorted(unknown)))}")
