"""What `bdforge show` refuses."""

from bdforge.messages import InputError


class ShowError(InputError):
    """A design or output file that cannot be shown or written; the message says what to do."""
