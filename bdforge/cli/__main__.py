"""`python -m bdforge.cli`."""

from bdforge.cli import main

main()
