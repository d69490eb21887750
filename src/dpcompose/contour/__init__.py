"""Certified bounds in floating point on g(x) = E[(1 - e^(x - L))_+] by numerical inversion of M(t)
= E[e^(tL)].

The inversion integral runs along a vertical line Re t = order in the complex plane (the contour).
Read the files in this order:

  transform         a random variable L, given by M on vertical lines with error bounds;
  exponential_sums  evaluation of M where it is a sum over weighted points;
  saddle            real orders close to the saddle point, from tables of log M;
  quadrature        the position of the line, the distance of its nodes, and which nodes are
                    significant; three rules that turn this placement into a contour: periodic,
                    direct, mollified; and the reuse of a contour's nodes for the pairs in the
                    reverse order;
  contour           the sum over the nodes at any x, with both ends and the width added by each
                    source of error;
  invert            bounds on g at a given x, and on the x at which g has a given value.

Every line gives a certified enclosure. Estimates (`cumulants`, `curve`, a placement) only affect
its width.
"""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
