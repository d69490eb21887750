"""The sparse vector technique: opened by one charge, closed by its last answer "above"."""

from __future__ import annotations

from threading import Lock
from typing import NoReturn, Self

from dpcompose import check
from dpcompose.account import Account
from dpcompose.errors import DomainError, SpentError, UnsupportedError
from dpcompose.ledger import Receipt
from dpcompose.mechanisms import AboveThreshold
from dpcompose.release import sampler
from dpcompose.values import UNIT_ROUNDOFF

MOST_SCALE, LARGEST = 2.0**40, 2**62


class SparseVector:
    """An open `AboveThreshold`: integers are compared with one noisy threshold until enough of them
    were above it.

    It was charged in full when opened, and lives in this process alone: the noise of its threshold
    is drawn once, never stored, and cannot be copied. It cannot be resumed; open another one for a
    new charge.

    Noise is discrete Laplace noise, drawn exactly: the proof of the technique shifts the
    threshold's noise by D and an answer's by 2 D, which are integers here. (Noise beyond 64 bits is
    clamped, with probability below e^-8000000.)

    Args:
        mechanism: The mechanism that was charged.
        receipt: The receipt of the charge.
        threshold: The integer that values are compared with.
        sensitivity: D: how far one record can move any of the integers.
    """

    def __init__(
        self, mechanism: AboveThreshold, receipt: Receipt, *, threshold: int, sensitivity: int
    ) -> None:
        scales = _scales(mechanism, sensitivity)
        self.mechanism, self.receipt, self.left = mechanism, receipt, mechanism.positives
        self.__scale = scales[1]
        self.__threshold = threshold + sampler.discrete_laplace([0], scale=scales[0])[0]
        self.__lock = Lock()

    @classmethod
    def open(
        cls,
        account: Account,
        mechanism: AboveThreshold,
        *,
        threshold: int,
        sensitivity: int = 1,
        actor: str,
        key: str,
    ) -> Self:
        """Charge the whole interaction, redeem the charge, and open it.

        Args:
            account: The scope that is charged.
            mechanism: States its epsilon, and how many answers "above" it may give.
            threshold: The integer that values are compared with.
            sensitivity: How far one record can move any of the compared integers.
            actor: Who asks.
            key: The idempotency key of the charge. It opens one interaction; a second one needs
                another key.

        Raises:
            DomainError: If an argument is outside its domain.
            UnsupportedError: If a filter of the scope or its parents has no price for it.
            OverdrawnError: If it does not fit; no balance is changed.
            AlreadyRedeemedError: If an interaction was opened with this key before.
        """
        if not isinstance(mechanism, AboveThreshold):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("mechanism", mechanism, "an AboveThreshold")
        threshold = _integer("threshold", threshold)
        sensitivity = check.count("sensitivity", sensitivity, least=1)
        _scales(mechanism, sensitivity)
        sampler.require()
        receipt = account.charge(
            mechanism, actor=actor, key=key, description={"sensitivity": sensitivity}
        )
        account.ledger.redeem(receipt, actor=actor)
        return cls(mechanism, receipt, threshold=threshold, sensitivity=sensitivity)

    def __repr__(self) -> str:
        return f"SparseVector({self.mechanism!r}, left={self.left})"

    @property
    def closed(self) -> bool:
        """Whether the last answer "above" was given."""
        return self.left == 0

    def above(self, value: int) -> bool:
        """Return whether a value, which may depend on earlier answers, is above the threshold, both
        with noise.

        Args:
            value: An integer that one record moves by at most the sensitivity.

        Raises:
            SpentError: If the interaction is closed.
        """
        value = _integer("value", value)
        with self.__lock:
            if self.closed:
                raise SpentError(self.receipt.key)
            found = value + sampler.discrete_laplace([0], scale=self.__scale)[0] >= self.__threshold
            self.left -= found
        return found

    def close(self) -> None:
        """Close the interaction now; the charge stands."""
        with self.__lock:
            self.left = 0

    def __reduce__(self) -> NoReturn:
        raise UnsupportedError(
            "a copy of a SparseVector",
            "its noise exists once, in one process",
            "Open another one, for a new charge",
        )


def _scales(mechanism: AboveThreshold, sensitivity: int) -> tuple[float, float]:
    """Return the scales of the threshold's and the answers' noise, rounded up."""
    if not mechanism.stated > 0:
        raise DomainError(
            "mechanism", mechanism, "an AboveThreshold with epsilon > 0", "At 0 it cannot answer"
        )
    threshold, answer = (
        scale * sensitivity * (1 + 16 * UNIT_ROUNDOFF) for scale in mechanism.scales
    )
    if not threshold + answer < MOST_SCALE:
        raise DomainError(
            "sensitivity", sensitivity, "noise of a scale below 2^40", "Use coarser integers"
        )
    return threshold, answer


def _integer(name: str, value: object) -> int:
    number = check.integer(name, value)
    if not abs(number) <= LARGEST:
        raise DomainError(name, number, "an integer of size at most 2^62")
    return number
