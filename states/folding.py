"""Folding an event into a session: the facts, before the machine says where they lead.

One short function for each event. None of them looks at a state or decides anything; all of them are
total, so that whatever is on a tape can be folded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from codetape.states import events as e
from codetape.states.changing import replace
from codetape.states.classify import needs_of
from codetape.states.failures import Failure
from codetape.states.fixes import edits, is_applied
from codetape.states.guards import ANSWERS, BLAMED
from codetape.states.ladder import (
    CODE_LABELS,
    blamed,
    environmental,
    faulty_code,
    faulty_tests,
    for_new_code,
    is_labelled,
)
from codetape.states.packages import merged
from codetape.states.session import Repair, Session, Solution, Tests, Verdict
from codetape.states.sharing import FORGOTTEN, SHARED, answer_rejected, paid, united
from codetape.states.values import FailureClass, RunOutcome
from codetape.states.weak_tests import EMPTY, WEAK, only_weak

S = TypeVar("S", bound=Session)

LAST_TRIED = 12
"""How many lines of history a prompt carries."""


def folded(session: Session, event: e.Event) -> Session:
    """Return the session with the facts of `event`; state and seq are not touched."""
    session = paid(session, event)
    fold = _FOLDS[type(event)]
    return fold(session, event)


# --- NeedsCode ------------------------------------------------------------------------------------


def _constraint_parsed(s: Session, event: e.ConstraintParsed) -> Session:
    checks = (*s.checks, event.check) if event.check else s.checks
    return replace(s, parsed=(*s.parsed, event.constraint), checks=checks)


def _planned(s: Session, event: e.Planned) -> Session:
    return replace(s, plan=(event.description, event.approach))


def _code_written(s: Session, event: e.CodeWritten) -> Session:
    code = Solution(event.source, event.packages, event.system_packages)
    repair = _judged(s.repair, faulty_code(s.failures), event.source)
    s = _tried(s, for_new_code(s.failures))
    return replace(s, code=code, repair=repair)


def _judged(repair: Repair | None, faults: tuple[Failure, ...], after: str) -> Repair | None:
    """Say whether a repair holds its fixes, as far as their text tells; `after` is the newest text.

    A fix that names no old and new text has to be read by a model. One that names an old text which
    was never there cannot be told by anyone: it stays unverified, and the run decides.
    """
    if repair is None:
        return None
    before, fixes = repair.before, [f.fix for f in faults if f.fix]
    missing = tuple(f for f in fixes if before == after or is_applied(f, before, after) is False)
    in_words = any(not edits(fix) for fix in fixes)
    verdict: Verdict = "missing" if missing else "unproven" if in_words else "applied"
    return replace(repair, rounds=repair.rounds + 1, verdict=verdict, missing=missing)


def _fruitless(s: S, due: tuple[Failure, ...]) -> S:
    """Remember that the repair that these failures call for changed nothing."""
    return replace(s, fruitless=s.fruitless | {(f.identity, f.label) for f in due})


def _tried(s: Session, due: tuple[Failure, ...]) -> Session:
    """Remember that the repair that these failures call for was made."""
    lines = (_in_words(s, failure) for failure in due)
    history = tuple(dict.fromkeys((*s.history, *lines)))[-LAST_TRIED:]
    return replace(s, tried=s.tried | {(f.identity, f.label) for f in due}, history=history)


def _in_words(s: Session, f: Failure) -> str:
    message = f.headline[:200]
    what = "the test" if f.label is FailureClass.TEST_ERROR else "the code"
    return f"after attempt {s.attempts}: {what}, for {f.test_id} ({f.problem.type}: {message})"


def _verified(s: Session, event: e.FixesVerified | e.PatchesVerified) -> Session:
    if s.repair is None:
        return s
    verdict: Verdict = "missing" if event.missing else "applied"
    return replace(s, repair=replace(s.repair, verdict=verdict, missing=event.missing))


# --- NeedsTests -----------------------------------------------------------------------------------


def _tests_written(s: Session, event: e.TestsWritten) -> Session:
    if s.tests is None or s.tests.source != event.source:
        s = replace(s, tried=frozenset(), fruitless=frozenset())
    s = _tried(s, faulty_tests(s.failures))
    return replace(s, tests=Tests(event.source, event.packages), repair=None)


def _tests_patched(s: Session, event: e.TestsPatched) -> Session:
    faults = faulty_tests(s.failures)
    repair = _judged(s.repair, faults, event.source)
    if repair:
        repair = replace(repair, patched=united(repair.patched, event.patched))
    if repair and event.unpatched:
        missing = (*repair.missing, *(f"{name} has no patch." for name in event.unpatched))
        repair = replace(repair, verdict="missing", missing=(*missing, *event.refused))
    s = _code_anew(_tried(s, faults), event.patched)
    return replace(s, tests=Tests(event.source, event.packages), repair=repair)


def _code_anew(s: Session, patched: tuple[str, ...]) -> Session:
    """What was tried of the code was tried against another test."""
    again = {(f.identity, c) for f in s.failures if f.base_id in patched for c in CODE_LABELS}
    tests = {(f.identity, f.label) for f in s.failures if f.base_id in patched}
    return replace(s, tried=s.tried - again, fruitless=s.fruitless - again - tests)


def _patch_refused(s: Session, event: e.PatchRefused) -> Session:
    repair = s.repair or Repair("tests")
    repair = replace(repair, rounds=repair.rounds + 1, verdict="refused", missing=event.reasons)
    faults = faulty_tests(s.failures)
    return replace(_fruitless(_tried(s, faults), faults), repair=repair)


# --- NeedsRebuild ---------------------------------------------------------------------------------


def _image_built(s: Session, event: e.ImageBuilt) -> Session:
    # Not in the history: what is asked while an image is built must stay the same question.
    repaired = {(f.identity, f.label) for f in environmental(s.failures)}
    s = replace(s, tried=s.tried | repaired)
    return replace(s, image=event.image, broken=0, broken_builds=0, build_failure=None)


def _build_failed(s: Session, event: e.BuildFailed) -> Session:
    s = replace(s, attempts=s.attempts + 1, build_failure=event.failure)
    if event.failure.cause not in BLAMED:
        return replace(s, broken_builds=s.broken_builds + 1)
    failed = {**s.failed_builds, s.spec.key: event.failure}
    return replace(s, failed_builds=failed, broken=0, broken_builds=0, repair=None)


# --- unusable answers -----------------------------------------------------------------------------


def _answer_rejected(s: Session, event: e.AnswerRejected) -> Session:
    """Once its repair request failed too, an answer is forgotten; the next question is a fresh one."""
    s = answer_rejected(s, event)
    if s.rejections < ANSWERS:
        return s
    s = replace(s, **FORGOTTEN)
    match event.kind:
        case "plan":
            return replace(s, unplanned=True)
        case "patch_tests":
            faults = faulty_tests(s.failures)
            return _fruitless(_tried(s, faults), faults)
        case "code" | "tests":
            unusable = f"the {event.kind} answer could not be used: {event.detail}"
            return replace(s, attempts=s.attempts + 1, unusable=unusable)
    return s


# --- Testing --------------------------------------------------------------------------------------


def ran(s: S, run: RunOutcome) -> S:
    """An attempt ended in a run."""
    key = s.run_key
    s = _tests_anew(s)
    found = key[:2] if run.report and run.report.collected else s.collected
    s = replace(s, run=run, runs=s.runs | {key}, tested=(s.code, s.tests), collected=found)
    return replace(s, attempts=s.attempts + 1, broken=0, repair=None, build_failure=None)


def _tests_anew(s: S) -> S:
    """What was tried of the tests of these failures was tried against other code.

    Forgotten in a run, which is an attempt: between two runs what was tried can only grow.
    """
    before, _ = s.tested
    if before is None or s.code is None or before.source == s.code.source:
        return s
    again = {(f.identity, FailureClass.TEST_ERROR) for f in s.failures}
    return replace(s, tried=s.tried - again, fruitless=s.fruitless - again)


def _tests_passed(s: Session, event: e.TestsPassed) -> Session:
    weak, unknown = event.weak_tests, event.nulls_unknown
    return replace(ran(s, event.run), failures=(), weak_tests=weak, nulls_unknown=unknown)


def _failed(s: Session, event: e.TestsFailed | e.ScriptFailed) -> Session:
    failures = tuple(_kept(s, blamed(s, failure)) for failure in event.failures)
    after = replace(ran(s, event.run), failures=failures)
    if any(failure.problem.type in (WEAK, EMPTY) for failure in failures):
        after = replace(after, weak_named=True)
    # The same run is a pass, if no repair of its weak tests comes.
    return replace(after, runs=s.runs) if only_weak(failures) else after


def _kept(s: Session, failure: Failure) -> Failure:
    """Keep the label of a failure that waited for its repair while another one was made."""
    for old in s.failures:
        due = is_labelled(old) and old.label is not FailureClass.STUCK
        waited = due and (old.identity, old.label) not in s.tried
        if old.identity == failure.identity and waited and not is_labelled(failure):
            known = {"label": old.label, "fix": old.fix, "root_cause": old.root_cause}
            return failure.model_copy(update={**known, "because": "known from the run before"})
    return failure


def _tests_not_collected(s: Session, event: e.TestsNotCollected) -> Session:
    failure = blamed(s, event.failure)
    s = asked(ran(s, event.run), needs_of((failure,), s.imports))
    comes_back = (failure.identity, failure.label) in s.tried
    return replace(s, failures=(failure,), comes_back=comes_back)


def _sandbox_broke(s: Session, event: e.SandboxBroke) -> Session:
    return replace(s, broken=s.broken + 1, sandbox_missing=event.failure.missing)


def repair_failed(s: S, _: e.RepairFailed) -> S:
    """Nothing ran, so no attempt was made; but a build that is known to fail ends one.

    What was made is what ran long ago: it gives way to what the failures are of.
    """
    if failure := s.failed_builds.get(s.spec.key):
        return replace(s, attempts=s.attempts + 1, build_failure=failure, repair=None)
    due = faulty_tests(s.failures) or for_new_code(s.failures)
    code, tests = s.tested
    return replace(_fruitless(s, due), code=code, tests=tests, repair=None)


# --- Diagnosing, Reclassify -----------------------------------------------------------------------


def _diagnosed(s: Session, event: e.Diagnosed) -> Session:
    return replace(asked(s, event.needs), failures=event.failures)


def asked(s: Session, needs: e.Needs) -> Session:
    """What a failure asked for stays in the image until an event drops it."""
    return replace(
        s,
        asked_packages=merged((*s.asked_packages, *needs.packages)),
        asked_system_packages=united(s.asked_system_packages, needs.system_packages),
        asked_commands=united(s.asked_commands, needs.commands),
    )


def _reclassified(s: Session, event: e.Reclassified) -> Session:
    after = {label.test_id: label.after for label in event.labels}
    failures = tuple(_with_label(f, after.get(f.test_id, f.label)) for f in s.failures)
    return replace(s, failures=failures, repair=_repair_due(s, failures))


def _with_label(f: Failure, label: FailureClass) -> Failure:
    """Relabel; the fix that a diagnosis named was for the other repair, so it goes."""
    return f if f.label is label else f.model_copy(update={"label": label, "fix": ""})


def _repair_due(s: Session, failures: tuple[Failure, ...]) -> Repair | None:
    """Return the next repair: tests first, then code.

    What the image lacks needs no repair of its own, it is built on the way to the next run.
    """
    if faulty_tests(failures):
        return Repair("tests", before=s.tests.source if s.tests else "")
    if faulty_code(failures):
        return Repair("code", before=s.code.source if s.code else "")
    return None


_FOLDS: dict[type[e.Event], Callable[[Session, Any], Session]] = {
    **SHARED,
    e.ConstraintParsed: _constraint_parsed,
    e.Planned: _planned,
    e.CodeWritten: _code_written,
    e.FixesVerified: _verified,
    e.TestsWritten: _tests_written,
    e.TestsPatched: _tests_patched,
    e.PatchRefused: _patch_refused,
    e.PatchesVerified: _verified,
    e.ImageBuilt: _image_built,
    e.BuildFailed: _build_failed,
    e.AnswerRejected: _answer_rejected,
    e.TestsPassed: _tests_passed,
    e.TestsFailed: _failed,
    e.ScriptFailed: _failed,
    e.TestsNotCollected: _tests_not_collected,
    e.SandboxBroke: _sandbox_broke,
    e.RepairFailed: repair_failed,
    e.Diagnosed: _diagnosed,
    e.Reclassified: _reclassified,
}
