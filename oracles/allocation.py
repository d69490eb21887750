"""Random allocation by other ways, in balls of many digits: one epoch from prices, and two steps from one integral.

For S = (Y_1 + ... + Y_t) / t the put E (a - t S)_+ is (1 / 2 pi i) times the integral of f(z)^t e^(a z) / z^2 over
Re z = c > 0, f(z) = E e^(-zY); the call is the put and E S - a / t. Both integrals are sums of equidistant values, at
steps where halving them changes nothing that is shown.
For t = 2, log S is the mean of the two noises, and independent of it log cosh of half their difference.
"""

from __future__ import annotations

from functools import cache

from flint import acb, arb, ctx

from oracles.ball import Number, ball


def one_epoch(sigma: Number, steps: int, epsilon: Number, *, remove: bool, digits: int = 45) -> arb:
    """delta(epsilon) of one epoch, to about half of the digits."""
    with ctx.workprec(int(digits * 3.4) + 40):
        level = ball(epsilon)
        if remove:
            return _put(ball(sigma), steps, steps * level.exp(), digits) / steps + 1 - level.exp()
        return level.exp() * _put(ball(sigma), steps, steps * (-level).exp(), digits) / steps


def _put(noise: arb, steps: int, a: arb, digits: int) -> arb:
    """E (a - t S)_+: the trapezoidal rule of period 2 a errs by what lies below -a, e^(-2 a c) of the whole."""
    depth = arb(digits) * arb(10).log()
    step, c = arb.pi() / a, depth / (2 * a)
    total, scale = acb(0), None
    for j in range(100_000):
        z = acb(c, step * j)
        term = _f(noise, z, digits) ** steps * (z * a).exp() / z**2
        total += term / 2 if j == 0 else term
        size = abs(term)
        scale = size if scale is None else scale
        if j > 3 and size < scale * (-depth).exp():
            break
    return total.real * step / arb.pi()


def _f(noise: arb, z: acb, digits: int) -> acb:
    """E e^(-zY), the noise turned by the angle of z: there z Y is positive."""
    theta = z.arg()
    turn, first = _nodes(noise.str(30), digits)
    size, total = abs(z), acb(0)
    for g, weight, y in turn:
        total += weight * acb(0, theta * noise * g).exp() * (-size * y).exp()
    return total * first * (theta**2 * noise**2 / 2).exp()


@cache
def _nodes(noise: str, digits: int) -> tuple[list[tuple[arb, arb, arb]], arb]:
    """Nodes of the noise, their weights, and Y there."""
    with ctx.workprec(int(digits * 3.4) + 40):
        s = arb(noise)
        # The strip around the turned path is s pi / 2 wide on either side.
        step = float(min(0.9 * 9.87 * float(s) / (digits * 2.3 + 6 * float(s) ** 2), 0.5))
        reach = int((2 * digits * 2.31) ** 0.5 / step) + int(4 * float(s) / step) + 2
        rows = []
        for k in range(-reach, reach + 1):
            g = arb(step) * k
            rows.append((g, (-g * g / 2).exp(), (g / s - 1 / (2 * s * s)).exp()))
        return rows, arb(step) / (2 * arb.pi()).sqrt()


def epoch_of_two(sigma: Number, epsilon: Number, *, remove: bool, digits: int = 30) -> arb:
    """delta(epsilon) of one epoch of two steps with any noise, to about that many digits.

    S = cosh(v b) e^(u b - b^2), b = 1 / (s sqrt 2), for independent standard normal u and v: given v a lognormal law,
    whose hockey stick is closed; over v a trapezoidal sum.
    """
    with ctx.workprec(int(digits * 3.4) + 60):
        b, level = 1 / (ball(sigma) * arb(2).sqrt()), ball(epsilon).exp()
        step, total = arb(1) / 16, arb(0)
        for k in range(-16 * 13, 16 * 13 + 1):
            v = step * k
            scale = (v * b).cosh() * (-b * b).exp()  # of e^(u b), whose mean is e^(b^2 / 2)
            if remove:
                d = (scale / level).log() / b
                value = scale * (b * b / 2).exp() * _normal(d + b) - level * _normal(d)
            else:
                d = -(scale * level).log() / b
                value = _normal(d) - level * scale * (b * b / 2).exp() * _normal(d - b)
            total += value * (-v * v / 2).exp()
        return total * step / (2 * arb.pi()).sqrt()


def _normal(x: arb) -> arb:
    return (-x / arb(2).sqrt()).erfc() / 2


def two_steps(sigma: Number, order: Number, frequency: Number, *, digits: int = 40) -> acb:
    """E S^p at the complex power p for t = 2: e^(p^2 / (4 s^2) - p / (2 s^2)) E cosh(g / (s sqrt 2))^p."""
    with ctx.workprec(int(digits * 3.4) + 60):
        s, p = ball(sigma), acb(ball(order), ball(frequency))
        step = min(9.8 * float(s) / (digits * 2.31), 0.25)
        total = acb(0)
        for k in range(-int(60 / step), int(60 / step) + 1):
            g = arb(step) * k
            total += (-g * g / 2).exp() * (p * (g / (s * arb(2).sqrt())).cosh().log()).exp()
        mean = total * arb(step) / (2 * arb.pi()).sqrt()
        return mean * (p * p / (4 * s * s) - p / (2 * s * s)).exp()


def epochs_of_two(
    sigma: Number, epochs: int, epsilon: Number, *, remove: bool, digits: int = 24
) -> arb:
    """delta(epsilon) of epochs of two steps, by the sum over the line Re t = 1; its period is above all losses."""
    with ctx.workprec(int(digits * 3.4) + 60):
        spread = epochs / float(ball(sigma)) ** 2  # above the variance of the loss
        period = 70 + 2 * spread + 12 * spread**0.5
        level, step, total, first = ball(epsilon), 2 * arb.pi() / arb(period), acb(0), None
        for j in range(4000):
            t = acb(1, step * j)
            moment = (
                two_steps(sigma, 2, step * j, digits=digits)
                if remove
                else two_steps(sigma, -1, -step * j, digits=digits)
            )
            term = moment**epochs * (-t * level).exp() / (t * (t + 1))
            total += term / 2 if j == 0 else term
            first = abs(term) if first is None else first
            if abs(term) < first * arb(10) ** -digits:
                break
        return total.real * step / arb.pi()
