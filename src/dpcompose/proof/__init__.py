"""Certified bounds on the expectation of `contour` in ball arithmetic, where every error is bounded
by a theorem.

Read the files in this order:

  ball         real and complex balls; only this file uses the library Arb;
  moments      a measure, given by its moment generating function in balls; the normal measure;
  trapezoid    measures that are functions of a normal variable, by trapezoid sums in a strip;
  line         the position of the line (from floats, unproved), the contour sum along it, and
               bounds on each error;
  halfway      the contour sum on the line between the poles, for rare large losses;
  finite_sums  closed forms instead of a line: enumeration and residues;
  sum          the cheapest of these proofs for a sum of variables.
"""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
