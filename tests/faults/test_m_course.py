"""M. The course of a session: what ends it, what is tried again, and what a text needs.

The ids c1 to c8 are those of tests/faults/README.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from codetape import AutoCoderAgent
from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.store.memory import MemoryStore
from codetape.replay.replayer import replay
from codetape.states import newer_syntax
from codetape.states import requests as r
from codetape.states.machine import State
from codetape.states.values import BuildFailure, FailureClass, Frame, Problem, RunOutcome
from codetape.states.wanting import delay
from tests.unit.states.driving import (
    CODES,
    JOB,
    RIGHT,
    TESTS,
    WRONG,
    Driven,
    diagnosis,
    finding,
    labels,
    patch,
    patches,
    ready,
)

SHORT = JOB.model_copy(update={"max_iterations": 3})
PATCHED = patches(patch("test_a", "assert add(1, 2) == 4"))


def ended(driven: Driven) -> tuple[FailureClass | None, str]:
    """The class and the reason of an end."""
    assert driven.session.ending is not None
    return driven.session.ending.failure, driven.session.ending.reason


def blame(**tests: str) -> dict[str, Any]:
    return diagnosis(*(finding(test, label) for test, label in tests.items()))


# --- c1: an unusable answer costs an attempt, not the session -----------------------------------


@pytest.mark.parametrize("unusable", ["I cannot do that.", "", '{"code": "# nothing"}', "[1, 2]"])
def test_c1_code_is_asked_for_afresh_after_two_unusable_answers(unusable: str) -> None:
    driven = Driven()
    first = driven.wanted(r.WriteCode)
    driven = driven.says(unusable).says(unusable)
    assert (driven.state, driven.session.attempts) == (State.NEEDS_CODE, 1)
    assert driven.wanted(r.WriteCode) == first  # nothing of the unusable ones is told
    assert driven.says(RIGHT).says(TESTS).builds().passes().state is State.DONE
    assert ended(driven)[0] is None


def test_c1_tests_are_asked_for_afresh_after_two_unusable_answers() -> None:
    driven = Driven().says(RIGHT)
    first = driven.wanted(r.WriteTests)
    driven = driven.says("no").says("no")
    assert (driven.state, driven.session.attempts) == (State.NEEDS_TESTS, 1)
    assert driven.wanted(r.WriteTests) == first
    assert ended(driven.says(TESTS).builds().passes())[0] is None


def test_c1_a_repair_of_the_code_is_asked_for_afresh() -> None:
    driven = ready().fails(test_a="assert 4 == 3").says(blame(test_a="logic"))
    first = driven.wanted(r.WriteCode)
    driven = driven.says("no").says("no")
    assert driven.wanted(r.WriteCode) == first
    assert ended(driven.says(RIGHT).passes())[0] is None


def test_c1_unusable_answers_end_with_the_attempts() -> None:
    driven = Driven(SHORT)
    for _ in range(6):
        driven = driven.says("no")
    failure, reason = ended(driven)
    assert failure is FailureClass.MODEL
    assert reason.startswith("all 3 attempts are spent. Last: the code answer could not be used")
    assert driven.session.attempts == 3


def test_c1_a_session_goes_on_without_a_plan() -> None:
    driven = Driven(JOB.model_copy(update={"plan": True})).says("").says("")
    assert driven.session.attempts == 0
    assert isinstance(driven.wanted(r.ModelRequest), r.WriteCode)
    assert "The plan" not in driven.prompt
    assert driven.session.plan is None
    assert ended(driven.says(RIGHT).says(TESTS).builds().passes())[0] is None


def test_c1_an_unusable_patch_is_no_patch() -> None:
    driven = ready().fails(test_a="assert 4 == 3").says(blame(test_a="test_error"))
    driven = driven.says("no").says("no")
    assert (driven.state, driven.session.attempts) == (State.NEEDS_CODE, 1)
    assert labels(driven.session) == {"test_a": "logic"}
    assert ended(driven.says(RIGHT).passes())[0] is None


def test_c1_after_a_patch_that_is_unusable_it_goes_on_as_if_nothing_was_patched() -> None:
    failing = {"test_a": "assert 4 == 3", "test_b": "assert 1 == 0"}
    driven = ready().fails(None, **failing).says(blame(test_a="test_error", test_b="test_error"))
    driven = driven.says(PATCHED)
    assert driven.state is State.NEEDS_TESTS
    driven = driven.says("no").says("no")
    assert driven.state is State.NEEDS_CODE
    assert ended(driven.says(CODES[1]).passes())[0] is None


def test_c1_a_whole_test_file_is_asked_for_afresh() -> None:
    problem = Problem(type="NameError", message="name 'x' is not defined")
    driven = ready().not_collected(problem)
    assert isinstance(driven.wanted(r.ModelRequest), r.WriteTests)
    driven = driven.says("no").says("no")
    assert (driven.state, driven.session.attempts) == (State.NEEDS_TESTS, 2)


# --- c2: a failure is stuck only when repairs change nothing --------------------------------------


def test_c2_tests_are_tried_anew_once_the_code_is_another() -> None:
    driven = ready().fails(test_a="assert 4 == 3").says(blame(test_a="test_error")).says(PATCHED)
    driven = driven.fails(test_a="assert 4 == 5").says(blame(test_a="test_error"))
    driven = driven.says(CODES[1]).fails(test_a="assert 4 == 6").says(blame(test_a="logic"))
    assert driven.state is State.NEEDS_TESTS
    assert labels(driven.session) == {"test_a": "test_error"}


def test_c2_a_failure_that_repairs_change_ends_with_the_attempts() -> None:
    driven, turn = ready(), 0
    while not driven.session.done:
        turn += 1
        driven = driven.fails(test_a=f"assert {turn} == 3")
        if driven.session.done:
            break
        driven = driven.says(blame(test_a="logic"))
        other = patches(patch("test_a", f"assert add(1, 2) == {turn}"))
        driven = driven.says(CODES[turn] if driven.state is State.NEEDS_CODE else other)
    assert driven.session.attempts == JOB.max_iterations
    assert ended(driven)[1].startswith("all 8 attempts are spent")


def test_c2_a_failure_without_a_test_is_repaired_until_the_attempts_end() -> None:
    driven = ready(SHORT)
    for turn in (1, 2):
        driven = driven.runs(RunOutcome(timed_out=True)).says(CODES[turn])
    failure, reason = ended(driven.runs(RunOutcome(timed_out=True)))
    assert failure is FailureClass.RESOURCE
    assert "attempts are spent" in reason


def test_c2_repairs_that_change_nothing_are_stuck() -> None:
    driven = ready().fails(test_a="assert 4 == 3").says(blame(test_a="logic"))
    driven = driven.says(WRONG)
    while not driven.session.done:
        driven = driven.says(patches(patch("test_a", "assert add(1, 2) == 3")))
    assert ended(driven)[0] is FailureClass.STUCK
    assert driven.session.attempts == 1


# --- c3: what may pass is built again -------------------------------------------------------------


def failing_build(driven: Driven, cause: str) -> Driven:
    failure = BuildFailure.model_validate({"cause": cause, "message": f"{cause}!"})
    return driven.brings(driven.wanted(r.BuildImage), failure)


@pytest.mark.parametrize("cause", ["download", "other"])
def test_c3_an_image_is_built_again_with_a_growing_delay(cause: str) -> None:
    driven = Driven().says(RIGHT).says(TESTS)
    waits = []
    for _ in range(4):
        driven = failing_build(driven, cause)
        assert driven.state is State.NEEDS_REBUILD
        waits.append(delay(driven.session, driven.wanted(r.BuildImage)))
    assert all(after > before for before, after in pairwise(waits))
    assert ended(driven.builds().passes())[0] is None


def test_c3_an_image_that_is_built_ahead_is_built_again() -> None:
    driven = Driven().says(RIGHT)
    for _ in range(3):
        driven = failing_build(driven, "download")
        assert driven.state is State.NEEDS_TESTS
        assert delay(driven.session, driven.wanted(r.WriteTests)) == 0.0
    assert ended(driven.says(TESTS).builds().passes())[0] is None


def test_c3_builds_end_with_the_attempts() -> None:
    driven = Driven(SHORT).says(RIGHT).says(TESTS)
    for _ in range(3):
        driven = failing_build(driven, "download")
    failure, reason = ended(driven)
    assert failure is FailureClass.INFRASTRUCTURE
    assert reason == "all 3 attempts are spent. Last: the image could not be built, download!"


@pytest.mark.parametrize("cause", ["disk", "timeout"])
def test_c3_what_does_not_pass_is_not_built_again(cause: str) -> None:
    driven = failing_build(Driven().says(RIGHT).says(TESTS), cause)
    assert ended(driven)[0] is FailureClass.INFRASTRUCTURE


def test_c3_a_build_after_a_broken_one_waits_for_the_last_row_only() -> None:
    driven = failing_build(Driven().says(RIGHT).says(TESTS), "download").builds()
    assert delay(driven.session, driven.wanted(r.RunTests)) == 0.0
    assert driven.session.broken_builds == 0


# --- c5: it ends when nothing is left to try ------------------------------------------------------


FAILING = {"test_a": "assert 4 == 3", "test_b": "assert 1 == 0"}


def test_c5_one_stuck_failure_does_not_end_the_repair_of_another() -> None:
    driven = ready().fails(None, **FAILING).says(blame(test_a="test_error", test_b="logic"))
    for _ in range(3):
        driven = driven.says(patches())  # no patch of test_a: its code is at fault
    assert labels(driven.session) == {"test_a": "logic", "test_b": "logic"}
    driven = driven.says(WRONG)  # nor other code
    assert labels(driven.session) == {"test_a": "stuck", "test_b": "test_error"}
    assert isinstance(driven.wanted(r.ModelRequest), r.PatchTests)
    assert driven.wanted(r.PatchTests).failing == ("test_b",)


def test_c5_a_stuck_failure_is_judged_anew_when_it_comes_back() -> None:
    driven = ready().fails(None, **FAILING).says(blame(test_a="test_error", test_b="logic"))
    for _ in range(3):
        driven = driven.says(patches())
    driven = driven.says(WRONG)
    driven = driven.says(patches(patch("test_b", "assert add(0, 0) == 1")))
    driven = driven.fails(test_a="assert 4 == 3")
    assert driven.state is State.DIAGNOSING


def test_c5_it_ends_when_every_failure_is_stuck() -> None:
    driven = ready().fails(None, **FAILING).says(blame(test_a="test_error", test_b="logic"))
    for _ in range(3):
        driven = driven.says(patches())
    driven = driven.says(WRONG)
    for _ in range(3):
        driven = driven.says(patches())
    while not driven.session.done:
        driven = driven.says(WRONG)
    failure, reason = ended(driven)
    assert failure is FailureClass.STUCK
    assert "test_a" in reason
    assert "test_b" in reason
    assert driven.session.attempts == 1


# --- c7: an optional import is not required -------------------------------------------------------


GUARDED = [
    "try:\n    import cupy\nexcept (ImportError, OSError):\n    cupy = None\n",
    "try:\n    import cupy\nexcept ModuleNotFoundError:\n    pass\nelse:\n    import cupy.linalg\n",
    "try:\n    import cupy\nexcept Exception:\n    cupy = None\n",
    "try:\n    import cupy\nexcept:  # whatever it is\n    cupy = None\n",
    "import typing\nif typing.TYPE_CHECKING:\n    from cupy import ndarray\n",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING and True:\n    import cupy\n",
    "import importlib.util\nif importlib.util.find_spec('cupy'):\n    import cupy\n",
    "from importlib.util import find_spec\nHAS = find_spec('cupy')\nif HAS:\n    import cupy\n",
    "from contextlib import suppress\nwith suppress(ImportError):\n    import cupy\n",
    "import contextlib\nwith contextlib.suppress(ModuleNotFoundError, OSError):\n    import cupy\n",
    "import sys\nif sys.platform == 'win32':\n    import cupy\n",
    "import sys\nif sys.platform.startswith('win'):\n    import cupy\nelse:\n    import os\n",
    "import sys\nif sys.platform != 'linux':\n    import cupy\n",
    "import os\nif os.name == 'nt':\n    import cupy\n",
    "import platform\nif platform.system() in ('Windows', 'Darwin'):\n    import cupy\n",
    "import sys\nif sys.version_info < (3, 8):\n    import cupy\nelse:\n    import json\n",
    "def f():\n    try:\n        import cupy\n    except ImportError:\n        return None\n",
    "try:\n    gpu = __import__('cupy')\nexcept ImportError:\n    gpu = None\n",
    "try:\n    import os\nexcept ImportError:\n    HAS = False\nif HAS:\n    import cupy.random\n",
]


@pytest.mark.parametrize("guarded", GUARDED)
def test_c7_an_optional_import_is_not_installed(guarded: str) -> None:
    driven = Driven().says({"code": f"{guarded}\n\ndef add(a, b):\n    return a + b\n"})
    assert "cupy" not in driven.wanted(r.BuildImage).spec.requirements


@pytest.mark.parametrize(
    "required",
    [
        "import cupy\n",
        "try:\n    import cupy\nexcept ImportError:\n    raise SystemExit('cupy is needed')\n",
        "try:\n    import cupy\nexcept ImportError as e:\n    print(e)\n    raise\n",
        "import sys\ntry:\n    import cupy\nexcept ImportError:\n    sys.exit(1)\n",
        "try:\n    import cupy\nexcept ValueError:\n    cupy = None\n",
        "try:\n    import cupy\nfinally:\n    print('imported')\n",
        "try:\n    x = 1\nexcept ImportError:\n    x = 2\nelse:\n    pass\nimport cupy\n",
        "try:\n    import cupy\n    print(cupy.sum([1]))\nexcept Exception:\n    pass\n",
        "from typing import TYPE_CHECKING\nif not TYPE_CHECKING:\n    import cupy\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import os\nelse:\n    import cupy\n",
        "import sys\nif sys.platform == 'linux':\n    import cupy\n",
        "import sys\nif sys.platform == 'win32':\n    import os\nelse:\n    import cupy\n",
        "import os\nif os.environ.get('GPU'):\n    import cupy\n",
        "try:\n    import cupy\nexcept ImportError:\n    import jax as cupy\n",
        "from contextlib import suppress\nwith suppress(KeyError):\n    import cupy\n",
        "class A:\n    def f(self):\n        import cupy\n",
        "for x in y:\n    while x:\n        import cupy\n",
    ],
)
def test_c7_what_code_cannot_do_without_is_installed(required: str) -> None:
    driven = Driven().says({"code": f"{required}\n\ndef add(a, b):\n    return a + b\n"})
    assert "cupy" in driven.wanted(r.BuildImage).spec.requirements


def test_c7_an_optional_module_that_is_missing_all_the_same_is_added() -> None:
    code = "try:\n    import cupy\nexcept ImportError:\n    cupy = None\n"
    driven = ready(code={"code": code + WRONG["code"]})
    missing = Problem(type="ModuleNotFoundError", message="No module named 'cupy'", module="cupy")
    driven = driven.fails({"test_a": missing})
    assert "cupy" in driven.wanted(r.BuildImage).spec.requirements


def test_c7_tests_need_no_optional_package_either() -> None:
    guard = "try:\n    import cupy\nexcept ImportError:\n    cupy = None\n"
    driven = Driven().says(RIGHT).says({"test_code": guard + TESTS["test_code"]})
    assert "cupy" not in driven.wanted(r.BuildImage).spec.requirements


# --- c8: the Python of the sandbox judges the syntax of code --------------------------------------


NEWER = [
    'def add(a, b):\n    d = {"a": a}\n    return f"{d["a"]}{b}"\n',
    "def add(a, b):\n    return f\"{'\\n'.join([a, b])}\"\n",
    'def add(a, b):\n    return f"""{\n        a  # the first\n    }{b}"""\n',
    "def add[T](a: T, b: T) -> T:\n    return a + b\n",
    "class Box[T: (int, str)]:\n    pass\n\n\ndef add(a, b):\n    return a + b\n",
    "type Pair[T] = tuple[T, T]\n\n\ndef add(a, b):\n    return a + b\n",
    "def add(a, b):\n    try:\n        return a + b\n    except KeyError, OSError:\n        pass\n",
    'def add(a, b):\n    return t"{a} and {b}"\n',
    "lazy import json\n\n\ndef add(a, b):\n    return a + b\n",
    "def add(a, b):\n    return [*x for x in (a, b)]\n",
]


