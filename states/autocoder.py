"""The auto-coder: the table. Read it from top to bottom and you know the product.

A row reads: when this happens in this state, and the guards hold, go there. Guards are questions to
the folded session, the news included. Events that keep the state are rows like all others.
"""

from __future__ import annotations

from codetape.states import guards as g
from codetape.states.machine import Machine, Row, State

NEEDS_CODE = State.NEEDS_CODE
NEEDS_TESTS = State.NEEDS_TESTS
NEEDS_REBUILD = State.NEEDS_REBUILD
TESTING = State.TESTING
DIAGNOSING = State.DIAGNOSING
RECLASSIFY = State.RECLASSIFY
DONE = State.DONE

ASKING = (NEEDS_CODE, NEEDS_TESTS, NEEDS_REBUILD, DIAGNOSING)
"""The states in which a model may be asked."""

BUILDING = (NEEDS_TESTS, NEEDS_REBUILD)
"""The states in which an image may be built; while tests are written it is built ahead."""

ALIVE = (NEEDS_CODE, NEEDS_TESTS, NEEDS_REBUILD, TESTING, DIAGNOSING, RECLASSIFY)
"""All states but Done."""

# fmt: off
TABLE = (
    #   event                  in this state   goes there      if these hold
    Row("session_opened",      NEEDS_CODE,     NEEDS_CODE),
    Row("sandbox_ready",       NEEDS_CODE,     NEEDS_CODE),
    Row("constraint_parsed",   NEEDS_CODE,     NEEDS_CODE),
    Row("planned",             NEEDS_CODE,     NEEDS_CODE),

    Row("code_written",        NEEDS_CODE,     NEEDS_CODE,     (g.fix_unproven,)),
    Row("code_written",        NEEDS_CODE,     NEEDS_TESTS,    (g.tests_missing,)),
    Row("code_written",        NEEDS_CODE,     NEEDS_REBUILD,  (g.image_stale,)),
    Row("code_written",        NEEDS_CODE,     TESTING),

    Row("fixes_verified",      NEEDS_CODE,     NEEDS_CODE,     (g.fix_unproven,)),
    Row("fixes_verified",      NEEDS_CODE,     NEEDS_REBUILD,  (g.image_stale,)),
    Row("fixes_verified",      NEEDS_CODE,     TESTING),

    Row("tests_written",       NEEDS_TESTS,    NEEDS_REBUILD,  (g.image_stale,)),
    Row("tests_written",       NEEDS_TESTS,    TESTING),

    Row("tests_patched",       NEEDS_TESTS,    NEEDS_TESTS,    (g.patch_unproven,)),
    Row("tests_patched",       NEEDS_TESTS,    NEEDS_REBUILD,  (g.image_stale,)),
    Row("tests_patched",       NEEDS_TESTS,    TESTING),

    Row("patches_verified",    NEEDS_TESTS,    NEEDS_TESTS,    (g.patch_unproven,)),
    Row("patches_verified",    NEEDS_TESTS,    NEEDS_REBUILD,  (g.image_stale,)),
    Row("patches_verified",    NEEDS_TESTS,    TESTING),

    Row("patch_refused",       NEEDS_TESTS,    TESTING,        (g.only_weak_tests_left,)),
    Row("patch_refused",       NEEDS_TESTS,    NEEDS_TESTS,    (g.rounds_left,)),
    Row("patch_refused",       NEEDS_TESTS,    RECLASSIFY,     (g.nothing_patched,)),
    Row("patch_refused",       NEEDS_TESTS,    NEEDS_REBUILD,  (g.image_stale,)),
    Row("patch_refused",       NEEDS_TESTS,    TESTING),

    Row("image_built",         NEEDS_TESTS,    NEEDS_TESTS),
    Row("image_built",         NEEDS_REBUILD,  DONE,           (g.tests_skipped,)),
    Row("image_built",         NEEDS_REBUILD,  NEEDS_TESTS,    (g.tests_missing,)),
    Row("image_built",         NEEDS_REBUILD,  TESTING),

    Row("package_rejected",    BUILDING,       DONE,           (g.rejections_spent,)),
    Row("package_rejected",    NEEDS_TESTS,    NEEDS_TESTS),
    Row("package_rejected",    NEEDS_REBUILD,  NEEDS_REBUILD),
    Row("package_replaced",    NEEDS_REBUILD,  NEEDS_REBUILD),
    Row("packages_held",       NEEDS_TESTS,    NEEDS_TESTS),
    Row("packages_held",       NEEDS_REBUILD,  NEEDS_REBUILD),

    Row("build_failed",        BUILDING,       NEEDS_CODE,     (g.code_asks_too_much,)),
    Row("build_failed",        NEEDS_TESTS,    NEEDS_TESTS,    (g.build_may_pass,)),
    Row("build_failed",        NEEDS_REBUILD,  NEEDS_REBUILD,  (g.build_may_pass,)),
    Row("build_failed",        BUILDING,       DONE),

    Row("tests_passed",        TESTING,        DONE),
    Row("tests_failed",        TESTING,        DIAGNOSING),
    Row("script_failed",       TESTING,        DIAGNOSING),

    Row("tests_not_collected", TESTING,        RECLASSIFY,     (g.comes_back,)),
    Row("tests_not_collected", TESTING,        NEEDS_TESTS,    (g.tests_at_fault,)),
    Row("tests_not_collected", TESTING,        NEEDS_REBUILD,  (g.image_at_fault,)),
    Row("tests_not_collected", TESTING,        NEEDS_CODE),

    Row("repair_failed",       TESTING,        RECLASSIFY),
    Row("repair_failed",       NEEDS_REBUILD,  NEEDS_CODE),

    Row("diagnosed",           DIAGNOSING,     RECLASSIFY),

    Row("reclassified",        RECLASSIFY,     DONE,           (g.nothing_left_to_try,)),
    Row("reclassified",        RECLASSIFY,     NEEDS_TESTS,    (g.tests_due,)),
    Row("reclassified",        RECLASSIFY,     NEEDS_CODE,     (g.code_due,)),
    Row("reclassified",        RECLASSIFY,     NEEDS_REBUILD),

    Row("sandbox_broke",       NEEDS_CODE,     NEEDS_CODE,     (g.sandbox_retry_left,)),
    Row("sandbox_broke",       NEEDS_TESTS,    NEEDS_TESTS,    (g.sandbox_retry_left,)),
    Row("sandbox_broke",       NEEDS_REBUILD,  NEEDS_REBUILD,  (g.sandbox_retry_left,)),
    Row("sandbox_broke",       TESTING,        TESTING,        (g.sandbox_retry_left,)),
    Row("sandbox_broke",       (NEEDS_CODE, NEEDS_TESTS, NEEDS_REBUILD, TESTING), DONE),

    Row("answer_rejected",     NEEDS_CODE,     NEEDS_CODE),
    Row("answer_rejected",     NEEDS_TESTS,    TESTING,        (g.only_weak_tests_left,)),
    Row("answer_rejected",     NEEDS_TESTS,    NEEDS_TESTS,    (g.answer_repair_left,)),
    Row("answer_rejected",     NEEDS_TESTS,    NEEDS_TESTS,    (g.whole_file_due,)),
    Row("answer_rejected",     NEEDS_TESTS,    RECLASSIFY),
    Row("answer_rejected",     DIAGNOSING,     DIAGNOSING,     (g.answer_repair_left,)),
    Row("answer_rejected",     DIAGNOSING,     RECLASSIFY),

    Row("call_failed",         NEEDS_CODE,     NEEDS_CODE,     (g.call_retry_left,)),
    Row("call_failed",         NEEDS_TESTS,    NEEDS_TESTS,    (g.call_retry_left,)),
    Row("call_failed",         NEEDS_TESTS,    TESTING,        (g.only_weak_tests_left,)),
    Row("call_failed",         NEEDS_REBUILD,  NEEDS_REBUILD,  (g.call_retry_left,)),
    Row("call_failed",         DIAGNOSING,     DIAGNOSING,     (g.call_retry_left,)),
    Row("call_failed",         ASKING,         DONE),

    Row("attempts_spent",      ASKING,         DONE),
    Row("cancelled",           ALIVE,          DONE),
    *(Row("budget_spent", state, state) for state in ASKING),
    *(Row("paused",       state, state) for state in ALIVE),
    Row("resumed",             ALIVE,          DONE,           (g.host_keeps_dying,)),
    *(Row("resumed",      state, state) for state in ALIVE),
    *(Row("noted",        state, state) for state in ALIVE),
    *(Row("forked",       state, state) for state in ALIVE),
)
# fmt: on

MACHINE = Machine(TABLE)
