"""Records the tapes of a new version: `python -m tests.tapes.record tests/tapes/v2`.

What is checked in is never recorded again: it is what a released version has written, and a folder that
is there is refused. The sessions are made of fakes; nobody is asked anything.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox, built, failed, not_collected, timed_out
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.system import FixedClock
from codetape.engine.loop import Engine
from codetape.engine.ports import EventStore
from codetape.engine.tape import Recorded
from codetape.replay.export import export_tape
from codetape.replay.fork import fork
from codetape.replay.reading import open_tape
from codetape.states.events import Cancelled, Event, Noted, Paused, Resumed
from codetape.states.job import Budget, Job
from codetape.states.session import Session
from codetape.states.values import Answer, BuildFailure, CallFailure, SandboxFailure
from tests.support.sessions import FIX, JOB, PLAN, RIGHT, TESTS, WRONG, engine

QUIET = JOB.model_copy(update={"plan": False, "sandbox_retries": 1})
FAILS = failed({"test_add": ("AssertionError", "assert -1 == 3")})
NO_SUCH = BuildFailure(cause="unknown_package", message="no such thing", packages=("numpyy",))
HELD = BuildFailure(cause="undecided_package", message="It is two days old.", packages=("numpy",))
HOSTILE = "nul \x00, half \ud83c of an emoji, \u202e right to left, \x1b[2J <script>1</script>"
BUSY = CallFailure(reason="rate_limited", message="slow down", retryable=True, retry_after=2.0)


def says(label: str, fix: str = "", **needs: Sequence[str]) -> dict[str, Any]:
    finding = {"test_name": "test_add", "error_type": label, "suggested_fix": fix}
    return {"failures": [finding], **needs}


def patch(expected: int) -> dict[str, Any]:
    code = f"def test_add():\n    assert add(1, 2) == {expected}\n"
    return {"patches": [{"test_name": "test_add", "fixed_code": code}]}


class Recording:
    """One store, and the sessions in it."""

    def __init__(self) -> None:
        self.store: EventStore = MemoryStore()

    def run(
        self,
        id: str,
        script: Mapping[str, Sequence[Any]],
        *,
        job: Job = QUIET,
        runs: Sequence[Any] = (),
        builds: Sequence[Any] = (),
        posts: Mapping[int, Event] | None = None,
    ) -> Session:
        """Run a session to its end or to its first pause."""
        return asyncio.run(self._engine(script, runs, builds, posts or {}).start(id, job))

    def resume(
        self,
        id: str,
        resumed: Resumed,
        script: Mapping[str, Sequence[Any]],
        runs: Sequence[Any] = (),
    ) -> Session:
        """Go on with a session."""
        return asyncio.run(self._engine(script, runs, (), {}).resume(id, resumed))

    def _engine(
        self,
        script: Mapping[str, Sequence[Any]],
        runs: Sequence[Any],
        builds: Sequence[Any],
        posts: Mapping[int, Event],
    ) -> Engine:
        def on_event(record: Recorded, _: Session) -> None:
            if event := posts.get(record.seq):
                made.post(event)

        sandbox = FakeSandbox([built, *builds] if builds else (), runs)
        made = engine(self.store, ScriptedLlm(script), sandbox, on_event=on_event)
        return made


# --- one function for each tape -------------------------------------------------------------------


def happy_path(made: Recording, id: str) -> None:
    made.run(id, {"plan": [PLAN], "code": [RIGHT], "tests": [TESTS]}, job=JOB)


def logic_repair(made: Recording, id: str) -> None:
    script: dict[str, Sequence[Any]] = {
        "code": [WRONG, RIGHT],
        "tests": [TESTS],
        "diagnosis": [says("logic", FIX)],
    }
    made.run(id, script, runs=[FAILS])


def test_repair_in_two_rounds(made: Recording, id: str) -> None:
    diagnosis = says("test_error", "Expect minus one.")
    missing = {"all_fixes_applied": False, "missing_fixes": ["Expect minus one."]}
    script: dict[str, Sequence[Any]] = {
        "code": [WRONG],
        "tests": [TESTS],
        "diagnosis": [diagnosis],
        "patch_tests": [patch(-2), patch(-1)],
        "verify_tests": [missing, {"all_fixes_applied": True}],
    }
    made.run(id, script, runs=[FAILS])


def environment_repair(made: Recording, id: str) -> None:
    lacks = failed({"test_add": ("ModuleNotFoundError", "No module named 'openpyxl'")})
    diagnosis = says("environment", needs_language_packages=["openpyxl"])
    script: dict[str, Sequence[Any]] = {"code": [RIGHT], "tests": [TESTS], "diagnosis": [diagnosis]}
    made.run(id, script, runs=[lacks])


def rejected_package(made: Recording, id: str) -> None:
    asks = {**RIGHT, "packages": ["numpyy"]}
    script: dict[str, Sequence[Any]] = {
        "code": [asks],
        "tests": [TESTS],
        "replace_package": [{"replacement": "numpy"}],
    }
    made.run(id, script, builds=[NO_SUCH])


def held_package(made: Recording, id: str) -> None:
    script: dict[str, Sequence[Any]] = {
        "code": [{**RIGHT, "packages": ["numpy"]}],
        "tests": [TESTS],
    }
    made.run(id, script, builds=[HELD])
    made.resume(id, Resumed(allow=("numpy",)), {})


def stuck(made: Recording, id: str) -> None:
    """One repair of the test changes something; then neither code nor test does."""
    script: dict[str, Sequence[Any]] = {
        "code": [WRONG, WRONG, WRONG],
        "tests": [TESTS],
        "diagnosis": [says("logic")] * 2,
        "patch_tests": [patch(3), *[{"patches": []}] * 3],
    }
    job = QUIET.model_copy(update={"max_iterations": 9})
    made.run(id, script, job=job, runs=[FAILS] * 9)


def budget_pause_and_resume(made: Recording, id: str) -> None:
    made.run(id, {"code": [RIGHT]}, job=QUIET.model_copy(update={"budget": Budget(calls=1)}))
    made.resume(id, Resumed(budget=Budget(calls=9)), {"tests": [TESTS]})


def cancelled(made: Recording, id: str) -> None:
    posts: dict[int, Event] = {2: Noted(text="Mind the sign."), 3: Cancelled(by="an operator")}
    made.run(id, {"code": [RIGHT], "tests": [TESTS]}, posts=posts)


def crash_and_resume(made: Recording, id: str) -> None:
    """The process was interrupted while tests were written; another one went on."""
    made.run(id, {"code": [RIGHT], "tests": []}, posts={3: Paused(by="an interruption")})
    made.resume(id, Resumed(), {"tests": [TESTS]})


def hostile_text(made: Recording, id: str) -> None:
    script: dict[str, Sequence[Any]] = {
        "code": [Answer(text=HOSTILE, finish_reason="stop"), WRONG, RIGHT],
        "tests": [TESTS],
        "diagnosis": [says("logic", FIX)],
    }
    fails = failed({"test_add": ("AssertionError", HOSTILE)}, captured=HOSTILE * 200)
    made.run(id, script, job=QUIET.model_copy(update={"prompt": "Add. \u2028"}), runs=[fails])


def troubled(made: Recording, id: str) -> None:
    """A busy provider, a cut answer, a broken sandbox, a limit, a file that is not collected."""
    cut = Answer(text='{"code": "def add(', finish_reason="length")
    not_found = not_collected("ImportError", "cannot import name 'plus'", module="solution")
    script: dict[str, Sequence[Any]] = {
        "code": [BUSY, cut, WRONG, RIGHT],
        "tests": [TESTS, {"test_code": TESTS["test_code"] + "# again\n"}],
        "diagnosis": [says("logic", FIX)],
    }
    runs = [SandboxFailure(message="the socket is closed"), not_found, timed_out("test_add")]
    made.run(id, script, runs=runs)


def a_fork(made: Recording, id: str) -> None:
    """Of a session that was stuck with wrong code: another limit, and other code."""
    script: dict[str, Sequence[Any]] = {
        "code": [WRONG],
        "tests": [TESTS],
        "diagnosis": [says("logic", FIX)],
    }
    parent = made.run("the-parent", script, job=QUIET.model_copy(update={"max_iterations": 1}))
    assert parent.done
    job = QUIET.model_copy(update={"prompt": "Write add(a, b) anew."})
    tape = open_tape(made.store, "the-parent")
    fork(tape, 2, store=made.store, id=id, clock=FixedClock(), owner="a recording", job=job)
    made.resume(id, Resumed(), {"code": [RIGHT], "tests": [TESTS]})


RECORDINGS: tuple[Callable[[Recording, str], None], ...] = (
    happy_path,
    logic_repair,
    test_repair_in_two_rounds,
    environment_repair,
    rejected_package,
    held_package,
    stuck,
    budget_pause_and_resume,
    cancelled,
    crash_and_resume,
    hostile_text,
    troubled,
    a_fork,
)


def main(folder: Path) -> None:
    folder.mkdir()  # one that is there is what a version has written
    for record in RECORDINGS:
        made, name = Recording(), record.__name__
        record(made, name.replace("_", "-"))
        tape = open_tape(made.store, name.replace("_", "-"))
        print(f"{name:28}", len(tape), tape[len(tape)].state, tape.session_at(-1).ending)
        export_tape(made.store, tape.id, folder / f"{name}.tape.jsonl")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
