"""A session charges a question to a ledger, then reads the data, then draws the noise."""

from __future__ import annotations

import inspect
import sys
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

from dpcompose import check
from dpcompose.account import Account, balance_in_epsilon, target_of
from dpcompose.adaptive import from_description
from dpcompose.composition import Composable, compose
from dpcompose.errors import (
    AlreadyRedeemedError,
    DomainError,
    SpentError,
    UnsupportedError,
    optional_library,
)
from dpcompose.ledger import Ledger, Receipt
from dpcompose.release import counts, sampler, statistics
from dpcompose.release.aggregate import Scans
from dpcompose.release.answer import (
    Answer,
    Explanation,
    Quote,
    answered,
    bias_under,
    cheapest,
    labeled,
    stored,
)
from dpcompose.release.answers import Shelf, answers_at, redeemed
from dpcompose.release.bounding import Binding, Payer, opened_parts, require_part
from dpcompose.release.design import Design
from dpcompose.release.noise import Spend, exact
from dpcompose.release.question import Question, questions as read_questions, questions_of
from dpcompose.release.statistics import Chosen
from dpcompose.release.synthetic import Synthetic, SyntheticData
from dpcompose.release.table import CATALOGUED, Table

if TYPE_CHECKING:
    from dpcompose.release.planner import Plan, SelectedAnswer

SECONDS = 1.0


@contextmanager
def progress_message(engine: str, questions: Sequence[str]) -> Generator[None]:
    """Print on a terminal's standard error what is being computed, once it takes longer than a
    second.

    Args:
        engine: The name of the engine.
        questions: The kinds of the questions.
    """
    kinds = ", ".join(dict.fromkeys(questions))
    timer = Timer(SECONDS, lambda: sys.stderr.write(f"{engine} is computing {kinds} ...\n"))
    timer.daemon = True
    if sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


P = ParamSpec("P")
A = TypeVar("A")


def asks(kind: Callable[P, Question]) -> Callable[Concatenate[Session, P], Answer]:
    """Return the method that asks a question of a class; its arguments and help are those of the
    class.
    """
    return _method(kind, lambda answer: answer)


def _method(
    kind: Callable[P, Question], read: Callable[[Answer], A]
) -> Callable[Concatenate[Session, P], A]:
    def method(self: Session, /, *arguments: P.args, **options: P.kwargs) -> A:
        return read(self.ask(kind(*arguments, **options)))

    signature = inspect.signature(kind)
    self = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__doc__ = kind.__doc__
    method.__signature__ = signature.replace(  # pyright: ignore[reportFunctionMemberAccess]
        parameters=[self, *signature.parameters.values()]
    )
    return method


