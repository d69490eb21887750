"""An account on a ledger behind a service: the same calls as `Account`, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dpcompose import errors
from dpcompose.account import exact
from dpcompose.composition import Composable
from dpcompose.errors import DPComposeError, LedgerError, StoreError, UnsupportedError
from dpcompose.ledger import Amount, Amounts, Receipt
from dpcompose.mechanisms import serialize
from dpcompose.values import Adjacency

if TYPE_CHECKING:
    import httpx

_KINDS: Mapping[str, type[DPComposeError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, DPComposeError)
}


@dataclass(frozen=True)
class RemoteAccount:
    """A scope of a ledger that a service keeps. Prices are the service's, the actor is whoever has the token.

    Args:
        url: Of the service.
        token: As the keeper gave it.
        scope: Its path.
        client: Another way to the service; by default httpx, with a time limit of ten seconds.
    """

    url: str
    token: str = field(repr=False)
    _: KW_ONLY
    scope: str
    client: httpx.Client | None = field(default=None, repr=False, compare=False)

    def price(self, mechanism: Composable, *, delta: Any = None) -> dict[str, Amount]:
        """The cost of a mechanism here, by currency; see `Account.price`."""
        return dict(
            Amounts.read(self._request("POST", "price", **_named(mechanism, delta))["cost"])
        )

    def left(self) -> dict[str, Amount]:
        """The most that a charge could still ask, each currency by itself."""
        return dict(Amounts.read(self._request("GET", "left")["left"]))

    def room(self, cost: Mapping[str, Amount]) -> int:
        """Whether the cost fits, 1 or 0, by what is left of each currency; of several theorems it may say 0."""
        left = self.left()
        return int(all(amount <= left[name] for name, amount in cost.items() if name in left))

    def charge(
        self,
        mechanism: Composable,
        *,
        actor: str = "",
        key: str,
        delta: Any = None,
        description: Mapping[str, Any] | None = None,
        reservation: str | None = None,
    ) -> Receipt:
        """Charge a mechanism, durably, before it runs; see `Account.charge`.

        Args:
            mechanism: What is to run.
            actor: Taken so that a program need not change; the entry names the identity of the token.
            key: The idempotency key, one's own: nobody else's key is the same.
            delta: Where on its curve it is charged.
            description: Anything else to keep with it.
            reservation: The key of the own reservation to use.

        Raises:
            ApprovalError: It is above a threshold, and no second person has approved it; see `request`.
            QuotaError: More than this person may spend in this period.
            ReservedError: What is left is reserved for others.
            ReservationError: The reservation has ended, or is too small.
        """
        named = {**_named(mechanism, delta), "key": key}
        if description is not None:
            named["description"] = dict(description)
        if reservation is not None:
            named["reservation"] = reservation
        return Receipt.read(self._request("POST", "charge", **named)["receipt"])

    def redeem(self, receipt: Receipt, *, actor: str = "", nonce: str) -> None:
        """Use up a receipt before any noise is drawn; see `Ledger.redeem` for the nonce."""
        self._request("POST", "redeem", receipt=receipt.to_json(), nonce=nonce)

    def reserve(
        self, mechanism: Composable, *, key: str, seconds: float, times: int = 1, delta: Any = None
    ) -> dict[str, Any]:
        """Keep room for so many charges of a mechanism; nothing is charged until each is made, with `reservation=key`.

        Args:
            mechanism: What each charge will name.
            key: The reservation's, one's own: asked again, the same reservation.
            seconds: How long; what was not committed by then is everybody's again.
            times: How many charges.
            delta: See `price`.
        """
        return self._request(
            "POST", "reserve", key=key, seconds=seconds, times=times, **_named(mechanism, delta)
        )

    def unreserve(self, key: str) -> None:
        """Give a reservation back."""
        self._request("POST", "unreserve", key=key)

    def request(
        self, mechanism: Composable, *, key: str, reason: str, delta: Any = None
    ) -> dict[str, Any]:
        """Ask a second person to approve the charge that will be made under this key; `state` says what was decided."""
        return self._request("POST", "request", key=key, reason=reason, **_named(mechanism, delta))

    def requests(self) -> list[dict[str, Any]]:
        """Requests at or below the scope, the newest first; an analyst's own."""
        return self._request("GET", "requests")["requests"]

    def decide(self, request: str, *, approve: bool) -> dict[str, Any]:
        """Approve or decline a request for a charge that somebody else made; only keepers may."""
        return self._request(
            "POST", "decide", request=request, decision="approved" if approve else "declined"
        )

    def quota(
        self, actor: str, caps: Mapping[str, Any], *, period: str = "total"
    ) -> dict[str, Any]:
        """A keeper's cap on what an actor (`*`: each) spends here in each day, month, year or in total; empty: none."""
        return self._request(
            "POST", "quota", actor=actor, caps=Amounts.of(caps).texts(), period=period
        )

    def threshold(self, amounts: Mapping[str, Any]) -> dict[str, Any]:
        """A keeper's amounts above which a charge here needs a second person; empty: none."""
        return self._request("POST", "threshold", amounts=Amounts.of(amounts).texts())

    def history(self) -> Iterator[dict[str, Any]]:
        """The own entries, the newest first, asked for page by page."""
        named: dict[str, Any] = {}
        while True:
            found = self._request("GET", "history", **named)
            yield from found["entries"]
            if found["before"] is None:
                return
            named = {"before": found["before"]}

    def verify(self) -> dict[str, Any]:
        """Follow the whole tree of the scope, in as many requests as that takes: an auditor's."""
        found: dict[str, Any] = {"agrees": True, "followed": 0}
        while found["agrees"] and not found.get("done", False):
            found = self._request("GET", "verify", after=found["followed"])
        return found

    def agreed(self) -> dict[str, Any]:
        """The reservations, quotas and thresholds that hold here."""
        return self._request("GET", "agreed")

    def tables(self) -> dict[str, Any]:
        """The tables that can be asked in SQL here, and the whole budget; see `RemoteSession`."""
        return self._request("GET", "tables")

    def ask(self, **fields: Any) -> dict[str, Any]:
        """The answer to a statement or to questions about a table behind the service; see `RemoteSession`."""
        return self._request("POST", "ask", **fields)

    @property
    def adjacency(self) -> Adjacency:
        """Under which every charge is priced."""
        return Adjacency(self._budget["adjacency"])

    @property
    def note(self) -> Mapping[str, Any]:
        """The note with which the scope was opened."""
        return self._budget["note"]

    def description_of(self, name: str) -> Mapping[str, Any] | None:
        """The description that is kept below the scope under a name; see `Account.description_of`."""
        return self._request("GET", "kept", name=name)["description"]

    def keep(self, name: str, description: Mapping[str, Any], *, actor: str = "") -> None:
        """Keep a description below the scope under a name; see `Account.keep`."""
        self._request("POST", "keep", name=name, description=dict(description))

    @cached_property
    def _budget(self) -> dict[str, Any]:
        """The scope as the service describes it; it never changes, so it is requested once."""
        return self._request("GET", "budget")

    @cached_property
    def _http(self) -> httpx.Client:
        import httpx

        return httpx.Client(base_url=self.url, timeout=10.0) if self.client is None else self.client

    def _request(self, method: str, route: str, **fields: Any) -> dict[str, Any]:
        import httpx

        sent: dict[str, Any] = {
            "params" if method == "GET" else "json": {"scope": self.scope, **fields}
        }
        headers = {"authorization": f"Bearer {self.token}"}
        try:
            response = self._http.request(method, f"/v1/{route}", headers=headers, **sent)
            answer = response.json()
        except (httpx.HTTPError, ValueError):
            raise StoreError(
                self.url, "the service cannot be reached", "Ask again alike", uncertain=True
            ) from None
        if response.status_code == 200:
            return answer
        raise _error(self.url, response.status_code, answer)


def _named(mechanism: Composable, delta: Any) -> dict[str, Any]:
    text = serialize(mechanism)
    if text is None:
        raise UnsupportedError(
            f"a charge of {mechanism!r}",
            "the service takes mechanisms as text, and this one cannot be written as text",
            "Charge it on the ledger itself, by Account.charge",
        )
    return (
        {"mechanism": text}
        if delta is None
        else {"mechanism": text, "delta": str(exact("delta", delta))}
    )


def _error(url: str, status: int, answer: Mapping[str, Any]) -> DPComposeError:
    """The error that the ledger raised, with the service's sentence."""
    reason = str(answer.get("reason", "no reason given"))
    kind = _KINDS.get(str(answer.get("error")))
    if status >= 500:
        return StoreError(url, reason, uncertain=bool(answer.get("uncertain", True)))
    if kind is None:
        return LedgerError(f"{url}: {reason}")
    error: DPComposeError = kind.__new__(kind)
    error.args = (reason,)
    fields = {"scope": "scope", "currency": "currency", "asked": "requested", "left": "left"}
    error.__dict__.update(
        {
            field: Amount.of(answer[name]) if name in ("asked", "left") else answer[name]
            for name, field in fields.items()
            if name in answer
        }
    )
    return error
