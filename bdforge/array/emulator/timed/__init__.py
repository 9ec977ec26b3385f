"""Timed emulation: when the events of a run happen, never what they do."""

from bdforge.array.emulator.timed.core_time import KernelCost
from bdforge.array.emulator.timed.replay import TimingOptions, replay
from bdforge.array.emulator.timed.time_report import DramTime, PartyTime, TimingReport
from bdforge.array.emulator.timed.timed_run import TimelineSpan

__all__ = ["DramTime", "KernelCost", "PartyTime", "TimelineSpan", "TimingOptions", "TimingReport", "replay"]
