"""Commands as they are typed, without the start of a Python of their own: each runs in a child of a process that has
imported the package. Nothing else is shared: folder, environment, standard output and standard error are the child's.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import dpcompose

_CHILDREN = multiprocessing.get_context("forkserver")
_SOURCE = Path(dpcompose.__file__).parent
_ROOMS = "values numerics guarantee divergence mechanisms loss contour composition adaptive account ledger plan report cli"
_CHILDREN.set_forkserver_preload(
    ["numpy", "scipy.special", "scipy.optimize", "typer", "rich.console"]
    + [
        f"dpcompose.{room}.{file.stem}"
        for room in _ROOMS.split()
        for file in (_SOURCE / room).glob("*.py")
    ]
)


def typed(
    arguments: Sequence[str], *, workdir: Path, environment: Mapping[str, str]
) -> tuple[str, str]:
    """What `dpcompose` with these arguments prints on standard output and on standard error."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        child: ForkServerProcess = _CHILDREN.Process(
            target=_run,
            args=(list(arguments), str(workdir), dict(environment), str(out), str(err)),
        )
        child.start()
        child.join()
        return out.read_text(), err.read_text()


def _run(
    arguments: list[str], workdir: str, environment: dict[str, str], out: str, err: str
) -> None:
    os.chdir(workdir)
    os.environ.clear()
    os.environ.update(environment)
    for path, descriptor in ((os.devnull, 0), (out, 1), (err, 2)):
        opened = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(0, "r", closefd=False),
        os.fdopen(1, "w", closefd=False),
        os.fdopen(2, "w", closefd=False),
    )
    sys.argv = ["dpcompose", *arguments]
    from dpcompose.cli import main

    main()
