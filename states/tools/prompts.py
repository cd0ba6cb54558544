"""What the tool maker tells models. Pure functions of the folded session, the same to the byte."""

from __future__ import annotations

from codetape.states.framing import bullets, call, cut, fenced, rejected_packages, titled
from codetape.states.job import Persona
from codetape.states.tools.personas import HOUSE_RULES
from codetape.states.tools.session import ToolSession
from codetape.states.values import LlmCall

FIX_ROLE = f"""\
You repair a small command-line tool. Find the cause, change what has to be changed and nothing else, \
and keep the names and signatures of its functions. Do not hide an error to make it go away. Answer \
with one fenced Python block that has the whole corrected file.

{HOUSE_RULES}"""

HARNESS_ROLE = """\
You check the logic of a small Python tool. Write 15 to 30 lines of assertions as one function \
`test_logic()` without parameters, which will be put behind the tool's code in the same file:
- It calls the tool's own functions with small sample data and asserts their results. Work the right \
results out by hand from the request, not from the code: where the code is wrong, it has to fail.
- At least three cases: an ordinary one, an empty or smallest one, and one at an edge of the request.
- It defines no function or class of the tool anew, reads no file that it did not write to a temporary \
folder, needs no network, and compares floats with a tolerance.
- Each assertion has a message that says what was expected.
Answer with one fenced Python block that has this function and nothing else."""


def persona(s: ToolSession, who: Persona) -> LlmCall:
    """Ask a persona, who is told what the ones before found."""
    parts = [*_request(s), *_findings(s)]
    parts.append("Write the whole file." if s.writes(who) else "Say what you find.")
    own = {} if who.temperature is None else {"temperature": who.temperature}
    return call(s, who.name, who.directive, parts, model=_model(s, who), parameters=own)


def _model(s: ToolSession, who: Persona) -> str:
    """The persona's own model, else the one that is named for it, else that of its lane."""
    lane = "coder" if s.writes(who) else "orchestrator"
    named = s.job.models
    return who.model or named.get(who.name) or named.get(lane) or s.job.model


def fix_crash(s: ToolSession) -> LlmCall:
    """Ask for the script without its crash, or for one whose image can be built."""
    parts = [*_request(s), *_script(s)]
    if s.build_failure:
        parts.append(titled("Its packages could not be installed", _build(s)))
    else:
        parts.append(titled("It was run without arguments and crashed", _crash(s)))
    return call(s, "fix_crash", FIX_ROLE, [*parts, *_history(s), *rejected_packages(s)])


def harness(s: ToolSession) -> LlmCall:
    """Ask for assertions on the script's functions."""
    parts = [*_request(s), *_script(s)]
    if s.refusals:
        parts.append(titled("This harness could not be used", cut(s.refused_harness)))
        parts.append(titled("The reasons", bullets(s.refusals)))
    return call(s, "harness", HARNESS_ROLE, parts)


def fix_logic(s: ToolSession) -> LlmCall:
    """Ask for the one repair of what the harness found."""
    parts = [*_request(s), *_script(s)]
    if s.tests:
        parts.append(titled("The check of its logic", fenced(s.tests.source)))
    parts.append(titled("What the check found", _crash(s)))
    return call(s, "fix_logic", FIX_ROLE, parts)


def _request(s: ToolSession) -> list[str]:
    job = s.job
    parts = [titled("The request", job.prompt)]
    if s.notes:
        parts.append(titled("Added by the person who asked", bullets(s.notes)))
    if job.context:
        parts.append(titled("What is known", cut(job.context)))
    if job.guidance:
        parts.append(titled("What earlier tools taught", bullets(job.guidance)))
    if job.today:
        parts.append(f"Today is {job.today}.")
    return parts


def _findings(s: ToolSession) -> list[str]:
    return [titled(f"What {f.persona} found", cut(f.text)) for f in s.findings]


def _script(s: ToolSession) -> list[str]:
    return [titled("The tool", fenced(s.code.source))] if s.code else []


def _build(s: ToolSession) -> str:
    assert s.build_failure
    return f"{s.build_failure.message}\nAsked for: {', '.join(s.spec.requirements)}"


def _crash(s: ToolSession) -> str:
    """The failures with their evidence, and what the run printed."""
    lines = [f"{f.problem.type}: {cut(f.problem.message)}" for f in s.failures]
    lines += [
        f"  at {x.file}:{x.line} in {x.function}" for f in s.failures for x in f.problem.frames
    ]
    if s.run and s.tests is None:
        lines += [f"It printed on {name}:\n{cut(text)}" for name, text in _printed(s) if text]
    return "\n".join(lines)


def _printed(s: ToolSession) -> tuple[tuple[str, str], ...]:
    assert s.run
    return ("stdout", s.run.stdout.strip()), ("stderr", s.run.stderr.strip())


def _history(s: ToolSession) -> list[str]:
    if not s.history:
        return []
    return [titled("What was repaired before, in vain", bullets(s.history))]
