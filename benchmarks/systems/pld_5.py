"""dp-accounting's privacy loss distributions at a ten times finer grid."""

from benchmarks.systems import grid

PACKAGE = grid.PACKAGE
solve = grid.solver(1e-5)
