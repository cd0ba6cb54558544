"""The repair ladder: which label a failure has next, once its own repair was tried.

A label flips only after the repair that it calls for was made and the same failure came back, or the
repair changed nothing. At the end of its ladder a failure is stuck.
"""

from __future__ import annotations

from codetape.states.events import Reclassified, Relabelled
from codetape.states.failures import COLLECTION, SCRIPT, WHOLE_RUN, Failure
from codetape.states.python_source import defined_tests
from codetape.states.session import Repair, Session
from codetape.states.values import FailureClass as C
from codetape.states.weak_tests import EMPTY, WEAK

LADDER: dict[C, tuple[C, ...]] = {
    C.LOGIC: (C.LOGIC, C.TEST_ERROR),
    C.TEST_ERROR: (C.TEST_ERROR, C.LOGIC),
    C.UNKNOWN: (C.LOGIC, C.TEST_ERROR),
    C.ENVIRONMENT: (C.ENVIRONMENT, C.LOGIC, C.TEST_ERROR),
    C.RESOURCE: (C.RESOURCE, C.TEST_ERROR),
}
"""The labels that a failure goes through, by the label that it has."""

CODE_LABELS = frozenset({C.LOGIC, C.RESOURCE, C.UNKNOWN})
"""The labels that new code repairs."""


def relabelled(session: Session) -> Reclassified:
    """Return the next label of each failure of the session; none is lost, none is added."""
    return Reclassified(
        labels=tuple(
            Relabelled(test_id=f.test_id, before=f.label, after=next_label(session, f))
            for f in session.failures
        )
    )


def next_label(session: Session, failure: Failure) -> C:
    """Return the first label of the failure's ladder whose repair is still worth trying.

    A repair that was not tried comes first, then one that changed something: attempts end that. If no
    repair changes anything, the failure is stuck.
    """
    rungs = [(failure.identity, label) for label in _ladder(failure)]
    if not image_would_change(session):
        rungs = [rung for rung in rungs if rung[1] is not C.ENVIRONMENT]
    untried = [rung for rung in rungs if rung not in session.tried]
    changing = [rung for rung in rungs if rung not in session.fruitless]
    return next((label for _, label in (*untried, *changing)), C.STUCK)


def _ladder(failure: Failure) -> tuple[C, ...]:
    """A failure of no single test has no test to repair, nor has one of the script; nor have tests
    that ran out of something before the first of them began: the same file would be asked for over
    and over."""
    nowhere = failure.test_id in (WHOLE_RUN, SCRIPT)
    nowhere |= failure.test_id == COLLECTION and failure.label is C.RESOURCE
    labels = LADDER.get(failure.label, ())
    if failure.problem.type in (WEAK, EMPTY):  # no code makes a test check what it returns
        return tuple(x for x in labels if x is C.TEST_ERROR)
    return tuple(x for x in labels if not (nowhere and x is C.TEST_ERROR))


def blamed(s: Session, failure: Failure) -> Failure:
    """What tests could import until the code was changed, the new code has lost."""
    importing = failure.test_id == COLLECTION or failure.problem.module == "solution"
    if failure.label is not C.TEST_ERROR or not importing:
        return failure
    code, tests, _ = s.run_key
    if code == s.collected[0] or tests != s.collected[1]:
        return failure
    because = "the tests found what they need before the code was changed; they are not at fault"
    return failure.model_copy(update={"label": C.LOGIC, "because": because})


def image_would_change(session: Session) -> bool:
    """True if the image that is wanted now is not the one that the last run had."""
    return session.image is None or session.image.spec_key != session.spec.key


def faulty_code(failures: tuple[Failure, ...]) -> tuple[Failure, ...]:
    """The failures that new code is to repair."""
    return tuple(f for f in failures if f.label in CODE_LABELS)


def faulty_tests(failures: tuple[Failure, ...]) -> tuple[Failure, ...]:
    """The failures that other tests are to repair."""
    return tuple(f for f in failures if f.label is C.TEST_ERROR)


def environmental(failures: tuple[Failure, ...]) -> tuple[Failure, ...]:
    """The failures that another image is to repair."""
    return tuple(f for f in failures if f.label is C.ENVIRONMENT)


def for_new_code(failures: tuple[Failure, ...]) -> tuple[Failure, ...]:
    """What code that is written now has to repair; what no image could, is among it."""
    return faulty_code(failures) or environmental(failures)


def tests_to_patch(s: Session) -> tuple[Failure, ...]:
    """The tests at fault that have no patch yet, or one that left their fix out."""
    faults = faulty_tests(s.failures)
    repair = s.repair or Repair("tests")
    left = [f for f in faults if f.base_id not in repair.patched or f.fix in repair.missing]
    return tuple(left) or faults


def whole_file_due(s: Session) -> bool:
    """True if the whole test file is to be written: a patch has no place for an inherited test."""
    if s.tests is None:
        return True
    if any(f.test_id == COLLECTION for f in faulty_tests(s.failures)):
        return True
    defined = {test.id for test in defined_tests(s.tests.source)}
    return any(f.base_id not in defined for f in tests_to_patch(s))


def is_given_up(s: Session) -> bool:
    """True if the model that was asked last will not be asked again."""
    if s.call_failure is None:
        return False
    return not s.call_failure.retryable or s.call_failures > s.job.call_retries


def is_labelled(failure: Failure) -> bool:
    """True if no model has to be asked for this failure's label."""
    return failure.label is not C.UNKNOWN
