"""Broken mechanisms, each with a twin that keeps the claim: an example of use, and a test that the audit has teeth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from dpcompose.audit import zoo_mechanisms as made
from dpcompose.audit.pair import Pair
from dpcompose.audit.subject import Source, Subject
from dpcompose.audit.transcript import Transcripts
from dpcompose.composition import Composable
from dpcompose.errors import DomainError
from dpcompose.experiment import Experiment, NaturalFilterBreaker, World
from dpcompose.mechanisms import BlackBox, Gaussian

ALPHA = 1e-6


@dataclass(frozen=True)
class Entry:
    """A broken mechanism and its twin.

    Args:
        name: Its name.
        broken: Makes the broken one.
        twin: Makes the twin.
        claim: The claim of both.
        pairs: The pairs to try.
        truth: The least epsilon of the broken one at the claim's delta, in words.
        reference: Where the defect is described.
        twin_claim: The twin's claim, where it is another one.
    """

    name: str
    broken: Callable[[], Source]
    twin: Callable[[], Source]
    _: KW_ONLY
    claim: Composable
    pairs: tuple[Pair, ...]
    truth: str = "infinite"
    reference: str = ""
    twin_claim: Composable | None = None


def _batch(batch: made.Batch) -> Callable[[], Subject]:
    return lambda: Subject(batch=batch, label="zoo")


def _call(
    call: Callable[..., Callable[[made.Data], float]], *, private: bool, timed: bool = False
) -> Callable[[], Subject]:
    return lambda: Subject(call(private=private), timed=timed, label="zoo")


def _entry(name: str, broken: made.Batch, twin: made.Batch, **given: object) -> Entry:
    return Entry(name, _batch(broken), _batch(twin), **given)  # pyright: ignore[reportArgumentType]


def _breaker() -> Transcripts:
    """The adversary whose two branches compose to (1.5, 0.05) each, and who gets more by choosing between them."""
    breaker = NaturalFilterBreaker()
    return Transcripts(
        Experiment(breaker, family=tuple(query.mechanism for query in breaker.queries), rounds=2)
    )


ONE, TENTH = BlackBox(1.0), BlackBox(0.1)
RECORD = (Pair((), (1.0,)),)
FAR = (Pair((0.0,) * 20, (1.0,) * 20, distance=20), Pair((0.0,) * 5, (20.0,) * 5, distance=20))
SPLIT = tuple(
    Pair((*(0.0,) * 5, float(size)), (*(float(size),) * 5, 0.0), distance=size)
    for size in (1, 10, 20)
)
RISING = tuple(Pair((0.0,) * 10, (float(size),) * 10, distance=size) for size in (1, 10, 20))
STEPS = Gaussian(4.0) * 8

ENTRIES = (
    _entry("half the scale", made.laplace(0.5), made.laplace(1.0), claim=ONE, pairs=RECORD, truth="2"),
    _entry("a tenth too small", made.laplace(1 / 1.1), made.laplace(1.0), claim=ONE, pairs=RECORD, truth="1.1"),
    _entry(
        "float Laplace", made.float_laplace(10.0), made.laplace(10.0),
        claim=TENTH, pairs=RECORD, reference="Mironov2012",
    ),
    _entry(
        "noisy max, Laplace", made.noisy_max(20.0, value=True), made.noisy_max(20.0),
        claim=TENTH, pairs=FAR, truth="0.05 for each answer", reference="DingWangKifer2018",
    ),
    _entry(
        "noisy max, exponential", made.noisy_max(20.0, exponential=True, value=True),
        made.noisy_max(20.0, exponential=True), claim=TENTH, pairs=FAR, reference="DingWangKifer2018",
    ),
    _entry(
        "sparse vector 3", made.sparse_vector(20.0, 20.0, most=1, tells=True), made.sparse_vector(20.0, 40.0, most=1),
        claim=TENTH, pairs=SPLIT, reference="LyuSuLi2017",
    ),
    _entry(
        "sparse vector 4", made.sparse_vector(40.0, 40 / 3, most=3),
        made.sparse_vector(60.0, 120.0, most=3, renewed=60.0),
        claim=TENTH, pairs=SPLIT, truth="0.475", reference="LyuSuLi2017",
    ),
    _entry(
        "sparse vector 5", made.sparse_vector(20.0, 0.0, most=10), made.sparse_vector(20.0, 120.0, most=3),
        claim=TENTH, pairs=RISING + SPLIT, reference="LyuSuLi2017",
    ),
    _entry(
        "sparse vector 6", made.sparse_vector(20.0, 20.0, most=10), made.sparse_vector(20.0, 120.0, most=3),
        claim=TENTH, pairs=RISING + SPLIT, reference="LyuSuLi2017",
    ),
    _entry(
        "rare leak", made.leak(1e-4), made.leak(1e-4), claim=BlackBox(1.0, delta=1e-5), pairs=RECORD,
        truth="infinite at a delta below 1e-4", twin_claim=BlackBox(1.0, delta=1e-4),
    ),
    Entry(
        "mean by the true count", _call(made.mean, private=False), _call(made.mean, private=True),
        claim=ONE, pairs=RECORD,
    ),
    _entry("never clamped", made.laplace(1.0, clamped=False), made.laplace(1.0), claim=ONE, pairs=(Pair((), (30.0,)),)),
    Entry(
        "int when the noise is zero", _call(made.typed, private=False), _call(made.typed, private=True),
        claim=ONE, pairs=RECORD,
    ),
    _entry("seeded by the data", made.seeded(private=False), made.seeded(private=True), claim=ONE, pairs=RECORD),
    _entry(
        "drawn again at the ends", made.truncated(private=False), made.truncated(private=True),
        claim=ONE, pairs=RECORD, truth="1.208",
    ),
    _entry(
        "randomized response", made.randomized_response(1.5), made.randomized_response(1.0),
        claim=ONE, pairs=RECORD, truth="1.5",
    ),
    Entry(
        "answers from a cache", _call(made.cached, private=False), _call(made.cached, private=True),
        claim=ONE, pairs=RECORD,
    ),
    Entry(
        "honest at first", lambda: Subject(batch=made.Patient(5000), label="zoo"),
        lambda: Subject(batch=made.Patient(float("inf")), label="zoo"), claim=ONE, pairs=RECORD, truth="2 in the end",
    ),
    _entry(
        "one noise for all steps", made.training(fresh=False), made.training(),
        claim=STEPS, pairs=(Pair((0.5, -0.5), (0.5, -0.5, 2.0)),),
    ),
    _entry(
        "without clipping", made.training(clipped=False), made.training(),
        claim=STEPS, pairs=(Pair((0.5, -0.5), (0.5, -0.5, 10.0)),),
    ),
    Entry(
        "time tells the noise", _call(made.rejecting, private=False, timed=True),
        _call(made.rejecting, private=True, timed=True), claim=ONE, pairs=RECORD,
    ),
    Entry(
        "natural filter", _breaker, _breaker, claim=BlackBox(1.5, delta=0.05), pairs=(Pair(World.ZERO, World.ONE),),
        truth="more than 1.5 at a delta below 0.0634", twin_claim=BlackBox(1.5, delta=0.0635),
    ),
)  # fmt: skip


def entry_of(name: str) -> Entry:
    """The entry of that name.

    Raises:
        DomainError: If there is none.
    """
    for entry in ENTRIES:
        if entry.name == name:
            return entry
    raise DomainError("NAME", name, "one of " + ", ".join(repr(entry.name) for entry in ENTRIES))
