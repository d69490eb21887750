"""Pictures: upper ends are what is drawn; what is infinite, empty or strange is said in words or refused."""

from __future__ import annotations

import io
import math
from fractions import Fraction
from typing import Any

import pytest

pytest.importorskip("matplotlib")

from dpcompose import BlackBox, Gaussian, Laplace, RandomizedResponse, compose
from dpcompose.account import open_scope
from dpcompose.adaptive import Budget
from dpcompose.composition import running_epsilon
from dpcompose.errors import DomainError
from dpcompose.ledger import Ledger
from dpcompose.plan import Plan, PlanQuestion, account
from dpcompose.report import (
    accuracy,
    budget_pictures,
    burn_down,
    icicle,
    plane,
    privacy_profile,
    steps,
    trade_off,
    waterfall,
)

TOTAL = Laplace(9.0) * 30


def _drawn(axes: Any) -> list[tuple[float, float]]:
    return list(zip(*(list(map(float, each)) for each in axes.lines[0].get_data()), strict=True))


def _said(axes: Any) -> str:
    axes.figure.savefig(io.BytesIO(), format="svg")
    return " ".join(text.get_text() for text in axes.texts)


def test_steps_draws_the_upper_end_of_every_step() -> None:
    axes = steps(TOTAL, delta=1e-6, budget=0.0, published=9.0)
    upper = running_epsilon(TOTAL, delta=1e-6).upper
    assert [y for _, y in sorted(_drawn(axes))] == upper.tolist()
    assert "budget 0" in _said(axes) and "published 9" in _said(axes)


def test_curves_are_upper_ends() -> None:
    profile = TOTAL.profile()
    assert all(
        delta == profile([epsilon]).upper[0]
        for epsilon, delta in _drawn(privacy_profile(profile))[::40]
    )
    for log in (False, True):
        assert all(rate <= power <= 1 for rate, power in _drawn(trade_off(profile, log=log)))
    axes = accuracy(Laplace, [1.0, 4.0], error=lambda scale: scale)
    assert [y for _, y in _drawn(axes)] == [4.0, 1.0] and _drawn(axes)[1][0] >= 1.0


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        (lambda: steps(Gaussian(1.0) * 5, delta=0.0), "epsilon is infinite"),
        (lambda: accuracy(Gaussian, [1.0], error=float), "epsilon is infinite at every scale"),
        (lambda: privacy_profile(BlackBox(0.0).profile()), "delta is 0 everywhere"),
        (
            lambda: plane(lambda sigma, _: Gaussian(sigma), [1.0, 2.0], [1.0, 2.0], delta=0.0),
            "infinite everywhere",
        ),
        (lambda: icicle(()), "no scope has a budget"),
    ],
)
def test_what_cannot_be_drawn_is_said(axes: Any, words: str) -> None:
    assert words in _said(axes())


@pytest.mark.parametrize(
    "bad",
    [
        lambda: steps(TOTAL, delta=math.nan),
        lambda: steps(TOTAL, delta=1e-6, budget=-1.0),
        lambda: accuracy(Laplace, [], error=float),
        lambda: accuracy(Laplace, [-1.0], error=float),
        lambda: plane(lambda sigma, _: Gaussian(sigma), [1.0], [1.0], delta=1e-6),
        lambda: privacy_profile(TOTAL.profile(), epsilons=[math.nan]),
    ],
)
def test_bad_values_are_refused(bad: Any) -> None:
    with pytest.raises(DomainError):
        bad()


@pytest.mark.parametrize("sigma", [1.0, 5.0])
def test_a_waterfall_of_any_plan(sigma: float) -> None:
    parts = "".join(
        f'[[mechanism]]\nname = "اسم {k}"\nkind = "gaussian"\nsigma = {sigma}\n' for k in range(13)
    )
    axes: Any = waterfall(
        account(Plan.parse(parts), PlanQuestion("delta", 0.0 if sigma < 2 else 1e-6))
    )
    assert (
        "infinite for every mechanism" in _said(axes)
        if sigma < 2
        else len(axes.get_yticklabels()) == 10
    )


