"""AIM by mbi and numpy alone, after mechanisms/aim.py of the repository private-pgm (Apache License 2.0).

It is in no package. Its default settings; noise is drawn by numpy.
"""

# pyright: reportPrivateImportUsage=false, reportMissingImports=false

from collections import Counter
from itertools import combinations

import numpy as np
from mbi import Dataset, Domain, LinearMeasurement, estimation, junction_tree


def closure(cliques):
    parts = {
        part
        for each in cliques
        for size in range(1, len(each) + 1)
        for part in combinations(each, size)
    }
    return sorted(parts, key=len)


def worst(candidates, answers, model, epsilon, sigma, rng):
    errors = {}
    for clique, weight in candidates.items():
        bias = np.sqrt(2 / np.pi) * sigma * model.domain.size(clique)
        errors[clique] = weight * (
            np.linalg.norm(answers[clique] - model.project(clique).datavector(), 1) - bias
        )
    scores = np.array(list(errors.values()))
    logits = 0.5 * epsilon / max(candidates.values()) * (scores - scores.max())
    chances = np.exp(logits) / np.exp(logits).sum()
    return list(errors)[rng.choice(len(errors), p=chances)]


def aim(places, sizes, rho, seed, degree=3, megabytes=80, iters=1000):
    """The three-way marginals of the model for a table, whose rows' values are given by place."""
    rng = np.random.default_rng(seed)
    domain = Domain([str(at) for at in range(len(sizes))], sizes)
    data = Dataset(np.array(places).T, domain)
    workload = list(combinations(domain.attrs, degree))
    weights = Counter(
        {part: sum(len({*part} & {*each}) for each in workload) for part in closure(workload)}
    )
    answers = {clique: data.project(clique).datavector() for clique in weights}
    rounds = 16 * len(sizes)
    sigma, epsilon = np.sqrt(rounds / (2 * 0.9 * rho)), np.sqrt(8 * 0.1 * rho / rounds)
    oneway = [clique for clique in weights if len(clique) == 1]
    used = len(oneway) * 0.5 / sigma**2

    def measured(clique):
        return LinearMeasurement(
            answers[clique] + rng.normal(0, sigma, answers[clique].size), clique, stddev=sigma
        )

    found = [measured(clique) for clique in oneway]
    model = estimation.mirror_descent(domain, found, iters=iters)
    last = False
    while not last:
        if rho - used < 2 * (0.5 / sigma**2 + epsilon**2 / 8):
            sigma, epsilon = np.sqrt(1 / (2 * 0.9 * (rho - used))), np.sqrt(8 * 0.1 * (rho - used))
            last = True
        used += epsilon**2 / 8 + 0.5 / sigma**2
        free = {*closure(model.cliques)}
        small = {
            clique: weight
            for clique, weight in weights.items()
            if clique in free
            or junction_tree.hypothetical_model_size(domain, [*model.cliques, clique])
            <= megabytes * used / rho
        }
        clique = worst(small, answers, model, epsilon, sigma, rng)
        found.append(measured(clique))
        before = model.project(clique).datavector()
        potentials = model.potentials.expand(list({each.clique for each in found}))
        model = estimation.mirror_descent(domain, found, iters=iters, potentials=potentials)
        after = model.project(clique).datavector()
        if np.linalg.norm(after - before, 1) <= sigma * np.sqrt(2 / np.pi) * domain.size(clique):
            sigma, epsilon = sigma / 2, epsilon * 2
    model = estimation.mirror_descent(domain, found, iters=iters, potentials=potentials)
    return [
        np.asarray(model.project(clique).datavector(), dtype=float).tolist() for clique in workload
    ]
