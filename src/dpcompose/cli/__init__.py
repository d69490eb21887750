"""The command line."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command `dpcompose`; Ctrl-C while it is read ends it in one line too."""
    try:
        from dpcompose.cli.run import main as run
    except KeyboardInterrupt:
        print("dpcompose: stopped before anything was done", file=sys.stderr)
        sys.exit(130)
    run()


__all__ = ["main"]
