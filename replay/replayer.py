"""Replay: would today's rules do again what the tape says? No adapter is called.

Each event is held against three questions to the rules, asked of the session before it: did you ask
for this, is this what you make of what came back, does it lead where it led? Requests are found by
their content, never by their order. How a session ended and how its replay ends are two things.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from codetape.engine import codec
from codetape.engine.codec import UnreadableEvent
from codetape.engine.ports import DamagedTape
from codetape.engine.tape import Recorded, Source
from codetape.replay import drift
from codetape.replay.drift import Difference, Report
from codetape.replay.reading import as_recorded, is_redacted, stored_request
from codetape.replay.rules import UnknownRules, opened
from codetape.states.events import Cancelled, Event, Forked, Noted, Paused, Resumed, SessionOpened
from codetape.states.machine import IllegalTransition
from codetape.states.requests import Request
from codetape.states.workflow import WORKFLOWS, Workflow

OUTSIDE = (SessionOpened, Forked, Paused, Resumed, Noted, Cancelled)
"""Events that no rule brings about: somebody decided them."""


def replay(
    source: Source,
    session: str,
    workflows: Sequence[Workflow] = WORKFLOWS,
    *,
    keep_going: bool = False,
    ignore_prompts: bool = False,
) -> Report:
    """Compare a stored tape with today's rules, up to the first difference.

    `keep_going` reports all differences: after each one it goes on from what the tape says.
    `ignore_prompts` compares the path only: of a request its name counts, not its content. Raises
    UnknownSession. A damaged tape, a redacted one, and an event or rules of a newer
    version are differences.
    """
    if is_redacted(source):
        return Report(session, None, 0, (drift.redacted(),))
    differences: list[Difference] = []
    replayer: Replayer | None = None
    try:
        rules, records = opened(source, session, workflows)
        replayer = Replayer(rules, session, source.get_blob, ignore_prompts=ignore_prompts)
        for record in records:
            differences += replayer.step(record)
            if replayer.session.seq < record.seq or (differences and not keep_going):
                break
    except (DamagedTape, UnreadableEvent, UnknownRules) as error:
        seq = replayer.session.seq + 1 if replayer else 1
        differences.append(drift.unreadable(seq, error))
    if replayer is None:
        return Report(session, None, 0, tuple(differences))
    folded = replayer.session
    return Report(session, replayer.rules.rules, folded.seq, tuple(differences), folded.ending)


class Replayer:
    """Holds events against the rules, one by one; `session` is what they have led to."""

    def __init__(
        self,
        rules: Workflow,
        session: str,
        get_blob: Callable[[str], bytes],
        *,
        ignore_prompts: bool = False,
    ) -> None:
        self.rules = rules
        self.session = rules.blank(session)
        self._get_blob = get_blob
        self._ignore_prompts = ignore_prompts
        self._answered: Request | None = None  # today's request whose outcome the event is

    def step(self, record: Recorded) -> list[Difference]:
        """Return what the rules do otherwise at the next event, causes before consequences.

        The session then stands after the event, as the tape tells it; still before it if the rules
        cannot even fold it.
        """
        self._answered = None
        return [
            *_guarded("request", record, self._asked(record)),
            *_guarded("interpretation", record, self._read(record)),
            *_guarded("refused", record, self._moved(record)),
        ]

    # --- did the rules ask for this? --------------------------------------------------------------

    def _asked(self, record: Recorded) -> Iterator[Difference]:
        if record.request_key is None and isinstance(record.event, OUTSIDE):
            if isinstance(record.event, SessionOpened) and record.seq > 1:
                yield drift.request(record, "an open session", "it was opened before")
            return
        settled = self.rules.settle(self.session)
        if record.request_key is None:
            yield from self._followed(record, settled)
        elif settled is not None:
            yield drift.request(record, self._name_of(record.request_key), _alone(settled))
        else:
            yield from self._requested(record, record.request_key)

    def _followed(self, record: Recorded, settled: Event | None) -> Iterator[Difference]:
        """An event without a request has to follow by itself."""
        if settled is None:
            asked = _names(self.rules.wanted(self.session))
            yield drift.request(record, _alone(record.event), asked)
        elif type(settled) is not type(record.event):
            yield drift.request(record, _alone(record.event), _alone(settled))
        else:
            yield from drift.interpretation(record, settled)

    def _requested(self, record: Recorded, key: str) -> Iterator[Difference]:
        """An event with a request has to be the outcome of one that the rules ask for."""
        wanted = self.rules.wanted(self.session)
        for request in wanted:
            if codec.pack_request(request).key == key:
                self._answered = request
                return
        name = self._name_of(key)
        self._answered = next((r for r in wanted if r.name == name), None)
        if self._answered is None:
            yield drift.request(record, name, _names(wanted))
        elif not self._ignore_prompts:
            today = codec.pack_request(self._answered)
            found = codec.unpack_json(today.body.text, today.body.blobs.__getitem__)
            yield drift.content(record, (key, self._body(key)), (today.key, found))

    def _name_of(self, key: str) -> str:
        body = self._body(key)
        return str(body["request"]) if body else f"a request whose content is not kept ({key[:12]})"

    def _body(self, key: str) -> dict[str, Any] | None:
        return stored_request(self._get_blob, key)

    # --- is this what they make of what came back? ------------------------------------------------

    def _read(self, record: Recorded) -> Iterator[Difference]:
        if self._answered is None:
            return
        outcome = record.event.outcome
        if outcome is None:
            yield drift.no_outcome(record)
        else:
            yield from drift.interpretation(record, self.rules.interpret(self._answered, outcome))

    # --- does it lead where it led? ---------------------------------------------------------------

    def _moved(self, record: Recorded) -> Iterator[Difference]:
        before = self.session
        try:
            after = self.rules.advance(before, record.event)
        except IllegalTransition:
            yield drift.refused(record, before.state, self.rules.machine.accepts(before.state))
        else:
            if (before.state, after.state) == (record.source, record.dest):
                self.session = after
                return
            yield drift.destination(record, before.state, after.state)
        self.session = as_recorded(self.rules, before, record)


def _guarded(
    kind: drift.Kind, record: Recorded, differences: Iterator[Difference]
) -> Iterator[Difference]:
    """Yield `differences`; a fault of the rules is one more, not the end of the replay."""
    try:
        yield from differences
    except Exception as fault:  # noqa: BLE001 - whatever rules raise, it is a finding at this event
        yield drift.fault(record, kind, fault)


def _alone(event: Event) -> str:
    return f"{event.name}, which follows by itself"


def _names(requests: Sequence[Request]) -> str:
    return ", ".join(request.name for request in requests) or "nothing"