def test_a_ledger_burns_down() -> None:
    ledger = Ledger.open("memory:")
    ledger.scope("city", caps={"epsilon": 2}, actor="Ada")
    assert "nothing was charged" in _said(burn_down(ledger.entries("city"), ledger.balance("city")))
    ledger.scope("city/tax", caps={"epsilon": 1}, actor="Ada")
    for place, path in enumerate(("city", "city/tax")):
        ledger.charge(path, cost={"epsilon": "0.25"}, actor=f"Ada {place}", key=str(place))
    axes = burn_down(ledger.entries("city"), ledger.balance("city"))
    assert [y for _, y in _drawn(axes)] == [2.0, 1.5]
    boxes: Any = icicle(ledger.balances("city")).patches
    assert [round(box.get_width(), 6) for box in boxes] == [1.0, 0.25, 0.5, 0.125]
    with pytest.raises(DomainError, match="currency"):
        burn_down(ledger.entries("city"), ledger.balance("city"), currency="rho")


def _filled(axes: Any) -> dict[float, float]:
    """How far each box is filled, by its left edge and depth; boxes and their fillings are drawn in turn."""
    boxes = [(box.get_x() - 2 * box.get_y(), box.get_width()) for box in axes.patches]
    return {
        at: filled / whole for (at, whole), (_, filled) in zip(boxes[::2], boxes[1::2], strict=True)
    }


def test_a_budget_is_drawn_as_full_as_it_is_in_the_currency_that_it_is_about() -> None:
    ledger = Ledger.open("memory:")
    budget = Budget(Fraction(1), Fraction(1, 10**6), only="zcdp")
    open_scope(ledger, "health", filter=budget, actor="Ada")
    assert list(_filled(ledger.plot.icicle("health")).values()) == [0.0]
    assert "nothing was charged" in _said(ledger.plot("health"))
    for cost, key in (("0.001", "a"), ("0.002", "b")):
        ledger.charge("health", cost={"rho": cost, "delta": 0}, actor="Ada", key=key)
    balance = ledger.balance("health")
    spent, cap = (amounts["rho"].units for amounts in (balance.spent, balance.scope.caps))
    assert list(_filled(ledger.plot.icicle("health")).values()) == pytest.approx([spent / cap])
    charges: Any = ledger.plot("health").patches
    assert sum(bar.get_height() for bar in charges) == pytest.approx(0.003)
    pictures = budget_pictures(ledger.balances(), (ledger.entries("health"), balance))
    assert len(pictures) == 2 and all("of rho" in each.caption for each in pictures)
    assert list(_filled(icicle(ledger.balances(), currency="delta")).values()) == [0.0]


@pytest.mark.parametrize(
    ("caps", "currency"),
    [
        ({"delta": "1e-5", "epsilon": 1}, "epsilon"),
        ({"delta": "1e-5", "rho": 0}, "delta"),
        ({"delta": 0, "rho": 0}, "rho"),
    ],
)
def test_the_currency_of_a_budget_is_one_that_can_be_spent(
    caps: dict[str, Any], currency: str
) -> None:
    ledger = Ledger.open("memory:")
    ledger.scope("city", caps=caps, actor="Ada")
    assert ledger.plot("city").get_ylabel() == currency
    assert list(_filled(ledger.plot.icicle("city")).values()) == [0.0]


def test_slots_are_filled_as_far_as_they_are_taken() -> None:
    ledger = Ledger.open("memory:")
    ledger.scope("city", caps={"rho": 1}, actor="Ada")
    ledger.scope(
        "city/teams", kind="slots", slots=4, caps={"rho": "0.3"}, cost={"rho": "0.3"}, actor="Ada"
    )
    assert sorted(_filled(ledger.plot.icicle("city")).values()) == pytest.approx([0.0, 0.3])
    ledger.scope("city/teams/one", caps={"rho": "0.3"}, actor="Ada")
    drawn: Any = ledger.plot.icicle("city")
    assert sorted(_filled(drawn).values()) == pytest.approx([0.0, 0.25, 0.3])
    assert min(box.get_width() for box in drawn.patches if box.get_width()) == pytest.approx(
        0.3 / 4
    )


def test_two_ends_apart_are_shaded() -> None:
    axes: Any = steps(RandomizedResponse(0.7) * 3, delta=1e-6)
    assert axes.collections and _drawn(axes)[0][1] > 0


