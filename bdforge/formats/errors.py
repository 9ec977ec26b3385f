"""The one error of this package."""

from bdforge.messages import InputError


class FormatError(InputError):
    """Values or sizes that a format cannot hold. The message names the value or size, the limit and the next step."""


def refuse(action: str, problems: list[str]) -> None:
    """Raise `FormatError` with all problems, if there are any."""
    if problems:
        raise FormatError(f"{action}: {'; '.join(problems)}")
