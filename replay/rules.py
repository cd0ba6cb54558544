"""Which rules a tape is read with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from codetape.engine.ports import DamagedTape, UnknownSession
from codetape.engine.tape import Recorded, Source, read
from codetape.states.events import SessionOpened
from codetape.states.workflow import Workflow


class UnknownRules(ValueError):
    """A tape of rules that are not here: `workflow` and `rules` are what its first event names."""

    def __init__(self, workflow: str, rules: int, reason: str) -> None:
        super().__init__(f"workflow {workflow}, rules {rules}: {reason}")
        self.workflow = workflow
        self.rules = rules


_own: dict[tuple[str, int], Workflow] = {}


def register(workflow: Workflow) -> None:
    """Have tapes of a workflow of one's own opened by it, everywhere in this process."""
    _own[workflow.name, workflow.rules] = workflow


def rules_for(workflow: str, rules: int, workflows: Iterable[Workflow]) -> Workflow:
    """Return the rule set `rules` of a workflow, or the newest one where that is newer.

    Raises UnknownRules for a workflow that is neither among `workflows` nor registered, and for rules
    newer than all.
    """
    known = {w.rules: w for w in (*_own.values(), *workflows) if w.name == workflow}
    if not known:
        raise UnknownRules(
            workflow,
            rules,
            "there is no such workflow here; one of your own has "
            "to be named, in CODETAPE_WORKFLOWS=module:name",
        )
    newest = max(known)
    if rules > newest:
        reason = f"a newer version of codetape wrote them; the newest here are {newest}"
        raise UnknownRules(workflow, rules, reason)
    return known.get(rules, known[newest])


def opened(
    source: Source, session: str, workflows: Sequence[Workflow]
) -> tuple[Workflow, Iterator[Recorded]]:
    """Return the rules of a tape and its events, the first one included.

    Raises UnknownSession (also for one without any event), UnknownRules, and what `engine.tape.read`
    raises, here for the first event and later for the others.
    """
    records = read(source, session)
    first = next(records, None)
    if first is None:
        raise UnknownSession(session)
    if not isinstance(first.event, SessionOpened):
        raise DamagedTape(session, 1, f"a tape begins with session_opened, not {first.event.name}")
    rules = rules_for(first.event.workflow, first.event.rules, workflows)
    return rules, chain((first,), records)
