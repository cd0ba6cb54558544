"""From a request of the tool maker and its outcome to the event that it is."""

from __future__ import annotations

from codetape.states import events as e
from codetape.states import reading
from codetape.states import requests as r
from codetape.states.answers import Unusable, whole_text
from codetape.states.classify import limit_problem
from codetape.states.code_text import python_code
from codetape.states.failures import SCRIPT, Failure
from codetape.states.fences import has_open_fence, is_called_python
from codetape.states.packages import distributions_of
from codetape.states.python_source import (
    does_something,
    imported_names,
    public_functions,
    syntax_error,
)
from codetape.states.required_imports import required_names
from codetape.states.script import crash
from codetape.states.tools import events as t
from codetape.states.tools import requests as q
from codetape.states.tools.harness import as_test, problems
from codetape.states.values import (
    Answer,
    FailureClass,
    Outcome,
    Problem,
    RunOutcome,
    SandboxFailure,
)


def interpret(request: r.Request, outcome: Outcome) -> e.Event:
    """Return the event that `outcome` of `request` is. Raises TypeError if the two do not fit."""
    match request, outcome:
        case q.AskPersona() | q.FixCode() | q.WriteHarness(), Answer():
            return _read(request, outcome)
        case q.RunScript(), RunOutcome():
            return _ran(outcome)
    return reading.interpret(request, outcome)


def code_in(text: str) -> str | None:
    """Return the fenced block that is the solution, or the text itself if it is code, or None.

    A word parses, too: code is what defines a function, imports something, or is called Python.
    """
    source = python_code(text, reading.is_solution)
    if syntax_error(source) or not (
        public_functions(source)
        or imported_names(source)
        or (is_called_python(text, source) and does_something(source))
    ):
        return None
    return source.rstrip("\n") + "\n"


def _uncut(text: str, is_code: bool) -> None:
    """Raise Unusable for an answer that has no code because it ends in the middle of it."""
    if not is_code and has_open_fence(text):
        raise Unusable("truncated", "a fenced block is not closed")


def _read(request: q.AskPersona | q.FixCode | q.WriteHarness, answer: Answer) -> e.Event:
    try:
        text = whole_text(answer, lambda part: code_in(part) is not None)
        match request:
            case q.AskPersona():
                return _finding(request, text, answer)
            case q.FixCode():
                return _fixed(text, answer)
        return _harness(request, text, answer)
    except Unusable as why:
        kind = request.call.kind
        return e.AnswerRejected(kind=kind, reason=why.reason, detail=why.detail, answer=answer)


def _finding(request: q.AskPersona, text: str, answer: Answer) -> t.FindingWritten:
    source = code_in(text) if request.writes else None
    _uncut(text, source is not None or not request.writes)
    packages = distributions_of(required_names(source or ""))
    return t.FindingWritten(
        persona=request.persona, source=source, packages=packages, answer=answer
    )


def _fixed(text: str, answer: Answer) -> e.CodeWritten:
    source = code_in(text)
    _uncut(text, source is not None)
    if source is None:
        raise Unusable("invalid", "it has no fenced block of Python that parses")
    packages = distributions_of(required_names(source))
    return e.CodeWritten(source=source, packages=packages, answer=answer)


def _harness(request: q.WriteHarness, text: str, answer: Answer) -> e.Event:
    source = python_code(text)
    _uncut(text, syntax_error(source) is None)
    if why := syntax_error(source):
        return t.HarnessRefused(reasons=(f"It does not parse: {why}.",), answer=answer)
    source = as_test(source)
    if reasons := problems(request.source, source):
        return t.HarnessRefused(reasons=reasons, answer=answer)
    packages = distributions_of(required_names(source))
    return t.HarnessWritten(source=source, packages=packages, answer=answer)


def _ran(run: RunOutcome) -> e.Event:
    """A status of 0 is all that a script can show of itself; a limit that ended it is a crash."""
    if limit := limit_problem(run):
        return t.ScriptCrashed(run=run, failure=_failure(limit, FailureClass.RESOURCE))
    if run.exit_status == 0:
        return t.ScriptRan(run=run)
    if run.exit_status is None and run.signal is None:
        broke = SandboxFailure(message="the run ended without an exit status")
        return e.SandboxBroke(failure=broke, run=run)
    return t.ScriptCrashed(run=run, failure=_failure(crash(run), FailureClass.LOGIC))


def _failure(problem: Problem, label: FailureClass) -> Failure:
    return Failure(test_id=SCRIPT, problem=problem, label=label, because=problem.message)
