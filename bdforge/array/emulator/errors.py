"""Faults of an emulated run: one type for each kind. Messages name the place in the array and in the MLIR."""

from bdforge.common.messages import RunFault


class EmulationError(RunFault):
    """Base of every fault that the emulated array reports."""


class Deadlock(EmulationError):
    """Nothing can move, yet somebody waits; the message holds the cycle of waits."""


class LockError(EmulationError):
    """A lock that leaves its range, or a request that the hardware would misread."""


class DmaError(EmulationError):
    """A task queue overflow, a BD that its channel may not run, a transfer outside of memory."""


class UnpatchedError(DmaError):
    """A shim BD whose host address belongs to no argument."""


class RegisterAccessError(EmulationError):
    """A write to a tile or register that does not exist."""


class PoisonError(EmulationError):
    """Memory that is read although nobody wrote it (poison mode)."""


class CoreError(EmulationError):
    """A core program that does something undefined or unsupported."""


class KernelError(EmulationError):
    """A kernel that is missing, or that reported a fault."""


class ArgumentError(EmulationError, ValueError):
    """Host arrays that do not fit the runtime sequence."""


class LoadError(EmulationError, ValueError):
    """A design that parses but cannot be loaded on the array."""


class BudgetExceeded(EmulationError):
    """The run took more steps than allowed; it would probably never end."""


class TimingError(EmulationError):
    """A run that ended without time cannot end in the order that time gives it."""
