"""A walk over everything that a table allows: `explore(workflow)`.

Real sessions are driven, with every kind of outcome for every request, and told apart only by what the
rules ask of them: the state, what each guard says, what is wanted or follows, and the counters that
guards read. So the space is small and can be walked to its end. What is found is a fact about the
table: a state or row that nothing reaches, an event without a row, a session that waits for nothing, a
cycle that nothing ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from heapq import heapify, heappop, heappush
from itertools import chain, pairwise
from typing import Any

from codetape.states import events as e
from codetape.states.job import Budget, Column, Job, Persona, Sample
from codetape.states.machine import IllegalTransition, Row, State
from codetape.states.session import Session
from codetape.states.workflow import AUTOCODER, Workflow
from codetape.testing.answering import Bodies
from codetape.testing.chance import seeded
from codetape.testing.cycles import cycles, longest
from codetape.testing.features import features_of
from codetape.testing.findings import Exploration, Finding, Order, Place, places
from codetape.testing.moves import SAID, Move, Moves, answers_to_a_pause
from codetape.testing.playing import opening, played
from codetape.testing.reads import Path, number_at, numbers_read

_COLUMN = Column(name="value", type="float", nullable=True)
_JOB = Job(prompt="Add two numbers.", max_iterations=3, call_retries=1, sandbox_retries=1)
_PERSONAS = (Persona(name="coder", directive="You write code."),)

JOBS: tuple[Job, ...] = (
    _JOB.model_copy(update={"personas": _PERSONAS, "fix_cycles": 2, "script_runs": True}),
    _JOB.model_copy(update={"skip_tests": True, "plan": False, "personas": _PERSONAS}),
    _JOB.model_copy(
        update={
            "budget": Budget(calls=2),
            "constraints": ("value is positive",),
            "fallback_models": ("another",),
            "personas": (*_PERSONAS, Persona(name="reviewer", directive="You review code.")),
            "samples": (
                Sample(name="t", path="/t", file="t", description="A table.", columns=(_COLUMN,)),
            ),
        }
    ),
)
"""What sessions are asked to do: with tests, without, and with little money and a fallback."""

HIGHEST = 12
"""Counters are told apart up to this number."""

SOME = 12
"""So many random sessions show what guards read."""

ROUNDS = 40
"""A cycle that goes on for so many rounds has no end."""

NEW_LOOK = 100
"""What looks like nothing before it is followed first."""

Key = tuple[Any, ...]


def explore(
    workflow: Workflow = AUTOCODER,
    *,
    bodies: Bodies | None = None,
    jobs: Sequence[Job] = JOBS,
    most: int = 500,
    outcomes: int = 30,
    walks: int = 150,
) -> Exploration:
    """Walk over all that `workflow` can do and say what is wrong with its table.

    `bodies` are what a model says to kinds of call of one's own, the best first; kinds without any are
    answered by their schema. `most` bounds the sessions that are looked at, `outcomes` what each
    request of one may bring; `walks` sessions are played at random before. What comes out is the same
    each time.
    """
    walk = _Walk(workflow, bodies, jobs, outcomes)
    walk.play(jobs, walks)
    for number, job in enumerate(sorted(jobs, key=lambda job: not job.skip_tests), 1):
        walk.open(job)
        walk.go(most * number // len(jobs))
    return walk.result()


class _Walk:
    def __init__(
        self,
        workflow: Workflow,
        bodies: Bodies | None,
        jobs: Sequence[Job],
        outcomes: int,
    ) -> None:
        self.workflow = workflow
        self.moves = Moves(workflow, bodies)
        self.bodies = bodies
        self.jobs = jobs
        self.outcomes = outcomes
        self.places = places(workflow.machine.table)
        self.rows: dict[tuple[State, str], list[Place]] = {}
        for place in self.places:
            self.rows.setdefault((place.source, place.row.event), []).append(place)
        self.guards = tuple(dict.fromkeys(g for row in workflow.machine.table for g in row.guards))
        self.counters: tuple[Path, ...] = ()
        self.taken: Counter[Place] = Counter()
        self.behind: dict[Place, Counter[Place]] = {}
        self.happened: set[tuple[State, str]] = set()
        self.orders: Counter[tuple[Place, Place]] = Counter()
        self.findings: dict[tuple[str, str], Finding] = {}
        self.met: set[tuple[Any, ...]] = set()
        self.seen: dict[tuple[Any, ...], Any] = {}
        self.queue: list[tuple[int, int, Key, Session]] = []
        self.edges: dict[Key, set[Key]] = {}
        self.looks: dict[Key, dict[Key, dict[str, tuple[Session, Move]]]] = {}
        self.ends: set[Key] = set()
        self.looked: set[Key] = set()
        self.told: set[Key] = set()
        self.events = 0
        self.examined = 0
        self.waiting = 0

    # --- the walk ---------------------------------------------------------------------------------

    def play(self, jobs: Sequence[Job], walks: int) -> None:
        """Play sessions at random, calm and rough; what guards read of them are the counters."""
        traces = []
        for number in range(walks):
            chance = seeded(f"walk {number}", (40, 15, 6, 3)[number % 4])
            job = jobs[number % len(jobs)]
            # What is wrong is found again, step by step.
            with suppress(Exception):
                traces.append(played(chance, job, None, self.workflow, self.bodies))
        some = [step.after for trace in traces[:SOME] for step in trace]
        self.counters = _counters(self.workflow, some)
        for step in chain.from_iterable(trace[1:] for trace in traces):
            self.step(step.before, step.event)

    def open(self, job: Job) -> None:
        """Begin a session with this job."""
        step = opening(self.workflow, job)
        if after := self.step(step.before, step.event):
            self.meet(after)

    def go(self, most: int) -> None:
        """Look at each session that was met, and at what may follow, until there is none left."""
        while self.queue and self.examined < most:
            key, session = self.next()
            self.edges.setdefault(key, set())
            if session.paused:
                self.hear(session, tuple(answers_to_a_pause(session)))
            else:
                self.look(key, session)
            if (kind := key[:5]) not in self.told:
                self.told.add(kind)
                forks = (e.Forked(parent="another", seq=1, job=job) for job in self.jobs)
                self.hear(session, (*SAID, *forks))
                self.die(session)

    def next(self) -> tuple[Key, Session]:
        """Take what is newest, and every other time what has waited longest."""
        if self.queue[0][0] < -NEW_LOOK * NEW_LOOK:
            return heappop(self.queue)[2:]
        self.examined += 1
        if self.examined % 2 == 0:
            entry = min(self.queue, key=lambda entry: entry[1])
            self.queue.remove(entry)
            heapify(self.queue)
        else:
            entry = heappop(self.queue)
        return entry[2], entry[3]

    def look(self, key: Key, session: Session) -> None:
        """Make every move."""
        coarse = key[:5]
        most = self.outcomes if coarse in self.looked else 2 * self.outcomes
        self.looked.add(coarse)
        moved = False
        try:
            for move, event in self.moves.of(session, most):
                moved = True
                if after := self.step(session, event):
                    other = self.meet(after)
                    self.edges[key].add(other)
                    ways = self.looks.setdefault(key[:5], {}).setdefault(other[:5], {})
                    ways.setdefault(event.name, (session, move))
        except Exception as fault:  # noqa: BLE001 - whatever rules raise is a finding
            says = f"the rules raise {type(fault).__name__}: {fault}"
            self.find("fault", str(session.state), says)
            return
        if not moved:
            says = "a session waits for nothing: nothing is asked for and nothing follows"
            self.find("dead end", str(session.state), says)

    def hear(self, session: Session, events: Sequence[e.Event]) -> None:
        """Let a person say each of these."""
        for event in events:
            if after := self.step(session, event):
                self.meet(after)

    def die(self, session: Session) -> None:
        """Let the process that runs it die again and again, until the rules have enough."""
        for _ in range(HIGHEST):
            after = None if session.done else self.step(session, e.Resumed())
            if after is None:
                return
            session = after

    def meet(self, session: Session) -> Key:
        """Put a session into the queue if none like it was met before."""
        key = self.key(session)
        if session.done:
            self.edges.setdefault(key, set())
        elif news := self.news(key, session):
            self.waiting += 1
            alone = session.paused or key[2]  # little can follow: that is quickly looked at
            news += NEW_LOOK * NEW_LOOK if alone else 0
            heappush(self.queue, (-news, self.waiting, key, session))
        return key

    def news(self, key: Key, session: Session) -> int:
        """How much of a session was not met before in one that asks for the same."""
        look, counted = key[:5], key[5:]
        features = [look, *((look, n, value) for n, value in enumerate(counted))]
        features += self.memories(key[:4], session)
        fresh = [feature for feature in features if feature not in self.met]
        self.met.update(fresh)
        return len(fresh) + (NEW_LOOK if look in fresh else 0)

    def memories(self, look: Key, session: Session) -> Iterator[tuple[Any, ...]]:
        """What a session remembers, in rough features."""
        for name, value in vars(session).items():
            if name in FORGOTTEN or (look, name, id(value)) in self.seen:
                continue
            self.seen[look, name, id(value)] = value  # kept, so that its id stays its own
            yield from ((look, name, part) for part in features_of(value))

    def step(self, session: Session, event: e.Event) -> Session | None:
        """Let an event happen, and note which rows held."""
        self.events += 1
        self.happened.add((session.state, event.name))
        try:
            after = self.workflow.advance(session, event)
            facts = self.workflow.folded(session, event)
            self.note([p for p in self.rows[session.state, event.name] if _holds(p, facts)])
        except IllegalTransition:
            says = "it happens there, and the table has no row for it"
            self.find("refused", f"{session.state} {event.name}", says)
            return None
        except Exception as fault:  # noqa: BLE001 - whatever rules raise is a finding
            says = f"the rules raise {type(fault).__name__}: {fault}"
            self.find("fault", f"{session.state} {event.name}", says)
            return None
        return after

    def note(self, held: list[Place]) -> None:
        """The first row that holds is taken; the others wait behind it."""
        first, *others = held
        self.taken[first] += 1
        for other in others:
            self.behind.setdefault(other, Counter())[first] += 1
            if other.row.guards and other.row.dest is not first.row.dest:
                self.orders[first, other] += 1

    def key(self, session: Session) -> Key:
        """What tells sessions apart."""
        if session.done:
            return (session.state,)
        settled: str | None = None
        asked: tuple[str, ...] = ()
        try:
            if event := self.workflow.settle(session):
                settled = event.name
            else:
                asked = tuple(request.name for request in self.workflow.wanted(session))
        except Exception:  # noqa: BLE001 - found when it is looked at
            settled = "a fault"
        said = tuple(_says(guard, session) for guard in self.guards)
        counted = (min(number_at(session, path), HIGHEST) for path in self.counters)
        return (session.state, session.paused is None, settled, asked, said, *counted)

    def find(self, kind: Any, where: str, says: str) -> None:
        self.findings.setdefault((kind, where), Finding(kind, where, says))

    # --- the findings -----------------------------------------------------------------------------

    def result(self) -> Exploration:
        """Judge what the walk has seen."""
        self.judge_states()
        self.judge_rows()
        graph = {key: tuple(following) for key, following in self.edges.items()}
        self.judge_cycles()
        counters = tuple(".".join(path).replace(".()", ", counted") for path in self.counters)
        return Exploration(
            workflow=self.workflow.name,
            findings=tuple(self.findings.values()),
            orders=tuple(Order(*pair, n) for pair, n in self.orders.items()),
            taken={place: self.taken[place] for place in self.places},
            counters=counters,
            sessions=len(self.edges),
            events=self.events,
            longest=longest(graph) + 1,
            left=len(self.queue),
        )

    def judge_states(self) -> None:
        reached = {place.row.dest for place in self.taken} | {State.NEEDS_CODE}
        for state in State:
            if state not in reached and any(state in row.sources for row in self.table):
                self.find("state", str(state), "no event leads there, so its rows are idle")

    @property
    def table(self) -> tuple[Row, ...]:
        return self.workflow.machine.table

    def judge_rows(self) -> None:
        for place in self.places:
            if self.taken[place]:
                continue
            where = f"row {place.number}, {place}"
            if before := self.behind.get(place):
                earlier = ", ".join(f"row {other.number}" for other in before)
                self.find("behind", where, f"{earlier} holds whenever it does")
            elif (place.source, place.row.event) in self.happened:
                self.find("row", where, "its guards never hold there")
            else:
                self.find("row", where, f"{place.row.event} never happens there")

    def judge_cycles(self) -> None:
        """Walk each cycle of sessions that look the same, until a counter ends it, or none does."""
        walked: set[frozenset[str]] = set()
        graph = {look: tuple(following) for look, following in self.looks.items()}
        for look, other, *rest in cycles(graph):
            back = [next(iter(self.looks[a][b].values())) for a, b in pairwise((other, *rest))]
            for begin in self.looks[look][other].values():
                steps = (begin, *back)
                names = [f"{session.state} {_asked(move)}" for session, move in steps]
                if (told := frozenset(names)) not in walked:
                    walked.add(told)
                    self.judge_cycle(begin[0], names, [move for _, move in steps])

    def judge_cycle(self, session: Session, names: list[str], moves: list[Move]) -> None:
        if self.goes_on(session, moves):
            says = f"the same goes on for ever: {', '.join(dict.fromkeys(names))}"
            self.find("endless", str(session.state), says)

    def goes_on(self, session: Session, moves: list[Move]) -> bool:
        """True if the same moves can be made over and over again."""
        try:
            for _ in range(ROUNDS):
                for move in moves:
                    event = self.moves.again(session, move)
                    if event is None:
                        return False
                    session = self.workflow.advance(session, event)
        except Exception:  # noqa: BLE001 - this is no cycle then, and found elsewhere
            return False
        return not session.done


def _counters(workflow: Workflow, sessions: Sequence[Session]) -> tuple[Path, ...]:
    """The numbers that guards read, and those of the session itself that settling reads."""
    found: set[Path] = set()
    for guard in dict.fromkeys(g for row in workflow.machine.table for g in row.guards):
        found |= numbers_read(guard, sessions)
    found |= {path for path in numbers_read(workflow.settle, sessions) if len(path) == 1}
    return tuple(sorted(found))


FORGOTTEN = frozenset({"id", "seq", "state", "job", "totals", "inherited", "history", "run"})
"""Parts of a session that no rule decides by, or only by way of what is told apart already."""


def _holds(place: Place, facts: Session) -> bool:
    return all(guard(facts) for guard in place.row.guards)


def _says(guard: Callable[[Any], bool], session: Session) -> bool | None:
    try:
        return bool(guard(session))
    except Exception:  # noqa: BLE001 - a guard may need facts that only its event brings
        return None


def _asked(move: Move) -> str:
    return f"{move.asked} {move.choices}" if move.choices else move.asked
