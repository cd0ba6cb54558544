"""From a model's diagnosis to labels for exactly the tests that failed."""

from __future__ import annotations

from collections.abc import Callable

from codetape.states import events as e
from codetape.states.answers import DiagnosisShape, FailureShape
from codetape.states.classify import needs_of
from codetape.states.failures import Failure, base_id, plain_id
from codetape.states.ladder import is_labelled
from codetape.states.packages import merged, requirement, system_package
from codetape.states.values import Answer, FailureClass


def diagnosed(
    failures: tuple[Failure, ...],
    shape: DiagnosisShape,
    answer: Answer,
    imports: tuple[str, ...],
) -> e.Diagnosed:
    """Label each failure that evidence left open; what the model says of other tests is left out.

    A failure that the diagnosis does not mention stays unknown. Needs whose names no package can have
    are left out; those that a report proves are added.
    """
    labelled = tuple(_labelled(failure, shape.failures) for failure in failures)
    proven = needs_of(labelled, imports)
    asked = [*_valid(requirement, shape.needs_language_packages), *proven.packages]
    needs = e.Needs(
        packages=merged(asked),
        system_packages=tuple(sorted(set(_valid(system_package, shape.needs_system_packages)))),
        commands=tuple(dict.fromkeys(c for c in shape.needs_additional_commands if c.strip())),
    )
    return e.Diagnosed(
        by="model", failures=labelled, needs=needs, answer=answer, repairs=shape.repairs
    )


def _labelled(failure: Failure, findings: list[FailureShape]) -> Failure:
    finding = _finding(failure, findings)
    if finding is None:
        return failure
    words = {
        "fix": finding.suggested_fix,
        "root_cause": finding.root_cause,
        "expected": finding.expected_behavior,
        "actual": finding.actual_behavior,
    }
    if not is_labelled(failure):
        words["label"] = FailureClass(finding.error_type)
    return failure.model_copy(update=words)


def _finding(failure: Failure, findings: list[FailureShape]) -> FailureShape | None:
    """The finding for this very test, else the one for its function or another of its parameters."""
    names = {plain_id(f.test_name): f for f in reversed(findings)}
    short = failure.base_id.rpartition("::")[2]
    for name in (failure.test_id, failure.base_id, short):
        if name in names:
            return names[name]
    known = (failure.base_id, short)
    return next((f for name, f in names.items() if base_id(name) in known), None)


def _valid(check: Callable[[str], str], names: list[str]) -> list[str]:
    kept: list[str] = []
    for name in names:
        try:
            kept.append(check(name))
        except ValueError:
            continue
    return kept
