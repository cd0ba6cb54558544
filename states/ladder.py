"""The repair ladder: which label a failure has next, once its own repair was tried.

A label flips only after the repair that it calls for was made and the same failure came back. At the
end of its ladder a failure is stuck.
"""

from __future__ import annotations

from codetape.states.events import Reclassified, Relabelled
from codetape.states.failures import Failure
from codetape.states.session import Session
from codetape.states.values import FailureClass as C

LADDER: dict[C, tuple[C, ...]] = {
    C.LOGIC: (C.LOGIC, C.TEST_ERROR),
    C.TEST_ERROR: (C.TEST_ERROR, C.LOGIC),
    C.UNKNOWN: (C.LOGIC, C.TEST_ERROR),
    C.ENVIRONMENT: (C.ENVIRONMENT, C.LOGIC, C.TEST_ERROR),
    C.RESOURCE: (C.RESOURCE,),
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
    """Return the first label of the failure's ladder whose repair is still worth trying."""
    for label in LADDER.get(failure.label, ()):
        if label is C.ENVIRONMENT and not image_would_change(session):
            continue
        if (failure.identity, label) not in session.tried:
            return label
    return C.STUCK


def image_would_change(session: Session) -> bool:
    """True if the image that is wanted now is not the one that the last run had."""
    return session.image is None or session.image.spec_key != session.spec.key


def faulty_code(failures: tuple[Failure, ...]) -> tuple[Failure, ...]:
    """The failures that new code is to repair."""
    return tuple(f for f in failures if f.label in CODE_LABELS)


def faulty_tests(failures: tuple[Failure, ...]) -> tuple[Failure, ...]:
    """The failures that other tests are to repair."""
    return tuple(f for f in failures if f.label is C.TEST_ERROR)


def is_labelled(failure: Failure) -> bool:
    """True if no model has to be asked for this failure's label."""
    return failure.label is not C.UNKNOWN
