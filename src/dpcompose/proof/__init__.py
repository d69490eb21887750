"""The proof engine: the expectation of `contour` in ball arithmetic, where every error is a theorem.

Read it in this order:

  ball         real and complex balls; the only file that knows the library;
  moments      a measure as a family describes it: its moment generating function in balls;
  normal       the normal measure;
  trapezoid    measures that are functions of a normal variable, by trapezoid sums in a strip;
  plan         where a line runs, from the float engine: this proves nothing and need not;
  line         the contour sum along it, with a bound on each error;
  tail         the bound on the nodes left out;
  halfway      the contour sum between the poles, where large losses are rare;
  finite_sums  closed forms instead of a line: enumeration and residues;
  sum          the cheapest of these proofs for a sum of variables.
"""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
