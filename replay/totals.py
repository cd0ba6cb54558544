"""What a session has paid itself, read from its own events without folding them."""

from __future__ import annotations

import json
from typing import Any

from codetape.engine.ports import DamagedTape, SessionRow
from codetape.engine.tape import Source
from codetape.states.session import Totals


def own_totals(source: Source, row: SessionRow) -> Totals:
    """Sum over the answers among the events that a session has written; inherited ones are not.

    Raises DamagedTape.
    """
    totals = Totals()
    for event in source.read(row.id, row.parent_seq or 0):
        if event.request_key is None:
            continue
        try:
            answer = json.loads(event.data).get("answer")
            totals = _added(totals, answer) if answer else totals
        except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
            reason = "what its answer cost cannot be read"
            raise DamagedTape(row.id, event.seq, reason) from error
    return totals


def _added(totals: Totals, answer: dict[str, Any]) -> Totals:
    usage, cost = answer["usage"], answer["cost"]
    tokens = (usage["input_tokens"], usage["output_tokens"])
    return Totals(
        calls=totals.calls + 1,
        input_tokens=totals.input_tokens + (tokens[0] or 0),
        output_tokens=totals.output_tokens + (tokens[1] or 0),
        usd=totals.usd + (cost or 0.0),
        uncounted_calls=totals.uncounted_calls + (None in tokens),
        unpriced_calls=totals.unpriced_calls + (cost is None),
    )
