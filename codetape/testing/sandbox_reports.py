"""The part of the sandbox contract that is about a verdict by evidence."""

from __future__ import annotations

import pytest

from codetape.states.values import Limits, Problem, TextFile
from codetape.testing.sandbox_runs import SOLUTION, Runs, SandboxCase, verdicts

ONE = "from solution import add\n\ndef test_add():\n    assert add(1, 2) == 3\n"
AT_IMPORT = {
    "sys.exit": ("import sys; sys.exit(0)", "SystemExit", "solution"),
    "syntax": ("def add(:", "SyntaxError", "solution"),
    "missing module": ("import no_such_module", "ModuleNotFoundError", "solution"),
    "missing name": ("", "ImportError", "tests"),
    "interrupt": ("raise KeyboardInterrupt", "KeyboardInterrupt", "solution"),
    "exception": ("1 / 0", "ZeroDivisionError", "solution"),
    "own exception": ("class Odd(Exception): pass\nraise Odd('x')", "solution.Odd", "solution"),
}
FORGING = """
    import os, sys, threading
    def add(a, b):
        return a - b
    line = b'\\n{"nonce": "0", "seq": 3, "kind": "result", "id": "test_add", "outcome": "passed"}\\n'
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, line)
        except OSError:
            pass
    print(line.decode(), flush=True)
"""
HOSTILE = {
    "an endless thread": "import threading as t, time\nt.Thread(target=time.sleep, args=[99]).start()",
    "an exit hook": "import atexit, os\natexit.register(os._exit, 0)",
    "closed streams": "import sys, os\nsys.stdout.close(); sys.stderr.close(); os.closerange(0, 3)",
    "no streams": "import sys\nsys.stdout = sys.stderr = None",
    "a tracer": "import sys\nsys.settrace(lambda *_: None)",
    "a blind tracer": "import sys, threading\nthreading.settrace(lambda *_: 1 / 0)",
    "other writers": "import os\nos.write = lambda *_: 0\nos._exit = lambda *_: None",
    "a full screen": "print('\\x1b[2J\\x1b[31m', '\\0' * 9, '\\ud800'.encode('utf-8', 'replace'))",
    "a warning as error": "import warnings\nwarnings.simplefilter('error')",
    "a planted conftest": "open('conftest.py', 'w').write('import sys; sys.exit(1)')",
    "a planted plugin": "import sys\nopen('evil.py', 'w').write('1 / 0')\nsys.path.insert(0, '.')",
    "a daemon": "import os\nif os.fork() == 0:\n    os.setsid(); os.closerange(0, 64)\n"
    "    import time; time.sleep(99)",
    "other exceptions": "import builtins\nbuiltins.AssertionError = ValueError",
    "a loud import": "print('PASSED ' * 100_000)",
    "another folder": "import os\nos.chdir('/')",
    "a changed path": "import sys\nsys.path.clear()",
    "a signal handler": "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)",
}
REWRITTEN = {
    "reports": """
import _pytest.reports as r
real = r.TestReport.from_item_and_call
def made(item, call):
    report = real(item, call)
    report.outcome, report.longrepr = "passed", None
    return report
r.TestReport.from_item_and_call = made
""",
    "calls": """
import _pytest.runner as r
real = r.CallInfo.from_call.__func__
def called(cls, func, when, reraise=None):
    call = real(cls, func, when, reraise)
    call.excinfo = None
    return call
r.CallInfo.from_call = classmethod(called)
""",
    "functions": """
import _pytest.nodes, _pytest.python as p
p.Function.runtest = lambda self: None
def silent(item):
    pass
import _pytest.runner as r
r.pytest_runtest_call.__code__ = silent.__code__
""",
}
SKIPPING = {
    "a SkipTest": "import unittest\ndef add(a, b):\n    raise unittest.SkipTest('no')",
    "a skip": "import pytest\ndef add(a, b):\n    pytest.skip('no')",
    "an xfail": "import pytest\ndef add(a, b):\n    pytest.xfail('no')",
    "an importorskip": "import pytest\ndef add(a, b):\n    pytest.importorskip('no_such')",
    "a class of its own": "import pytest\nclass Odd(pytest.skip.Exception):\n"
    "    __traceback__ = __context__ = None\ndef add(a, b):\n    raise Odd('no')",
    "an xfail of its own": "import pytest\nclass Odd(pytest.xfail.Exception): pass\n"
    "def add(a, b):\n    raise Odd('no')",
    "a decorated function": "import unittest\n@unittest.skip('no')\ndef add(a, b): pass",
    "a function of unittest": "import unittest\nadd = unittest.TestCase.skipTest",
    "a text": "exec('import pytest\\ndef add(a, b):\\n    pytest.skip(str(a))', globals_ := {})\n"
    "add = globals_['add']",
    "a thread": "from concurrent.futures import ThreadPoolExecutor as Pool\nimport pytest\n"
    "def add(a, b):\n    with Pool() as pool: return pool.submit(pytest.skip, 'no').result()",
    "a group": "import pytest\ntry:\n    BaseExceptionGroup\nexcept NameError:\n"
    "    def BaseExceptionGroup(_, all): return all[0]\n"
    "def add(a, b):\n    raise BaseExceptionGroup('g', [pytest.skip.Exception('no')])",
    "an exit": "import sys\ndef add(a, b):\n    sys.exit(0)",
}
SKIPPED_BY_SOLUTION = """
    import unittest
    import pytest
    from solution import add
    @pytest.fixture
    def three():
        return add(1, 2)
    def test_function(): assert add(1, 2) == 3
    def test_fixture(three): assert three == 3
    def test_subtests(subtests):
        with subtests.test("one"): assert add(1, 2) == 3
    class TestMethods:
        def test_method(self): assert add(1, 2) == 3
    class Cases(unittest.TestCase):
        def test_case(self): self.assertEqual(add(1, 2), 3)
        def test_part(self):
            with self.subTest("one"): self.assertEqual(add(1, 2), 3)
    def test_other(): pass
"""
OWN_SKIPS = """
    import sys, unittest
    import pytest
    from solution import add
    @pytest.fixture
    def missing():
        pytest.importorskip("no_such_module")
    def need(what):
        if what:
            raise unittest.SkipTest("not here")
    def test_call(): pytest.skip("no")
    def test_helper(): need("this")
    def test_fixture(missing): pass
    @pytest.mark.skipif(sys.platform == "linux", reason="no")
    def test_platform(): pass
    @pytest.mark.xfail
    def test_xfail(): assert add(None, 1) == 1
    def test_callback(): assert sorted([1, 2], key=lambda n: pytest.skip("no"))
    class Cases(unittest.TestCase):
        def test_skip(self): self.skipTest("no")
        def test_raise(self): raise unittest.SkipTest("no")
        @unittest.skip("no")
        def test_decorated(self): pass
        @unittest.expectedFailure
        def test_expected(self): self.assertEqual(add(1, 2), 4)
    def test_add(): assert add(1, 2) == 3
"""
FLIP = """
def pytest_pyfunc_call(pyfuncitem):
    return True
"""
FIND = """
import gc
gc.unfreeze()
from _pytest.config import Config
config = next(one for one in gc.get_objects() if isinstance(one, Config))
manager = config.pluginmanager
import sys
me = sys.modules["solution"]
"""
EACH = """
import gc
def help():
    gc.unfreeze()
    from _pytest.python import Function
    for one in [one for one in gc.get_objects() if isinstance(one, Function)]:
"""
SELECTIVE = """
def pytest_pyfunc_call(pyfuncitem):
    return True if pyfuncitem.name == "test_wrong" else None
"""
PLUGINS = {
    "pytest_plugins": f"import sys\nsys.modules['test_solution'].pytest_plugins = ['solution']\n{FLIP}",
    "pytest_plugins for one": "import sys\n"
    f"sys.modules['test_solution'].pytest_plugins = ['solution']\n{SELECTIVE}",
    "a registration": f"{SELECTIVE}{FIND}\ntry:\n    manager.register(me)\nexcept Exception: pass",
    "a hidden registration": f"{SELECTIVE}{FIND}\ntype(manager).register(manager, me)",
    "one of pluggy": f"{SELECTIVE}{FIND}\nimport pluggy\npluggy.PluginManager.register(manager, me)",
    "another caller of hooks": f"{FIND}\nreal = manager._inner_hookexec\n"
    "def call(name, impls, kw, first):\n"
    "    if name == 'pytest_pyfunc_call' and kw['pyfuncitem'].name == 'test_wrong': return True\n"
    "    return real(name, impls, kw, first)\nmanager._inner_hookexec = call",
    "a function of pytest": "import _pytest.python as p\nreal = p.Function.runtest\n"
    "def run(self):\n    if self.name != 'test_wrong': real(self)\np.Function.runtest = run",
    "the code of a function": "import _pytest.python as p\nreal = p.pytest_pyfunc_call\n"
    "def pytest_pyfunc_call(pyfuncitem): return True if pyfuncitem.name == 'test_wrong' else None\n"
    "real.__code__ = pytest_pyfunc_call.__code__",
    "another test": "import sys\ndef help():\n"
    "    sys.modules['test_solution'].test_wrong.__code__ = (lambda: None).__code__",
    "another function of the test": "import gc\ndef help():\n    gc.unfreeze()\n"
    "    from _pytest.python import Function\n    for one in gc.get_objects():\n"
    "        if isinstance(one, Function) and one.name == 'test_wrong': one._obj = help",
    "other parameters": "import gc\ndef help():\n    gc.unfreeze()\n"
    "    from _pytest.python import Function\n    for one in gc.get_objects():\n"
    "        if isinstance(one, Function) and hasattr(one, 'callspec'): one.callspec.params['x'] = 1",
    "an assertion of unittest": "import unittest\n"
    "unittest.TestCase.assertEqual = lambda *_, **__: None",
    "a method of the item": f"{EACH}        one.runtest = lambda: None",
    "the class of the item": f"{EACH}"
    "        one.__class__ = type('Odd', (type(one),), {'runtest': lambda self: None})",
    "a class of pytest": """
import _pytest.runner as r
class Odd(r.TestReport):
    @classmethod
    def from_item_and_call(cls, item, call):
        report = super().from_item_and_call(item, call)
        report.outcome = "passed" if item.name == "test_wrong" else report.outcome
        return report
r.TestReport = Odd
""",
    "the hooks of the configuration": f"""
{FIND}
class Odd:
    def __getattr__(self, name):
        return lambda **kw: kw["pyfuncitem"].name == "test_wrong" or getattr(real, name)(**kw)
real, odd = config.hook, Odd()
class Hooks:
    def __getattr__(self, name):
        return getattr(odd if name == "pytest_pyfunc_call" else real, name)
config.hook = Hooks()
""",
    "an assertion of the class of tests": "import sys\ndef help():\n"
    "    sys.modules['test_solution'].Cases.assertEqual = lambda *_: None",
    "the run of the class of tests": "import sys\ndef help():\n"
    "    sys.modules['test_solution'].Cases.run = lambda *_, **__: None",
    "the method of the class of tests": "import sys\ndef help():\n"
    "    sys.modules['test_solution'].Cases.test_case = lambda *_: None",
    "an approximation": "import pytest\nfrom unittest import mock\n"
    "pytest.approx = lambda *_: mock.ANY",
    "a comparison": "from pytest import approx\ntype(approx(2)).__eq__ = lambda *_: True",
    "an expectation": "import contextlib, pytest\n"
    "pytest.raises = lambda *_: contextlib.nullcontext()",
}
CHEATED = """
    import unittest
    import pytest
    import solution
    def test_help(): getattr(solution, "help", int)()
    def test_wrong(): assert 1 == 2
    @pytest.mark.parametrize("x", [2])
    def test_parameter(x): assert x == 1
    def test_near(): assert 1 == pytest.approx(2)
    def test_raises():
        with pytest.raises(ValueError): pass
    class Cases(unittest.TestCase):
        def test_case(self): self.assertEqual(1, 2)
"""
LEFT_OUT = """
    import unittest
    class TestX:
        def __init__(self): ...
        def test_no(self): pass
    class TestBase:
        __test__ = False
        def test_a(self): pass
    class TestChild(TestBase):
        __test__ = True
    class Base(unittest.TestCase):
        def test_b(self): pass
    class Case(Base): pass
    del Base
    if True:
        def test_c(): pass
"""
REPLACED = """
import sys
def hook():
    module = sys.modules["test_solution"]
    module.test_first.__code__ = (lambda: None).__code__
"""
ODD_TESTS = """
    import asyncio, os, unittest, warnings
    from unittest import mock
    import pytest
    warnings.simplefilter("error", ResourceWarning)
    pytest_plugins = ["no_such_plugin"]
    def pytest_generate_tests(metafunc):
        if "n" in metafunc.fixturenames:
            metafunc.parametrize("n", [1, 2])
    @pytest.fixture(params=[1, 2], scope="module", autouse=True)
    def each(request): return request.param
    def test_generated(n): assert n
    @pytest.mark.parametrize("x", [[3, 1]])
    def test_changes_its_parameter(x): x.sort()
    @pytest.mark.parametrize("x", [])
    def test_nothing(x): pass
    @mock.patch("os.getcwd", return_value="/")
    def test_mocked(getcwd): assert os.getcwd() == "/"
    def test_patched(monkeypatch): monkeypatch.setattr(unittest.TestCase, "maxDiff", None)
    def test_caught(capsys, caplog, tmp_path, recwarn): print("x")
    class TestNested:
        class TestInner:
            def test_a(self): pass
    class Cases(unittest.IsolatedAsyncioTestCase):
        @classmethod
        def setUpClass(cls): cls.one, cls.made = 1, lambda self: 1
        def own(self): return 1
        def test_made(self):
            with mock.patch.object(Cases, "own", lambda self: 2): self.assertEqual(self.own(), 2)
        async def test_async(self): await asyncio.sleep(0)
        def test_subtests(self):
            for n in range(2):
                with self.subTest(n=n): self.assertEqual(n, n)
    @unittest.skipIf(False, "no")
    class Marked(unittest.TestCase):
        @mock.patch.object(os, "getcwd")
        def test_a(self, _): self.assertRaises(ValueError, int, "x")
"""
READ_PARENT = """
import os
parent = f"/proc/{os.getppid()}"
for name in ("mem", "environ", "maps", "fd"):
    try:
        os.listdir(f"{parent}/fd") if name == "fd" else open(f"{parent}/{name}", "rb").read(1)
        print("read", name)
    except OSError:
        pass
print("tried")
"""
TAKEN_BACK = """
import os
def readable(way):
    try:
        os.close(os.open(way, os.O_RDONLY | os.O_NONBLOCK))
        return os.readlink(way)[:5] == "pipe:"
    except OSError:
        return False
def test_a():
    ways = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    printed = {os.readlink(f"/proc/self/fd/{n}") for n in (1, 2)}
    assert [way for way in ways if readable(way) and os.readlink(way) not in printed] == []
"""
FORGED_EXIT = """
import gc, json, os
gc.unfreeze()
for thing in gc.get_objects():
    if type(thing).__name__ == "Report" and hasattr(thing, "_token"):
        facts = {"kind": "exit", "status": 0, "signal": None, "peak_memory": 1}
        line = json.dumps({"nonce": thing._token, **facts})
        os.write(thing._descriptor, line.encode() + b"\\n")
"""
IDS = """
    import pytest
    @pytest.mark.parametrize("x", ["a b", "x - y", "[z]", "PASSED", "é\\n", "a::b", ""])
    def test_p(x):
        pass
    class TestC:
        @pytest.mark.parametrize("x", [1, 2])
        def test_m(self, x):
            assert x == 1
"""
EVERY_OUTCOME = """
    import unittest, pytest
    @pytest.fixture
    def torn():
        yield
        raise OSError("torn")
    def test_passed(): pass
    def test_failed(): assert 1 == 2
    def test_skipped(): pytest.skip("not now")
    @pytest.mark.xfail
    def test_xfailed(): assert False
    @pytest.mark.xfail
    def test_xpassed(): pass
    @pytest.mark.xfail(strict=True)
    def test_strict(): pass
    def test_setup(no_such_fixture): pass
    def test_teardown(torn): pass
    class TestU(unittest.TestCase):
        def test_u(self): self.assertEqual(1, 2)
"""

