"""`python -m plunit.cli`: the same as `plunit`."""

from plunit.cli import main

main()
