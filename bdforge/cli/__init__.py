"""The command line."""

from bdforge.cli.commands import app, main

__all__ = ["app", "main"]