# Exceptions whose class lies, raises, or lacks what every class has.
ODD_EXCEPTIONS = """
    import json
    from unittest import mock
    class Text(str):
        def encode(self, *_): raise ValueError
    def test_module(): raise type("E", (Exception,), {"__module__": None})("x")
    def test_line():
        error = SyntaxError("x")
        error.filename, error.lineno = "f", "no number"
        raise error
    def test_text(): raise type("E", (Exception,), {"__str__": lambda self: Text("x")})
    def test_class(): raise type("E", (Exception,), {"__class__": property(lambda _: ImportError)})
    def test_exit():
        def leave(self): raise SystemExit(0)
        raise type("E", (Exception,), {"__str__": leave, "__repr__": leave})
    def test_patched(): mock.patch("json.dumps", side_effect=ValueError).start()
    def test_last(): pass
"""
LONG_IDS = """
    import pytest
    @pytest.mark.parametrize("x", range(150), ids=["x" * 10_000 + str(n) for n in range(150)])
    def test_a(x): pass
    @pytest.mark.parametrize("x", [1], ids=["x" * 2_000_000])
    def test_b(x): pass
"""
TALKATIVE = """
    import pytest
    @pytest.mark.parametrize("x", range(2300))
    def test_a(x):
        print("x" * 9000)
        assert x != 2200
"""


