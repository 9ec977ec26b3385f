"""`python -m bdforge.cli`."""

from bdforge.cli.commands import main

main()
