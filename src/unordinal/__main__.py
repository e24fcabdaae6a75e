"""`python -m unordinal`."""

from unordinal.cli import main

main()