class ReportContract(SandboxCase):
    """What a run of tests reports, whatever the code does."""

    def test_each_result_is_reported(self, make: Runs) -> None:
        report = make.report(EVERY_OUTCOME)
        assert report.finished
        assert verdicts(report) == {
            "test_passed": "passed",
            "test_failed": "failed",
            "test_skipped": "skipped",
            "test_xfailed": "xfailed",
            "test_xpassed": "xpassed",
            "test_strict": "failed",
            "test_setup": "failed",
            "test_teardown": "failed",
            "TestU::test_u": "failed",
        }
        phases = {result.id: result.phase for result in report.results}
        assert (phases["test_setup"], phases["test_teardown"]) == ("setup", "teardown")
        problem = report.results[-1].problem
        assert problem is not None
        assert problem.frames[0].place == "tests"

    def test_ids_of_any_shape_survive(self, make: Runs) -> None:
        report = make.report(IDS)
        shapes = ["a b", "x - y", "[z]", "PASSED", "\\xe9\\n", "a::b", ""]
        cases = [f"test_p[{shape}]" for shape in shapes]
        assert report.collected == (*cases, "TestC::test_m[1]", "TestC::test_m[2]")
        assert verdicts(report)["TestC::test_m[2]"] == "failed"

    def test_long_ids_stay_apart(self, make: Runs) -> None:
        report = make.report(LONG_IDS)
        assert (report.finished, len(verdicts(report))) == (True, 151)

    def test_exceptions_of_any_shape_spoil_no_report(self, make: Runs) -> None:
        report = make.report(ODD_EXCEPTIONS)
        names = ("module", "line", "text", "class", "exit")
        failed = {f"test_{name}": "failed" for name in names}
        assert report.finished
        assert verdicts(report) == {**failed, "test_patched": "passed", "test_last": "passed"}

    @pytest.mark.slow
    def test_many_tests_with_much_to_say_are_all_reported(self, make: Runs) -> None:
        outcome = make.tests(TALKATIVE, limits=Limits(seconds=60.0))
        assert outcome.report is not None
        assert (outcome.report.finished, outcome.too_much_output) == (True, False)
        failed = [result for result in outcome.report.results if result.outcome == "failed"]
        assert [result.id for result in failed] == ["test_a[2200]"]

    def test_a_failure_has_type_message_and_frames(self, make: Runs) -> None:
        tests = "from solution import half\ndef test_half():\n    half('x')\n"
        report = make.report(tests, "def half(x):\n    return x / 2\n")
        problem = report.results[0].problem
        assert problem is not None
        assert problem.type == "TypeError"
        assert "unsupported operand" in problem.message
        places = [(f.place, f.file, f.line, f.function) for f in problem.frames]
        assert places == [
            ("tests", "test_solution.py", 3, "test_half"),
            ("solution", "solution.py", 2, "half"),
        ]

    def test_a_bare_assert_says_what_was_compared(self, make: Runs) -> None:
        report = make.report("def test_bare():\n    assert 1 == 2\n")
        problem = report.results[0].problem
        assert problem is not None
        assert (problem.type, problem.message) == ("AssertionError", "assert 1 == 2")

    def test_what_a_test_printed_is_with_it(self, make: Runs) -> None:
        tests = "import solution\ndef test_a(): print('of a')\ndef test_b(): print('of b')\n"
        report = make.report(tests, "print('at import')\n")
        assert [result.captured for result in report.results] == ["of a\n", "of b\n"]

    def test_what_a_test_printed_is_bounded(self, make: Runs) -> None:
        report = make.report("def test_a():\n    print('<' + 'x' * 1_000_000 + '>')\n")
        captured = report.results[0].captured
        assert captured.startswith("<")
        assert captured.endswith(">\n")
        assert len(captured) < 50_000

    @pytest.mark.parametrize("case", AT_IMPORT)
    def test_what_happens_at_import_is_an_error_of_collection(self, make: Runs, case: str) -> None:
        solution, kind, place = AT_IMPORT[case]
        outcome = make.tests(ONE, solution)
        assert outcome.report is not None
        assert outcome.report.finished
        problem: Problem = outcome.report.errors[0]
        own = [frame.place for frame in problem.frames if frame.place != "other"]
        assert (problem.type, own[-1]) == (kind, place)
        assert outcome.report.collected == ()

    def test_a_missing_module_is_named(self, make: Runs) -> None:
        report = make.report("import no_such.part\ndef test_a(): pass\n")
        assert report.errors[0].module == "no_such"

    def test_a_module_that_a_test_misses_is_named(self, make: Runs) -> None:
        report = make.report("def test_a():\n    import no_such\n")
        problem = report.results[0].problem
        assert problem is not None
        assert (problem.type, problem.module) == ("ModuleNotFoundError", "no_such")

    @pytest.mark.parametrize(
        "tests", ["x = 1\n", "import pytest\npytest.skip('no', allow_module_level=True)\n"]
    )
    def test_no_test_is_no_result(self, make: Runs, tests: str) -> None:
        report = make.report(tests)
        assert (report.finished, report.collected, report.results) == (True, (), ())

    @pytest.mark.parametrize("case", HOSTILE)
    def test_a_hostile_solution_changes_no_verdict(self, make: Runs, case: str) -> None:
        tests = f"{ONE}\ndef test_wrong():\n    assert add(1, 2) == 4\n"
        outcome = make.tests(tests, f"{SOLUTION}\n{HOSTILE[case]}\n")
        assert outcome.report is not None, outcome
        assert outcome.report.finished
        assert verdicts(outcome.report) == {"test_add": "passed", "test_wrong": "failed"}
        assert not outcome.timed_out

    @pytest.mark.parametrize("case", SKIPPING)
    def test_a_skip_of_the_solution_is_a_failure(self, make: Runs, case: str) -> None:
        told = verdicts(make.report(SKIPPED_BY_SOLUTION, SKIPPING[case]))
        assert told.pop("test_other") == "passed"
        assert set(told.values()) == {"failed"}, told

    def test_a_skip_of_the_solution_at_import_is_an_error(self, make: Runs) -> None:
        report = make.report(ONE, "import pytest\npytest.skip('no', allow_module_level=True)")
        assert [problem.type for problem in report.errors] == ["SolutionSkipped"]

    @pytest.mark.parametrize(
        "words", ["", "# lines to skip: xfail", '"""Rows to skip."""', "rows = dict(skip='xfail')"]
    )
    def test_a_mark_of_the_solution_excuses_no_test(self, make: Runs, words: str) -> None:
        """A word in a comment, a text or the name of an argument is no skip of the tests."""
        mark = "import sys, pytest\nsys.modules['test_solution'].pytestmark = pytest.mark.xfail\n"
        report = make.report(f"{words}\n{ONE}", f"{mark}def add(a, b): return 0")
        assert verdicts(report) == {"test_add": "failed"}

    def test_skips_of_the_tests_stay_skips(self, make: Runs) -> None:
        told = verdicts(make.report(OWN_SKIPS))
        assert told.pop("test_add") == "passed"
        expected = {told.pop(name) for name in ("test_xfail", "Cases::test_expected")}
        assert (expected, set(told.values())) == ({"xfailed"}, {"skipped"}), told

    @pytest.mark.parametrize("case", REWRITTEN)
    def test_a_rewritten_pytest_is_found_out(self, make: Runs, case: str) -> None:
        tests = "import solution\ndef test_wrong():\n    assert 1 == 2\n"
        report = make.report(tests, REWRITTEN[case])
        told = [problem.type for problem in report.errors]
        assert told == ["ResultsNotTrusted"] or verdicts(report) == {"test_wrong": "failed"}

    @pytest.mark.parametrize("case", PLUGINS)
    def test_who_changes_pytest_for_one_test_is_found_out(self, make: Runs, case: str) -> None:
        report = make.report(CHEATED, PLUGINS[case])
        told = verdicts(report)
        names = ("test_wrong", "test_parameter[2]", "test_near", "test_raises", "Cases::test_case")
        wrong = [told.get(name) for name in names]
        found_out = [problem.type for problem in report.errors] == ["ResultsNotTrusted"]
        assert found_out or (report.errors, wrong) == ((), ["failed"] * 5), report

    def test_collection_tells_ids_lines_and_what_it_left_out(self, make: Runs) -> None:
        report = make.report(LEFT_OUT)
        lines = {"TestChild::test_a": 8, "Case::test_b": 12, "test_c": 16}
        assert dict(zip(report.collected, report.lines, strict=True)) == lines
        assert ["'TestX'" in warning for warning in report.warnings] == [True]
        assert (report.finished, report.errors) == (True, ())

    def test_a_test_that_was_replaced_while_it_was_found_has_another_line(self, make: Runs) -> None:
        tests = "import solution\ndef test_first(): assert 0\nsolution.hook()\n"
        report = make.report(tests, REPLACED)
        assert (report.collected, report.lines) == (("test_first",), (0,))

    def test_an_honest_solution_is_trusted(self, make: Runs) -> None:
        for tests in (CHEATED, IDS, EVERY_OUTCOME, OWN_SKIPS, ODD_TESTS):
            report = make.report(tests)
            assert (report.finished, report.errors) == (True, ()), report

    def test_the_runner_cannot_be_read(self, make: Runs) -> None:
        assert make.printed(READ_PARENT) == "tried"

    def test_the_runner_cannot_be_imported(self, make: Runs) -> None:
        tests = """
            import sys
            def test_a():
                assert [name for name in sys.modules if name.startswith("codetape")] == []
                assert not hasattr(sys.modules["__main__"], "main")
                assert not any("runner.zip" in str(place) for place in sys.path)
        """
        assert verdicts(make.report(tests)) == {"test_a": "passed"}

    def test_the_runner_is_not_among_the_objects_that_are_found(self, make: Runs) -> None:
        tests = """
            import gc
            def test_a():
                kinds = {type(one).__name__ for one in gc.get_objects()}
                assert "Report" not in kinds
        """
        assert verdicts(make.report(tests)) == {"test_a": "passed"}

    def test_a_report_cannot_be_read_or_taken_back(self, make: Runs) -> None:
        """A pipe can be opened again by its writer; what comes last says how the run ended."""
        report = make.report(TAKEN_BACK)
        assert verdicts(report) == {"test_a": "passed"}, report

    def test_how_it_ended_cannot_be_forged(self, make: Runs) -> None:
        outcome = make.tests(f"{FORGED_EXIT}\ndef test_a(): os._exit(5)\n")
        assert outcome.exit_status == 5
        assert outcome.peak_memory != 1

    def test_the_exit_status_is_that_of_the_tests(self, make: Runs) -> None:
        assert make.tests("def test_a(): pass\n").exit_status == 0
        assert make.tests("def test_a(): assert False\n").exit_status == 1

    def test_an_exit_in_the_middle_leaves_no_end_marker(self, make: Runs) -> None:
        outcome = make.tests("import os\ndef test_a(): pass\ndef test_b(): os._exit(0)\n")
        report = outcome.report
        assert report is not None
        assert (report.finished, report.running) == (False, "test_b")
        assert verdicts(report) == {"test_a": "passed"}
        assert outcome.exit_status == 0

    @pytest.mark.parametrize("how", ["sys.exit(0)", "raise KeyboardInterrupt", "pytest.exit('x')"])
    def test_a_test_that_wants_to_end_pytest_fails(self, make: Runs, how: str) -> None:
        report = make.report(f"import sys, pytest\ndef test_a():\n    {how}\ndef test_b(): pass\n")
        assert report.finished
        assert verdicts(report) == {"test_a": "failed", "test_b": "passed"}

    def test_a_crash_is_a_signal(self, make: Runs) -> None:
        outcome = make.tests("import os\ndef test_a(): os.kill(os.getpid(), 11)\n")
        assert outcome.report is not None
        assert (outcome.signal, outcome.report.finished) == (11, False)
        assert outcome.report.running == "test_a"

    def test_a_forked_test_reports_once(self, make: Runs) -> None:
        tests = "import os\ndef test_a():\n    assert os.fork() != 0\n    os.wait()\n"
        report = make.report(tests)
        assert verdicts(report) == {"test_a": "passed"}

    def test_who_kills_the_runner_gets_no_end_marker(self, make: Runs) -> None:
        tests = "import os, time\ndef test_a():\n    os.kill(os.getppid(), 9)\n    time.sleep(1)\n"
        report = make.report(tests)
        assert (report.finished, report.results) == (False, ())

    def test_lines_without_the_nonce_forge_nothing(self, make: Runs) -> None:
        report = make.report(ONE, FORGING)
        assert verdicts(report) in ({}, {"test_add": "failed"})

    def test_foreign_configuration_is_off(self, make: Runs) -> None:
        flip = "import pytest\n@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_makereport():\n"
        flip += "    report = yield\n    report.outcome = 'passed'\n    return report\n"
        planted = (
            TextFile(name="conftest.py", text=flip),
            TextFile(name="pytest.ini", text="[pytest]\naddopts = --collect-only\n"),
            TextFile(name="evil.py", text=flip),
        )
        environment = {
            "PYTEST_ADDOPTS": "--co -p evil",
            "PYTEST_PLUGINS": "evil",
            "FORCE_COLOR": "3",
        }
        report = make.report(
            "def test_a():\n    assert 1 == 2\n", files=planted, environment=environment
        )
        assert verdicts(report) == {"test_a": "failed"}
        problem = report.results[0].problem
        assert problem is not None
        assert "\x1b" not in problem.message

    def test_waiting_for_input_ends_at_once(self, make: Runs) -> None:
        report = make.report("def test_a():\n    input()\n")
        problem = report.results[0].problem
        assert problem is not None
        assert problem.type == "EOFError"
