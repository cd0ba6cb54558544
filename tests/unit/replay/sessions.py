"""Tapes for the tests of replay, export and reading: a long one, random ones, and forged ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import (
    FakeSandbox,
    broke,
    built,
    failed,
    not_collected,
    passed,
    timed_out,
)
from codetape.adapters.store.memory import MemoryStore
from codetape.engine.chain import GENESIS, chained
from codetape.engine.ports import EventStore, StoredEvent
from codetape.engine.tape import Recorded
from codetape.replay.export import blobs_of
from codetape.replay.imports import TapeFile
from codetape.states.events import Cancelled, Event, Noted, Paused, Resumed
from codetape.states.job import Budget, Job
from codetape.states.session import Session
from codetape.states.values import Answer, BuildFailure, CallFailure
from tests.support.sessions import ID, JOB, PLAN, engine

NO_JSON = '{"description": "Here is what I think."'  # words alone are a plan
CUT = Answer(text='{"code": "def add(', finish_reason="length")
BUSY = CallFailure(reason="rate_limited", message="slow down", retryable=True, retry_after=0.0)
BODIES = ("return a + b", "return a - b", "return a * b")
NAMES = ("test_one", "test_two")
NO_SUCH = BuildFailure(cause="unknown_package", message="no numpyy", packages=("numpyy",))


@dataclass(frozen=True)
class Script:
    """All that a session depends on. `posts` are events from outside, by the seq they follow."""

    answers: Mapping[str, Sequence[Any]]
    runs: Sequence[Any] = ()
    builds: Sequence[Any] = ()
    job: Job = JOB
    posts: Mapping[int, Event] = field(default_factory=dict)


def played(script: Script, store: EventStore, session: str = ID) -> Session:
    """Run a session from its script, past its pauses, to its end."""
    return asyncio.run(_played(script, store, session))


async def _played(script: Script, store: EventStore, session: str) -> Session:
    def on_event(record: Recorded, _: Session) -> None:
        if event := script.posts.get(record.seq):
            run.post(event)

    builds = [built, *script.builds]  # the first one asks whether there is a sandbox
    llm, sandbox = ScriptedLlm(script.answers), FakeSandbox(builds, script.runs)
    run = engine(store, llm, sandbox, on_event=on_event)
    after = await run.start(session, script.job)
    while not after.done:
        after = await run.resume(session, Resumed(budget=Budget()))
    return after


# --- what models say ------------------------------------------------------------------------------


def code(body: str, size: int = 0, packages: Sequence[str] = ()) -> dict[str, Any]:
    """A solution of about `size` characters."""
    source = f"def add(a, b):\n    {body}\n"
    for n in range(size // 80):
        source += f"\n\ndef step_{n}(rows, limit={n}):\n    return [r for r in rows if r > limit]\n"
    return {"language": "python", "code": source, "packages": list(packages)}


def file_of_tests(expected: int) -> dict[str, Any]:
    bodies = (f"def {name}():\n    assert add(1, 2) == {expected}\n" for name in NAMES)
    return {"test_code": "from solution import add\n\n\n" + "\n\n".join(bodies)}


def diagnosis(name: str, kind: str, fix: str = "") -> dict[str, Any]:
    finding = {"test_name": name, "error_type": kind, "suggested_fix": fix, "root_cause": "a sign"}
    return {"failures": [finding], "needs_language_packages": ["pandas"] if fix == "" else []}


def patch(name: str, expected: int) -> dict[str, Any]:
    fixed = f"def {name}():\n    assert add(1, 2) == {expected}\n    assert add(0, 0) == 0\n"
    return {"patches": [{"test_name": name, "fixed_code": fixed}]}


def fails(*names: str) -> Callable[..., Any]:
    return failed({name: ("AssertionError", f"assert 3 == 4 in {name}") for name in names})


LONG = Script(
    answers={
        "plan": [NO_JSON, PLAN],
        "code": [code(body, 4000, ["numpy"]) for body in BODIES],
        "tests": [BUSY, file_of_tests(3)],
        "diagnosis": [
            diagnosis("test_one", "logic", "Replace `a + b` with `a - b`"),
            BUSY,
            diagnosis("test_two", "logic", "Replace `a - b` with `a * b`"),
        ],
    },
    runs=[fails("test_one"), fails("test_two"), passed()],
    posts={4: Noted(text="Mind the sign."), 8: Noted(text="And the zero.")},
)
"""Twenty events, with a file of 4 KB in every prompt."""


def taped(script: Script) -> TapeFile:
    """Run a session from its script and return its tape."""
    store = MemoryStore()
    played(script, store)
    return tape_of(store)


def long_tape() -> TapeFile:
    return taped(LONG)


# --- random sessions ------------------------------------------------------------------------------


def _some(*items: Any) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(items), min_size=1, max_size=5)


def _fixes() -> st.SearchStrategy[list[Any]]:
    fixes = ("", "Replace `a + b` with `a - b`", "Replace `a - b` with `a * b`", "Think again.")
    kinds = ("logic", "test_error", "environment")
    some = st.builds(diagnosis, *map(st.sampled_from, (NAMES, kinds, fixes)))
    return st.lists(some | st.sampled_from([NO_JSON, BUSY]), min_size=1, max_size=5)


answers = st.fixed_dictionaries(
    {
        "plan": _some(PLAN, PLAN, NO_JSON),
        "code": _some(*map(code, BODIES), code("return a", 2000, ["numpyy"]), NO_JSON, CUT, BUSY),
        "tests": _some(file_of_tests(3), file_of_tests(-1), NO_JSON, BUSY),
        "diagnosis": _fixes(),
        "patch_tests": _some(patch("test_one", 3), patch("test_two", 4), NO_JSON),
        "verify_code": _some({"all_fixes_applied": True}, {"all_fixes_applied": False}, NO_JSON),
        "verify_tests": _some({"all_fixes_applied": True}, {"all_fixes_applied": False}),
        "replace_package": _some({"replacement": "numpy"}, {"replacement": None}, NO_JSON),
    }
)

runs = st.lists(
    st.sampled_from(
        [
            *map(fails, NAMES),
            fails(*NAMES),
            not_collected("ModuleNotFoundError", "No module named 'yaml'", module="yaml"),
            not_collected("ImportError", "cannot import name 'add' from 'solution'"),
            timed_out("test_one"),
            broke("the container is gone"),
            passed(),
        ]
    ),
    max_size=6,
)

jobs = st.builds(
    Job,
    prompt=st.sampled_from(["Add two numbers.", "Füge hinzu: \N{SNOWMAN}\u2028"]),
    plan=st.booleans(),
    skip_tests=st.sampled_from([False, False, False, True]),
    max_iterations=st.integers(1, 5),
    sandbox_retries=st.integers(0, 1),
    budget=st.builds(Budget, calls=st.none() | st.integers(1, 8)),
    schema_text=st.sampled_from(["", "a column, " * 200]),
)

posts = st.dictionaries(
    st.integers(1, 12),
    st.sampled_from([Noted(text="Mind the sign."), Paused(by="me"), Cancelled(by="me")]),
    max_size=2,
)

scripts = st.builds(
    Script,
    answers=answers,
    runs=runs,
    builds=st.lists(
        st.sampled_from([NO_SUCH, BuildFailure(cause="disk", message="full")]), max_size=1
    ),
    job=jobs,
    posts=posts,
)


# --- forgeries: what was written is changed, and the chain is made to fit -------------------------


def tape_of(store: EventStore, session: str = ID) -> TapeFile:
    rows = tuple(store.read(session))
    blobs: dict[str, bytes] = {}
    for row in rows:
        blobs.update(blobs_of(row, store.get_blob))
    return TapeFile(session, "autocoder", rows, blobs)


def forged(tape: TapeFile, rows: Sequence[StoredEvent]) -> TapeFile:
    """Return a tape of other rows, numbered and chained as they stand."""
    fitting: list[StoredEvent] = []
    previous = GENESIS
    for seq, row in enumerate(rows, 1):
        numbered = replace(row, seq=seq)
        fitting.append(replace(numbered, hash=chained(previous, numbered)))
        previous = fitting[-1].hash
    return replace(tape, rows=tuple(fitting))


def changed(tape: TapeFile, seq: int, **fields: Any) -> TapeFile:
    """Return a tape with other fields in one row."""
    rows = list(tape.rows)
    rows[seq - 1] = replace(rows[seq - 1], **fields)
    return forged(tape, rows)


def broken(*_: Any) -> Any:
    """A part of the rules that breaks."""
    raise AssertionError("not thought of")
