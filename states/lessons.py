"""What a tape teaches: which error was repaired by what. No model is asked, and nothing is guessed.

A failure that a run showed is repaired when a later run shows that it is gone, and something was
changed in between: the code, the tests or the image. A failure that came back, or was never looked at
again, teaches nothing.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from codetape.states import events as e
from codetape.states.failures import COLLECTION, SCRIPT, Failure, masked
from codetape.states.session import Session
from codetape.states.tools.events import ScriptRan
from codetape.states.tools.session import ToolSession
from codetape.states.values import FailureClass, RunOutcome
from codetape.states.workflow import Workflow

MOST = 8
"""Lessons of one tape."""

LONGEST_PART = 300
"""Characters of a message, a cause or a fix."""

LONGEST_DIFF = 10
"""Lines of a diff, each of them at most a hundred characters."""

MOST_LINES = 2000
"""Lines of a file beyond which no diff is made: it would take too long."""

_RAISED = re.compile(r"^([A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Iteration))(?:: ?(.*))?$")
_FRAME = re.compile(r'File "[^"]*solution\.py", line \d+, in (\S+)')


@dataclass(frozen=True)
class Change:
    """What was made otherwise between two runs."""

    code: tuple[str, str] | None = None
    tests: bool = False
    packages: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self != Change()


@dataclass(frozen=True)
class Trouble:
    """A failure that a run showed, and the change after which it was not there any more."""

    failure: Failure
    change: Change | None = None


def lessons(workflow: Workflow, events: Iterable[e.Event]) -> tuple[str, ...]:
    """Return what the events of a tape teach, in their order; nothing if nothing was repaired.

    Of several failures that one repair has mended, the first is told. Raises IllegalTransition.
    """
    told: dict[str, str] = {}
    for trouble in _repaired(workflow, events):
        how = _how(trouble)
        told.setdefault(how, f"{_what(trouble.failure)} It was repaired by {how}")
    return tuple(told.values())[:MOST]


def _repaired(workflow: Workflow, events: Iterable[e.Event]) -> Iterator[Trouble]:
    """Yield each failure with its repair, at the run that shows that it is gone."""
    session, ran = workflow.blank("-"), None
    open_: list[Trouble] = []
    for event in events:
        before, session = session, workflow.advance(session, event)
        if not isinstance(event, e.Ran):
            continue
        if ran is not None:
            open_ = [_with_change(trouble, before, _change(ran, before)) for trouble in open_]
        ran = before
        is_gone = partial(_is_gone, event=event, script_first=isinstance(session, ToolSession))
        yield from (x for x in open_ if x.change and is_gone(x.failure))
        left = [x for x in open_ if not is_gone(x.failure)]
        shown = {failure.identity for failure in session.failures}
        open_ = [x for x in left if x.failure.identity not in shown]
        open_ += [Trouble(failure) for failure in session.failures]


def _with_change(trouble: Trouble, now: Session, change: Change) -> Trouble:
    """Take over what was found out about a failure since it was shown, and what was done."""
    if trouble.change is not None:
        return trouble
    same = (f for f in now.failures if f.identity == trouble.failure.identity)
    return Trouble(next(same, trouble.failure), change or None)


def _change(ran: Session, now: Session) -> Change:
    before, after = ran.spec, now.spec
    code = (ran.code.source if ran.code else "", now.code.source if now.code else "")
    wanted = (*after.requirements, *after.system_packages)
    had = {*before.requirements, *before.system_packages}
    return Change(
        code=code if code[0] != code[1] else None,
        tests=ran.tests is not None and ran.tests != now.tests,
        packages=tuple(name for name in wanted if name not in had),
        commands=tuple(x for x in after.commands if x not in before.commands),
    )


def _is_gone(failure: Failure, event: e.Ran, *, script_first: bool) -> bool:
    """Say whether a run shows that a failure is no longer there.

    `script_first` says that tests are run when the script has run, and not before it.
    """
    match event:
        case e.TestsPassed():
            return _outcomes(event.run).get(failure.test_id, "passed") == "passed"
        case e.TestsFailed() | e.ScriptFailed():
            others = {COLLECTION: "passed", SCRIPT: "passed" if script_first else "unknown"}
            return {**others, **_outcomes(event.run)}.get(failure.test_id) == "passed"
        case ScriptRan():
            return failure.test_id == SCRIPT
    return False


def _outcomes(run: RunOutcome) -> dict[str, str]:
    return {x.id: x.outcome for x in run.report.results} if run.report else {}


# --- in words -------------------------------------------------------------------------------------


def _what(failure: Failure) -> str:
    """Say what failed: the error, where, and why if somebody has said why."""
    failure = _as_raised(failure)
    places = [f.function for f in failure.problem.frames if f.place == "solution"]
    where = (places[-1] if places else failure.base_id).replace("<module>", "solution.py")
    message = masked(failure.problem.message.strip().partition("\n")[0])
    said = _sentence(f"{failure.problem.type} in {where}" + (f": {message}" if message else ""))
    return f"{said} The cause: {_sentence(failure.root_cause)}" if failure.root_cause else said


def _as_raised(failure: Failure) -> Failure:
    """Read the exception out of what a script printed last, where there is one."""
    said = failure.problem.message
    raised = next(filter(None, map(_RAISED.match, reversed(said.split("\n")))), None)
    if failure.test_id != SCRIPT or raised is None:
        return failure
    places = _FRAME.findall(said)
    update = {"type": raised[1], "message": raised[2] or ""}
    problem = failure.problem.model_copy(update=update)
    changes = {"problem": problem, "test_id": places[-1] if places else SCRIPT}
    return failure.model_copy(update=changes)


def _how(trouble: Trouble) -> str:
    """Say what repaired it: what its label asked for, if that was done."""
    failure, change = trouble.failure, trouble.change or Change()
    image = change.packages or change.commands
    if image and (failure.label is FailureClass.ENVIRONMENT or not (change.code or change.tests)):
        return _installed(change)
    if change.tests and (failure.label is FailureClass.TEST_ERROR or not change.code):
        return f"another test: {_sentence(failure.fix)}" if failure.fix else "another test."
    if failure.fix:
        return f"this change of the code: {_sentence(failure.fix)}"
    diff = _diff(*change.code) if change.code else ""
    return f"this change of the code:\n{diff}" if diff else "a change of the code."


def _installed(change: Change) -> str:
    done = [f"installing {', '.join(change.packages)}"] if change.packages else []
    done += [f"running `{command}` in the image" for command in change.commands]
    return _sentence(" and ".join(done))


def _diff(before: str, after: str) -> str:
    """Return the first lines that differ, or nothing where there are too many to compare."""
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > MOST_LINES:
        return ""
    lines = list(difflib.unified_diff(old, new, n=0, lineterm=""))[2:]
    changed = [line[:100].rstrip() for line in lines if line[1:].strip() and line[:2] != "@@"]
    more = (
        [f"[… {len(changed) - LONGEST_DIFF} lines more …]"] if len(changed) > LONGEST_DIFF else []
    )
    return "\n".join([*changed[:LONGEST_DIFF], *more])


def _sentence(text: str) -> str:
    """Return a text as one bounded line that ends like a sentence."""
    line = _part(text)
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."


def _part(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_PART else f"{line[: LONGEST_PART - 1]}…"
