"""One mechanism of a plan: what it is, how often it runs, and what it is called."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dpcompose.errors import DomainError
from dpcompose.numerics import check
from dpcompose.plan.key import KEYS, Value, label
from dpcompose.plan.kind import KINDS
from dpcompose.plan.near import choices


@dataclass(frozen=True)
class Entry:
    """One `[[mechanism]]` table, checked: `mechanism` is what it describes, run `times` times.

    Args:
        name: What reports call it.
        kind: A building block, as in `KINDS`.
        parameters: The keys given and their values, in the constructor's order.
        rate: The rate of a Poisson sample, fresh each time; None without sampling.
        times: How often it runs; an integer from 0 to 10^15.

    Raises:
        DomainError: If a value lies outside its domain.
        UnsupportedError: If the mechanism cannot be sampled.
    """

    name: str
    kind: str
    parameters: tuple[tuple[str, Value], ...]
    rate: float | None = None
    times: int = 1
    mechanism: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        label("name", self.name)
        if not isinstance(self.kind, str) or self.kind not in KINDS:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("kind", self.kind, choices(self.kind, KINDS))
        check.times(self.times)
        mechanism = KINDS[self.kind].build(**self._given())
        # A sample of everybody is the mechanism itself.
        sampled = mechanism if self.rate is None or self.rate == 1 else mechanism.sampled(self.rate)
        object.__setattr__(self, "mechanism", sampled)

    def _given(self) -> dict[str, Value]:
        known = KINDS[self.kind].parameters
        try:
            given = dict(self.parameters)
            fits = given.keys() <= known.keys() and all(name in given for name, required in known.items() if required)
        except (TypeError, ValueError):
            fits, given = False, {}
        if not fits:
            raise DomainError("parameters", self.parameters, f"pairs of a name and a value, of {', '.join(known)}")
        return given

    def toml(self) -> str:
        """This entry as a `[[mechanism]]` table."""
        given: dict[str, Any] = {"name": self.name, "kind": self.kind, **dict(self.parameters)}
        if self.rate is not None:
            given["rate"] = self.rate
        given["times"] = self.times
        return "\n".join(["[[mechanism]]", *(f"{key} = {KEYS[key].write(value)}" for key, value in given.items())])
