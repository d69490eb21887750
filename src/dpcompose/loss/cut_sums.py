"""Sums of sampled Gaussian losses, the record removed, with no copy above a cut, or at least one in a piece.

Reference: [ZhuDongWang2022, Theorem 11]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from dpcompose.contour import Cumulants, Line, Transform, blockwise, logarithm_of_excess
from dpcompose.loss.cut_noise import Cuts, Piece
from dpcompose.numerics import Complexes, Reals, U, exp_or_inf, log_one_plus

_PARTS = np.arange(6) / 6
"""A block of an envelope is bounded in so many parts."""


@dataclass(frozen=True)
class BelowSum(Transform):
    """The sum of the losses where no copy is above its cut: a measure of mass below 1."""

    cuts: tuple[Cuts, ...]
    tabulates: ClassVar[bool] = True

    @property
    def copies(self) -> float:
        return sum(cut.times for cut in self.cuts)

    @property
    def minimum(self) -> float:
        return sum(cut.times * math.log1p(-cut.rate) for cut in self.cuts) * (1 + 16 * U)

    def cumulants(self, order: float) -> tuple[float, float, float]:
        at = self.curve(np.array([order]))
        return float(at.log_m[0]), float(at.first[0]), float(at.second[0])

    def curve(self, orders: Reals) -> Cumulants:
        parts = np.zeros((3, len(orders)))
        for cut in self.cuts:
            row = cut.below.curve(orders, sign=1.0)
            parts += cut.times * np.array([row.log_m, row.first, row.second])
        return Cumulants(parts[0], parts[1], parts[2])

    def line(self, order: float, frequencies: Reals) -> Line:
        log, error = np.zeros(len(frequencies), dtype=np.complex128), np.zeros(len(frequencies))
        for cut in self.cuts:
            line = cut.below.line(order, frequencies, sign=1.0)
            size = np.abs(line.log)
            found, doubt = (
                cut.times * line.log,
                cut.times * (line.error + 4 * U * len(self.cuts) * size),
            )
            # Where that is no value a bound on the modulus stands for it: it is off by at most twice that.
            most = np.minimum(found.real + doubt, float(found[0].real + doubt[0]))
            lost = ~(doubt < 1)
            log = log + np.where(lost, most + 0j, found)
            error = error + np.where(lost, 1.5, doubt)
        return Line(log, error)

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        # Blocks are bounded through their ends: many short ones are better than few.
        finer = np.concatenate(
            [left + (right - left) * _PARTS for left, right in pairwise(edges)] + [edges[-1:]]
        )
        blocks = self._blocks(order, finer)
        within = [
            blocks[at : at + len(_PARTS)].max() for at in range(0, len(blocks) - 1, len(_PARTS))
        ]
        return np.append(within, blocks[-1])

    def _blocks(self, order: float, edges: Reals) -> Reals:
        """`log_envelope` of the given blocks as they are."""
        total = np.zeros(len(edges))
        for cut in self.cuts:
            line = cut.below.line(order, np.append(0.0, edges), sign=1.0)
            floor = float(line.floor[0])
            if not floor > -math.inf:
                return np.zeros(len(edges))
            center = float(cut.below.curve(np.array([order]), sign=1.0).first[0])
            variance = exp_or_inf(cut.below.moduli.second(order + 1, center) - floor)
            magnitude = np.exp(np.minimum((line.log.real + line.error)[1:] - floor, 0.0))
            shifted = cut.below.moduli.quiet(order + 1, edges, floor)
            total += cut.times * np.minimum(blockwise(magnitude, variance, edges), shifted)
        return total


@dataclass(frozen=True)
class ReverseSum(Transform):
    """The sum of few losses in the other order, as sums over the same noise."""

    cut: Cuts
    tabulates: ClassVar[bool] = True

    def cumulants(self, order: float) -> tuple[float, float, float]:
        at = self.curve(np.array([order]))
        return float(at.log_m[0]), float(at.first[0]), float(at.second[0])

    def curve(self, orders: Reals) -> Cumulants:
        row, times = self.cut.whole.curve(orders, sign=-1.0), self.cut.times
        return Cumulants(times * row.log_m, times * row.first, times * row.second)

    def line(self, order: float, frequencies: Reals) -> Line:
        line, times = self.cut.whole.line(order, frequencies, sign=-1.0), self.cut.times
        doubt = times * (line.error + 4 * U * np.abs(line.log))
        lost = ~(doubt < 1)
        return Line(
            np.where(lost, times * line.log.real + doubt, times * line.log),
            np.where(lost, 1.5, doubt),
        )

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        return np.zeros(len(edges))


@dataclass(frozen=True)
class JumpSum(Transform):
    """The sum of the losses where at least one copy is in a piece, divided by `mass`.

    With T_i of all copies and B_i of those in the piece, prod T_i^k_i (1 - prod (1 - B_i / T_i)^k_i) has positive
    terms: it is at most prod T_i^k_i sum k_i |B_i / T_i|.

    Args:
        cuts: The losses and their cuts.
        pieces: The piece of each.
        whole: T_i^k_i of each.
        sign: 1 for the losses, -1 for those in the other order.
        mass: At least the mass of this measure.
    """

    cuts: tuple[Cuts, ...]
    pieces: tuple[Piece, ...]
    whole: tuple[Transform, ...]
    sign: float
    mass: float
    tabulates: ClassVar[bool] = True

    def cumulants(self, order: float) -> tuple[float, float, float]:
        at = self.curve(np.array([order]))
        return float(at.log_m[0]), float(at.first[0]), float(at.second[0])

    def curve(self, orders: Reals) -> Cumulants:
        log_m, first, second = np.zeros((3, len(orders)))
        logs: list[Reals] = []
        slopes: list[Reals] = []
        bends: list[Reals] = []
        for cut, piece, whole in zip(self.cuts, self.pieces, self.whole, strict=True):
            rest, jump = whole.curve(orders), piece.curve(orders, sign=self.sign)
            log_m, first, second = log_m + rest.log_m, first + rest.first, second + rest.second
            logs.append(math.log(cut.times) + jump.log_m - rest.log_m / cut.times)
            slopes.append(jump.first - rest.first / cut.times)
            bends.append(jump.second)
        total = np.logaddexp.reduce(logs)
        shares = np.exp(np.array(logs) - total)
        mean = (shares * slopes).sum(axis=0)
        spread = (shares * (np.array(bends) + np.square(slopes))).sum(axis=0) - mean * mean
        return Cumulants(
            log_m + total - math.log(self.mass), first + mean, second + np.maximum(spread, 1e-300)
        )

    def line(self, order: float, frequencies: Reals) -> Line:
        log, error = np.zeros(len(frequencies), dtype=np.complex128), np.zeros(len(frequencies))
        none: Complexes = np.zeros(len(frequencies), dtype=np.complex128)
        doubt, most = np.zeros_like(error), np.zeros_like(error)
        for cut, piece, whole in zip(self.cuts, self.pieces, self.whole, strict=True):
            rest, jump = (
                whole.line(order, frequencies),
                piece.line(order, frequencies, sign=self.sign),
            )
            log, error = log + rest.log, error + rest.error + 4 * U * np.abs(rest.log)
            ratio: Complexes = np.exp(jump.log - rest.log / cut.times)
            size = jump.error + rest.error / cut.times
            off = (
                2
                * np.abs(ratio)
                * np.expm1(np.minimum(size + 16 * U * (1 + np.abs(jump.log)), 700.0))
            )
            none = none + cut.times * log_one_plus(-ratio.real, -ratio.imag)
            # |log(1 - r') - log(1 - r)| in the growth of a modulus: (|1 - r| + off)^k - |1 - r|^k, wherever r is.
            distance = np.maximum(np.abs(1 - ratio), 1e-300)
            doubt = doubt + cut.times * (np.log1p(off / distance) + 64 * U * np.abs(ratio))
            most = most + cut.times * np.exp(
                jump.log.real + jump.error - float(rest.log[0].real / cut.times)
            )
        turned = np.expm1(none.real) - 2 * np.exp(none.real) * np.sin(none.imag / 2) ** 2
        value = -turned - 1j * np.exp(none.real) * np.sin(none.imag)
        top = max(float(np.abs(value[0])), 1e-300)
        modulus = np.exp(none.real)
        apart = np.where(
            doubt < 1, modulus * np.expm1(np.minimum(doubt, 1.0)), np.exp(none.real + doubt)
        )
        spread = (apart + 16 * U * np.abs(value)) / top
        value = value / top
        line = logarithm_of_excess(value.real - 1, value.imag, spread)
        log, error = (
            log + line.log + math.log(top),
            error + line.error + 16 * U * (1 + abs(math.log(top))),
        )
        # Where that is no value, the modulus is at most the sum of the terms' on the real line.
        lost = ~(error < 1)
        bound = (
            float(log[0].real - line.log[0].real)
            - math.log(top)
            + np.log(most)
            + 2 * float(error[0])
        )
        log = np.where(lost, bound + 0j, log)
        return Line(log - complex(math.log(self.mass)), np.where(lost, 1.5, error))

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        worst, likely = np.full(len(edges), -np.inf), 0.0
        power = order + 1 if self.sign > 0 else -order
        for cut, piece, whole in zip(self.cuts, self.pieces, self.whole, strict=True):
            here, rest = (
                piece.line(order, np.zeros(1), sign=self.sign),
                whole.line(order, np.zeros(1)),
            )
            worst = np.maximum(
                worst, np.minimum(piece.moduli.envelope(power, edges) - float(here.floor[0]), 0.0)
            )
            log_ratio = float(
                here.log[0].real + here.error[0] - (rest.log[0].real - rest.error[0]) / cut.times
            )
            likely += cut.times * exp_or_inf(log_ratio)
        if (
            not 0 < likely < math.inf
        ):  # the factor below grows with `likely` from 1, where floats have only 0
            return np.minimum(worst, 0.0) if likely == 0 else np.zeros(len(edges))
        return np.minimum(worst + math.log(likely / -math.expm1(-likely)), 0.0)
