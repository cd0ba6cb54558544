"""What models are told. Each prompt is a pure function of the folded session, the same to the byte.

A prompt is a system message that says what a good answer is, and a user message made of parts: what
was asked, what is known, what there is, what went wrong. Parts that recur are equal, so a tape keeps
them once. Long texts are cut by lines, in the middle, and say so.
"""

from __future__ import annotations

from codetape.states.constraints import schemas_of
from codetape.states.failures import Failure
from codetape.states.framing import bullets, call, cut, fenced, rejected_packages, titled
from codetape.states.job import Job
from codetape.states.ladder import faulty_tests, for_new_code, tests_to_patch
from codetape.states.script import not_run
from codetape.states.session import Rejected, Session
from codetape.states.values import LlmCall

MOST_FINDINGS = 20
"""Failures that a prompt tells in full; of more it gives the names."""

CONTRACT = """\
You write Python for a sandbox. How the code is run:
- The file is solution.py. It is started as `python solution.py --NAME VALUE …`, one option for each \
declared input, parsed with argparse.
- Input files lie in /var/inputs, which cannot be written. The value of an input of type File or Dir \
is its path.
- Each declared output is written to /var/outputs/NAME, without an extension added: a File as the \
file itself, a Dir as a folder, a value (str, int, float, bool, datetime as ISO 8601, timedelta as \
seconds) as the whole text of a file. The folder /var/outputs exists; do not delete it.
- There is no network unless the request says so, nothing to type on stdin, and no screen.

How the code is to be written:
- Put the work into module-level functions with parameters and return values, so that tests can \
import them from `solution` and call them with small data of their own.
- Reading arguments and writing outputs happens in main(), behind `if __name__ == "__main__":`.
- Importing the module does nothing else. Raise an exception where the data make no sense; never \
hide an error."""

CONSTRAINT_ROLE = """\
A constraint on a table of data is given in words. Name the one column it is about, as it is listed, \
and the check that it is:
- `greater_than` and `less_than`: parameters {"value": number}.
- `between`: parameters {"min": number, "max": number}, both included.
- `regex`: parameters {"pattern": text}. `isin`: parameters {"values": list}.
- `not_null`: no parameters.
- `none`: it is about several columns, or about something else; `column_name` is empty."""

PLAN_ROLE = """\
You plan a small Python program before it is written. Say what it has to do and how: the functions \
with their parameters and results, the order of the work, the edge cases in the data, and which \
packages are worth having. No code. Be brief."""

CODE_ANSWER = """\
`code` is the whole file. `packages` are the distributions to install, by the name that the package \
index knows (scikit-learn, not sklearn); nothing of the standard library. `system_packages` are \
Debian packages and nearly always none. `language` is python."""

TESTS_ROLE = """\
You write the pytest file test_solution.py for the module solution. What a good test file is:
- It imports functions from `solution` and calls them. {script}
- Each test checks one thing that the request promises, with data small enough to work the right \
answer out by hand. Check the values, not only their types.
- Edge cases count: empty data, missing values, one row, limits that are met exactly.
- Floats are compared with pytest.approx. No test is random, waits, or needs the network.
- Only functions that the code defines are called, with the parameters that they have.
The request decides what is right, not the code: where the code is wrong, the test has to fail."""

TESTS_ALONE = """\
It does not start the script and does not \
read /var/inputs or write /var/outputs; files that it needs it makes under tmp_path."""
"""Of sessions whose pass includes no run of the script."""

ELSE = "Change only what the repair takes: all else stays as it is, to the letter."

NO_PLUGINS = """ \
No plugin of pytest is there: fixtures are those of pytest itself and of the file, and async code is \
called with asyncio.run."""

SCRIPT_FOLLOWS = """\
Files that it needs it makes under tmp_path.
- When all tests have passed, the script itself is started on the sample data and its declared outputs \
are looked for: no test has to do that. A test may start it to check what no function shows:"""

SCRIPT_BY_TEST = """\
Files that it needs it makes under tmp_path.
- Only a test can start the script itself ({reason}). One does, with values that the request allows:"""

START = """ \
`subprocess.run([sys.executable, "/var/inputs/solution.py", "--NAME", "VALUE"], capture_output=True, \
text=True)`, with a value for each declared input. It checks the exit status first, and then what lies \
in /var/outputs/NAME."""

