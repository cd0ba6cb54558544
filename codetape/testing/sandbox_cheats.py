"""The part of the sandbox contract that is about code that wants another verdict than its own."""

from __future__ import annotations

import pytest

from codetape.states.values import TextFile
from codetape.testing.sandbox_reports import EVERY_OUTCOME, IDS, ONE
from codetape.testing.sandbox_runs import SOLUTION, Runs, SandboxCase, verdicts
from codetape.testing.sandbox_skips import OWN_SKIPS

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


class CheatContract(SandboxCase):
    """No code changes what is reported of it, or it is found out."""

    @pytest.mark.parametrize("case", HOSTILE)
    def test_a_hostile_solution_changes_no_verdict(self, make: Runs, case: str) -> None:
        tests = f"{ONE}\ndef test_wrong():\n    assert add(1, 2) == 4\n"
        outcome = make.tests(tests, f"{SOLUTION}\n{HOSTILE[case]}\n")
        assert outcome.report is not None, outcome
        assert outcome.report.finished
        assert verdicts(outcome.report) == {"test_add": "passed", "test_wrong": "failed"}
        assert not outcome.timed_out

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
