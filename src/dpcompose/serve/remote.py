"""A session with a table behind a service: the same questions and answers as with one's own, and no row of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpcompose.account import open_scope
from dpcompose.adaptive import Budget, ConcentratedFilter
from dpcompose.errors import DomainError
from dpcompose.ledger import Ledger, Receipt
from dpcompose.release import Answer, Catalog, PublicTable, Question, Session, Table
from dpcompose.serve.client import RemoteAccount

if TYPE_CHECKING:
    import httpx

PATIENCE = 120.0
"""Seconds to wait for an answer, which leaves at a moment that the keeper chose."""


INVENTED = 1000
"""Made-up rows of a dummy."""


def _described(
    account: RemoteAccount, table: str, *, invented: int = 0
) -> tuple[Table, Mapping[str, Fraction]]:
    """A table as its service describes it, empty or with made-up rows, and the whole budget of the scope."""
    served = account.tables()
    if table not in served["tables"]:
        raise DomainError("table", table, f"one of {', '.join(served['tables'])}")
    joined = served["public"].items()
    public = {name: PublicTable.without_rows(**own) for name, own in joined}
    own = Catalog.without_rows(served["tables"], public, invented=invented)[table]
    return own, {name: Fraction(amount) for name, amount in served["budget"].items()}


class RemoteSession(Session):
    """Questions to a table that a service keeps, charged there; see `Session`.

        visits = RemoteSession("https://counter.example", token, scope="clinic", table="visits")
        visits.sql("SELECT COUNT(*) FROM visits", spend="5%")

    The same request, or another one under the same key, is answered from what the service stored, for nothing.

    Args:
        url: Of the service.
        token: As its keeper gave it.
        scope: The scope whose catalog has the table, and whose budget is charged.
        table: Its name there.
        client: Another way to the service; by default httpx.

    Raises:
        DomainError: If the catalog has no such table.
        StoreError: If the service cannot be reached.
    """

    whole: Mapping[str, Fraction]
    """The whole budget of the scope."""

    def __init__(
        self, url: str, token: str, *, scope: str, table: str, client: httpx.Client | None = None
    ) -> None:
        import httpx

        way = httpx.Client(base_url=url, timeout=PATIENCE) if client is None else client
        account = RemoteAccount(url, token, scope=scope, client=way)
        own, whole = _described(account, table)
        super().__init__(own, account=account, actor="analyst")
        object.__setattr__(self, "whole", whole)

    @staticmethod
    def dummy(
        url: str, token: str, *, scope: str, table: str, client: httpx.Client | None = None
    ) -> Session:
        """A session with made-up rows in place of the table's, in this process and for nothing.

        Everything else is as the catalog has it, the budget too: a program that was tried with it asks the service by
        another first word. The made-up rows follow from types, ranges and bounds; public tables are empty here.

        Args:
            url: Of the service.
            token: As its keeper gave it.
            scope: The scope whose catalog has the table.
            table: Its name there.
            client: Another way to the service; by default httpx.
        """
        account = RemoteAccount(url, token, scope=scope, client=client)
        own, whole = _described(account, table, invented=INVENTED)
        delta, ledger = whole.get("delta", Fraction(0)), Ledger.open("memory:")
        if "rho" in whole:
            filter = ConcentratedFilter(whole["rho"], delta=delta)
        else:
            filter = Budget(whole["epsilon"], delta)
        open_scope(ledger, scope, filter=filter, actor="analyst")
        return Session(own, ledger=ledger, scope=scope, actor="analyst")

    def batch(
        self,
        questions: Sequence[Question],
        *,
        spend: Mapping[str, Any] | str | None = None,
        key: str | None = None,
        note: Mapping[str, Any] | None = None,
    ) -> tuple[Answer, ...]:
        """The answers to several questions for one charge; see `Session.batch`. A note is the service's alone."""
        key = next((each.key for each in questions if each.key is not None), key)
        documents = [each.plain() for each in questions]
        return self._answered(questions, spend, key, questions=documents)

    def _answers_of(
        self, plan: Any, text: str, spend: Any, error: float | None, keys: Any, key: str | None
    ) -> tuple[Answer, ...]:
        return self._answered(plan.questions, spend, key, sql=text, error=error, keys=keys)

    def history(self) -> Iterator[tuple[Mapping[str, Any], str, Mapping[str, Any]]]:
        """The own charges of the scope, the newest first: the entry, what was charged, and the cost."""
        for entry in self._remote.history():
            if entry["kind"] == "granted":
                yield entry, entry["mechanism"], entry["cost"]

    def _budget(self) -> Mapping[str, Fraction]:
        return self.whole

    @property
    def _remote(self) -> RemoteAccount:
        assert isinstance(self.account, RemoteAccount)
        return self.account

    def _answered(
        self, priced: Sequence[Question], spend: Any, key: str | None, **fields: Any
    ) -> tuple[Answer, ...]:
        """Ask the service, and read its answers with the designs that it answered by."""
        typed = (
            spend
            if isinstance(spend, str | None)
            else {name: str(each) for name, each in spend.items()}
        )
        stated = {"spend": typed, "key": key, **fields}
        stated = json.loads(json.dumps(stated, default=str))  # keys may be dates
        served = self._remote.ask(
            table=self.table.name,
            **{name: value for name, value in stated.items() if value is not None},
        )
        spends = [
            {name: Fraction(part) for name, part in each.items()} for each in served["spends"]
        ]
        bought = [each.bought(part) for each, part in zip(priced, spends, strict=True)]
        receipt, replayed = Receipt.read(served["receipt"]), served["replayed"]
        answers = self.restored(served["answers"], bought, receipt)
        return tuple(replace(each, replayed=replayed) for each in answers)
