"""What a session came to, for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codetape.cli.out import in_json
from codetape.cli.stores import command_line, short
from codetape.cli.text import counted, duration, listed, money, one_line
from codetape.engine.visible import in_one_line

if TYPE_CHECKING:
    from codetape.cli.screen import Screen
    from codetape.result import Result
    from codetape.states.session import Session, Totals

SHOWN = 5
"""So many failures are shown one by one."""


def show_result(
    screen: Screen, result: Result, more: Iterable[tuple[str, str]] = (), heading: str = ""
) -> None:
    """Show how a session ended and what it took, with `more` fields.

    `heading` stands in the place of the ending, for a session as it was once.
    """
    ending = result.folded.ending
    if heading:
        screen.line(heading, "title")
    elif result.success and ending:
        screen.line(f"Passed: {ending.reason.removesuffix('.')}.", "good")
    elif ending:
        screen.line(f"Not passed ({ending.failure}): {ending.reason}", "bad")
    else:
        screen.line(f"Not done: {_standing(result)}", "bad")
    screen.fields([*_facts(result), *more])
    told = ending.reason if ending else ""
    for failure in [f for f in result.failures if f.test_id not in told][:SHOWN]:
        problem = failure.problem
        words = f"{failure.test_id}: {problem.type}: {one_line(problem.message)}"
        screen.line(f"  {failure.label}  {words}", "dim")
    _show_weak_tests(screen, result)
    _show_changed_tests(screen, result)


def _show_weak_tests(screen: Screen, result: Result) -> None:
    """Say which tests of a pass are not counted, or why that is not known."""
    if result.weak_tests:
        screen.line("These tests check no result, and are not counted:", "title")
    for test in result.weak_tests:
        how = "it runs the code" if test.kind == "smoke" else "it passes without the code"
        screen.line(f"  {in_one_line(test.test_id)}: {how}")
    if result.success and (why := result.folded.nulls_unknown):
        screen.line(f"Whether each test checks a result is not known: {in_one_line(why)}", "dim")


def _show_changed_tests(screen: Screen, result: Result) -> None:
    """Say what the tests ask for otherwise than those that were written first."""
    if result.changed_tests:
        screen.line("The tests were changed since they were first written:", "title")
    for fact in result.changed_tests:
        screen.line(f"  {in_one_line(fact)}")


def _standing(result: Result) -> str:
    """Say what a session waits for, in one sentence."""
    error = result.error or "it was interrupted"
    if result.records[-1].event.name == "forked":
        return "it is a fork and was not gone on with yet; resume does that."
    return f"{error.removeprefix('the session is not done: ').removesuffix('.')}."


def _facts(result: Result) -> Iterator[tuple[str, str]]:
    session = result.folded
    paid = session.totals
    tokens = f"{paid.input_tokens:,} tokens in, {paid.output_tokens:,} out"
    if paid.uncounted_calls:
        tokens += f" ({counted(paid.uncounted_calls, 'call')} not counted)"
    yield "session", session.id
    most = "" if session.job.personas else f" of {session.job.max_iterations}"
    yield "attempts", f"{session.attempts}{most}"
    yield "model", f"{session.job.model}, {counted(paid.calls, 'call')}, {tokens}"
    yield "cost", money(paid.cost) if paid.cost is not None else _unpriced(paid)
    yield "time", duration(session.seconds)
    if session.inherited_seconds or session.inherited.calls:
        yield "itself", _spent(session.own, session.seconds - session.inherited_seconds)
        yield "inherited", _spent(session.inherited, session.inherited_seconds)
    yield "packages", listed(result.detected_packages, "")
    yield "system packages", listed(result.detected_system_packages, "")


def _spent(paid: Totals, seconds: float) -> str:
    tokens = f"{paid.input_tokens:,} tokens in, {paid.output_tokens:,} out"
    parts = (counted(paid.calls, "call"), tokens, f"cost {money(paid.cost)}", duration(seconds))
    return ", ".join(filter(None, parts))


def _unpriced(paid: Totals) -> str:
    least = f", at least {money(paid.usd)}" if paid.usd else ""
    return f"unknown{least}: {counted(paid.unpriced_calls, 'call')} without a known price"


def as_json(result: Result) -> str:
    """Return the result as one JSON object; null is unknown or not there."""
    session = result.folded
    solution = result.solution
    facts: dict[str, Any] = {
        "session": session.id,
        "success": result.success,
        "error": result.error,
        "failure_class": session.ending.failure if session.ending else None,
        "state": session.state,
        "events": session.seq,
        "attempts": session.attempts,
        "max_iterations": session.job.max_iterations,
        "model": session.job.model,
        "model_calls": session.totals.calls,
        "input_tokens": result.total_input_tokens,
        "output_tokens": result.total_output_tokens,
        "cost_usd": result.cost,
        "inherited": _inherited(session),
        "solution": solution.code if solution else None,
        "tests": result.tests,
        "changed_tests": list(result.changed_tests),
        "weak_tests": [{"test": test.test_id, "kind": test.kind} for test in result.weak_tests],
        "weak_tests_unknown": result.folded.nulls_unknown or None,
        "requirements": list(session.spec.requirements),
        "system_packages": list(session.spec.system_packages),
        "image": result.image,
        "failures": [_failure(failure) for failure in result.failures],
    }
    return in_json(facts)


def _inherited(session: Session) -> dict[str, Any]:
    """What of these totals was paid by the session that this one is a fork of."""
    return {
        "model_calls": session.inherited.calls,
        "input_tokens": session.inherited.input_tokens,
        "output_tokens": session.inherited.output_tokens,
        "cost_usd": session.inherited.cost,
    }


def _failure(failure: Any) -> dict[str, Any]:
    return {
        "test": failure.test_id,
        "label": failure.label,
        "type": failure.problem.type,
        "message": failure.problem.message,
        "fix": failure.fix or None,
    }


def save_and_say(screen: Screen, result: Result, folder: Path) -> None:
    """Save the files and say where they are. Raises OSError."""
    written = [file.name for file in result.save(folder)] if result.solution else []
    screen.line(f"Saved in {folder}: {listed(written, 'nothing, there is no code')}")


def _lacks_a_sandbox(result: Result) -> bool:
    ending = result.folded.ending
    return ending is not None and ending.failure == "infrastructure"


def _answers(result: Result) -> list[str]:
    """The options with which a session that waits for a decision goes on."""
    from codetape.states.packages import name_of

    held = result.folded.held
    if held is None:
        return []
    whole = held.cause != "undecided_package"
    names = [text if whole else name_of(text) for text in held.packages]
    return [word for name in names for word in ("--allow", name)]


def show_next_steps(screen: Screen, result: Result, store: str | None) -> None:
    """Say which commands one may want now."""
    name = short(result.session)
    steps = [("the events", command_line("show", [name], ["--events"], store=store))]
    if _lacks_a_sandbox(result):
        steps.append(("what is missing", command_line("doctor")))
    if result.solution:
        steps.append(("the code", command_line("show", [name], ["--code"], store=store)))
    if result.success:
        steps.append(("run it", command_line("run", [name], ["--help"], store=store)))
    if not result.folded.done:
        steps.append(("go on", command_line("resume", [name], _answers(result), store=store)))
    screen.line()
    screen.fields(steps)
