"""dp-accounting's privacy loss distributions at their default grid."""

from benchmarks.systems import grid

PACKAGE = grid.PACKAGE
solve = grid.solver(1e-4)