DIAGNOSIS_ROLE = """\
Tests of a Python program failed. For each failing test decide who is at fault:
- `logic`: the code does not do what the request asks.
- `test_error`: the test expects what the request does not ask, or is built wrongly.
- `environment`: the image lacks a package, a system library or a file.
The request decides, not the code and not the test: work the right result out by hand from the \
request and the data in the test. If the request leaves it open, the code is at fault only if it is \
inconsistent in itself.
Give one entry in `failures` for each failing test: its full name as `test_name`, one of the three \
words above as `error_type`, and in a sentence each `expected_behavior`, `actual_behavior` and \
`root_cause`. Write `suggested_fix` in the form: Replace `old text` with `new text`. Quote the old \
text exactly as it stands in the file, one place for each fix; if it takes more than that, say in \
words what to do.
`needs_language_packages`, `needs_system_packages` and `needs_additional_commands` are for failures \
of the environment only."""

PATCH_ROLE = """\
You repair tests that were found to be wrong; the code is not at fault. For each failing test give \
the whole function anew: its decorators, its name and its parameters as they are, and a body that \
checks what the request asks. `fixed_code` is that function and `test_name` its name, without \
parameters in brackets; for a method, Class::method. A test may not be deleted, skipped, or check \
less than before. Imports that the new body needs go inside the function."""

VERIFY_ROLE = """\
Read whether each listed fix has been made in the text. A fix counts as made if the text now does \
what the fix asks, in whatever words. Name the others in `missing_fixes`, as they are listed."""

REPLACE_ROLE = """\
A package that a Python program asked for does not exist under that name or in that version. Name the \
package that was meant, by the name under which it can be installed, or null if none is needed."""


def parse_constraint(s: Session, constraint: str, columns: tuple[str, ...]) -> LlmCall:
    """Ask which check of which column a constraint is."""
    parts = [titled("The constraint", constraint), titled("The columns", bullets(columns))]
    return call(s, "parse_constraint", CONSTRAINT_ROLE, parts)


def plan(s: Session) -> LlmCall:
    """Ask how the work is to be done."""
    return call(s, "plan", PLAN_ROLE, [*_request(s)])


def code(s: Session) -> LlmCall:
    """Ask for the whole solution: the first one, or the newest one repaired."""
    parts = [*_request(s), *_plan(s), *_present_code(s)]
    if s.build_failure:
        parts.append(titled("The image could not be built", _build_report(s)))
    if faults := for_new_code(s.failures):
        parts.append(titled("Repair these failures", _findings(faults)))
        parts.extend(_present_tests(s))
    parts += [*_history(s), *_insistence(s), *rejected_packages(s)]
    ask = _whole_file("Answer with the whole corrected file.", s) if s.code else "Write the file."
    return call(s, "code", f"{CONTRACT}\n\n{CODE_ANSWER}", [*parts, ask])


def tests(s: Session) -> LlmCall:
    """Ask for a test file: the first one, or another one for one that could not be collected."""
    parts = [*_request(s), *_plan(s), *_present_code(s)]
    if s.tests:
        parts += _present_tests(s)
        faults = faulty_tests(s.failures)
        collected = s.run and s.run.report and s.run.report.collected
        title = "Repair these tests" if collected else "These tests could not be run"
        parts.append(titled(title, _findings(faults)))
    corrected = _whole_file("Answer with the whole corrected test file.", s)
    ask = corrected if s.tests else "Write the test file."
    return call(s, "tests", _tests_role(s.job), [*parts, *_history(s), ask])


def _whole_file(ask: str, s: Session) -> str:
    """Ask for a repaired file; on tapes from before the script was run, it is asked for as it was."""
    return f"{ask} {ELSE}" if s.job.script_runs else ask


def _tests_role(job: Job) -> str:
    if not job.script_runs:
        return TESTS_ROLE.format(script=TESTS_ALONE)
    reason = not_run(job)
    script = SCRIPT_BY_TEST.format(reason=reason) if reason else SCRIPT_FOLLOWS
    return TESTS_ROLE.format(script=script + START + NO_PLUGINS)


def diagnosis(s: Session) -> LlmCall:
    """Ask who is at fault, for the failures that evidence left open."""
    parts = [*_request(s), *_present_code(s), *_present_tests(s)]
    parts.append(titled("What failed", _findings(s.failures)))
    return call(s, "diagnosis", DIAGNOSIS_ROLE, [*parts, *_history(s)])


def patch_tests(s: Session) -> LlmCall:
    """Ask for other bodies of the tests at fault."""
    parts = [*_request(s), *_present_code(s), *_present_tests(s)]
    parts.append(titled("Repair these tests", _findings(tests_to_patch(s))))
    return call(s, "patch_tests", PATCH_ROLE, [*parts, *_history(s), *_insistence(s)])


