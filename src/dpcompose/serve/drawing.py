"""Budgets as SVG elements without a style of their own: colors are those of the style sheet, in light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from markupsafe import Markup

_WIDTH, _HEIGHT, _EDGE = 640.0, 200.0, 34.0
_RECT = '<rect class="{kind}" x="{x:.2f}" y="0" width="{width:.2f}" height="8"/>'


def bar(spent: float, reserved: float, *, label: str) -> Markup:
    """A budget as a bar: what is spent, what is promised, and the rest of it; shares of 1."""
    spent = min(max(spent, 0.0), 1.0)
    reserved = min(max(reserved, 0.0), 1.0 - spent)
    parts = [
        _RECT.format(kind="rest", x=0, width=100),
        _RECT.format(kind="spent", x=0, width=100 * spent),
        _RECT.format(kind="promised", x=100 * spent, width=100 * reserved),
    ]
    frame = Markup(
        '<svg class="bar" role="img" aria-label="{}" viewBox="0 0 100 8" preserveAspectRatio="none">'
    )
    return frame.format(label) + Markup("".join(parts) + "</svg>")  # numbers alone


def burn_down(points: Sequence[tuple[datetime, float]], *, label: str) -> Markup:
    """The part that was left, step by step, as a share of the budget."""
    first, last = points[0][0], points[-1][0]
    seconds = max((last - first).total_seconds(), 1.0)
    wide, high = _WIDTH - 2 * _EDGE, _HEIGHT - 2 * _EDGE
    places = [
        (_EDGE + wide * (at - first).total_seconds() / seconds, _EDGE + high * (1 - left))
        for at, left in points
    ]
    steps = [
        f"M{places[0][0]:.1f} {places[0][1]:.1f}",
        *(f"H{x:.1f}V{y:.1f}" for x, y in places[1:]),
    ]
    floor, end = _HEIGHT - _EDGE, _WIDTH - _EDGE
    form = '<svg class="burn" role="img" aria-label="{}" viewBox="0 0 640 200"><title>{}</title>'
    form += f'<path class="axis" d="M{_EDGE} {_EDGE}V{floor}H{end}"/><path class="line" d="{"".join(steps)}"/>'
    form += '<text x="0" y="40">100 %</text><text x="8" y="170">0 %</text>'
    form += '<text x="34" y="190">{}</text><text class="end" x="606" y="190">{}</text></svg>'
    return Markup(form).format(label, label, first.date().isoformat(), last.date().isoformat())


def ends_at(points: Sequence[tuple[datetime, float]], left: float) -> datetime | None:
    """When nothing is left of what is left now if it goes on at the rate of these points.

    None if that cannot be said: nothing is left, or the points span less than a day, which is no rate for a date.
    """
    (first, before), (last, after) = points[0], points[-1]
    span, used = last - first, before - after
    if not (span >= timedelta(days=1) and used > 0 and left > 0):
        return None
    try:
        return last + left / used * span
    except OverflowError:
        return None