@pytest.mark.parametrize("newer", NEWER)
def test_c8_newer_syntax_is_run_and_not_refused(newer: str) -> None:
    driven = Driven().says({"code": newer})
    assert driven.state is State.NEEDS_TESTS
    assert driven.session.code is not None
    assert driven.session.code.source == newer
    fenced = Driven().says(f"Here it is:\n\n```python\n{newer}```\n")
    assert fenced.session.code == driven.session.code


@pytest.mark.parametrize(
    "newer",
    [
        'import yaml\nX = f"{ {"a": 1}["a"]}"\n',
        'import yaml\nX = f"{"\\n"}"\n',
        "import yaml\n\n\ndef first[T](x: T) -> T:\n    return x\n",
        "import yaml\n\ntry:\n    pass\nexcept KeyError, IndexError:\n    pass\n",
    ],
)
def test_c8_what_newer_code_imports_is_installed(newer: str) -> None:
    driven = Driven().says({"code": f"{newer}\n\ndef add(a, b):\n    return a\n"})
    assert "pyyaml" in driven.wanted(r.BuildImage).spec.requirements


def test_c8_the_words_of_the_sandbox_reach_the_next_prompt() -> None:
    message = "f-string: unmatched '(' (solution.py, line 3)"
    place = Frame(place="solution", file="solution.py", line=3, function="<module>")
    refused = Problem(type="SyntaxError", message=message, frames=(place,))
    driven = ready(code={"code": NEWER[0]}).not_collected(refused)
    assert driven.state is State.NEEDS_CODE
    assert message in driven.prompt
    assert "at solution.py:3" in driven.prompt


