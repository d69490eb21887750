"""The part of a ledger that a page shows: so much that a page costs the same on a large one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from dpcompose.ledger import Entry, Moment, Snapshot, is_at_or_below, root_of
from dpcompose.serve.identity import Identity
from dpcompose.serve.permission import Role

MOST_SCOPES, MOST_TREES, MOST_ENTRIES = 25, 10, 1000


def children(snapshot: Snapshot, path: str) -> Iterator[str]:
    """The scopes right below a scope, sorted, with a short look-up or two for each, whatever is below them."""
    depth, stop, start = path.count("/") + 2, f"{path}0", f"{path}/"
    while True:
        found = next(snapshot.nodes_between(start, stop, limit=1), None)
        if found is None:
            return
        child = "/".join(found.scope.path.split("/")[:depth])
        if found.scope.path == child:
            yield child
            start = f"{child}!"
        else:  # it is below one that came already
            start = f"{child}0"


def scopes_at(moment: Moment, tops: list[str]) -> tuple[list[str], bool]:
    """The scopes that a page has room for, those nearest to `tops` first, sorted; and whether there are more."""
    found = tops[: MOST_SCOPES + 1]
    for path in found:  # it grows meanwhile: level by level
        room = MOST_SCOPES + 1 - len(found)
        if room <= 0:
            break
        found.extend(islice(children(moment.snapshot, path), room))
    return sorted(found[:MOST_SCOPES], key=lambda path: path.split("/")), len(found) > MOST_SCOPES


@dataclass(frozen=True)
class Window:
    """The entries of one or more trees, up to so many of each, the newest first.

    Args:
        entries: Those that whoever asks may see, and looks at.
        first: The number of the oldest that was looked at; of several trees 0.
        last: That of the newest.
    """

    entries: list[Entry]
    first: int
    last: int


def window(moment: Moment, who: Identity, tops: list[str], *, before: int | None) -> Window:
    """The last entries at and below these scopes; of one tree, those with numbers below `before`."""
    roots = sorted({root_of(top) for top in tops})[:MOST_TREES]
    entries: list[Entry] = []
    first = last = 0
    for root in roots:
        last = moment.snapshot.head(root).sequence
        if before is not None and len(roots) == 1:
            last = max(0, min(last, before - 1))
        first = max(0, last - MOST_ENTRIES // len(roots))
        own = [top for top in tops if root_of(top) == root]
        for record in moment.snapshot.records(root, after=first, limit=last - first):
            if any(is_at_or_below(record.scope, top) for top in own):
                entries.append(record.entry)
    seen = [each for each in entries if who.role is not Role.ANALYST or each.actor == who.actor]
    seen.sort(key=lambda entry: (entry.time, entry.sequence), reverse=True)
    return Window(seen, first + 1 if len(roots) == 1 else 0, last if len(roots) == 1 else 0)


def tops_of(moment: Moment, who: Identity, at: str) -> list[str]:
    """Where a page begins: at the scope that was asked for, else at the subtree, else at every tree."""
    asked = at or who.subtree
    if asked and who.covers(asked) and moment.snapshot.node(asked) is not None:
        return [asked]
    if who.subtree:
        return [who.subtree] if moment.snapshot.node(who.subtree) is not None else []
    return [each for each in moment.snapshot.roots() if moment.snapshot.node(each) is not None][
        : MOST_SCOPES + 1
    ]