class Session:
    """Questions to tables, charged to one scope of a ledger by one analyst.

    Every question is validated, charged and redeemed, durably, before the table is read. Then the
    engine aggregates exactly, and noise is drawn once. An error before the charge costs nothing; a
    later failure keeps the charge and gives no answer. Errors, shapes, types and order depend on
    schema, bounds and ledger, never on rows. The time an answer takes is not protected. For each
    question class there is a method of its name.

    Args:
        table: The table to ask.
        ledger: The ledger to charge; omitted if an account is given.
        scope: The scope to charge; it has a filter.
        actor: Who asks.
        answers: A directory in which answers are stored for retries, or another store of them; None
            stores them for this session alone.
        account: Instead of ledger and scope: the account to charge, such as a `RemoteAccount` of a
            service.

    Raises:
        UnknownScopeError: If the ledger has no such scope.
        MissingExtraError: If DuckDB or opendp is not installed.
    """

    count = asks(counts.Count)
    units = asks(counts.Units)
    distinct = asks(counts.Distinct)
    histogram = asks(counts.Histogram)
    contingency = asks(counts.Contingency)
    top = asks(counts.Top)
    sum = asks(statistics.Sum)
    mean = asks(statistics.Mean)
    variance = asks(statistics.Variance)
    standard_deviation = asks(statistics.StandardDeviation)
    ratio = asks(statistics.Ratio)
    quantile = asks(statistics.Quantile)
    quantiles = asks(statistics.Quantiles)
    minimum = asks(statistics.Minimum)
    maximum = asks(statistics.Maximum)
    rows_per_unit = asks(counts.RowsPerUnit)
    left_out = asks(counts.LeftOut)
    synthetic = _method(Synthetic, SyntheticData)
    read_questions = staticmethod(read_questions)

    def __init__(
        self,
        table: Table,
        *,
        ledger: Ledger | None = None,
        scope: str | None = None,
        actor: str,
        answers: str | Path | Shelf | None = None,
        account: Payer | None = None,
    ) -> None:
        if not isinstance(table, Table):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("table", type(table).__name__, "a table made by release.table(...)")
        sampler.require()
        check.line("actor", actor)
        if account is None:
            if ledger is None or scope is None:
                raise DomainError(
                    "ledger and scope", (ledger, scope), "both, or an account instead"
                )
            account = Account(ledger, scope=scope)
        elif not (ledger is None and scope is None):
            raise DomainError(
                "ledger and scope", (ledger, scope), "omitted, since an account is given"
            )
        self.table, self.account, self.scope, self.actor = table, account, account.scope, actor
        self.ledger = account.ledger if isinstance(account, Account) else None
        self.answers = answers_at(answers)

    def __repr__(self) -> str:
        return f"Session({self.table!r}, scope={self.scope!r}, actor={self.actor!r})"

    def ask(self, question: Question, *, key: str | None = None) -> Answer:
        """Return the answer to one question.

        Args:
            question: The question.
            key: An idempotency key, by default that of the question: with the same key, the same
                question costs nothing again and has the same answer. Without one every call is a
                new request.

        Raises:
            DomainError, UnsupportedError: Before the charge: the question does not fit the table,
                or has no price.
            OverdrawnError: It does not fit in what is left; nothing was charged.
            KeyReusedError: The key belongs to another request; nothing was charged.
            EngineError: The engine failed; the charge stands.
            SpentError: The charge of this key was redeemed before, and its answer is not stored.
            StoreError: The ledger could not be reached or does not know the outcome; ask again with
                the same key.
        """
        return self.batch([question], key=key)[0]

    def batch(
        self,
        questions: Sequence[Question],
        *,
        spend: Mapping[str, Any] | str | None = None,
        key: str | None = None,
        note: Mapping[str, Any] | None = None,
    ) -> tuple[Answer, ...]:
        """Return the answers to several questions for one charge: all of them, or none.

        Args:
            questions: At most 100.
            spend: What questions without a spend of their own may cost together, in equal parts; or
                "5%" of the budget.
            key: An idempotency key, as for `ask`.
            note: Further content of the ledger's entry, such as the statement that asks them.

        Raises:
            As `ask`.
        """
        designs = self._designed(questions, spend)
        key = _key(questions, key)
        for table in {id(design.table): design.table for design in designs}.values():
            table.require_plain(self._trusted)
            require_part(table, self.scope)
        own = Binding.of(self.table).shared(design.table for design in designs)
        binding = own.stored(self.account)
        scans = self._scans(designs, binding)
        if binding is own:
            # Nothing is charged for a question that the engine cannot express.
            binding = own.write(self.account, actor=self.actor)
            # Another process may have stored the binding first, with another key.
            scans = scans if binding == own else self._scans(designs, binding)
        mechanism, delta, _ = self._priced(designs)
        receipt = self.account.charge(
            mechanism,
            actor=self.actor,
            key=str(uuid.uuid4()) if key is None else key,
            delta=delta,
            description={"release": [design.plain for design in designs], **(note or {})},
        )
        # A concurrent request with the same key waits for the answer of the first.
        with nullcontext() if key is None else self.answers.turn(receipt):
            replayed = not self._may_draw(receipt)
            if replayed:
                documents = self.answers.find(receipt, binding.seal)
                if documents is None:
                    raise SpentError(receipt.key)
            else:
                # From here on the charge is spent, even if something fails.
                kinds = [question.kind for question in questions]
                with progress_message(designs[0].table.engine.name, kinds):
                    documents = [
                        answered(design, question, design.draw(numbers))
                        for design, question, numbers in zip(
                            designs, questions, scans.exact(), strict=True
                        )
                    ]
                self.answers.keep(receipt, documents, binding.seal)
        answers = stored(documents, designs, questions, receipt, replayed=replayed)
        return tuple(labeled(each) for each in answers)

    def _may_draw(self, receipt: Receipt) -> bool:
        """Redeem a receipt; return whether that gives the right to draw."""
        try:
            redeemed(self.account, receipt, actor=self.actor)
        except AlreadyRedeemedError:
            return False
        return True

    def partition(self, by: str, *, keys: Sequence[Any]) -> dict[Any, Session]:
        """Return a session for each part of the table; the budget is charged the largest part's
        spending.

        Every unit is in one part, with the rows that have the part's key; a session answers for its
        part alone. Opened again with the same arguments, it is the same partition with the same
        spending. The rows of a unit must not change between questions: a unit that moves to another
        part is charged in both.

        Args:
            by: The column.
            keys: Its values, one for each part, known without looking at the table; rows with other
                values are in no part.

        Raises:
            DomainError: If the table was changed before, or the column or a key does not fit.
            UnsupportedError: If the budget is for replacing a unit.
        """
        parts = opened_parts(
            self.table, by, keys, ledger=self.ledger, account=self.account, actor=self.actor
        )
        return {
            key: Session(part, ledger=self.ledger, scope=part.part, actor=self.actor)
            for key, part in parts.items()
        }

    def quote(self, question: Question, *, spend: Mapping[str, Any] | None = None) -> Quote:
        """Return a question's price in this scope and the accuracy of its answer, without reading
        data or charging.

        Raises:
            DomainError, UnsupportedError: As `ask` would, before the charge.
        """
        (design,) = self._designed([question], spend)
        # A question that `ask` always refuses has no price; no mechanism is priced for it.
        design.table.require_trusted(self._trusted)
        require_part(design.table, self.scope)
        Binding.of(self.table).shared([design.table]).stored(self.account)
        mechanism, _, price = self._priced([design])
        left = self.account.left()
        fits = self.account.room(price) > 0
        bias = bias_under(self.account.adjacency)
        return Quote(question, price, mechanism, fits, bias, left, design=design)

    def sql(
        self,
        text: str,
        *,
        spend: Mapping[str, Any] | str | None = None,
        error: float | None = None,
        keys: Sequence[Any] | None = None,
        tables: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Answer | SelectedAnswer | Explanation:
        """Return the answer to a SQL statement, in the shape it states, for one charge; `EXPLAIN
        SELECT ...` is `explain`.

        It asks the questions that `questions_of_sql` reads; computing with their noisy answers
        costs nothing.

        Args:
            text: One SELECT.
            spend: The cost of the whole statement: amounts, or a part of the budget such as "5%".
            error: Instead of a spend: the largest error of each number.
            keys: Public groups; else WHERE may list them, or they are private.
            tables: Further tables for joins, by name.
            key: An idempotency key, as for `ask`.

        Raises:
            As `questions_of_sql` and `ask`.
        """
        if key is not None:
            check.line("key", key)
        if Explanation.is_requested(text):
            return self.explain(text, spend=spend, error=error, keys=keys, tables=tables)
        plan = self.plan(text, tables=tables, keys=keys)
        return plan.answer(self._answers_of(plan, text, spend, error, keys, key))

    def _answers_of(
        self, plan: Plan, text: str, spend: Any, error: float | None, keys: Any, key: str | None
    ) -> tuple[Answer, ...]:
        """Return the answers to the questions of a statement."""
        # A request with a key is the same request however the statement is worded.
        note = {"sql": text} if key is None else None
        return self.batch(self._bought_of(plan, spend, error), key=key, note=note)

    def _bought_of(self, plan: Plan, spend: Any, error: float | None) -> list[Question]:
        """Return the questions of a statement with their parts of the spend, or with the allowed
        error.
        """
        spend = spend if plan.spend is None else plan.spend
        if (spend is None) == (error is None):
            raise DomainError("spend", spend, 'what it may cost, such as "5%", or else error=')
        asked = plan.questions
        if spend is not None:
            parts = self._parts(asked, spend)
            return [replace(each, spend=part) for each, part in zip(asked, parts, strict=True)]
        delta = {"delta": self.percent("5%").get("delta", 0) / len(asked)}
        return [
            replace(each, error=error, spend=delta if each.by and each.keys is None else None)
            for each in asked
        ]

    def explain(
        self,
        request: str | Question | Sequence[Question],
        *,
        spend: Mapping[str, Any] | str | None = None,
        error: float | None = None,
        keys: Sequence[Any] | None = None,
        tables: Mapping[str, Any] | None = None,
    ) -> Explanation:
        """Return the unit, stability, noise and price of questions or of a SELECT, without reading
        data or charging.

        Raises:
            DomainError, UnsupportedError: As `ask` would, before the charge.
        """
        if isinstance(request, str):
            plan = self.plan(request, tables=tables, keys=keys)
            questions, spend = self._bought_of(plan, spend, error), None
        else:
            questions = questions_of(request)
            for name, value in (("error", error), ("keys", keys), ("tables", tables)):
                if value is not None:
                    raise DomainError(name, value, "None beside questions: each states its own")
        part = None if spend is None else self.part(questions, spend)
        return Explanation(tuple(self.quote(each, spend=part) for each in questions), self.scope)

    def history(self) -> Iterator[tuple[Mapping[str, Any], str, Mapping[str, Any]]]:
        """The charges of the scope in order: the entry, the statement or questions, and the cost."""
        if self.ledger is None:
            raise DomainError(
                "history", self.scope, "a session with its ledger; a service has its own"
            )
        for entry in self.ledger.entries(self.scope):
            if entry.fields["kind"] == entry.GRANTED and entry.fields["scope"] == self.scope:
                said = entry.fields["description"].get("note", {})
                kinds = ", ".join(str(each.get("question")) for each in said.get("release", []))
                yield entry.fields, str(said.get("sql", kinds)), entry.fields["cost"]

    def part(
        self, questions: Sequence[Question], spend: Mapping[str, Any] | str
    ) -> Mapping[str, Any] | None:
        """Return the equal part of a common spend for each question without its own; None if there
        is no such question.
        """
        if isinstance(spend, str):
            spend = self.percent(spend)
        sharing = sum(each.spend is None and each.error is None for each in questions_of(questions))
        if not sharing:
            return None
        return Spend.stated(spend).part(Fraction(1, sharing)).amounts()

    def percent(self, text: str) -> Mapping[str, Any]:
        """Return the spend that is a percentage of the whole budget of the scope, such as "5%".

        Raises:
            DomainError: If the text is no percentage, or the budget is at a service or is stated in
                neither epsilon nor rho.
        """
        number = exact("spend", text.removesuffix("%")) / 100 if text.endswith("%") else 0
        if not 0 < number <= 1:
            raise DomainError(
                "spend", text, 'a part of the budget such as "5%", or {"epsilon": 0.1}'
            )
        return {name: whole * number for name, whole in self._budget().items() if whole}

    @property
    def budget_in_words(self) -> str:
        """The remaining budget, such as "epsilon 1.9 of 2 at delta 1e-6 is left"; else the amounts by
        currency.
        """
        left = self.account.left()
        balance = None if self.ledger is None else self.ledger.balance(self.scope)
        known = None if balance is None else balance_in_epsilon(balance, left)
        if balance is None or known is None:
            amounts = (f"{name} {float(each.fraction):.6g}" for name, each in left.items())
            return f"{', '.join(amounts)} is left"
        epsilon, delta = target_of(balance.scope) or ("nan", "nan")
        return f"epsilon {known[1]:.6g} of {float(epsilon):.6g} at delta {float(delta):.6g} is left"

    def _budget(self) -> Mapping[str, Fraction]:
        """The whole budget of the scope."""
        if self.ledger is None:
            domain = 'an amount such as {"epsilon": 0.1} where a service keeps the budget'
            raise DomainError("spend", "a percentage", domain)
        balance = self.ledger.balance(self.scope)
        stated = balance.scope.description.get("budget", {}).get("filter")
        caps = {} if stated is None else from_description(stated).alternatives[0]
        target = target_of(balance.scope)
        amount = caps.get("epsilon", caps.get("rho")) if target is None else Fraction(target[0])
        if amount is None:
            domain = "an amount: the budget of the scope states no epsilon and no rho"
            raise DomainError("spend", "a percentage", domain)
        currency = "epsilon" if target is not None or "epsilon" in caps else "rho"
        of_delta = [
            each["delta"].fraction
            for each in (balance.left, balance.spent)
            if "delta" in balance.left
        ]
        return {currency: Fraction(amount), "delta": sum(of_delta, Fraction(0))}

    def plan(
        self,
        text: str,
        *,
        tables: Mapping[str, Any] | None = None,
        keys: Sequence[Any] | None = None,
    ) -> Plan:
        """Return the private questions of a statement and the computation over their answers; see
        `questions_of_sql`.
        """
        optional_library("sqlglot", "SQL", "data")
        from dpcompose.release.sql import planned

        return planned(text, self.table, tables=tables, keys=keys)

    def restored(
        self, documents: Sequence[Any], questions: Sequence[Question], receipt: Receipt
    ) -> tuple[Answer, ...]:
        """Return the answers from stored documents, for questions with their spends."""
        designs = [each.designed(self.table) for each in questions]
        return stored(documents, designs, questions, receipt)

    def _designed(
        self, questions: Sequence[Question], spend: Mapping[str, Any] | str | None
    ) -> list[Design]:
        questions = [self._bought(each) for each in questions_of(questions)]
        designs: list[Design] = []
        parts = self._parts(questions, spend)
        for position, (question, part) in enumerate(zip(questions, parts, strict=True), start=1):
            try:
                designs.append(question.designed(self.table, part))
            except DomainError as error:
                if len(questions) == 1:
                    raise
                name = f"question[{position}]: {error.name}"
                raise DomainError(name, error.value, error.domain, error.remedy) from None
        return designs

    def _parts(
        self, questions: Sequence[Question], spend: Mapping[str, Any] | str | None
    ) -> list[Mapping[str, Any] | None]:
        """Return the part of a common spend for each question."""
        part = None if spend is None else self.part(questions, spend)
        return [_needed(each, part, whole=not isinstance(spend, str)) for each in questions]

    def _bought(self, question: Question) -> Question:
        """Return the question with its spend as amounts, if it states a percentage or an error."""
        if isinstance(question.spend, str):
            amounts = _needed(question, self.percent(question.spend), whole=False)
            question = replace(question, spend=amounts)
        if question.error is None:
            return question

        def price(candidate: Question) -> Any:
            _, _, amounts = self._priced([candidate.designed(self.table)])
            return [amounts[name] for name in sorted(amounts, key=lambda name: name == "delta")]

        return cheapest(question, self.table if question.table is None else question.table, price)

    def _priced(
        self, designs: Sequence[Design]
    ) -> tuple[Composable, Fraction | None, Mapping[str, Any]]:
        """Return the mechanism charged for designs, the delta that its privacy curve is priced at,
        and the price.

        Some budgets divide that delta evenly among the parts of a mechanism. If a part alone needs
        more than that, no delta is named, and each part uses the one that it states.
        """
        mechanism = compose(*(design.mechanism for design in designs))
        total = sum((design.delta or Fraction(0) for design in designs), Fraction(0))
        # Amounts are multiples of 1e-40; this truncation is smaller than the margin of the
        # mechanism's own delta.
        delta = Fraction(int(total * 10**40), 10**40) or None
        try:
            return mechanism, delta, self.account.price(mechanism, delta=delta)
        except UnsupportedError:
            if delta is None or not any(design.threshold for design in designs):
                raise
            return mechanism, None, self.account.price(mechanism)

    @property
    def _trusted(self) -> Sequence[str]:
        """The views that the keeper declared trusted when the scope was opened."""
        note = self.account.note
        named = note.get("trust_view", [])
        views = cast("list[str]", named) if isinstance(named, list) else [str(named)]
        views = [each for each in views if not each.startswith(CATALOGUED)]
        return [*views, f"{CATALOGUED}{note['catalog']['version']}"] if "catalog" in note else views

    def _scans(self, designs: Sequence[Design], binding: Binding) -> Scans:
        return Scans.of([(design.table, design.wanted) for design in designs], binding.sampling)


def _key(questions: Sequence[Question], key: str | None) -> str | None:
    """Return the idempotency key of a request; a question asked alone may name it itself."""
    named = [question.key for question in questions if question.key is not None]
    if named and not (key is None and len(questions) == 1):
        raise DomainError("key", named[0], "left out of the questions: one key, batch(..., key=)")
    return named[0] if named else key


def _needed(
    question: Question, part: Mapping[str, Any] | None, *, whole: bool
) -> Mapping[str, Any] | None:
    """Return a question's part of a common spend; of a percentage, a delta is needed only for
    private groups.
    """
    private = bool(question.by) and question.keys is None
    if part is None or private or (whole and not isinstance(question, Chosen)):
        return part
    return {name: amount for name, amount in part.items() if name != "delta"}
