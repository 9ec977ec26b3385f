"""Faults of the input of performance models."""


class PerfError(ValueError):
    """A table, type, device or size that the models cannot take; the message lists every reason."""
