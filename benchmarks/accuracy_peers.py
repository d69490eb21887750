"""The same questions asked of a peer, in an environment of its own: mean absolute errors at one epsilon, as JSON.

python benchmarks/accuracy_peers.py opendp|smartnoise ROWS.json EPSILON DRAWS

It imports nothing of dpcompose, so that any environment that has the peer can run it.
"""

# pyright: reportPrivateImportUsage=false, reportMissingImports=false

import json
import statistics
import sys
from bisect import bisect_left, bisect_right


def mean_error(draw, truth, draws):
    return statistics.fmean(abs(draw() - truth) for _ in range(draws))


def opendp(rows, epsilon, draws):
    """One row a person: count, sum, mean (half of the epsilon for either part), median, and counts by public group."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    values = [float(row["amount"]) for row in rows]
    whole = [int(value) for value in values]
    found = {}
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=1 / epsilon)
    found["count"] = mean_error(lambda: count(whole), len(rows), draws)
    total = space >> dp.t.then_clamp((0, 100)) >> dp.t.then_sum() >> dp.m.then_laplace(scale=100 / epsilon)
    found["sum"] = mean_error(lambda: total(whole), sum(whole), draws)
    part = space >> dp.t.then_clamp((0, 100)) >> dp.t.then_sum() >> dp.m.then_laplace(scale=200 / epsilon)
    half = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2 / epsilon)
    found["mean"] = mean_error(lambda: part(whole) / max(half(whole), 1), sum(whole) / len(rows), draws)
    ordered = sorted(whole)
    candidates = list(range(101))
    scale = dp.binary_search(
        lambda s: dp.m.make_private_quantile(*space, dp.max_divergence(), candidates, 0.5, s).map(1) <= epsilon,
        bounds=(1e-3, 1e3),
    )
    median = dp.m.make_private_quantile(*space, dp.max_divergence(), candidates, 0.5, scale)

    def rank(value):
        below, above = bisect_left(ordered, value), len(ordered) - bisect_right(ordered, value)
        return max(below - len(ordered) / 2, above - len(ordered) / 2, 0)

    found["median, in rows"] = statistics.fmean(rank(median(whole)) for _ in range(draws))
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
                    "city": {"type": "string"},
                    "censor_dims": False,
                }
            }
        }
    }
    frame["amount"] = frame["amount"].astype(int)
    reader = snsql.from_df(frame, privacy=snsql.Privacy(epsilon=epsilon, delta=1e-9), metadata=meta)
    whole = [int(row["amount"]) for row in rows]
    truths = {
        "count": ("COUNT(*)", len(rows)),
        "sum": ("SUM(amount)", sum(whole)),
        "mean": ("AVG(amount)", sum(whole) / len(rows)),
        "variance": ("VARIANCE(amount)", statistics.pvariance(whole)),
    }
    found = {}
    for name, (words, truth) in truths.items():
        query = f"SELECT {words} AS a FROM s.t"
        spent = reader.get_privacy_cost(query)[0]
        # A query of several columns costs several times the epsilon of one: it is asked at equal price.
        equal = snsql.Privacy(epsilon=epsilon * epsilon / spent, delta=1e-9)
        asked = snsql.from_df(frame, privacy=equal, metadata=meta)
        found[name] = mean_error(lambda: float(asked.execute(query)[1][0]), truth, draws)  # noqa: B023
    return found


if __name__ == "__main__":
    peer, path, epsilon, draws = sys.argv[1:]
    with open(path, encoding="utf-8") as stream:
        given = json.load(stream)
    print(json.dumps({"opendp": opendp, "smartnoise": smartnoise}[peer](given, float(epsilon), int(draws))))
