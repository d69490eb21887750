"""The moment generating function of a sampled Laplace mechanism's privacy loss, by Gauss-Legendre with a proved error.

With w(l) the loss of the Laplace mechanism under Q (atoms 1/2 at -e and e^-e / 2 at e, density e^{-(l+e)/2} / 4) and
r(l) = 1 - q + q e^l: M(t) = E_Q r^{t+1} (remove) and, as the pair mirrors itself, E_Q r^{-t} (add).

n points on [-1, 1] miss the integral of f by at most (64/15) S rho^{-2(n-1)} / (1 - rho^-2), |f| <= S on the ellipse of
half axes a, b = (rho +- 1/rho) / 2 (Trefethen, Approximation Theory and Approximation Practice, Theorem 19.3). There
|Im l| <= theta = e b < pi, so that |arg r| <= theta and (1 - q + q e^{-ea}) cos(theta/2) <= |r|
<= 1 - q + q e^{ea}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from flint import acb, arb, ctx

from oracles.ball import Number, ball
from oracles.law import exponential_sum, padded


@dataclass(frozen=True)
class SampledLaplace:
    """Laplace noise of loss at most `epsilon` on a Poisson sample of rate `rate` < 1."""

    rate: Number
    epsilon: Number
    remove: bool

    @property
    def outside(self) -> arb:
        return arb(0)

    @property
    def largest(self) -> arb:
        q, bound = ball(self.rate), ball(self.epsilon)
        return (q * bound.expm1()).log1p() if self.remove else -(q * (-bound).expm1()).log1p()

    @property
    def steepest(self) -> float:
        return 1e4

    def moments(self, order: float, step: float | arb, count: int) -> list[acb]:
        q, bound = ball(self.rate), ball(self.epsilon)
        power, sign = (ball(order) + 1, 1) if self.remove else (-ball(order), -1)
        points, error = self._rule(power, ball(step) * (count - 1))
        logs, values = [], []
        for place, weight in points:
            loss = bound * place
            ratio = (q * loss.expm1()).log1p()
            logs.append(acb((weight * bound / 4).log() - (loss + bound) / 2 + power * ratio))
            values.append(acb(sign * ratio))
        for loss, mass in ((-bound, arb(1) / 2), (bound, (-bound).exp() / 2)):
            ratio = (q * loss.expm1()).log1p()
            logs.append(acb(mass.log() + power * ratio))
            values.append(acb(sign * ratio))
        return [padded(value, error) for value in exponential_sum(logs, values, step, count)]

    def _rule(self, power: arb, frequency: arb) -> tuple[list[tuple[arb, arb]], arb]:
        """Points and weights on [-1, 1] for all frequencies up to this one, and a bound on the error."""
        q, bound = ball(self.rate), ball(self.epsilon)
        best: tuple[int, arb, arb] | None = None
        for half_angle in (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.3):
            theta = arb(2 * half_angle).min(30 * bound)
            b = theta / bound
            rho = b + (b * b + 1).sqrt()
            reach = bound * (rho + 1 / rho) / 2
            high = (1 + q * reach.expm1()).log()
            low = (1 + q * (-reach).expm1()).log() + (theta / 2).cos().log()
            log_size = reach / 2 - bound / 2 + (power * high).max(power * low) + frequency * theta
            count = 2 + math.ceil(
                float((ctx.prec * arb(2).log() + log_size.max(arb(0))) / (2 * rho.log()))
            )
            if best is None or count < best[0]:
                best = count, rho, log_size
        assert best is not None
        count, rho, log_size = best
        count = 1 << (count - 1).bit_length() if count > 32 else 32
        error = (
            log_size.exp() * arb(64) / 15 * rho ** (-2 * (count - 1)) / (1 - rho**-2) * bound / 4
        )
        return _gauss(count, ctx.prec), error

    def envelope(self, order: float, frequency: float) -> arb:
        """Atoms, and the density F of the loss by parts: (|F(-e)| + |F(e)| + its variation) / u <= 4 sup F / u.

        F = e^{-(l+e)/2} r^p / 4 / (q e^l / r) has one turning point at most, p = order + 1 or -order.
        """
        if frequency == 0:
            return arb(1)
        q, bound = ball(self.rate), ball(self.epsilon)
        power = ball(order) + 1 if self.remove else -ball(order)
        low, high = 1 + q * (-bound).expm1(), 1 + q * bound.expm1()
        top = (low ** (power + 1)).max(high ** (power + 1)) * bound.exp() / 4 / q
        atoms = low**power / 2 + high**power * (-bound).exp() / 2
        whole = self.moments(order, 0.0, 1)[0].real
        return ((atoms + 4 * top / ball(frequency)) / whole).min(arb(1))


@lru_cache(maxsize=64)
def _gauss(count: int, precision: int) -> list[tuple[arb, arb]]:
    """The points and weights of the Gauss-Legendre rule."""
    with ctx.workprec(precision):
        return [arb.legendre_p_root(count, k, weight=True) for k in range(count)]
