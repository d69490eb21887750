"""The float engine: g(x) = E[(1 - e^(x - L))_+] between two floats, from M(t) = E[e^(tL)] on a vertical line.

Read it in this order:

  transform         a random variable L as a family describes it: M on vertical lines, with its error;
  exponential_sums  a tool for families whose M is a sum over weighted points;
  saddle            real orders near the saddle point, from tables of log M;
  quadrature        where the line stands, how far apart its nodes are, and which of them are significant; three rules
                    that turn a placement into a contour: periodic, direct, mollified; and the nodes of a contour used
                    again for the pairs in the other order;
  contour           the nodes, summed at any x: two ends, and the width that each source of error adds;
  invert            g at a given x, and the x at which g takes a given value.

Any line gives a certified enclosure. All that is estimated (`cumulants`, `curve`, a placement) only decides how narrow
it is.
"""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
