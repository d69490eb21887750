"""`python -m dpcompose` is the command `dpcompose`."""

from dpcompose.cli import main

main()
