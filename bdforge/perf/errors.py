"""Faults of the input of performance models."""

from bdforge.common.messages import InputError


class PerfError(InputError):
    """A table, type, device or size that the models cannot take; the message lists every reason."""
