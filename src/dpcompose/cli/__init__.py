"""The command line."""

from dpcompose.cli.app import main

__all__ = ["main"]
