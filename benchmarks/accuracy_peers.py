"""The same questions asked of a peer, in an environment of its own: mean absolute errors at one epsilon, as JSON.

python benchmarks/accuracy_peers.py opendp|smartnoise ROWS.json EPSILON DRAWS

It imports nothing of dpcompose, so that any environment that has the peer can run it.
"""

# pyright: reportPrivateImportUsage=false, reportMissingImports=false

import json
import statistics
import sys
from bisect import bisect_left, bisect_right

CITIES = list("abcdefgh")
CELLS = [f"{city}{sex}{old}" for city in CITIES for sex in "fm" for old in (0, 1)]


def mean_error(draw, truth, draws):
    return statistics.fmean(abs(draw() - truth) for _ in range(draws))


def opendp(rows, epsilon, draws):
    """One row a person; an answer of several parts has equal shares of epsilon, counts of disjoint groups all of it."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    values = [float(row["amount"]) for row in rows]
    whole = [int(value) for value in values]
    found = {}
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=1 / epsilon)
    found["count"] = mean_error(lambda: count(whole), len(rows), draws)
    total = (
        space
        >> dp.t.then_clamp((0, 100))
        >> dp.t.then_sum()
        >> dp.m.then_laplace(scale=100 / epsilon)
    )
    found["sum"] = mean_error(lambda: total(whole), sum(whole), draws)
    part = (
        space
        >> dp.t.then_clamp((0, 100))
        >> dp.t.then_sum()
        >> dp.m.then_laplace(scale=200 / epsilon)
    )
    half = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2 / epsilon)
    found["mean"] = mean_error(
        lambda: part(whole) / max(half(whole), 1), sum(whole) / len(rows), draws
    )
    hours = [int(row["hours"]) for row in rows]
    per = (
        space
        >> dp.t.then_clamp((0, 10))
        >> dp.t.then_sum()
        >> dp.m.then_laplace(scale=20 / epsilon)
    )
    found["ratio"] = mean_error(
        lambda: part(whole) / max(per(hours), 1), sum(whole) / sum(hours), draws
    )
    words = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    for name, keys, given in (
        ("counts by city", CITIES, [row["city"] for row in rows]),
        ("contingency table", CELLS, [f"{row['city']}{row['sex']}{row['old']}" for row in rows]),
        (
            "histogram",
            [str(place) for place in range(10)],
            [str(min(value // 10, 9)) for value in whole],
        ),
    ):
        counts = (
            words
            >> dp.t.then_count_by_categories(keys, null_category=False, MO=dp.L1Distance[int])
            >> dp.m.then_laplace(scale=1 / epsilon)
        )
        truth = [given.count(key) for key in keys]
        found[name] = statistics.fmean(
            statistics.fmean(
                abs(cell - true) for cell, true in zip(counts(given), truth, strict=False)
            )
            for _ in range(draws)
        )
    cities = [sum(row["city"] == city for row in rows) for city in CITIES]
    vector = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int, monotonic=True)
    scale = dp.binary_search(
        lambda s: (
            dp.m.make_noisy_top_k(*vector, dp.max_divergence(), k=3, scale=s).map(1) <= epsilon
        ),
        bounds=(1e-3, 1e3),
    )
    top = dp.m.make_noisy_top_k(*vector, dp.max_divergence(), k=3, scale=scale)
    best = sum(sorted(cities)[-3:])
    found["top 3 cities, rows lost"] = statistics.fmean(
        best - sum(cities[place] for place in top(cities)) for _ in range(draws)
    )
    ordered = sorted(whole)
    candidates = list(range(101))

    def quantile(q, share):
        scale = dp.binary_search(
            lambda s: (
                dp.m.make_private_quantile(*space, dp.max_divergence(), candidates, q, s).map(1)
                <= share
            ),
            bounds=(1e-3, 1e3),
        )
        asked = dp.m.make_private_quantile(*space, dp.max_divergence(), candidates, q, scale)
        return statistics.fmean(rank(asked(whole), q) for _ in range(draws))

    def rank(value, q):
        below, above = bisect_left(ordered, value), len(ordered) - bisect_right(ordered, value)
        return max(below - q * len(ordered), above - (1 - q) * len(ordered), 0)

    found["median, in rows"] = quantile(0.5, epsilon)
    found["quartiles, in rows"] = statistics.fmean(
        quantile(q, epsilon / 3) for q in (0.25, 0.5, 0.75)
    )
    return found


def smartnoise(rows, epsilon, draws):
    """SQL through snsql's reader, one row a person."""
    import pandas as pd
    import snsql

    frame = pd.DataFrame(rows)
    meta = {
        "": {
            "s": {
                "t": {
                    "row_privacy": True,
                    "rows": len(rows),
                    "amount": {"type": "int", "lower": 0, "upper": 100},
                    "hours": {"type": "int", "lower": 0, "upper": 10},
                    "old": {"type": "int"},
                    "sex": {"type": "string"},
                    "city": {"type": "string"},
                    "censor_dims": False,
                }
            }
        }
    }
    frame["amount"] = frame["amount"].astype(int)
    reader = snsql.from_df(frame, privacy=snsql.Privacy(epsilon=epsilon, delta=1e-9), metadata=meta)
    whole = [int(row["amount"]) for row in rows]
    hours = sum(int(row["hours"]) for row in rows)

    def count(groups):
        found = {}
        for row in rows:
            key = tuple(row[name] for name in groups)
            found[key] = found.get(key, 0) + 1
        return found

    by_city, by_cell = count(["city"]), count(["city", "sex", "old"])
    queries = {
        "count": ("COUNT(*) AS a", "", {(): len(rows)}),
        "counts by city": ("city, COUNT(*) AS a", "GROUP BY city", by_city),
        "contingency table": ("city, sex, old, COUNT(*) AS a", "GROUP BY city, sex, old", by_cell),
        "sum": ("SUM(amount) AS a", "", {(): sum(whole)}),
        "mean": ("AVG(amount) AS a", "", {(): sum(whole) / len(rows)}),
        "variance": ("VARIANCE(amount) AS a", "", {(): statistics.pvariance(whole)}),
        "standard deviation": ("STDDEV(amount) AS a", "", {(): statistics.pstdev(whole)}),
        "ratio": ("SUM(amount) AS a, SUM(hours) AS b", "", {(): sum(whole) / hours}),
    }
    found = {}
    for name, (words, groups, truth) in queries.items():
        query = f"SELECT {words} FROM s.t {groups}"
        spent = reader.get_privacy_cost(query)[0]
        # A query of several columns costs several times the epsilon of one: it is asked at equal price.
        equal = snsql.Privacy(epsilon=epsilon * epsilon / spent, delta=1e-9)
        asked = snsql.from_df(frame, privacy=equal, metadata=meta)
        errors = []
        for _ in range(draws):
            got = asked.execute(query)[1:]
            if name == "ratio":
                got = [[float(row[0]) / max(float(row[1]), 1.0)] for row in got]
            cells = {tuple(row[:-1]): float(row[-1]) for row in got}
            errors.append(
                statistics.fmean(abs(cells.get(key, 0.0) - true) for key, true in truth.items())
            )
        found[name] = statistics.fmean(errors)
    return found


if __name__ == "__main__":
    peer, path, epsilon, draws = sys.argv[1:]
    with open(path, encoding="utf-8") as stream:
        given = json.load(stream)
    print(
        json.dumps(
            {"opendp": opendp, "smartnoise": smartnoise}[peer](given, float(epsilon), int(draws))
        )
    )
