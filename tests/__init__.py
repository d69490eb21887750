"""Tests, in the rooms of the package; what several rooms use is imported as `tests.<room>.<file>`."""
