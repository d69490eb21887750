"""The examples are scripts, run from their own folder: `bob`, `census`, `training` and `demo` are importable here."""

import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))