@pytest.mark.parametrize(
    "broken", ["def add(a, b:\n    return a", "class\n", "x = = 1\ndef f(): 0"]
)
def test_c8_what_no_python_can_parse_is_refused_in_the_same_words_everywhere(broken: str) -> None:
    driven = Driven().says({"code": f"import os\n\n{broken}"})
    assert driven.session.code is None
    assert "it does not parse, line 3: the statement that begins there" in driven.prompt


NEW_TESTS = (
    "from solution import add\n\n\ndef test_a():\n"
    '    d = {"a": add(1, 2)}\n    assert f"{d["a"]}" == "3"\n\n\n'
    "def test_b():\n    assert add(0, 0) == 0\n"
)


def test_c8_tests_in_newer_syntax_are_expected_and_held_against_their_repair() -> None:
    driven = ready(tests={"test_code": NEW_TESTS}).fails(test_a="assert '-1' == '3'")
    driven = driven.says(blame(test_a="test_error"))
    assert isinstance(driven.wanted(r.ModelRequest), r.PatchTests)
    weaker = patch("test_a", 'd = {"a": add(1, 2)}', 'assert f"{d["a"]}"')
    skipped = patch("test_a", "import pytest", 'assert f"{pytest.skip("x")}" == "3"')
    for bad in (weaker, skipped):
        driven = driven.says(patches(bad))
        assert driven.names[-1] == "patch_refused"
    honest = patch("test_a", 'd = {"a": add(1, 2)}', 'assert f"{d["a"]}" == "-1"')
    driven = driven.says(patches(honest))
    assert driven.state is State.TESTING
    assert driven.session.tests is not None
    assert 'assert f"{d["a"]}" == "-1"\n\n\ndef test_b' in driven.session.tests.source


