"""Runs that an NPU gets as one list: pyxrt's `runlist`."""

from collections.abc import Sequence
from typing import Any


class Runlist:
    """Runs of one kernel with their arguments by number, submitted at once and run in order.

    pyxrt raises RuntimeError of a list where a run failed; `failed` then says which. It has no time-out of lists: that
    form of `wait` takes a std::chrono type that Python has no way to make (2.25). The driver ends what hangs.
    """

    def __init__(self, pyxrt: Any, context: Any, kernel: Any, runs: Sequence[Sequence[Any]]):
        self._states, self._list, self._runs = pyxrt.ert_cmd_state, pyxrt.runlist(context), []
        for given in runs:
            run = pyxrt.run(kernel)
            for index, argument in enumerate(given):
                run.set_arg(index, argument)
            self._list.add(run)
            self._runs.append(run)

    def run(self) -> None:
        """Run all of them."""
        self._list.execute()
        self._list.wait()

    def failed(self) -> tuple[int, Any] | None:
        """The first run that did not end well, and its state, where XRT tells: it need not, of runs in lists."""
        states = [run.state() for run in self._runs]
        bad = (self._states.ERT_CMD_STATE_ERROR, self._states.ERT_CMD_STATE_TIMEOUT, self._states.ERT_CMD_STATE_ABORT)
        return next(((index, state) for index, state in enumerate(states) if state in bad), None)
