"""Numbers with two ends, and the numerical methods that certify them. No privacy words in here."""

from dpcompose.numerics.bound import UNIT_ROUNDOFF, Bound, Certificate, around, down, up

__all__ = ["UNIT_ROUNDOFF", "Bound", "Certificate", "around", "down", "up"]
