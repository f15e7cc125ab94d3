"""`python -m neardup.cli`."""

from neardup.cli import main

main()
