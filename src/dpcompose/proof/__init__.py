"""The proof engine: the same expectation in ball arithmetic, where every error is a theorem."""

from dpcompose.proof.ball import Ball, Disc, Field
from dpcompose.proof.line import Enclosure
from dpcompose.proof.moments import BallLattice, Ends, Factors, Moments, Term
from dpcompose.proof.normal import NormalMoments
from dpcompose.proof.sum import Proved, ProvedSum

__all__ = [
    "Ball",
    "BallLattice",
    "Disc",
    "Enclosure",
    "Ends",
    "Factors",
    "Field",
    "Moments",
    "NormalMoments",
    "Proved",
    "ProvedSum",
    "Term",
]