def test_values_draw_themselves() -> None:
    profile, plan = (
        TOTAL.profile(),
        Plan.parse('[[mechanism]]\nkind = "laplace"\nscale = 9.0\ntimes = 3\n'),
    )
    ledger = Ledger.open("memory:")
    ledger.scope("city", caps={"epsilon": 2}, actor="Ada")
    ledger.charge("city", cost={"epsilon": "0.5"}, actor="Ada", key="one")
    found = account(plan, PlanQuestion("delta", 1e-6))
    for own, of_gallery in (
        (TOTAL.plot(), privacy_profile(profile)),
        (
            TOTAL.plot.privacy_profile(adjacency="replace"),
            privacy_profile(TOTAL, adjacency="replace"),
        ),
        (TOTAL.plot.steps(delta=1e-6, budget=1), steps(TOTAL, delta=1e-6, budget=1)),
        (Gaussian(1.0).plot.trade_off(log=True), trade_off(Gaussian(1.0).profile(), log=True)),
        (profile.plot(), privacy_profile(profile)),
        (profile.plot.trade_off(), trade_off(profile)),
        (found.plot(), waterfall(found)),
        (ledger.plot("city"), burn_down(ledger.entries("city"), ledger.balance("city"))),
        (ledger.plot.icicle("city"), icicle(ledger.balances("city"))),
    ):
        assert own.get_title() == of_gallery.get_title() and len(own.patches) == len(
            of_gallery.patches
        )
        assert len(own.lines) == 0 or _drawn(own) == _drawn(of_gallery)
    axes = TOTAL.plot()
    assert profile.plot(axes=axes) is axes
    assert dir(TOTAL.plot) == ["privacy_profile", "steps", "trade_off"] and "burn_down" in repr(
        ledger.plot
    )
    with pytest.raises(DomainError, match="steps can be told apart"):
        TOTAL.group(2).plot.steps(delta=1e-6)
    with pytest.raises(AttributeError, match="there are: privacy_profile, trade_off"):
        _ = profile.plot.steps


def test_a_notebook_shows_what_scopes_have_left() -> None:
    ledger = Ledger.open("memory:")
    assert "no scope is open" in ledger._repr_html_()
    for number in range(12):
        ledger.scope(f"city{number:02}", caps={"epsilon": 1}, actor="Ada")
    ledger.charge("city03", cost={"epsilon": "0.3"}, actor="Ada", key="one")
    shown = ledger._repr_html_()
    assert (
        "city03: 0.3 of epsilon spent, 0.7 of epsilon left" in shown and shown.count("<br>") == 10
    )
    assert "city08" in shown and "city09" not in shown and "and more" in shown


def test_a_page_of_budgets_has_a_picture_of_the_tree_and_of_charges() -> None:
    ledger = Ledger.open("memory:")
    assert budget_pictures(ledger.balances()) == ()
    ledger.scope("city", caps={"rho": 2}, actor="Ada")
    ledger.charge("city", cost={"rho": "0.5"}, actor="<b>", key="one")
    alone = budget_pictures(ledger.balances())
    both = budget_pictures(ledger.balances(), (ledger.entries("city"), ledger.balance("city")))
    assert [each.caption for each in alone] == [
        "Each box is a budget of rho, filled as far as it is spent."
    ]
    assert len(both) == 2 and "of rho by day" in both[1].caption
    assert all("<svg" in each.svg() and "<b>" not in each.svg() for each in both)


def test_names_of_actors_are_no_formulas() -> None:
    ledger = Ledger.open("memory:")
    ledger.scope("city", caps={"epsilon": 2}, actor="Ada")
    names = ["US$\\frac{a$", "_ana", "$x$", "x"]
    for name in names:
        ledger.charge("city", cost={"epsilon": "0.1"}, actor=name, key=name)
    axes = ledger.plot("city")
    _said(axes)
    shown = [text.get_text().strip().replace("\\$", "$") for text in axes.get_legend().get_texts()]
    assert sorted(shown) == sorted([*names, "left"])


def test_no_steps_and_too_many_are_said() -> None:
    assert "no step is taken: epsilon is 0" in _said(compose([]).plot.steps(delta=1e-6))
    none = plane(lambda _, rate: compose([]), [1.0, 2.0], [0.1, 0.2], delta=1e-6)
    assert "epsilon is at most 0 everywhere" in _said(none)
    with pytest.raises(DomainError, match="at most 1,000,000 steps"):
        (Gaussian(4.0) * 10**12).plot.steps(delta=1e-6)
