"""What a redacted tape keeps: each field of each event, request and value, decided by name.

`KEPT` names the fields that stay, with the form that a text must have to stay; `GONE` names those that
hold prompts, data, code, commands, paths, addresses or names of people. Values inside values and
closed sets of words (Literal, enums) need no line. A field in neither table is gone too, so a new one
is never kept by oversight; a test finds it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from codetape.states import events as e
from codetape.states import job as j
from codetape.states import requests as r
from codetape.states import values as v
from codetape.states.constraints import Check
from codetape.states.failures import Failure
from codetape.states.tools import events as te
from codetape.states.tools import requests as tr
from codetape.states.values import Value

Form = re.Pattern[str]


def _form(pattern: str) -> Form:
    return re.compile(rf"(?=.{{1,200}}\Z){pattern}", re.ASCII)


def _name(pattern: str) -> Form:
    """Return the form of a name: it has a letter, and is no address and no path of a person."""
    return _form(rf"(?=.*[A-Za-z])(?!.*(?://|:/|/home/|/Users/)){pattern}")


FACT = _form(r"(?!)")
"""Counts, times, sizes, limits, costs and answers of yes or no: no text has this form."""

WORD = _form(r"[A-Za-z_][\w-]{0,39}")
"""Names of kinds, fields and sandboxes."""

ID = _form(r"[\w-]{1,64}")
"""The id of a session."""

WORKFLOW = _form(r"\w[\w .:-]{0,99}")

VERSION = _form(r"\d+(?:\.\d+){0,3}(?:(?:a|b|rc)\d+)?")

EXCEPTION = _form(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
"""Types of exceptions, and modules."""

PACKAGE = _name(r"[A-Za-z0-9][\w.+-]*(?:\[[\w,.-]+\])?(?:[<>=!~]=?=?[\w.*+!-]+,?)*")
"""A name with extras and versions; an address or a path is none."""

MODEL = _name(r"\w[\w.:/-]*(?:@\d{3,8})?")

IMAGE = _name(r"(?!.*[0-9a-f]{12})\w[\w.:/-]*(?:@sha256:[0-9a-f]{64})?")
"""A name and a digest of the registry; a digest of ours would confirm a guess of what is gone."""

Forms = Mapping[str, Form]


def _facts(names: str, **forms: Form) -> Forms:
    return {**dict.fromkeys(names.split(), FACT), **forms}


KEPT: Mapping[type[Value], Forms] = {
    e.SessionOpened: _facts("rules", workflow=WORKFLOW),
    e.Forked: _facts("seq given", parent=ID, changed=WORD),
    e.CodeWritten: {"packages": PACKAGE, "system_packages": PACKAGE},
    e.TestsWritten: {"packages": PACKAGE},
    e.TestsPatched: {"packages": PACKAGE},
    e.PackageReplaced: {"rejected": PACKAGE, "replacement": PACKAGE},
    e.Needs: {"packages": PACKAGE, "system_packages": PACKAGE},
    e.AnswerRejected: {"kind": WORD},
    e.CallFailed: {"kind": WORD},
    e.AttemptsSpent: _facts("attempts"),
    e.BudgetSpent: _facts("spent allowed next"),
    te.FindingWritten: {"packages": PACKAGE},
    te.HarnessWritten: {"packages": PACKAGE},
    j.Job: _facts(
        "max_iterations skip_tests plan network_access sandbox_retries call_retries call_seconds"
        " build_seconds fix_cycles seed script_runs",
        model=MODEL,
        models=MODEL,
        fallback_models=MODEL,
        prices=MODEL,
        sandbox=WORD,
        package_policy=WORD,
        python=VERSION,
        base_image=IMAGE,
        base_packages=PACKAGE,
        system_packages=PACKAGE,
    ),
    j.Budget: _facts("usd tokens calls seconds"),
    j.Column: _facts("nullable", type=WORD),
    j.Persona: _facts("temperature writes_code", model=MODEL),
    j.Price: _facts("input output output_limit"),
    Failure: {"phase": WORD},
    v.LlmCall: _facts("seconds", kind=WORD, model=MODEL),
    v.Usage: _facts("input_tokens output_tokens"),
    v.Answer: _facts("cost seconds", finish_reason=WORD, model=MODEL),
    v.CallFailure: _facts("retryable retry_after seconds"),
    v.ImageSpec: {
        "base": IMAGE,
        "python": VERSION,
        "requirements": PACKAGE,
        "system_packages": PACKAGE,
    },
    v.ImageRef: _facts("cached seconds", ref=IMAGE, python=VERSION, sandbox=WORD),
    v.BuildFailure: _facts("seconds", packages=PACKAGE),
    v.SandboxFailure: _facts("missing seconds"),
    v.Limits: _facts("memory cpus processes seconds output disk"),
    v.RunSpec: _facts("network script nulls"),
    v.NullRun: _facts("ended"),
    v.ScriptRun: _facts("exit_status signal timed_out seconds"),
    v.Frame: _facts("line"),
    v.Problem: {"type": EXCEPTION, "module": EXCEPTION},
    v.TestReport: _facts("finished lines", python=VERSION),
    v.OutputFile: _facts("is_folder size"),
    v.RunOutcome: _facts(
        "exit_status signal timed_out out_of_memory disk_full too_much_output forks_refused"
        " did_not_exit stdout_cut stderr_cut seconds cpu_seconds peak_memory cached"
    ),
    r.BuildRequest: _facts("seconds"),
    r.RunTests: _facts("weak_named"),
    r.ReplacePackage: _facts("system", rejected=PACKAGE),
    tr.AskPersona: _facts("writes"),
}
"""Fields that stay, by the class that declares them, and the form of their texts."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


