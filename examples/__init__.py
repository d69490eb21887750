"""Real plans and what dpcompose certifies of them. The scripts run from the root: `python -m examples.demo`."""
