"""The questions that the auto-coder's table asks of a folded session. Pure, and named."""

from __future__ import annotations

from codetape.states import ladder
from codetape.states.ladder import faulty_code, faulty_tests, image_would_change, is_given_up
from codetape.states.session import Session
from codetape.states.values import FailureClass
from codetape.states.weak_tests import only_weak

ROUNDS = 3
"""How often one repair may be asked for before it has failed."""

REJECTIONS = 10
"""How many packages may turn out not to exist before the session ends."""

ANSWERS = 2
"""How often an answer of one kind may be unusable: the first one gets a request to repair it."""

BLAMED = frozenset({"conflict", "unknown_package", "unknown_system_package", "command"})
"""Causes of a failed build that other code, or other wishes, would change."""

CRASHES = 5
"""How often in a row the process may die before a request has its outcome."""

HOPELESS = frozenset({"disk", "timeout"})
"""Causes of a failed build that are the same the next time."""


def fix_unproven(s: Session) -> bool:
    """The fixes are not known to be in the code, and there are rounds left to get them in."""
    return s.repair is not None and s.repair.of == "code" and _unproven(s)


def patch_unproven(s: Session) -> bool:
    """The fixes are not known to be in the tests, and there are rounds left to get them in."""
    return s.repair is not None and s.repair.of == "tests" and _unproven(s)


def _unproven(s: Session) -> bool:
    if s.repair is None or s.repair.verdict == "applied":
        return False
    return s.repair.verdict == "unproven" or rounds_left(s)


def rounds_left(s: Session) -> bool:
    """The repair may be asked for once more."""
    return s.repair is not None and s.repair.rounds < ROUNDS


def nothing_patched(s: Session) -> bool:
    """No test at fault has a patch that a run could show the worth of."""
    return s.repair is None or not s.repair.patched


def tests_missing(s: Session) -> bool:
    """Tests are wanted and there are none."""
    return not s.job.skip_tests and s.tests is None


def tests_skipped(s: Session) -> bool:
    """The caller wants no tests."""
    return s.job.skip_tests


def image_stale(s: Session) -> bool:
    """There is no image of what code, tests and diagnoses need."""
    return image_would_change(s)


def rejections_spent(s: Session) -> bool:
    """Too many packages do not exist."""
    return len(s.rejected) >= REJECTIONS


def code_asks_too_much(s: Session) -> bool:
    """The build failed for what code and diagnoses asked for."""
    return s.build_failure is not None and s.build_failure.cause in BLAMED


def build_may_pass(s: Session) -> bool:
    """The build failed for a reason that may have passed; attempts end the trying."""
    return s.build_failure is not None and s.build_failure.cause not in HOPELESS


def comes_back(s: Session) -> bool:
    """What keeps the tests from being collected was repaired before, and is here again."""
    return s.comes_back


def tests_at_fault(s: Session) -> bool:
    """The test file keeps the tests from being collected."""
    return bool(faulty_tests(s.failures))


def image_at_fault(s: Session) -> bool:
    """The image lacks something, and it is known what to add."""
    environment = any(f.label is FailureClass.ENVIRONMENT for f in s.failures)
    return environment and image_would_change(s)


def only_weak_tests_left(s: Session) -> bool:
    """All that is left to repair are tests that check no result, where others do."""
    return only_weak(s.failures)


def nothing_left_to_try(s: Session) -> bool:
    """Every failure has come to the end of its ladder."""
    return all(f.label is FailureClass.STUCK for f in s.failures)


def tests_due(s: Session) -> bool:
    """A test is to be repaired. Tests come first: what they say of the code is known after that."""
    return bool(faulty_tests(s.failures))


def code_due(s: Session) -> bool:
    """The code is to be repaired."""
    return bool(faulty_code(s.failures))


def sandbox_retry_left(s: Session) -> bool:
    """There is a sandbox, and it broke no more often than may be forgiven."""
    return not s.sandbox_missing and s.broken <= s.job.sandbox_retries


def whole_file_due(s: Session) -> bool:
    """The test file is asked for whole, not patches of some tests."""
    return ladder.whole_file_due(s)


def answer_repair_left(s: Session) -> bool:
    """The model may be asked to repair its answer."""
    return s.rejections < ANSWERS


def call_retry_left(s: Session) -> bool:
    """The call may succeed later and was not made too often, or another model has taken over."""
    return s.call_failure is None or not is_given_up(s)


def host_keeps_dying(s: Session) -> bool:
    """What is asked for has brought down the process that asks, again and again."""
    return s.crashes >= CRASHES
