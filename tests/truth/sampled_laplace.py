"""The moment generating function of a sampled Laplace mechanism's privacy loss, by acb's proved quadrature.

With w(l) the loss of the Laplace mechanism under Q (atoms 1/2 at -e and e^-e / 2 at e, density e^{-(l+e)/2} / 4) and
r(l) = 1 - q + q e^l: M(t) = E_Q r^{t+1} (remove) and, as the pair mirrors itself, E_Q r^{-t} (add).
"""

from __future__ import annotations

from dataclasses import dataclass

from flint import acb, arb, ctx

from truth.ball import Number, ball


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
        return 1e5

    def moments(self, order: float, step: float | arb, count: int) -> list[acb]:
        return [self._moment(acb(order, ball(step) * j)) for j in range(count)]

    def _moment(self, t: acb) -> acb:
        q, bound = ball(self.rate), ball(self.epsilon)
        power = t + 1 if self.remove else -t

        def weight(loss: acb, _: bool) -> acb:
            return (-loss / 2 + power * (1 - q + q * loss.exp()).log()).exp()

        inner = acb.integral(weight, -bound, bound, rel_tol=arb(2) ** -ctx.prec)
        return self._atoms(power) + (-bound / 2).exp() / 4 * inner

    def _atoms(self, power: acb) -> acb:
        q, bound = ball(self.rate), ball(self.epsilon)
        low, high = acb(1 + q * (-bound).expm1()), acb(1 + q * bound.expm1())
        return low**power / 2 + high**power * (-bound).exp() / 2

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
        whole = self._moment(acb(order)).real
        return ((self._atoms(acb(power)).real + 4 * top / ball(frequency)) / whole).min(arb(1))
