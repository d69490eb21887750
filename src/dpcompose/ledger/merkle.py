"""The Merkle tree of a log (RFC 9162): hashes, tiles, a tree that grows, and which subtrees a proof needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

HASH_SIZE = 32
EMPTY = sha256(b"").digest()
"""The root of the tree without leaves."""


class ProofError(ValueError):
    """A list of hashes that is not that of a tree of this size."""


def leaf_hash(body: str) -> bytes:
    """The hash of a leaf: the text of an entry."""
    return sha256(b"\0" + body.encode()).digest()


def _node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(b"\1" + left + right).digest()


def _split(size: int) -> int:
    """The largest power of two below `size`, for sizes from 2."""
    return 1 << (size - 1).bit_length() - 1


WIDTH = 256
"""Hashes of a tile."""


def tile_texts(hashes: Sequence[bytes]) -> tuple[str, str]:
    """A full tile of the tree of hashes, for a row: so many hashes of one level side by side, and the root over them.

    Those of level 0 are of leaves; those of a higher one the roots of tiles of the level below.
    """
    return b"".join(hashes).hex(), root_hash(hashes).hex()


def tile_hashes(text: str) -> list[bytes]:
    """The hashes of a tile, from its row."""
    data = bytes.fromhex(text)
    return [data[at : at + HASH_SIZE] for at in range(0, len(data), HASH_SIZE)]


@dataclass
class Frontier:
    """A tree that grows by one leaf at a time and keeps nothing but the roots of its complete subtrees.

    Args:
        size: How many leaves it has.
    """

    size: int = 0
    _complete: list[bytes] = field(default_factory=list[bytes])

    def add(self, leaf: bytes) -> None:
        """Take one more leaf: each complete pair of subtrees becomes one."""
        self.size += 1
        complete = self.size
        while not complete & 1:
            leaf = _node_hash(self._complete.pop(), leaf)
            complete >>= 1
        self._complete.append(leaf)

    @property
    def root(self) -> bytes:
        """The root of the tree so far."""
        if not self._complete:
            return EMPTY
        *others, root = self._complete
        for left in reversed(others):
            root = _node_hash(left, root)
        return root


def root_hash(leaves: Iterable[bytes]) -> bytes:
    """The root of the tree of these leaves."""
    tree = Frontier()
    for leaf in leaves:
        tree.add(leaf)
    return tree.root


Range = tuple[int, int]
"""The first leaf of a subtree, and the one after its last."""


def root_over(hashes: Callable[[Range], bytes | None], start: int, stop: int) -> bytes:
    """The root over a range of leaves, from the hashes of the subtrees that have one.

    Raises:
        ProofError: There is a leaf in none of them.
    """
    found = hashes((start, stop))
    if found is not None:
        return found
    if stop - start == 1:
        raise ProofError("a hash that the proof needs is missing")
    split = start + _split(stop - start)
    return _node_hash(root_over(hashes, start, split), root_over(hashes, split, stop))


def inclusion_ranges(index: int, start: int, stop: int) -> list[Range]:
    """The subtrees that lead from one leaf to the root over a range, the leaf's neighbor first."""
    if stop - start == 1:
        return []
    split = start + _split(stop - start)
    if index < split:
        return [*inclusion_ranges(index, start, split), (split, stop)]
    return [*inclusion_ranges(index, split, stop), (start, split)]


def consistency_ranges(size: int, start: int, stop: int) -> list[Range]:
    """The subtrees that show that a tree of `stop` leaves goes on from that of the first `size`, whose root is known."""
    if size == stop:
        return [(start, stop)] if start else []
    split = start + _split(stop - start)
    if size <= split:
        return [*consistency_ranges(size, start, split), (split, stop)]
    return [*consistency_ranges(size, split, stop), (start, split)]


def complete_ranges(size: int) -> list[Range]:
    """The largest complete subtrees of a tree of so many leaves, from the left."""
    found: list[Range] = []
    for power in range(size.bit_length() - 1, -1, -1):
        start = found[-1][1] if found else 0
        if size >> power & 1:
            found.append((start, start + (1 << power)))
    return found


def named(ranges: Sequence[Range], hashes: Sequence[bytes]) -> dict[Range, bytes]:
    """The hashes of a proof by their subtrees.

    Raises:
        ProofError: There are more or fewer than such a proof has.
    """
    if len(ranges) != len(hashes):
        raise ProofError(f"it has {len(hashes)} hashes, and such a proof has {len(ranges)}")
    return dict(zip(ranges, hashes, strict=True))


def root_from_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes:
    """The root of a tree of `size` leaves that has this leaf at `index`, if the path is right; raises ProofError."""
    hashes = named(inclusion_ranges(index, 0, size), path)
    return root_over({**hashes, (index, index + 1): leaf}.get, 0, size)


def roots_from_consistency(
    root: bytes, size: int, later: int, path: Sequence[bytes]
) -> tuple[bytes, bytes]:
    """The roots of the trees of `size` and of `later` leaves, if the first is `root` and the path is right.

    Raises:
        ProofError: The path is not as long as that between such trees.
    """
    ranges = consistency_ranges(size, 0, later)
    hashes = named(ranges, path)
    if not any(
        stop == size for _, stop in ranges
    ):  # the earlier tree is a subtree of the later one
        hashes[0, size] = root
    return root_over(hashes.get, 0, size), root_over(hashes.get, 0, later)
