"""The machine: a table of rows, run by `transitions`.

Rules of this file:
- A table is data. A row says: when this event happens in one of these states, and these guards hold
  on the folded session (the event's facts included), the session goes there.
- For each (state, event) the rows are tried from top to bottom and the last one has no guard, so an
  accepted event has exactly one destination.
- `Machine.next_state` computes a value and changes nothing. The object that `transitions` moves is a
  cursor that never leaves this file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

import transitions


class State(StrEnum):
    """The seven states of every workflow; there are no others."""

    NEEDS_CODE = "NeedsCode"
    NEEDS_TESTS = "NeedsTests"
    NEEDS_REBUILD = "NeedsRebuild"
    TESTING = "Testing"
    DIAGNOSING = "Diagnosing"
    RECLASSIFY = "Reclassify"
    DONE = "Done"


Guard = Callable[[Any], bool]
"""A pure predicate on a folded session."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table; `source` may be several states, `guards` must all hold."""

    event: str
    source: State | tuple[State, ...]
    dest: State
    guards: tuple[Guard, ...] = ()

    @property
    def sources(self) -> tuple[State, ...]:
        return self.source if isinstance(self.source, tuple) else (self.source,)

    @property
    def guard_names(self) -> tuple[str, ...]:
        return tuple(guard.__name__ for guard in self.guards)


class IllegalTransition(Exception):
    """An event that the table does not accept in this state: `session`, `state`, `event`."""

    def __init__(self, session: str, state: State, event: str) -> None:
        super().__init__(f"session {session}: {event} is not accepted in {state}")
        self.session = session
        self.state = state
        self.event = event


class BadTable(ValueError):
    """A table that breaks the rules of this file."""


class _Cursor:
    """What `transitions` moves; one for each thread, because a machine may serve many."""

    state: str


class _Move(transitions.Transition):
    """A row as the library runs it: a row has guards and no callbacks, so none are gone through."""

    def execute(self, event_data: transitions.EventData) -> bool:
        """Move the cursor if all guards hold on the facts; false lets the next row be tried."""
        (facts,), cursor = event_data.args, event_data.model
        assert isinstance(cursor, _Cursor), "the only model of the machine"
        if not all(cast(Guard, condition.func)(facts) for condition in self.conditions):
            return False
        cursor.state = str(self.dest)  # a row has one
        return True


class _Library(transitions.Machine):
    """The library's machine, over such rows."""

    transition_cls = _Move


class Machine:
    """A table, checked and ready to run. Raises BadTable if a (state, event) has no last resort."""

    def __init__(self, table: Iterable[Row]) -> None:
        self.table = tuple(table)
        _check(self.table)
        self._local = threading.local()

    def next_state(self, session: str, state: State, event: str, facts: object) -> State:
        """Return where `event` leads from `state`. Raises IllegalTransition."""
        library = self._library()
        cursor: _Cursor = library.models[0]
        cursor.state = state.value
        if event not in library.events:
            raise IllegalTransition(session, state, event)
        try:
            library.events[event].trigger(cursor, facts)
        except transitions.MachineError as refused:
            raise IllegalTransition(session, state, event) from refused
        return State(cursor.state)

    def accepts(self, state: State) -> tuple[str, ...]:
        """The names of the events that `state` accepts, in the order of the table."""
        return tuple(dict.fromkeys(row.event for row in self.table if state in row.sources))

    def _library(self) -> transitions.Machine:
        library: transitions.Machine | None = getattr(self._local, "machine", None)
        if library is None:
            library = self._local.machine = _build(self.table)
        return library


def _build(table: tuple[Row, ...]) -> transitions.Machine:
    machine = _Library(
        model=_Cursor(),
        states=[state.value for state in State],
        initial=State.NEEDS_CODE.value,
        auto_transitions=False,
    )
    for row in table:
        sources: list[Any] = [source.value for source in row.sources]
        machine.add_transition(row.event, sources, row.dest.value, conditions=list(row.guards))
    return machine


def _check_row(row: Row) -> None:
    """Raise BadTable for what is not of its type: a table is written by hand."""
    states = (*row.sources, row.dest)
    if wrong := [state for state in states if not isinstance(state, State)]:
        raise BadTable(f"{row.event}: {wrong[0]!r} is no State")
    if not isinstance(row.guards, tuple):
        raise BadTable(f"{row.event}: guards are a tuple, as in (guard,); not {row.guards!r}")
    if odd := [guard for guard in row.guards if not callable(guard)]:
        raise BadTable(f"{row.event}: the guard {odd[0]!r} is no function")


def _check(table: tuple[Row, ...]) -> None:
    closed: set[tuple[State, str]] = set()
    opened: set[tuple[State, str]] = set()
    for row in table:
        _check_row(row)
        for source in row.sources:
            pair = (source, row.event)
            if source is State.DONE:
                raise BadTable(f"{row.event}: Done is the end, it has no rows")
            if pair in closed:
                raise BadTable(f"{source}, {row.event}: a row after the one without guards")
            opened.add(pair)
            if not row.guards:
                closed.add(pair)
    if unclosed := sorted(opened - closed):
        raise BadTable(f"{unclosed[0]}: the last row must have no guard")
