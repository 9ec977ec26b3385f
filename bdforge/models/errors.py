"""The one error of this package."""

from bdforge.common.messages import InputError


class ModelError(InputError):
    """A model that cannot be read or run. The message names file, fault, limit and next step."""
