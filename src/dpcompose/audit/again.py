"""The stakes of a certificate bet again on new draws: whoever made up its counts wins nothing by them.

Nothing is chosen: every stake is as it was bound, coins and rows are new. The wealth is one of Theorem 2 by itself.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpcompose.audit.cells import Cells
from dpcompose.audit.claim import Point
from dpcompose.audit.coin import Chain
from dpcompose.audit.feature import Feature, named
from dpcompose.audit.learned import remade
from dpcompose.audit.pair import Pair
from dpcompose.audit.stakes import Stakes
from dpcompose.audit.subject import Source
from dpcompose.audit.wealth import Member, step
from dpcompose.errors import DomainError


def again(
    certificate: dict[str, Any], subject: Source, pairs: Sequence[Pair], *, features: Sequence[Feature] = ()
) -> float:
    """ln of the wealth that the stakes of a certificate, which `check` has read, make on new draws.

    Args:
        certificate: The certificate.
        subject: What answers.
        pairs: The pairs of the audit, in their order.
        features: Features of the user's own, by which the audit bet. The certificate itself says what was learned.

    Raises:
        DomainError: If a pair or a feature of the certificate is missing.
    """
    header = certificate["header"]
    claims = {claim["distance"]: [_point(each) for each in claim["points"]] for claim in header["claims"]}
    chain, goal = Chain.opened(os.urandom(32), header), -math.log(float(header["alpha"]))
    wealth = 0.0
    for batch in certificate["batches"]:
        bound = batch["stakes"]
        if not bound["members"]:
            continue
        place: int = bound["pair"]
        if not place < len(pairs) or pairs[place].distance != bound["distance"]:
            raise DomainError("pairs", place, "the pairs of the audit, in their order")
        coins = chain.coins(bound, bound["rows"])
        rows = subject.draw(pairs[place], coins)
        known = {each.name: each for each in (*subject.features(rows), *features)}
        members = [_member(each, known) for each in bound["members"]]
        places = [member.cells.place(member.feature.score(rows)) for member in members]
        paid = step(wealth, members, claims[bound["distance"]], coins, places, goal)
        wealth, chain = paid.log_wealth, chain.after(bound, paid.rows)
        if wealth >= goal:
            break
    return wealth


def _point(written: dict[str, str]) -> Point:
    return Point(float.fromhex(written["epsilon"]), float.fromhex(written["delta"]))


def _member(written: dict[str, Any], known: dict[str, Feature]) -> Member:
    name = written["feature"]
    feature = remade(name, written["made"]) if "made" in written else known.get(name) or named(name)
    cells = Cells(tuple(float.fromhex(cut) for cut in written["cuts"]))
    f, g = (np.array(written[side], dtype=np.int64) for side in ("f", "g"))
    return Member(feature, cells, written["weight"], Stakes(f, g))