GONE: Mapping[type[Value], frozenset[str]] = {
    e.Ran: _names("expected"),
    e.TestsPassed: _names("script_not_run nulls_unknown"),
    e.Answered: _names("repairs"),
    e.Diagnosed: _names("repairs"),
    e.Planned: _names("description approach"),
    e.ConstraintParsed: _names("constraint unread"),
    e.CodeWritten: _names("source"),
    e.FixesVerified: _names("missing unread"),
    e.TestsWritten: _names("source"),
    e.TestsPatched: _names("source patched unpatched refused"),
    e.PatchRefused: _names("reasons"),
    e.PatchesVerified: _names("missing unread"),
    e.PackageReplaced: _names("unread"),
    e.RepairFailed: _names("reason"),
    e.Needs: _names("commands"),
    e.Relabelled: _names("test_id"),
    e.AnswerRejected: _names("detail"),
    e.Paused: _names("by"),
    e.Resumed: _names("allow deny"),  # commands too
    e.Noted: _names("text"),
    e.Cancelled: _names("by"),
    te.FindingWritten: _names("persona source"),
    te.HarnessWritten: _names("source"),
    te.HarnessRefused: _names("reasons"),
    Check: _names("constraint column kind arguments"),
    v.Declared: _names("name"),
    j.Column: _names("name"),
    j.Sample: _names("name path file description"),
    j.Persona: _names("name directive"),
    j.Job: _names(
        "prompt name api_key api_base system_prompt parameters schema_text constraints commands"
        " registry_secret environment secrets context today guidance"
    ),
    Failure: _names("test_id captured because fix root_cause expected actual place"),
    v.Message: _names("parts"),
    v.LlmCall: _names("answer_schema parameters"),
    v.Answer: _names("text request_id notes raw"),
    v.CallFailure: _names("message"),
    v.ImageSpec: _names("commands allowed"),
    v.ImageRef: _names("spec_key tool"),
    v.BuildFailure: _names("message log"),
    v.SandboxFailure: _names("message"),
    v.TextFile: _names("name text"),
    v.HostFile: _names("name path"),
    v.RunSpec: _names("arguments outputs environment secrets"),
    v.Frame: _names("file function"),
    v.Problem: _names("message"),
    v.TestResult: _names("id captured"),
    v.TestReport: _names("collected warnings running"),
    v.OutputFile: _names("name path text"),
    v.RunOutcome: _names("stdout stderr refused_outputs"),
    v.ScriptRun: _names("stdout stderr"),
    v.NullRun: _names("failed"),
    v.WeakTest: _names("test_id"),
    r.RunTests: _names("not_run"),
    r.ParseConstraint: _names("constraint columns"),
    r.VerifyCode: _names("fixes"),
    r.WriteTests: _names("previous"),
    r.PatchTests: _names("source failing"),
    r.VerifyTests: _names("fixes"),
    r.Diagnose: _names("imports"),
    tr.AskPersona: _names("persona"),
    tr.WriteHarness: _names("source"),
}
"""Fields that are gone, by the class that declares them."""

_COMMANDS = frozenset({"refused_command", "undecided_command", "command"})
"""Causes of a failed build whose `packages` are commands."""


def kept_of(value: Value) -> Forms:
    """Return the fields of a value that stay."""
    kept = kept_by(type(value))
    if isinstance(value, v.BuildFailure) and value.cause in _COMMANDS:
        return {name: form for name, form in kept.items() if name != "packages"}
    return kept


@cache
def kept_by(kind: type[Value]) -> Forms:
    """Return the fields of a class that stay, those of its bases included."""
    return {name: form for home in reversed(kind.__mro__) for name, form in _own(home).items()}


def _own(home: type) -> Forms:
    return KEPT.get(home, {})
