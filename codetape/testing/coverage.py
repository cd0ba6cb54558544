"""Which rows of a table the sessions of a store have taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from codetape.engine.tape import Source
from codetape.replay.rules import opened
from codetape.states.workflow import Workflow
from codetape.testing.findings import Place, places


def coverage(workflow: Workflow, source: Source, sessions: Iterable[str]) -> dict[Place, int]:
    """Count how often real sessions have taken each place of the table.

    Sessions of other workflows are passed over. Raises what reading a tape raises: UnknownSession,
    DamagedTape, UnreadableEvent, UnknownRules; and IllegalTransition.
    """
    every = places(workflow.machine.table)
    taken: Counter[Place] = Counter()
    for session in sessions:
        folded = workflow.blank(session)
        _, records = opened(source, session, (workflow,))
        for record in records:
            facts = workflow.folded(folded, record.event)
            held = (
                place
                for place in every
                if (place.source, place.row.event) == (folded.state, record.event.name)
                and all(guard(facts) for guard in place.row.guards)
            )
            taken.update([place] if (place := next(held, None)) else [])
            folded = workflow.advance(folded, record.event)
    return {place: taken[place] for place in every}
