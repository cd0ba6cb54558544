"""A pass that proves something: tests that check no result are found by null solutions."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.bubblewrap import BubblewrapSandbox
from codetape.adapters.sandbox.fake import FakeSandbox, failed, passed, weak
from codetape.adapters.store.memory import MemoryStore
from codetape.engine.ports import Sandbox
from codetape.replay.replayer import replay
from codetape.states import events as e
from codetape.states.no_assertions import asserts_nothing
from codetape.states.null_solutions import KINDS, nulled
from codetape.states.session import Session
from codetape.states.values import (
    CallFailure,
    FailureClass,
    ImageRef,
    ImageSpec,
    Limits,
    RunOutcome,
    RunSpec,
    TextFile,
)
from codetape.states.verdict import verdict
from codetape.states.weak_tests import EMPTY, WEAK, weak_tests
from tests.support.sessions import JOB, RIGHT, engine

HONEST = sorted((Path(__file__).parents[1] / "data/honest").glob("*.txt"))
PACKAGES = ("pytest", "numpy", "hypothesis")

# --- A1: in the sandbox ---------------------------------------------------------------------------

ADD = "def add(a, b):\n    return a + b\n"
GOOD = "from solution import add\n\n\ndef test_right():\n    assert add(1, 2) == 3\n"
BODIES = {
    "a returned comparison": "return add(1, 2) == 4",
    "a bare comparison": "add(1, 2) == 4",
    "a constant": "assert True",
    "a tuple": "assert (add(1, 2) == 4, 'wrong')",
    "or true": "assert add(1, 2) == 4 or True",
    "compared with itself": "result = add(1, 2)\n    assert result == result",
    "swallowed": "try:\n        assert add(1, 2) == 4\n    except AssertionError:\n        pass",
    "swallowed by contextlib": (
        "import contextlib\n    with contextlib.suppress(AssertionError):\n"
        "        assert add(1, 2) == 4"
    ),
    "a branch that is never taken": "if add is None:\n        assert add(1, 2) == 4",
    "a function that is never called": "def check():\n        assert add(1, 2) == 4",
    "a loop over nothing": "for case in []:\n        assert add(*case) == 4",
    "all of nothing": "assert all(add(a, b) == 4 for a, b in [])",
    "a lambda": "check = lambda: add(1, 2) == 4\n    assert check",
    "a generator that is not read": "assert (add(1, 2) == 4 for _ in range(1))",
    "an early return": "return\n    assert add(1, 2) == 4",
    "another function": "add = lambda a, b: 4\n    assert add(1, 2) == 4",
    "a mock": "from unittest.mock import Mock\n    Mock(return_value=add(1, 2)).assert_not_called()",
}
STYLES = {
    "function": "{imports}\n\ndef test_it():\n    {body}\n",
    "parametrized": (
        "{imports}\nimport pytest\n\n@pytest.mark.parametrize('n', [1, 2])\n"
        "def test_it(n):\n    {body}\n"
    ),
    "method": (
        "{imports}\nimport unittest\n\nclass TestIt(unittest.TestCase):\n"
        "  def test_it(self):\n    {body}\n"
    ),
}


def spec_of(image: ImageRef, solution: str, tests: str) -> RunSpec:
    files = {"solution.py": solution, "test_solution.py": tests}
    return RunSpec(
        purpose="tests",
        image=image,
        files=tuple(TextFile(name=name, text=text) for name, text in files.items()),
        nulls=True,
        limits=Limits(seconds=60.0),
    )


def ran(sandbox: Sandbox, requirements: tuple[str, ...], *pairs: tuple[str, str]) -> list[Any]:
    """Run each solution with its tests; return the spec and the outcome of each."""

    async def run() -> list[Any]:
        try:
            image = await sandbox.build(ImageSpec(base="", requirements=requirements))
            assert isinstance(image, ImageRef), image
            specs = [spec_of(image, *pair) for pair in pairs]
            return [(spec, await sandbox.run(spec)) for spec in specs]
        finally:
            await sandbox.close()

    return asyncio.run(run())


def of_style(style: str, body: str) -> str:
    return STYLES[style].format(imports="from solution import add", body=body)


@pytest.mark.bubblewrap
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("style", STYLES)
def test_a1_a_test_that_cannot_fail_is_no_pass(style: str) -> None:
    """Each of them passes; none fails against a null solution that returns something."""
    pairs = [(ADD, of_style(style, body)) for body in BODIES.values()]
    verdicts = {
        kind: verdict(spec, outcome)
        for kind, (spec, outcome) in zip(
            BODIES, ran(BubblewrapSandbox(), ("pytest",), *pairs), strict=True
        )
    }
    passing = {kind: event.name for kind, event in verdicts.items() if event.name == "tests_passed"}
    assert passing == {}
    told = {
        kind: {failure.problem.type for failure in event.failures}
        for kind, event in verdicts.items()
        if isinstance(event, e.TestsFailed)
    }
    assert all(types == {EMPTY} for types in told.values()), told


@pytest.mark.bubblewrap
def test_a1_beside_a_test_that_checks_it_is_named_and_not_counted() -> None:
    tests = GOOD + "\n\ndef test_nothing():\n    add(1, 2) == 4\n"
    [(spec, outcome)] = ran(BubblewrapSandbox(), ("pytest",), (ADD, tests))
    named = verdict(spec, outcome)
    assert isinstance(named, e.TestsFailed)
    assert [(f.test_id, f.problem.type, f.label) for f in named.failures] == [
        ("test_nothing", WEAK, FailureClass.TEST_ERROR)
    ]
    told = verdict(spec, outcome, weak_named=True)
    assert isinstance(told, e.TestsPassed)
    assert [(test.test_id, test.kind) for test in told.weak_tests] == [("test_nothing", "smoke")]


def honest(path: Path) -> tuple[str, str]:
    solution, _, tests = path.read_text().partition("# --- test_solution.py ---\n")
    return solution, tests


def test_a1_there_are_fifty_honest_files_of_many_styles() -> None:
    assert len(HONEST) >= 50
    assert all(compile(text, path.name, "exec") for path in HONEST for text in honest(path))


@pytest.mark.bubblewrap
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(5))
def test_a1_no_test_of_an_honest_file_is_called_weak(part: int) -> None:
    """A file with a fixture or a module that calls the solution early may be unknown, never weak."""
    chosen = HONEST[part::5]
    found = ran(BubblewrapSandbox(), PACKAGES, *map(honest, chosen))
    told: dict[str, Any] = {}
    for path, (spec, outcome) in zip(chosen, found, strict=True):
        event = verdict(spec, outcome)
        if not isinstance(event, e.TestsPassed) or event.weak_tests or event.nulls_unknown:
            told[path.stem] = event
    assert told == {}


@pytest.mark.parametrize("path", HONEST, ids=lambda path: path.stem)
def test_a1_an_honest_file_is_not_refused_when_it_is_written(path: Path) -> None:
    assert not asserts_nothing(honest(path)[1])


@pytest.mark.parametrize(
    "body", ["return add(1, 2) == 3", "add(1, 2) == 3", "add(1, 2)", "print(add(1, 2))", "pass"]
)
@pytest.mark.parametrize("style", ["function", "parametrized"])
def test_a1_tests_that_assert_nothing_are_refused_when_they_are_written(
    style: str, body: str
) -> None:
    assert asserts_nothing(of_style(style, body))


# --- A1: the course of a session ------------------------------------------------------------------

SMOKE = "\n\ndef test_runs():\n    add(1, 2)\n"
TESTS = {"test_code": GOOD + SMOKE}
ONLY_SMOKE = {
    "test_code": "from solution import add\n\n\ndef test_runs():\n    assert add(1, 2) or 1\n"
}
BETTER = {"test_name": "test_runs", "fixed_code": "def test_runs():\n    assert add(1, 2) == 3\n"}
PATCH = {"patches": [BETTER]}
SCRIPTED = JOB.model_copy(update={"plan": False, "script_runs": True})


def course(
    sandbox: FakeSandbox, tests: Any = TESTS, patches: Any = (), **changes: Any
) -> tuple[Session, list[str]]:
    """Run a session; return it with the names of its events from the first run on."""
    store = MemoryStore()
    script = {"code": [RIGHT], "tests": [tests], "patch_tests": list(patches)}
    job = SCRIPTED.model_copy(update=changes)
    session = asyncio.run(engine(store, ScriptedLlm(script), sandbox).start("s", job))
    report = replay(store, "s")
    assert report.identical, report.differences
    names = [event.name for event in store.read("s")]
    return session, names[names.index("tests_written") :]


def test_a1_weak_tests_are_named_in_one_repair_request() -> None:
    session, names = course(FakeSandbox(runs=[weak("test_runs"), passed()]), patches=[PATCH])
    assert session.ending is not None
    assert session.ending.failure is None
    assert "tests_patched" in names
    assert names[-1] == "tests_passed"
    assert session.weak_tests == ()


def test_a1_weak_tests_that_stay_are_told_beside_the_pass() -> None:
    sandbox = FakeSandbox(runs=[weak("test_runs"), weak("test_runs")])
    session, names = course(sandbox, patches=[PATCH])
    assert names[-1] == "tests_passed"
    assert names.count("tests_failed") == 1
    assert [test.test_id for test in session.weak_tests] == ["test_runs"]


@pytest.mark.parametrize(
    "outcome", [{"patches": []}, "no patch", CallFailure(reason="auth", message="x")]
)
def test_a1_a_pass_is_not_lost_where_no_repair_of_weak_tests_comes(outcome: Any) -> None:
    """Patches without use, answers that cannot be read, and a model that is gone."""
    sandbox = FakeSandbox(runs=[weak("test_runs"), weak("test_runs")])
    session, names = course(sandbox, patches=[outcome] * 9)
    assert names[-1] == "tests_passed"
    assert session.ending is not None
    assert session.ending.failure is None
    assert [test.test_id for test in session.weak_tests] == ["test_runs"]


def test_a1_the_last_attempt_is_not_given_to_weak_tests() -> None:
    session, names = course(FakeSandbox(runs=[weak("test_runs")]), max_iterations=1)
    assert names[-1] == "tests_passed"
    assert [test.kind for test in session.weak_tests] == ["vacuous"]


def test_a1_tests_of_which_none_checks_a_result_are_no_pass() -> None:
    sandbox = FakeSandbox(runs=[weak("test_runs")] * 5)
    session, names = course(sandbox, ONLY_SMOKE, patches=[PATCH] * 5)
    assert "tests_passed" not in names
    assert session.ending is not None
    assert session.ending.failure is FailureClass.STUCK


def test_a1_what_is_not_known_of_null_solutions_is_told_and_passes() -> None:
    def unknown(spec: RunSpec) -> RunOutcome:
        outcome = weak()(spec)
        nulls = tuple(null.model_copy(update={"failed": None}) for null in outcome.nulls)
        return outcome.model_copy(update={"nulls": nulls})

    session, names = course(FakeSandbox(runs=[unknown]))
    assert names[-1] == "tests_passed"
    assert session.nulls_unknown
    assert session.weak_tests == ()


def test_a1_a_run_that_ended_in_a_null_solution_is_made_again_without_them() -> None:
    def broken(spec: RunSpec) -> RunOutcome:
        outcome = weak()(spec)
        null = outcome.nulls[0].model_copy(update={"failed": None, "ended": False})
        update = {"nulls": (null,), "out_of_memory": True, "exit_status": None, "script": None}
        return outcome.model_copy(update=update)

    sandbox = FakeSandbox(runs=[broken, passed()])
    session, names = course(sandbox, sandbox_retries=1)
    assert names[-2:] == ["sandbox_broke", "tests_passed"]
    assert [spec.nulls for spec in sandbox.runs] == [True, False]
    assert session.ending is not None
    assert session.ending.failure is None


def test_a1_cases_of_one_test_are_judged_together() -> None:
    """A case whose right result is None passes against one null solution, and that is no fault."""
    outcome = weak("test_it[1-None]")(
        RunSpec(purpose="tests", image=ImageRef(ref="x", spec_key="x"), files=(), nulls=True)
    )
    assert outcome.report is not None
    results = tuple(
        result.model_copy(update={"id": f"test_it[{case}]"})
        for result in failed({"x": ("A", "b")})(
            RunSpec(purpose="tests", image=ImageRef(ref="x", spec_key="x"), files=())
        ).report.results  # type: ignore[union-attr]
        for case in ("1-None", "2-3")
    )
    passing = tuple(result.model_copy(update={"outcome": "passed"}) for result in results)
    report = outcome.report.model_copy(update={"results": passing})
    nulls = tuple(null.model_copy(update={"failed": ("test_it[2-3]",)}) for null in outcome.nulls)
    assert weak_tests(outcome.model_copy(update={"report": report, "nulls": nulls}), GOOD) == ()


# --- A1: null solutions ---------------------------------------------------------------------------


def loaded(source: str, kind: Any, name: str = "solution") -> dict[str, Any]:
    text = nulled(source, kind)
    assert text is not None
    namespace: dict[str, Any] = {"__name__": name}
    exec(compile(text, "solution.py", "exec"), namespace)
    return namespace


@pytest.mark.parametrize("kind", KINDS)
def test_a1_a_null_solution_is_what_it_was_while_it_is_imported(kind: str) -> None:
    source = "def double(x):\n    return 2 * x\n\n\nFOUR = double(2)\n"
    assert loaded(source, kind)["FOUR"] == 4


def test_a1_functions_methods_and_named_lambdas_are_emptied() -> None:
    source = (
        "class A:\n    def __init__(self):\n        self.x = 1\n\n"
        "    def one(self):\n        return 1\n\n"
        "    @property\n    def two(self):\n        return 2\n\n    @staticmethod\n    def three():\n"
        "        return 3\n\n\nif True:\n    def four():\n        yield 4\n\nfive = lambda: 5\n"
    )
    made = loaded(source, "returns_none")
    thing = made["A"]()
    assert not hasattr(thing, "x")
    assert [thing.one(), thing.two, made["A"].three(), made["four"](), made["five"]()] == [None] * 5
    other = loaded(source, "returns_object")
    values = [other["A"]().one(), other["A"].three(), other["four"](), other["five"]()]
    assert len({id(value) for value in values}) == 1
    with pytest.raises(NotImplementedError):
        loaded(source, "raises")["four"]()


def test_a1_a_script_is_null_from_its_beginning() -> None:
    source = "def main():\n    raise SystemExit(3)\n\n\nmain()\n"
    loaded(source, "returns_none", "__main__")
    with pytest.raises(SystemExit):
        loaded(source, "returns_none")


@pytest.mark.parametrize("source", ["", "x = 1\n", "def f(:\n", "from math import sqrt\n", "\0"])
def test_a1_a_text_without_functions_has_no_null_solution(source: str) -> None:
    assert [nulled(source, kind) for kind in KINDS] == [None] * 3


# --- A5: tests and fixtures that would need a plugin ------------------------------------------------

ASYNC = """\
import pytest
from solution import add


@pytest.fixture
async def two():
    return 2


@pytest.fixture
async def three():
    yield 3


async def test_alone():
    assert add(1, 2) == 3


@pytest.mark.asyncio
async def test_marked():
    assert add(1, 2) == 3


def test_plain(two):
    assert add(1, two) == 3


async def test_both(two):
    assert add(1, two) == 3


def test_generator(three):
    assert add(1, three) == 4


class TestIt:
    async def test_method(self):
        assert add(1, 2) == 3
"""


@pytest.mark.bubblewrap
def test_a5_async_tests_and_fixtures_are_told_by_evidence() -> None:
    """No model is asked who is at fault: no plugin is there, and the prompt of the tests says so."""
    [(spec, outcome)] = ran(BubblewrapSandbox(), ("pytest",), (ADD, ASYNC))
    event = verdict(spec, outcome)
    assert isinstance(event, e.TestsFailed)
    assert len(event.failures) == 6
    assert {failure.label for failure in event.failures} == {FailureClass.TEST_ERROR}
    told = {failure.test_id: failure.because for failure in event.failures}
    assert "asyncio.run" in told["test_alone"]
    assert "async fixtures" in told["test_plain"]
