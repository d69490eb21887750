"""Merkle trees over the entries of one chain, hashed as certificate transparency does.

The tree of n leaves splits at the largest power of two below n. So the tree of the first m entries is made of
subtrees of every later one, and a short list of hashes shows that an entry is in a tree, or that one tree goes on from
another.

Reference: [RFC6962, Section 2.1]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


def inclusion_path(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """The hashes that lead from one leaf to the root, the leaf's neighbor first."""
    if len(leaves) == 1:
        return []
    split = _split(len(leaves))
    left, right = leaves[:split], leaves[split:]
    if index < split:
        return [*inclusion_path(left, index), root_hash(right)]
    return [*inclusion_path(right, index - split), root_hash(left)]


def root_from_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes:
    """The root of a tree of `size` leaves that has this leaf at `index`, if the path is right.

    Raises:
        ProofError: The path is not as long as that of such a leaf.
    """
    if size == 1:
        if path:
            raise ProofError("more hashes than the path of this entry has")
        return leaf
    if not path:
        raise ProofError("fewer hashes than the path of this entry has")
    split, (*rest, other) = _split(size), path
    if index < split:
        return _node_hash(root_from_inclusion(leaf, index, split, rest), other)
    return _node_hash(other, root_from_inclusion(leaf, index - split, size - split, rest))


def consistency_path(leaves: Sequence[bytes], size: int) -> list[bytes]:
    """The hashes that show that the tree of all leaves goes on from the tree of the first `size`, at least one."""
    return _consistency_path(leaves, size, known=True)


def _consistency_path(leaves: Sequence[bytes], size: int, *, known: bool) -> list[bytes]:
    if size == len(leaves):
        return [] if known else [root_hash(leaves)]
    split = _split(len(leaves))
    left, right = leaves[:split], leaves[split:]
    if size <= split:
        return [*_consistency_path(left, size, known=known), root_hash(right)]
    return [*_consistency_path(right, size - split, known=False), root_hash(left)]


def roots_from_consistency(
    root: bytes, size: int, later: int, path: Sequence[bytes]
) -> tuple[bytes, bytes]:
    """The roots of the trees of `size` and of `later` leaves, if the first is `root` and the path is right.

    Raises:
        ProofError: The path is not as long as that between such trees.
    """
    if size == later:
        if path:
            raise ProofError("hashes between two trees of the same size")
        return root, root
    return _roots_from_consistency(root, size, later, path, known=True)


def _roots_from_consistency(
    root: bytes, size: int, later: int, path: Sequence[bytes], *, known: bool
) -> tuple[bytes, bytes]:
    if size == later and known:
        if path:
            raise ProofError("more hashes than lie between these trees")
        return root, root
    if not path:
        raise ProofError("fewer hashes than lie between these trees")
    if size == later:
        if len(path) > 1:
            raise ProofError("more hashes than lie between these trees")
        return path[0], path[0]
    split, (*rest, other) = _split(later), path
    if size <= split:
        before, after = _roots_from_consistency(root, size, split, rest, known=known)
        return before, _node_hash(after, other)
    before, after = _roots_from_consistency(root, size - split, later - split, rest, known=False)
    return _node_hash(other, before), _node_hash(other, after)
