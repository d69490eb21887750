"""Charges of one tree that arrive together: one look at their tokens, one at the terms of the tree, and one commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import JSONResponse, Response

from dpcompose.account import Account, charge_together
from dpcompose.errors import DPComposeError, KeyReusedError, ScopeExistsError, StoreError
from dpcompose.ledger import Charge, Receipt
from dpcompose.serve.asked import Fields
from dpcompose.serve.gate import Gate
from dpcompose.serve.identity import Identity
from dpcompose.serve.service import receipted

Outcome = Response | Exception | Identity
"""An answer; what is raised instead; or whose charge it is, to be made alone, because terms are to be weighed."""


@dataclass(frozen=True)
class Call:
    """A charge as it arrived.

    Args:
        caller: The address.
        token: As it was sent.
        fields: The body.
        who: Whose token it is, where an issuer had to say so before.
    """

    caller: str
    token: str
    fields: Fields
    who: Identity | None = None


@dataclass(frozen=True)
class Charges:
    """Makes charges together.

    Args:
        gate: What lets in.
    """

    gate: Gate

    def made(self, root: str, calls: Sequence[Call]) -> list[Outcome]:
        """The outcome of each charge of a tree, in their order."""
        found: list[Outcome] = []
        asked: dict[int, tuple[Account, Charge]] = {}
        people = self.gate.service.people.find_all(
            {call.token for call in calls if call.who is None}
        )
        for place, call in enumerate(calls):
            try:
                who = call.who or self.gate.admitted(call.caller, people[call.token])
                found.append(who)
                scope = self.gate.allowed("charge", who, call.fields)
                quote = self.gate.service.quick_quote(scope, call.fields)
                if quote is not None and call.fields.get("reservation") is None:
                    asked[place] = self.gate.service.asked(who, quote, call.fields)
            except Exception as error:  # of this charge alone; raised where it was asked
                found[place:] = [error]
        for place, receipt in zip(asked, self._committed(root, list(asked.values())), strict=False):
            if isinstance(receipt, Receipt):
                found[place] = JSONResponse(receipted(receipt))
            elif not isinstance(
                receipt, KeyReusedError | ScopeExistsError
            ):  # with what is noted it may be the same
                found[place] = receipt
        return found

    def _committed(
        self, root: str, asked: list[tuple[Account, Charge]]
    ) -> Sequence[Receipt | DPComposeError]:
        """The receipt or refusal of each; none where the tree has terms."""
        made: Sequence[Receipt | DPComposeError] = []
        if asked:
            try:
                with self.gate.service.terms.turns.plain(root) as plain:
                    made = charge_together(asked) if plain else []
            except StoreError as error:  # what was charged before is charged
                made = made or [error] * len(asked)
        return made
