"""The float engine: E[(1 - e^(x - L))_+] between two floats, from the moment generating function of L on a line."""

from dpcompose.contour.contour import Bracket, Contour
from dpcompose.contour.invert import LineReading
from dpcompose.contour.transform import Cumulants, Lattice, Line, Transform, TransformSum

__all__ = ["Bracket", "Contour", "Cumulants", "Lattice", "Line", "LineReading", "Transform", "TransformSum"]