def verify_code(s: Session, fixes: tuple[str, ...]) -> LlmCall:
    """Ask whether the fixes are in the code."""
    parts = [*_present_code(s), titled("The fixes", bullets(fixes))]
    return call(s, "verify_code", VERIFY_ROLE, parts)


def verify_tests(s: Session, fixes: tuple[str, ...]) -> LlmCall:
    """Ask whether the fixes are in the tests."""
    parts = [*_present_tests(s), titled("The fixes", bullets(fixes))]
    return call(s, "verify_tests", VERIFY_ROLE, parts)


def replace_package(s: Session, rejected: Rejected) -> LlmCall:
    """Ask for the right name of a package that does not exist."""
    what = "Debian package" if rejected.kind == "system_package" else "Python distribution"
    parts = [*_present_code(s), titled(f"The {what} that does not exist", rejected.name)]
    return call(s, "replace_package", REPLACE_ROLE, [*parts, cut(rejected.reason)])


# --- the parts ------------------------------------------------------------------------------------


def _request(s: Session) -> list[str]:
    job = s.job
    parts = [titled("The request", job.prompt)]
    if s.notes:
        parts.append(titled("Added by the person who asked", bullets(s.notes)))
    if job.guidance:
        parts.append(titled("What earlier sessions taught", bullets(job.guidance)))
    if job.schema_text:
        parts.append(titled("The schema of the data", job.schema_text))
    if job.constraints:
        parts.append(titled("Constraints", bullets(job.constraints)))
    parts.append(titled("Inputs and outputs", _interface(job)))
    parts.extend(titled(f"Sample data for {x.name}", x.description) for x in job.samples)
    if s.checks:
        parts += [_schema_part(name, code) for name, code in schemas_of(job, s.checks).items()]
    return parts


def _schema_part(name: str, code: str) -> str:
    return titled(f"What holds for {name}, as a Pandera schema", fenced(code))


def _interface(job: Job) -> str:
    lines = [f"- input `--{d.name}`: {d.type}" for d in job.inputs]
    lines += [f"- output /var/outputs/{d.name}: {d.type}" for d in job.outputs]
    if job.network_access:
        lines.append("- the network may be used")
    return "\n".join(lines) or "None are declared."


def _plan(s: Session) -> list[str]:
    if s.plan is None:
        return []
    description, approach = s.plan
    return [titled("The plan", f"{description}\n\n{approach}")]


def _present_code(s: Session) -> list[str]:
    return [titled("solution.py", fenced(s.code.source))] if s.code else []


def _present_tests(s: Session) -> list[str]:
    return [titled("test_solution.py", fenced(s.tests.source))] if s.tests else []


def _build_report(s: Session) -> str:
    assert s.build_failure
    asked = ", ".join(s.spec.requirements) or "nothing"
    log = cut(s.build_failure.log)
    return f"{s.build_failure.message}\nAsked for: {asked}\n{log}"


def _findings(failures: tuple[Failure, ...]) -> str:
    told = [_finding(failure) for failure in failures[:MOST_FINDINGS]]
    if rest := failures[MOST_FINDINGS:]:
        told.append(f"### {len(rest)} more failed\n{bullets(f.test_id for f in rest)}")
    return "\n\n".join(told)


def _finding(f: Failure) -> str:
    lines = [f"### {f.test_id}", f"{f.problem.type}: {cut(f.problem.message)}"]
    lines += [f"  at {x.file}:{x.line} in {x.function}" for x in f.problem.frames[-6:]]
    if f.captured:
        lines.append(f"It printed:\n{cut(f.captured)}")
    words = {
        "Evidence": f.because,
        "Expected": f.expected,
        "Actual": f.actual,
        "Cause": f.root_cause,
        "Fix": f.fix,
    }
    lines += [f"{title}: {text}" for title, text in words.items() if text]
    return "\n".join(lines)


def _history(s: Session) -> list[str]:
    if not s.history:
        return []
    return [titled("What was repaired before", bullets(s.history))]


def _insistence(s: Session) -> list[str]:
    """Say what the last answer left out, more firmly in the last round."""
    if s.repair is None or not s.repair.missing:
        return []
    text = "Your last answer left these out. Make every one of them."
    if s.repair.verdict == "refused":
        text = "No part of your last answer could be used, for these reasons:"
    firm = "This is the last round. " if s.repair.rounds > 1 else ""
    return [titled("Not done yet", f"{firm}{text}\n{bullets(s.repair.missing)}")]
