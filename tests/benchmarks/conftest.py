"""`benchmarks` is a package at the root of the repository: it is importable here."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
