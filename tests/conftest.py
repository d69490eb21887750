"""How hypothesis draws: always the same examples under CI; elsewhere fresh ones, whose seed it prints on failure."""

import os

from hypothesis import settings

# No deadline: nothing here measures time, and a busy machine is no counterexample.
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("fresh", deadline=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "fresh")
