"""What `bdforge show` refuses."""


class ShowError(ValueError):
    """A design or output file that cannot be shown or written; the message says what to do."""
