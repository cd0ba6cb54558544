"""Whether a budget allows the next calls, at the most that their own limits let them take."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from codetape.states import events as e
from codetape.states.job import Budget, Job
from codetape.states.requests import ModelRequest, Request
from codetape.states.session import Session
from codetape.states.values import LlmCall

UNLIMITED = Budget()
"""With it there is nothing to be checked."""

BYTES_A_TOKEN = 2
"""A prompt has at most a token for so many bytes: code and prose have one for three or four."""

OUTPUT_LIMITS = ("max_completion_tokens", "max_tokens")
"""The parameters of a call that limit its answer."""


def overspent(s: Session, wanted: tuple[Request, ...]) -> e.BudgetSpent | None:
    """Return the first limit that the calls which are wanted might break, or None.

    A limit that nothing is left of is broken by any call. What a call may take at most is known
    where it has a limit of output tokens, of its own or of its model; else it counts as nothing.
    """
    calls = [request.call for request in wanted if isinstance(request, ModelRequest)]
    if not calls:
        return None
    for name, spent, most, following in _limits(s, calls):
        if most is not None and (spent >= most or spent + following > most):
            return e.BudgetSpent.model_validate(
                {"limit": name, "spent": spent, "allowed": most, "next": following}
            )
    return None


def _limits(s: Session, calls: list[LlmCall]) -> tuple[tuple[str, float, float | None, float], ...]:
    """Name, what is spent, what is allowed, and the most that the calls might take.

    An answer that was not counted is taken for as much as the next one may be. Time is checked by
    what is spent: it passes in requests that run side by side.
    """
    budget, paid = s.job.budget, s.totals
    costs = [worst_cost(s.job, call) for call in calls]
    tokens = [input_tokens(call) + output_tokens(s.job, call) for call in calls]
    told = paid.input_tokens + paid.output_tokens
    return (
        ("usd", paid.usd + paid.unpriced_calls * max(costs), budget.usd, sum(costs)),
        ("tokens", told + paid.uncounted_calls * max(tokens), budget.tokens, sum(tokens)),
        ("calls", paid.calls, budget.calls, len(calls)),
        ("seconds", s.seconds, budget.seconds, 0.0),
    )


def input_tokens(call: LlmCall) -> int:
    """The most tokens that the messages of a call may have."""
    return sum(len(message.text.encode()) for message in call.messages) // BYTES_A_TOKEN


def output_tokens(job: Job, call: LlmCall) -> int:
    """The most tokens that an answer may have: the call's own limit, else its model's, else 0."""
    return _output_limit(job, call.model, call.parameters)


def _output_limit(job: Job, model: str, parameters: Mapping[str, JsonValue]) -> int:
    own = [limit for name in OUTPUT_LIMITS if isinstance(limit := parameters.get(name), int)]
    price = job.prices.get(model)
    return own[0] if own else (price and price.output_limit) or 0


def worst_cost(job: Job, call: LlmCall) -> float:
    """The most US dollars that a call may cost; 0 if the price of its model is unknown."""
    price = job.prices.get(call.model)
    if price is None:
        return 0.0
    return input_tokens(call) * price.input + output_tokens(job, call) * price.output


def worst_answer(job: Job, model: str) -> float:
    """The most US dollars that an answer of a model may cost, whatever was asked."""
    price = job.prices[model]
    return _output_limit(job, model, job.parameters) * price.output
