"""A Hypothesis state machine over any workflow: finds short runs of outcomes that break an invariant.

    TestMine = machine_for(MINE).TestCase

Each step is one thing that may happen next: what follows by itself, an outcome of any request in
flight, good or bad, or an operator's word. After each step the session waits for something or is at its
end; at the end of each run all invariants are checked. A failing run is printed as the steps that made
it, with as few of them as Hypothesis can find.
"""

from __future__ import annotations

from typing import Any, ClassVar

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from codetape.states import events as e
from codetape.states.job import Job
from codetape.states.session import Session
from codetape.states.workflow import AUTOCODER, Workflow
from codetape.testing.answering import Bodies
from codetape.testing.chance import Chance
from codetape.testing.invariants import check, it_always_waits_for_something, refuses
from codetape.testing.playing import LONGEST_TRACE, Step, Trace, advanced, going_on, opened
from codetape.testing.strategies import jobs, outside_events


class WorkflowMachine(RuleBasedStateMachine):
    """Sessions of one workflow. Set `workflow`, and `bodies` for kinds of call of your own.

    Subclasses add rules and invariants; `trace` is what has happened so far.
    """

    workflow: ClassVar[Workflow] = AUTOCODER
    bodies: ClassVar[Bodies] = {}

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []

    @property
    def trace(self) -> Trace:
        """All steps, the opening included."""
        return tuple(self.steps)

    @property
    def session(self) -> Session:
        """The session after the last step."""
        return self.steps[-1].after

    @initialize(job=jobs())
    def opens(self, job: Job) -> None:
        """The session is opened."""
        self.steps.append(opened(self.workflow, job))

    @precondition(lambda self: self.may_go_on)
    @rule(choices=st.lists(st.integers(0, 255), max_size=24))
    def goes_on(self, choices: list[int]) -> None:
        """What follows by itself happens, else the outcome of a request, by these choices."""
        self._go_on(Chance(choices))
        note(repr(self.steps[-1]))

    def _go_on(self, chance: Chance) -> None:
        if step := going_on(self.workflow, self.session, chance, self.bodies):
            self.add(step)

    @precondition(lambda self: bool(self.steps) and not self.session.done)
    @rule(event=outside_events())
    def is_told(self, event: e.Event) -> None:
        """An operator says something."""
        self.add(Step(self.session, event, self.session))

    @precondition(lambda self: bool(self.steps) and self.session.done)
    @rule(event=outside_events())
    def is_told_in_vain(self, event: e.Event) -> None:
        """After the end nothing is accepted."""
        assert refuses(self.workflow, self.session, event), f"Done accepts {event.name}"

    @property
    def may_go_on(self) -> bool:
        """True if something may happen without an operator."""
        return bool(self.steps) and not (self.session.done or self.session.paused)

    def add(self, step: Step) -> None:
        """Let a step happen."""
        self.steps.append(advanced(self.workflow, step))

    @invariant()
    def waits_for_something(self) -> None:
        """There is a way on, or an end."""
        it_always_waits_for_something(tuple(self.steps[-1:]), self.workflow)

    def teardown(self) -> None:
        """Check the whole session, to its end."""
        chance = Chance(())
        for _ in range(LONGEST_TRACE):  # rules that stand still or turn in circles have no end
            if self.may_go_on:
                self._go_on(chance)
        if self.steps and self.session.done:
            check(self.trace, self.workflow)


def machine_for(
    workflow: Workflow, bodies: Bodies | None = None, **others: Any
) -> type[WorkflowMachine]:
    """Return a machine over `workflow`; its `TestCase` is what pytest collects.

    `bodies` are what a model says to kinds of call of one's own, the best first; `others` become
    attributes of the class.
    """
    name = f"{workflow.name.title()}Machine"
    return type(name, (WorkflowMachine,), {"workflow": workflow, "bodies": bodies or {}, **others})
