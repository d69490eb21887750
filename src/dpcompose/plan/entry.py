"""One mechanism of a plan: its parameters, how often it runs, and its name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dpcompose import check
from dpcompose.errors import DomainError
from dpcompose.plan.schema import FORMS, MECHANISMS, Value, choices
from dpcompose.plan.values import label


@dataclass(frozen=True)
class PlanEntry:
    """One `[[mechanism]]` table, checked: it describes `mechanism`, which runs `times` times.

    Args:
        name: Its name in reports.
        kind: Its kind, a key of `MECHANISMS`.
        parameters: The keys given and their values, in the constructor's order.
        rate: The rate of a Poisson sample, fresh each time; None without sampling.
        times: The number of its runs; an integer from 0 to 10^15.

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
        if not isinstance(self.kind, str) or self.kind not in MECHANISMS:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("kind", self.kind, choices(self.kind, MECHANISMS))
        check.times(self.times)
        mechanism = MECHANISMS[self.kind].build(**self._given())
        # A sample of everybody is the mechanism itself.
        sampled = mechanism if self.rate is None or self.rate == 1 else mechanism.sampled(self.rate)
        object.__setattr__(self, "mechanism", sampled)

    def _given(self) -> dict[str, Value]:
        known = MECHANISMS[self.kind].parameters
        try:
            given = dict(self.parameters)
            fits = given.keys() <= known.keys() and all(
                name in given for name, key in known.items() if key.required
            )
        except (TypeError, ValueError):
            fits, given = False, {}
        if not fits:
            raise DomainError(
                "parameters", self.parameters, f"pairs of a name and a value, of {', '.join(known)}"
            )
        return given

    def toml(self) -> str:
        """This entry as a `[[mechanism]]` table."""
        given: dict[str, Any] = {"name": self.name, "kind": self.kind, **dict(self.parameters)}
        if self.rate is not None:
            given["rate"] = self.rate
        given["times"] = self.times
        return "\n".join(
            [
                "[[mechanism]]",
                *(f"{key} = {FORMS[key].write(value)}" for key, value in given.items()),
            ]
        )


Entry = PlanEntry
