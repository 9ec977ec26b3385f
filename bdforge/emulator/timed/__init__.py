"""Timed emulation: when the events of a run happen, never what they do."""

from bdforge.emulator.timed.cores import KernelCost
from bdforge.emulator.timed.replay import TimingOptions, replay
from bdforge.emulator.timed.report import DramTime, PartyTime, TimingReport
from bdforge.emulator.timed.runner import Span

__all__ = ["DramTime", "KernelCost", "PartyTime", "Span", "TimingOptions", "TimingReport", "replay"]
