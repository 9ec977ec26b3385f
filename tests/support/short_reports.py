"""What processes tell each other of tests in a run by several: a thousand reports take half a second."""

import pytest
from _pytest.runner import runtestprotocol

TOLD_SECONDS = 0.005
"""What `--durations` lists, too."""


class ShortReports:
    """Of tests that pass their calls are told, setup and teardown only where they take long, and keywords nowhere."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if report.when == "call" or not report.passed or report.duration >= TOLD_SECONDS:
                item.ihook.pytest_runtest_logreport(report=report)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(self):
        data = yield
        if data and data.get("outcome") == "passed":
            data["keywords"] = {}
        return data
