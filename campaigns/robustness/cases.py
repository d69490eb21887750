"""Every public callable with valid arguments, one of which at a time is replaced by a bad value."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import dpcompose as dp
from dpcompose import account, adaptive, book, experiment, guarantee, ledger, plan, release
from dpcompose.composition import one_of
from dpcompose.ledger.requests import Charge

ROOMS = (
    "dpcompose",
    "dpcompose.guarantee",
    "dpcompose.composition",
    "dpcompose.mechanisms",
    "dpcompose.divergence",
    "dpcompose.book",
    "dpcompose.adaptive",
    "dpcompose.experiment",
    "dpcompose.plan",
    "dpcompose.ledger",
    "dpcompose.account",
    "dpcompose.release",
)
MADE = [
    "FilterAdvice",
    "Adjacency",
    "Orientation",
    "Kind",
    "World",
    "Bound",
    "Bounds",
    "Calibration",
    "Calibrations",
    "Certificate",
    "Composable",
    "ComposablePart",
    "Group",
    "Parallel",
    "Part",
    "Priced",
    "Profile",
    "Risk",
    "Choice",
    "Comparison",
    "RenyiDP",
    "Estimate",
    "Exact",
    "OneSidedWitness",
    "SmallestEpsilon",
    "SymmetricWitness",
    "Deviation",
    "Example",
    "DominatingPair",
    "MeanLoss",
    "Parameter",
    "Promise",
    "ExposureStatement",
    "Statement",
    "STATEMENTS",
    "Decision",
    "Distance",
    "Filter",
    "Mileage",
    "Reading",
    "Records",
    "IndividualRound",
    "EpsilonCurve",
    "Heading",
    "PageTable",
    "Round",
    "Spending",
    "SparseVector",
    "Total",
    "Exposure",
    "Adversary",
    "Channel",
    "Database",
    "Limits",
    "Measured",
    "Outcome",
    "Solved",
    "Summary",
    "Tally",
    "Views",
    "NaturalFilterBreaker",
    "Growth",
    "PlanAccount",
    "PlanCalibration",
    "PlanRisk",
    "TrainingHistory",
    "Questions",
    "Lesson",
    "Contribution",
    "Amounts",
    "Anchor",
    "Balance",
    "ledger.Entry",
    "Head",
    "Ledger",
    "Receipt",
    "Scope",
    "Verification",
    "Answer",
    "CountingPlan",
    "release.Question",
    "Catalog",
    "Explanation",
    "PublicTable",
    "Quote",
    "RowExpression",
    "SyntheticData",
    "Table",
    "TypedAmounts",
    "Certified",
    "Moment",
]
"""Classes that the library makes, or that are tried through their methods and functions."""
BETWEEN_ROOMS = {
    "restored",
    "is_of_database",
    "replay",
    "in_percent",
    "of_theorem",
    "state",
    "find",
    "amount",
    "of_limit",
    "described",
    "pairs",
    "promise",
    "sampled_pairs",
    "sampled_laws",
    "require_group",
    "laws",
    "summed_pairs",
    "summed_laws",
    "evaluate",
    "choose",
    "first",
    "estimate",
}
BETWEEN_ROOMS |= {
    "group_losses",
    "of_snapshot",
    "digits",
    "typed",
    "unsampled",
    "require_any_size",
}
"""Methods that one room offers another, and that nobody calls with numbers of his own."""

PLAN = """delta = 1e-6
[[mechanism]]
kind = "gaussian"
sigma = 8.0
times = 3
[[mechanism]]
kind = "laplace"
scale = 9.0
"""


@dataclass(frozen=True)
class Case:
    """A callable, made anew each time, with good arguments."""

    name: str
    make: Callable[[], Callable[..., Any]]
    good: Callable[[], dict[str, Any]]

    def takes(self) -> Mapping[str, str]:
        """The parameters that are tried, each with its annotation."""
        parameters = inspect.signature(self.make()).parameters
        return {
            name: str(parameters[name].annotation) if name in parameters else "Any"
            for name in self.good()
        }


@cache
def composition() -> dp.Composition:
    return dp.compose(dp.Gaussian(4.0) * 3, dp.Laplace(5.0), dp.RandomizedResponse(0.2))


def response() -> dp.RandomizedResponse:
    return dp.RandomizedResponse(0.5)


def query() -> experiment.Query:
    return experiment.about_bob(response())


def game() -> experiment.Experiment:
    return experiment.Experiment(experiment.Repeater(query()), family=[response()], rounds=2)


def signer() -> ledger.VerifierKey:
    return ledger.VerifierKey("acme.example", bytes(range(32)))


def opened() -> ledger.Ledger:
    found = ledger.Ledger.open("memory:")
    account.open_scope(found, "world", filter=adaptive.BasicFilter(5.0, delta=1e-3), actor="keeper")
    account.open_partition(found, "world/parts", actor="keeper")
    account.open_slots(
        found, "world/slots", slots=3, filter=adaptive.PureFilter(0.1), actor="keeper"
    )
    return found


def _accounted() -> Any:
    return plan.account(plan.Plan.parse(PLAN), plan.PlanQuestion("delta", 1e-6))


def _counting() -> Any:
    return release.plan(1000, accuracy=0.1, epsilon=1.0, delta=1e-6, domain=64)


def _frame() -> Any:
    import pyarrow

    return pyarrow.table({"person": [1, 2, 2, 3], "x": [1, 2, 3, 4]})


# Good arguments by the parameter's name, made anew for each call.
GOOD: dict[str, Callable[[], Any]] = {
    "epsilon": lambda: 0.5,
    "delta": lambda: 1e-5,
    "order": lambda: 2.5,
    "rho": lambda: 0.1,
    "mu": lambda: 0.7,
    "alpha": lambda: 0.2,
    "scale": lambda: 3.0,
    "sigma": lambda: 3.0,
    "sensitivity": lambda: 1.5,
    "replace_sensitivity": lambda: 2.0,
    "rate": lambda: 0.3,
    "shift": lambda: 2,
    "replace": lambda: 3,
    "categories": lambda: 3,
    "times": lambda: 4,
    "size": lambda: 2,
    "slack": lambda: 1e-4,
    "prior": lambda: 0.4,
    "false_positive_rate": lambda: 0.01,
    "tolerance": lambda: 1e-7,
    "proof": lambda: False,
    "adjacency": lambda: dp.Adjacency.ADD_REMOVE,
    "orientation": lambda: dp.Orientation.SAME,
    "holds_under": lambda: dp.Adjacency.ADD_REMOVE,
    "mechanism": response,
    "total_delta": lambda: 1e-5,
    "without": lambda: 0.4,
    "utility_range": lambda: 1.0,
    "promises": lambda: [(0.1, 1e-6), (0.2, 0.0)],
    "deviations": lambda: 2.0,
    "drift": lambda: 0.05,
    "confidence": lambda: 0.9,
    "first": lambda: [0.5, 0.5],
    "second": lambda: [0.25, 0.75],
    "ratio": lambda: 2.0,
    "outputs": lambda: {0: [0.5, 0.5], 1: [0.25, 0.75]},
    "neighbors": lambda: [(0, 1)],
    "budget": lambda: 1.0,
    "mechanism_delta": lambda: 1e-6,
    "boundary": lambda: adaptive.Line(1.0),
    "stretch": lambda: 2.0,
    "count": lambda: 3,
    "filter": lambda: adaptive.PureFilter(1.0),
    "unit": lambda: 1e-6,
    "prices": lambda: [0.1, 0.1, 0.1],
    "description": lambda: {"filter": "pure", "epsilon": "1"},
    "failure": lambda: 1e-6,
    "tight_at": lambda: 0.5,
    "path": lambda: "world",
    "paths": lambda: ["world"],
    "actor": lambda: "Ada",
    "key": lambda: "one",
    "cost": lambda: {"epsilon": "0.1", "delta": "0"},
    "caps": lambda: {"epsilon": "1"},
    "note": lambda: {"unit": "person"},
    "after": lambda: 0,
    "slots": lambda: 3,
    "odometer": lambda: None,
    "shares": lambda: 2,
    "transcripts": lambda: 50,
    "rng": lambda: np.random.default_rng(1),
    "seed": lambda: 1,
    "rounds": lambda: 2,
    "world": lambda: experiment.World.ZERO,
    "leaves": lambda: 100,
    "epsilons": lambda: [0.1, 0.2],
    "bins": lambda: 8,
    "text": lambda: PLAN,
    "source": lambda: "plan",
    "value": lambda: 5.0,
    "limit": lambda: 1.0,
    "every": lambda: False,
    "question": lambda: plan.PlanQuestion("delta", 1e-6),
    "units": lambda: 1000,
    "accuracy": lambda: 0.1,
    "domain": lambda: 64,
    "points": lambda: 3,
    "given": lambda: "delta",
    "name": lambda: "name",
    "kind": lambda: "filter",
    "quits": lambda: 0.1,
    "coins": lambda: True,
    "statistic": lambda: experiment.count,
    "queries": lambda: [query()],
    "by": lambda: (),
    "labels": dict,
    "quote": lambda: INSTANCES["Account"]().quote(GOOD["mechanism"](), None),
    "keys": lambda: None,
    "spend": lambda: {"epsilon": 0.1},
    "marginals": lambda: 2,
    "megabytes": lambda: 1.0,
    "column": lambda: "x",
    "edges": lambda: [0, 5, 10],
    "lower": lambda: 0,
    "upper": lambda: 10,
    "granularity": lambda: 1,
    "q": lambda: 0.5,
    "qs": lambda: [0.25, 0.75],
    "per": lambda: "x",
    "per_lower": lambda: 0,
    "per_upper": lambda: 10,
    "per_granularity": lambda: 1,
    "axes": lambda: None,
    "anchor": lambda: None,
    "create": lambda: True,
    "progress": lambda: None,
    "charged_delta": lambda: None,
    "error": lambda: 1e-9,
    "parameter": lambda: "decreasing",
    "integer": lambda: False,
    "bracket": lambda: (0.5, 50.0),
    "moves": lambda: True,
    "family": lambda: [response()],
    "record": lambda: "Bob",
    "counts": lambda: (release.Count(by="x", keys=(1, 2)),),
    "table": lambda: None,
    "ledger": opened,
    "guarantee": lambda: guarantee.ApproximateDP(0.5, delta=1e-3),
    "values": lambda: {"epsilon": "0.1"},
    "texts": lambda: {"epsilon": "0.1"},
    "url": lambda: "memory:",
    "charge": lambda: 0.1,
    "line_breaks": lambda: False,
    "priced": lambda: (),
    "restored": lambda: False,
    "read_only": lambda: False,
    "renew": lambda: "year",
    "window": lambda: "P3Y",
    "nonce": lambda: None,
    "positives": lambda: 2,
    "monotone": lambda: False,
    "noise": lambda: "laplace",
    "variance": lambda: 4.0,
    "gamma": lambda: 0.4,
    "keep": lambda: 0.6,
    "flip": lambda: 0.2,
    "reports": lambda: 20,
    "strategy": lambda: [[1.0, 0.0], [0.5, 1.0]],
    "participation": dp.mechanisms.Participation.single,
    "steps": lambda: 4,
    "selected": lambda: 2,
    "restart": lambda: None,
    "records": lambda: 100,
    "batch": lambda: 10,
    "shifts": lambda: [0.0, 1.0, 3.0],
    "weights": lambda: [0.5, 0.25, 0.25],
    "base": lambda: dp.Laplace(3.0),
    "tries": lambda: 3.0,
    "curve": lambda: [0.1, 0.3],
    "orders": lambda: [2.0, 5.0],
    "shape": lambda: 1.0,
    "compositions": lambda: [dp.Laplace(3.0), dp.Gaussian(2.0) * 3],
    "schedule": lambda: [dp.Gaussian(2.0).sampled(0.1) * 3],
    "masked": lambda: False,
    "separation": lambda: 2,
    "most": lambda: 2,
    "fixed": lambda: False,
    "strictly_between": lambda: None,
    "clients": lambda: 10,
    "norm": lambda: 4.0,
    "dimension": lambda: 3,
    "threshold": lambda: "rows",
}

# Where a callable needs something else under that name.
QUESTION: dict[str, Callable[[], Any]] = {
    "table": lambda: None,
    "error": lambda: None,
    "threshold": lambda: "rows",
    "number": lambda: 1,
    "method": lambda: None,
    "question": release.Count,
}
"""What questions take, and their methods of a session."""
SPECIAL: dict[str, dict[str, Callable[[], Any]]] = {
    "composition.compare": {"composition": composition},
    "adaptive.advise": {"work": lambda: [(dp.BlackBox(0.25), 3)], "epsilon": lambda: 1.0},
    "adaptive.MenuFilter": {
        "menu": lambda: [dp.BlackBox(0.25)],
        "states": lambda: [(3,)],
        "total_weight": lambda: 0,
    },
    "adaptive.Budget": {
        "only": lambda: None,
        "reserve": lambda: 1e-4,
        "shares": lambda: None,
        "orders": lambda: (None, 8.0),
    },
    "adaptive.UnionFilter": {
        "filters": lambda: [adaptive.PureFilter(1.0), adaptive.ConcentratedFilter(0.1, delta=0.0)],
        "shares": lambda: [0.0, 1e-6],
    },
    "account.open_scope": {
        "path": lambda: "other",
        "epsilon": lambda: None,
        "delta": lambda: None,
        "mechanism_delta": lambda: 0,
        "schedule": lambda: None,
        "slots": lambda: None,
        "only": lambda: None,
    },
    "Composition": {"parts": lambda: ((dp.Laplace(1.0), 2),)},
    "account.Account": {"scope": lambda: "world"},
    "divergence.Density": {
        "log_pdf": lambda: lambda x: -x * x / 2 - 0.918938533204672,
        "support": lambda: (-8.0, 8.0),
        "breakpoints": lambda: (),
    },
    "divergence.Distribution": {"finite": lambda: [0.5, 0.5]},
    "experiment.Holds": {"value": lambda: 1.0},
    "plan.Plan": {"entries": lambda: plan.Plan.parse(PLAN).entries, "question": lambda: None},
    **dict.fromkeys(
        (
            "release.Count",
            "release.Units",
            "release.Sum",
            "release.Mean",
            "release.Histogram",
            "release.Quantile",
            "release.Variance",
            "release.StandardDeviation",
            "release.Ratio",
            "release.Quantiles",
            "release.Minimum",
            "release.Maximum",
            "release.Top",
            "release.Distinct",
            "release.Contingency",
            "release.RowsPerUnit",
            "release.LeftOut",
            "release.Synthetic",
        ),
        QUESTION,
    ),
    "release.Coordinated": QUESTION | {"by": lambda: "x", "keys": lambda: (1, 2)},
    "release.Session": {
        "account": lambda: None,
        "table": lambda: release.table(_frame(), unit="person", max_rows_per_unit=2),
        "scope": lambda: "world",
        "answers": lambda: None,
    },
    "book.group": {"size": lambda: 3},
    "book.azuma": {"size": lambda: 0.2},
    "book.promise": {"profile": lambda: guarantee.ApproximateDP(0.5)},
    "divergence.extreme_pair": {"epsilon": lambda: 0.5},
    "divergence.hockey_stick": {"epsilon": lambda: 0.5},
    "divergence.one_sided_witness": {"epsilon": lambda: 0.5},
    "divergence.symmetric_witness": {"epsilon": lambda: 0.5},
    "dpcompose.calibrate": {
        "family": lambda: dp.Laplace,
        # A target for an attacker would be a second one.
        **dict.fromkeys(
            ("advantage", "true_positive_rate", "false_positive_rate", "bayes_error", "prior"),
            lambda: None,
        ),
    },
    "experiment.count": {"database": lambda: ("Bob",)},
    "experiment.Experiment": {"adversary": lambda: experiment.Repeater(query())},
    "experiment.Query": {
        "zero": lambda: ("Bob",),
        "one": lambda: (),
        "statistic": lambda: experiment.count,
    },
    "experiment.summarize": {"game": game},
    "plan.account": {"plan": lambda: plan.Plan.parse(PLAN)},
    "plan.calibrate": {
        "plan": lambda: plan.Plan.parse(PLAN),
        "key": lambda: "mechanism.laplace.scale",
    },
    "plan.risk_of": {"plan": lambda: plan.Plan.parse(PLAN)},
    "plan.PlanQuestion": {"value": lambda: 1e-6},
    "plan.PlanEntry": {
        "kind": lambda: "laplace",
        "parameters": lambda: (("scale", 2.0),),
        "rate": lambda: 0.5,
    },
    "plan.over_delta": {"account": _accounted},
    "plan.over_times": {"account": _accounted},
    "account.open_partition": {"path": lambda: "world/more", "filter": lambda: None},
    "account.take_slot": {"path": lambda: "world/slots/a"},
    "account.open_slots": {"path": lambda: "world/others", "delta": lambda: None},
    "ledger.Amount": {"units": lambda: 5},
    "release.questions_of_sql": {
        "text": lambda: "SELECT COUNT(*) FROM t",
        "table": lambda: release.table(_frame(), unit="person", max_rows_per_unit=2, name="t"),
        "tables": lambda: None,
        "keys": lambda: None,
    },
    "release.col": {"name": lambda: "x"},
    "release.lit": {"value": lambda: 1},
    "release.case": {"else_": lambda: 1},
    "release.public": {"source": _frame},
    "release.open": {
        "source": lambda: "nowhere.csv",
        "person": lambda: "person",
        "budget": lambda: 1,
        "delta": lambda: 1e-6,
        "columns": lambda: None,
        "name": lambda: None,
        "ledger": lambda: None,
        "max_rows_per_person": lambda: 2,
    },
    "release.Explanation": {
        "quotes": lambda: (_session().quote(release.Count(spend={"epsilon": 0.1})),),
        "scope": lambda: "world",
    },
    "release.table": {
        "source": _frame,
        "unit": lambda: "person",
        "name": lambda: "t",
        "max_rows_per_unit": lambda: 2,
        "max_groups_per_unit": lambda: None,
        "max_rows_per_group": lambda: None,
        "schema": lambda: None,
    },
    "Composition.group": {"size": lambda: 2},
    "Plan.with_value": {"key": lambda: "mechanism.laplace.scale"},
    "Plan.locate": {"key": lambda: "mechanism.laplace.scale"},
    "Plan.without": {"name": lambda: "laplace"},
    "Ledger.scope": {
        "path": lambda: "new",
        "caps": lambda: {"epsilon": "1"},
        "slots": lambda: None,
        "cost": lambda: None,
        "description": lambda: None,
    },
    "Ledger.charge": {"description": lambda: None},
    "Ledger.charge_together": {
        "charges": lambda: [
            Charge.of("world", {"epsilon": "0.1", "delta": "0"}, None, actor="Ada", key="one")
        ]
    },
    "Ledger.redeem": {"receipt": lambda: None},
    "Ledger.announce_key": {"root": lambda: "city", "key": signer},
    "Ledger.revoke_key": {"root": lambda: "city", "key": signer},
    "Account.redeem": {"receipt": lambda: None, "nonce": lambda: None},
    "Account.charge": {"description": lambda: None, "delta": lambda: None},
    "PlanRisk.power": {"rate": lambda: 1e-3},
    "Measured.epsilon": {"deltas": lambda: [0.1, 0.5]},
    "Views.questions": {"adversary": lambda: experiment.Repeater(query())},
    "Filter.epsilon_of": {
        "amounts": lambda: {"epsilon": 0.5},
        "left": lambda: False,
        "spent": lambda: {"epsilon": 0.5, "delta": 0.0},
        "delta": lambda: 1e-3,
    },
    "Filter.limited": {
        "theorem": lambda: "zcdp",
        "limit": lambda: 0.5,
        "delta": lambda: 0,
        "order": lambda: 0.0,
    },
    "Filter.used": {"spent": lambda: {"epsilon": 0.5, "delta": 0.0}},
    "Filter.step": {"state": lambda: adaptive.BasicFilter(1.0, delta=1e-3).start()},
    "Odometer.step": {"state": lambda: adaptive.Odometer(1e-6).start()},
    "Odometer.reading": {"state": lambda: adaptive.Odometer(1e-6).start()},
    "Odometer.read": {"mileage": adaptive.Mileage},
    "IndividualFilter.step": {"state": lambda: _individual().start(3)},
    "IndividualFilter.gaussian_prices": {"sensitivity": lambda: [1.0, 2.0]},
    "Session.quantile": {"q": lambda: 0.5},
    "Session.top": QUESTION,
    "Session.left_out": QUESTION | {"spend": lambda: {"epsilon": 0.01}},
    "Session.workload": {
        "questions": lambda: [release.Count(by="x", keys=(1, 2))],
        "method": lambda: "independent",
    },
    "Session.ask": {"question": lambda: release.Count(spend={"epsilon": 0.01})},
    "Session.batch": {"questions": lambda: [release.Count()], "spend": lambda: {"epsilon": 0.01}},
    "Session.sql": {
        "text": lambda: "EXPLAIN SELECT COUNT(*) FROM frame",
        "spend": lambda: {"epsilon": 0.01},
        "tables": lambda: None,
        "keys": lambda: None,
    },
    "Session.explain": {
        "request": release.Count,
        "spend": lambda: {"epsilon": 0.01},
        "tables": lambda: None,
        "keys": lambda: None,
    },
    "Questions.of": {"transcript": lambda: 2},
    "Session.plan": {
        "text": lambda: "SELECT COUNT(*) FROM frame",
        "tables": lambda: None,
        "keys": lambda: None,
    },
    "Session.part": {"questions": lambda: [release.Count()]},
    "Session.quote": {"question": lambda: release.Count(spend={"epsilon": 0.01})},
    "DominatingPair.from_profile": {"profile": lambda: lambda epsilon: max(0.0, 0.5 - epsilon)},
    "DominatingPair.from_points": {"epsilon": lambda: [0.0, 1.0], "delta": lambda: [0.3, 0.1]},
    "Round.answer": {},
    "DominatingPair.atoms": {"upper": lambda: [0.5, 0.5], "lower": lambda: [0.25, 0.75]},
    "Receipt.read": {"text": lambda: "{}"},
    "Anchor.read": {"text": lambda: "{}"},
    "Amount.of": {"value": lambda: 0.5},
    "Amount.up": {"value": lambda: 0.5},
    "Amount.down": {"value": lambda: 0.5},
    "Solved.delta": {},
}
LEFT_OUT = {
    "Composition.compare": "tolerance",
    "Ledger.verify": "progress",
    "Answer.write": "path",
    "Session.batch": "key",
    "Holds": "value",
    "adaptive.MenuFilter": "weights",
}
"""Nothing is left out but what has a test of its own."""


def _curators() -> adaptive.Curators:
    return adaptive.Curators(3, filter=adaptive.PureFilter(1.0))


def _individual() -> adaptive.IndividualFilter:
    return adaptive.IndividualFilter(adaptive.ConcentratedFilter(1.0, delta=0.0))


def _session() -> release.Session:
    found = ledger.Ledger.open("memory:")
    account.open_scope(
        found, "world", filter=adaptive.BasicFilter(10**6, delta=1e-3), actor="keeper"
    )
    return release.Session(
        release.table(_frame(), unit="person", max_rows_per_unit=2),
        ledger=found,
        scope="world",
        actor="Ada",
    )


# Instances whose public methods are tried; the last are slow to make, and made once.
INSTANCES: dict[str, Callable[[], Any]] = {
    "Composition": composition,
    "Sampled": lambda: dp.Gaussian(1.0).sampled(0.1),
    "Discrete": lambda: dp.DiscreteGaussian(2.0) * 2,
    "Exponential": lambda: dp.Exponential(0.3) * 2,
    "Concentrated": lambda: dp.compose(dp.Concentrated(0.1)),
    "BlackBox": lambda: dp.BlackBox(0.3, delta=1e-3) * 2,
    "Group": lambda: (dp.Laplace(5.0) * 2).group(2),
    "Parallel": lambda: dp.parallel(dp.Laplace(2.0), dp.Laplace(3.0)),
    "Profile": lambda: composition().profile(),
    "Choice": lambda: one_of(dp.Laplace(2.0), dp.Gaussian(3.0)),
    "DominatingPair": lambda: dp.mechanisms.DominatingPair,
    "ApproximateDP": lambda: guarantee.ApproximateDP(0.5, delta=1e-3),
    "ConcentratedDP": lambda: guarantee.ConcentratedDP(0.1),
    "GaussianTradeoff": lambda: guarantee.GaussianTradeoff(0.7),
    "RenyiDP": lambda: adaptive.RenyiFilter(4.0, budget=1.0).guarantee(),
    "Promise": lambda: book.promise(guarantee.ApproximateDP(0.5, delta=1e-3), utility_range=1.0),
    "PureFilter": lambda: adaptive.PureFilter(1.0),
    "BasicFilter": lambda: adaptive.BasicFilter(1.0, delta=1e-3),
    "AdvancedFilter": lambda: adaptive.AdvancedFilter(1.0, delta=1e-3, slack=1e-4),
    "ConcentratedFilter": lambda: adaptive.ConcentratedFilter(1.0, delta=0.0),
    "GaussianFilter": lambda: adaptive.GaussianFilter(1.0),
    "RenyiFilter": lambda: adaptive.RenyiFilter(4.0, budget=1.0),
    "Curators": _curators,
    "IndividualFilter": _individual,
    "Odometer": lambda: adaptive.Odometer(1e-6),
    "Line": lambda: adaptive.Line(1.0),
    "Mixture": lambda: adaptive.Mixture(1.0),
    "Mileage": adaptive.Mileage,
    "Ledger": opened,
    "Account": lambda: account.Account(opened(), scope="world"),
    "Amount": lambda: ledger.Amount,
    "Amounts": lambda: ledger.Amounts,
    "Anchor": lambda: ledger.Anchor,
    "Receipt": lambda: ledger.Receipt,
    "Experiment": game,
    "Questions": cache(lambda: INSTANCES["Views"]().questions(experiment.Repeater(query()))),
    "Views": cache(
        lambda: game().play(experiment.World.ONE, transcripts=5, rng=np.random.default_rng(1))
    ),
    "Solved": lambda: game().solve(),
    "Measured": lambda: game().measure(transcripts=50, rng=np.random.default_rng(1)),
    "Plan": lambda: plan.Plan.parse(PLAN),
    "PlanRisk": cache(lambda: plan.risk_of(plan.Plan.parse(PLAN))),
    "Session": cache(_session),
    "Answer": cache(lambda: _session().count(spend={"epsilon": 0.1})),
    "Explanation": cache(lambda: _session().explain(release.Count(), spend={"epsilon": 0.1})),
    "Quote": cache(lambda: _session().quote(release.Count(spend={"epsilon": 0.1}))),
}
OF_CLASSES = {
    "open",
    "atoms",
    "from_points",
    "from_profile",
    "for_target",
    "parse",
    "read",
    "of",
    "up",
    "down",
    "from_description",
    "stated",
}


def cases() -> Iterator[Case]:
    """Every function and constructor of the rooms, then every public method of the instances."""
    seen: set[Any] = set()
    for room in ROOMS:
        module = importlib.import_module(room)
        for name in module.__all__:
            thing = getattr(module, name)
            if (
                not callable(thing)
                or not {name, f"{room.split('.')[-1]}.{name}"}.isdisjoint(MADE)
                or id(thing) in seen
                or (inspect.isclass(thing) and issubclass(thing, BaseException))
            ):
                continue
            seen.add(id(thing))
            short = (
                f"{thing.__module__.split('.')[1]}.{name}"
                if room != "dpcompose" or name in ("calibrate",)
                else name
            )
            short = (
                "dpcompose.calibrate"
                if name == "calibrate" and room in ("dpcompose", "dpcompose.composition")
                else short
            )
            yield _case(short, lambda thing=thing: thing, inspect.signature(thing))
    for label, instance in INSTANCES.items():
        made = instance()
        for name, method in inspect.getmembers(
            type(made) if not inspect.isclass(made) else made, callable
        ):
            if name.startswith("_") or name in BETWEEN_ROOMS or not hasattr(made, name):
                continue
            if inspect.isclass(made) and (
                name not in OF_CLASSES or f"{label}.{name}" in ("Anchor.of", "Receipt.of")
            ):
                continue
            signature = inspect.signature(getattr(made, name))
            if signature.parameters:
                yield _case(
                    f"{label}.{name}",
                    lambda instance=instance, name=name: getattr(instance(), name),
                    signature,
                )
            del method


def _case(name: str, make: Callable[[], Callable[..., Any]], signature: inspect.Signature) -> Case:
    own = (
        SPECIAL.get(name)
        or (SPECIAL.get(f"Filter.{name.rsplit('.', maxsplit=1)[-1]}") if "Filter" in name else None)
        or {}
    )
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = [each.name for each in signature.parameters.values() if each.kind not in kinds]
    missing = [each for each in parameters if each not in own and each not in GOOD]
    if missing:
        raise LookupError(f"{name}: no good value of {', '.join(missing)} is known; add one")
    chosen = {
        each: own.get(each) or GOOD[each] for each in parameters if each != LEFT_OUT.get(name)
    }
    return Case(name, make, lambda: {each: factory() for each, factory in chosen.items()})
