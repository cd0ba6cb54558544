"""The tool maker: the table. Personas write a script, it has to run, and then to be right.

It reads like the auto-coder's; guards of both are questions to the folded session.
"""

from __future__ import annotations

from codetape.states import guards
from codetape.states.machine import Machine, Row, State
from codetape.states.tools import guards as g

NEEDS_CODE = State.NEEDS_CODE
NEEDS_TESTS = State.NEEDS_TESTS
NEEDS_REBUILD = State.NEEDS_REBUILD
TESTING = State.TESTING
DIAGNOSING = State.DIAGNOSING
RECLASSIFY = State.RECLASSIFY
DONE = State.DONE

ASKING = (NEEDS_CODE, NEEDS_TESTS, NEEDS_REBUILD)
"""The states in which a model may be asked."""

WRITING = (NEEDS_CODE, NEEDS_TESTS)
"""The states in which an answer may be of no use; a bad name for a package is no name."""

SANDBOXED = (NEEDS_CODE, NEEDS_REBUILD, TESTING)
"""The states in which something is asked of the sandbox."""

ALIVE = (NEEDS_CODE, NEEDS_TESTS, NEEDS_REBUILD, TESTING, DIAGNOSING, RECLASSIFY)
"""All states but Done."""

# fmt: off
TABLE = (
    #   event                  in this state   goes there      if these hold
    Row("session_opened",      NEEDS_CODE,     NEEDS_CODE),
    Row("sandbox_ready",       NEEDS_CODE,     NEEDS_CODE),

    Row("finding_written",     NEEDS_CODE,     NEEDS_CODE,     (g.personas_left,)),
    Row("finding_written",     NEEDS_CODE,     DONE,           (g.no_code,)),
    Row("finding_written",     NEEDS_CODE,     NEEDS_REBUILD,  (guards.image_stale,)),
    Row("finding_written",     NEEDS_CODE,     TESTING),

    Row("code_written",        NEEDS_CODE,     NEEDS_REBUILD,  (guards.image_stale,)),
    Row("code_written",        NEEDS_CODE,     TESTING),

    Row("image_built",         NEEDS_REBUILD,  TESTING),
    Row("package_rejected",    NEEDS_REBUILD,  DONE,           (guards.rejections_spent,)),
    Row("package_rejected",    NEEDS_REBUILD,  NEEDS_REBUILD),
    Row("package_replaced",    NEEDS_REBUILD,  NEEDS_REBUILD),
    Row("packages_held",       NEEDS_REBUILD,  NEEDS_REBUILD),
    Row("build_failed",        NEEDS_REBUILD,  NEEDS_CODE,     (guards.code_asks_too_much, g.fix_left)),
    Row("build_failed",        NEEDS_REBUILD,  NEEDS_REBUILD,  (g.build_retry_left,)),
    Row("build_failed",        NEEDS_REBUILD,  DONE),

    Row("script_crashed",      TESTING,        NEEDS_CODE,     (g.fix_left,)),
    Row("script_crashed",      TESTING,        DONE),
    Row("script_ran",          TESTING,        NEEDS_TESTS,    (g.harness_missing,)),
    Row("script_ran",          TESTING,        TESTING),

    Row("harness_written",     NEEDS_TESTS,    NEEDS_REBUILD,  (guards.image_stale,)),
    Row("harness_written",     NEEDS_TESTS,    TESTING),
    Row("harness_refused",     NEEDS_TESTS,    NEEDS_TESTS,    (g.harness_repair_left,)),
    Row("harness_refused",     NEEDS_TESTS,    DONE),

    Row("tests_passed",        TESTING,        DONE),
    Row("tests_failed",        TESTING,        DIAGNOSING),
    Row("tests_not_collected", TESTING,        DIAGNOSING),
    Row("diagnosed",           DIAGNOSING,     RECLASSIFY),
    Row("reclassified",        RECLASSIFY,     DONE,           (g.stuck,)),
    Row("reclassified",        RECLASSIFY,     NEEDS_REBUILD,  (guards.image_at_fault,)),
    Row("reclassified",        RECLASSIFY,     NEEDS_CODE),

    Row("repair_failed",       NEEDS_REBUILD,  NEEDS_CODE,     (g.fix_left,)),
    Row("repair_failed",       TESTING,        NEEDS_CODE,     (g.fix_left,)),
    Row("repair_failed",       (NEEDS_REBUILD, TESTING), DONE),

    *(Row("sandbox_broke", state, state, (guards.sandbox_retry_left,)) for state in SANDBOXED),
    Row("sandbox_broke",       SANDBOXED,      DONE),
    *(Row("answer_rejected", state, state, (guards.answer_repair_left,)) for state in WRITING),
    Row("answer_rejected",     WRITING,        DONE),
    *(Row("call_failed", state, state, (guards.call_retry_left,)) for state in ASKING),
    Row("call_failed",         ASKING,         DONE),

    Row("cancelled",           ALIVE,          DONE),
    *(Row("budget_spent", state, state) for state in ASKING),
    *(Row("paused",       state, state) for state in ALIVE),
    Row("resumed",             ALIVE,          DONE,           (guards.host_keeps_dying,)),
    *(Row("resumed",      state, state) for state in ALIVE),
    *(Row("noted",        state, state) for state in ALIVE),
    *(Row("forked",       state, state) for state in ALIVE),
)
# fmt: on

MACHINE = Machine(TABLE)