def test_c8_a_test_file_that_no_rule_can_read_is_asked_for_in_older_words() -> None:
    driven = Driven().says(RIGHT)
    unread = TESTS["test_code"] + "\n\ndef test_c():\n    assert [*x for x in [[1]]] == [1]\n"
    driven = driven.says({"test_code": unread})
    assert driven.session.tests is None
    assert "newer than Python 3.11" in driven.prompt


def other_pythons() -> list[str]:
    """Return the Pythons of this machine that the rules may run on."""
    found = [*Path.home().glob(".pyenv/versions/3.1[1-9]*/bin/python3")]
    found += [Path(name) for n in range(11, 20) if (name := which(f"python3.{n}"))]
    return sorted({str(path) for path in found if "shims" not in path.parts})


READ = """
import ast, json, runpy, sys
rules = runpy.run_path(sys.argv[1])
def read(text):
    older = rules["in_older_words"](text)
    try:
        ast.parse(older, feature_version=rules["OLDEST"])
    except SyntaxError:
        return [older, rules["may_be_newer"](text), False]
    return [older, rules["may_be_newer"](text), True]
print(json.dumps([read(text) for text in json.load(sys.stdin)]))
"""


@pytest.mark.slow
def test_c8_every_python_reads_a_text_alike() -> None:
    """In each Python of this machine from 3.11 on; with one alone it shows nothing."""
    texts = [*NEWER, NEW_TESTS, *GUARDED, "x = = 1", 'f"{a!r:>{w}} {b=}"', "f'{x'", "def f[T(x): 0"]
    rules = str(Path(newer_syntax.__file__))
    found = [
        subprocess.run(
            [python, "-c", READ, rules],
            input=json.dumps(texts),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for python in (sys.executable, *other_pythons())
    ]
    assert set(found) == {found[0]}


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_c8_a_sandbox_names_line_and_fault_of_what_is_too_new_for_it() -> None:
    """`[*x for …]` is syntax of Python 3.15, and there is none here; the verdict is on the tape."""
    newer: dict[str, Any] = {"code": "def add(a, b):\n    return sum([*x for x in ([a], [b])])\n"}
    llm = ScriptedLlm({"code": [newer, dict(RIGHT)], "tests": [dict(TESTS)]})
    agent = AutoCoderAgent(
        model="x", llm=llm, sandbox="bubblewrap", store=MemoryStore(), plan=False
    )
    result = agent.generate(prompt="Add two numbers.")
    assert result.success
    (tried,) = result.folded.history
    assert "the code, for (collection) (SyntaxError: " in tried
    assert "(solution.py, line 2)" in tried
    assert replay(result.store, result.session).identical
