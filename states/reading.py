"""From a request and its outcome to the event that it is. Pure, so that a replay reads it again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from codetape.states import events as e
from codetape.states import requests as r
from codetape.states.answers import (
    CodeShape,
    ConstraintShape,
    DiagnosisShape,
    LastUnreadable,
    PatchesShape,
    PlanShape,
    ReplacementShape,
    Shape,
    TestsShape,
    Unusable,
    VerificationShape,
    first_readable,
    read,
    shaped,
    strings_in,
    whole_text,
)
from codetape.states.code_text import (
    FoundCode,
    find_code,
    is_broken_code,
    later_version,
    python_code,
)
from codetape.states.constraints import check_of
from codetape.states.diagnosing import diagnosed
from codetape.states.elisions import left_out
from codetape.states.expected_tests import may_define_tests
from codetape.states.joining import OWN_MODULES, imports_any
from codetape.states.no_assertions import asserts_nothing
from codetape.states.packages import (
    distributions_of,
    merged,
    name_of,
    not_in_library,
    not_provided,
    requirement,
    system_package,
)
from codetape.states.patching import apply_patches
from codetape.states.python_source import (
    defined_tests,
    does_something,
    fixtures_of,
    is_broken,
    public_functions,
    shadowed_tests,
    syntax_error,
)
from codetape.states.required_imports import required_names
from codetape.states.script import needs_tests
from codetape.states.values import (
    Answer,
    BuildFailure,
    CallFailure,
    ImageRef,
    ImageSpec,
    Outcome,
    RunOutcome,
    SandboxFailure,
)
from codetape.states.verdict import verdict
from codetape.states.weakening import weakened_source

S = TypeVar("S", bound=Shape)

_PYTHON = re.compile(r"\s*(?:py(?:thon)?[ -]?[\d.]*)?\s*$", re.IGNORECASE)
"""Python by any name, or no name."""

WITHOUT_JSON = ("malformed", "invalid")
"""Reasons why an answer has no JSON of its shape: the code may stand beside words, or an example."""

CODE_FIELDS: dict[type[Shape], str] = {CodeShape: "code", TestsShape: "test_code"}
"""Shape to the field that has its code."""

REJECTING = frozenset(
    [
        *("unknown_package", "unknown_system_package"),
        *("refused_package", "refused_system_package", "refused_command", "command"),
    ]
)
"""Causes of a failed build that name what to leave out."""

HOLDING = frozenset({"undecided_package", "undecided_system_package", "undecided_command"})
"""Causes of a build that was not made because a person has to be asked."""


def interpret(request: r.Request, outcome: Outcome) -> e.Event:
    """Return the event that `outcome` of `request` is. Raises TypeError if the two do not fit."""
    match request, outcome:
        case _, SandboxFailure():
            return e.SandboxBroke(failure=outcome)
        case r.ModelRequest(), CallFailure():
            return e.CallFailed(kind=request.call.kind, failure=outcome)
        case r.ModelRequest(), Answer():
            return _read(request, outcome)
        case r.CheckSandbox(), ImageRef():
            return e.SandboxReady(image=outcome)
        case r.CheckSandbox(), BuildFailure():
            return e.SandboxBroke(failure=SandboxFailure(message=outcome.message, missing=True))
        case r.BuildImage(), ImageRef():
            return e.ImageBuilt(image=outcome)
        case r.BuildImage(), BuildFailure():
            return _build_ended(request, outcome)
        case r.RunTests(), RunOutcome():
            named = request.weak_named
            return verdict(request.spec, outcome, request.not_run, weak_named=named)
    raise TypeError(f"{request.name} has no outcome {type(outcome).__name__}")


def _read(request: r.ModelRequest, answer: Answer) -> e.Event:
    try:
        return _READERS[type(request)](request, answer)
    except Unusable as why:
        kind = request.call.kind
        return e.AnswerRejected(kind=kind, reason=why.reason, detail=why.detail, answer=answer)


def _plan(_: r.WritePlan, answer: Answer) -> e.Event:
    try:
        plan = read(answer, PlanShape)
    except Unusable as why:
        words = whole_text(answer).strip() if why.reason in WITHOUT_JSON else ""
        if not words or _means_json(words):
            raise
        return e.Planned(description=words, approach="", answer=answer)
    return e.Planned(
        description=plan.description, approach=plan.approach, answer=answer, repairs=plan.repairs
    )


def _means_json(words: str) -> bool:
    """True for a text that is JSON, or looks like a plan in JSON that is cut."""
    if words.startswith(("{", "[")) or any(
        f'"{field}"' in words for field in PlanShape.model_fields
    ):
        return True
    with suppress(ValueError):
        json.loads(words)
        return True
    return False


def _constraint(request: r.ParseConstraint, answer: Answer) -> e.Event:
    try:
        shape = read(answer, ConstraintShape)
        check = check_of(request.constraint, shape, request.columns)
    except Unusable as why:
        text = request.constraint
        return e.ConstraintParsed(constraint=text, unread=str(why), answer=answer)
    return e.ConstraintParsed(
        constraint=request.constraint, check=check, answer=answer, repairs=shape.repairs
    )


def _code(_: r.WriteCode, answer: Answer) -> e.Event:
    shape = _code_shape(answer)
    if not _PYTHON.match(shape.language):
        raise Unusable("invalid", f"language: {shape.language!r} is not python")
    source, repairs = _source(shape.code, "code", is_solution)
    if not does_something(source):
        raise Unusable("invalid", "code: it does nothing")
    if needs_tests(source):
        why = "it uses test_solution, which is not there when the code is run"
        raise Unusable("invalid", f"code: {why}")
    listed = _each(requirement, not_in_library(shape.packages), "packages")
    system = _each(system_package, shape.system_packages, "system_packages")
    return e.CodeWritten(
        source=source,
        packages=merged((*listed, *not_provided(required_names(source), listed))),
        system_packages=tuple(sorted(set(system))),
        answer=answer,
        repairs=shape.repairs + repairs,
    )


def _code_shape(answer: Answer) -> CodeShape:
    """Read a code answer; code that came without its JSON is code all the same."""

    def is_code(made: CodeShape) -> bool:
        source = python_code(made.code, is_solution)
        return (does_something(source) and not defined_tests(source)) or is_broken_code(made.code)

    def of_code(code: str) -> CodeShape:
        return CodeShape(code=code)

    def read_text(text: str) -> CodeShape:
        return _json_or_code(text, CodeShape, is_code, is_solution, of_code)

    return first_readable(answer, read_text)


def _json_or_code(
    text: str,
    shape: type[S],
    fits: Callable[[S], bool],
    is_code: Callable[[str], bool],
    of_code: Callable[[str], S],
) -> S:
    """Return the JSON in a text if it fits, else the code that stands in it beside words.

    Code in JSON of another shape counts if there is one alone.
    """
    made, reason = None, None
    try:
        made = shaped(text, shape, fits)
    except LastUnreadable:
        raise
    except Unusable as why:
        reason = why
    if made and fits(made):
        source = python_code(getattr(made, CODE_FIELDS[shape]), is_code)
        if later_version(text[made.end :], source, is_code):
            raise LastUnreadable("invalid", "there is one version in JSON, and another after it")
        return made
    if reason is None or reason.reason in WITHOUT_JSON:
        if found := _code_beside_words(text, is_code):
            return _noted(of_code(found.text), found.repairs)
        within = {python_code(one, is_code): one for one in strings_in(text, CODE_FIELDS[shape])}
        codes = [one for source, one in within.items() if is_code(source)]
        if made is None and len(codes) == 1:
            return _noted(of_code(codes[0]), ("the code stood in a field of another name",))
    if made:
        return made
    raise reason or AssertionError(shape)


def _code_beside_words(text: str, is_code: Callable[[str], bool]) -> FoundCode | None:
    found = find_code(text, is_code)
    if not is_code(found.text):
        return None
    if found.problem:
        raise Unusable("invalid", f"code: {found.problem}")
    return found


def _noted(made: S, repairs: tuple[str, ...]) -> S:
    made.note_repairs(repairs)
    return made


def is_solution(source: str) -> bool:
    """True for code that defines something and neither tests nor uses the solution."""
    return (
        any(name not in fixtures_of(source) for name in public_functions(source))
        and not defined_tests(source)
        and not imports_any(source, OWN_MODULES)
    )


def is_test_file(source: str) -> bool:
    """True for a file that defines tests, or may."""
    return syntax_error(source) is None and may_define_tests(source)


def _source(text: str, field: str, fits: Callable[[str], bool]) -> tuple[str, tuple[str, ...]]:
    """Return the code in the text of a field, and what was repaired in it. Raises Unusable."""
    found = find_code(text, fits)
    source = found.text
    if not source.strip():
        raise Unusable("empty", f"{field}: there is no code in it")
    if (problem := syntax_error(source)) and is_broken(source):
        raise Unusable("invalid", f"{field}: it does not parse, {problem}")
    if problem := found.problem or left_out(source):
        raise Unusable("invalid", f"{field}: {problem}")
    return source + "\n", found.repairs


def _each(check: Callable[[str], str], names: list[str], field: str) -> list[str]:
    try:
        return [check(name) for name in names]
    except ValueError as error:
        raise Unusable("invalid", f"{field}: {error}") from error


def _tests(request: r.WriteTests, answer: Answer) -> e.Event:
    shape = _tests_shape(answer)
    source, repairs = _source(shape.test_code, "test_code", is_test_file)
    if problem := syntax_error(source):  # no later version could be held against it
        why = f"it may be newer than Python 3.11, write it in older words: {problem}"
        raise Unusable("invalid", f"test_code: {why}")
    if not may_define_tests(source):
        raise Unusable("invalid", "test_code: it defines no test function")
    if asserts_nothing(source):
        raise Unusable("invalid", "test_code: no test asserts anything, so that none can fail")
    if twice := shadowed_tests(source):
        why = f"it defines {', '.join(twice)} twice, and the first one would never run"
        raise Unusable("invalid", f"test_code: {why}")
    if weaker := weakened_source(request.previous, source):
        raise Unusable("invalid", f"test_code: {'; '.join(weaker)}")
    return e.TestsWritten(
        source=source,
        packages=_packages_of(source),
        answer=answer,
        repairs=shape.repairs + repairs,
    )


def _tests_shape(answer: Answer) -> TestsShape:
    """Read a tests answer; a test file that came without its JSON is one all the same."""

    def has_tests(made: TestsShape) -> bool:
        source = python_code(made.test_code, is_test_file)
        return is_test_file(source) or is_broken_code(made.test_code)

    def of_code(code: str) -> TestsShape:
        return TestsShape(test_code=code)

    def read_text(text: str) -> TestsShape:
        return _json_or_code(text, TestsShape, has_tests, is_test_file, of_code)

    return first_readable(answer, read_text)


def _packages_of(source: str) -> tuple[str, ...]:
    return distributions_of(required_names(source))


def _patches(request: r.PatchTests, answer: Answer) -> e.Event:
    shape = read(answer, PatchesShape)
    pairs = [(patch.test_name, patch.fixed_code) for patch in shape.patches]
    result = apply_patches(request.source, pairs, request.failing)
    if not result.patched:
        reasons = result.refused or ("The answer has no patch.",)
        return e.PatchRefused(reasons=reasons, answer=answer, repairs=shape.repairs)
    left = sorted({test.partition("[")[0] for test in request.failing} - set(result.patched))
    return e.TestsPatched(
        source=result.source,
        packages=_packages_of(result.source),
        patched=result.patched,
        unpatched=tuple(left),
        refused=result.refused,
        answer=answer,
        repairs=shape.repairs,
    )


def _verified(event: type[e.FixesVerified | e.PatchesVerified]) -> Callable[..., e.Event]:
    def read_verification(request: r.VerifyCode | r.VerifyTests, answer: Answer) -> e.Event:
        try:
            shape = read(answer, VerificationShape)
        except Unusable as why:
            return event(unread=str(why), answer=answer)
        missing = () if shape.all_fixes_applied else tuple(shape.missing_fixes) or request.fixes
        return event(missing=missing, answer=answer, repairs=shape.repairs)

    return read_verification


def _replacement(request: r.ReplacePackage, answer: Answer) -> e.Event:
    check = system_package if request.system else requirement
    try:
        shape = read(answer, ReplacementShape)
        named = shape.replacement
        other = check(named) if named and named.strip() else None
    except (Unusable, ValueError) as why:
        return e.PackageReplaced(rejected=request.rejected, unread=str(why), answer=answer)
    return e.PackageReplaced(
        rejected=request.rejected, replacement=other, answer=answer, repairs=shape.repairs
    )


def _diagnosis(request: r.Diagnose, answer: Answer) -> e.Event:
    shape = read(answer, DiagnosisShape)
    return diagnosed(request.failures, shape, answer, request.imports)


def _build_ended(request: r.BuildImage, failure: BuildFailure) -> e.Event:
    """What the image asked for and cannot have is remembered, as it was asked for."""
    if failure.cause not in REJECTING | HOLDING:
        return e.BuildFailed(failure=failure)
    asked = _asked_for(request.spec, failure.cause)
    found = tuple(dict.fromkeys(asked[n] for n in failure.packages if n in asked))
    if not found:
        return e.BuildFailed(failure=failure)
    event = e.PackagesHeld if failure.cause in HOLDING else e.PackageRejected
    return event(failure=failure.model_copy(update={"packages": found}))


def _asked_for(spec: ImageSpec, cause: str) -> dict[str, str]:
    """Return what a build may find missing, by the names that it may have in a report."""
    if cause.endswith("_package") and not cause.endswith("_system_package"):
        by_name = {name_of(required): required for required in spec.requirements}
        return by_name | {required: required for required in spec.requirements}
    asked = spec.commands if cause.endswith("command") else spec.system_packages
    return {name: name for name in asked}


_READERS: dict[type[r.ModelRequest], Callable[[Any, Answer], e.Event]] = {
    r.ParseConstraint: _constraint,
    r.WritePlan: _plan,
    r.WriteCode: _code,
    r.VerifyCode: _verified(e.FixesVerified),
    r.WriteTests: _tests,
    r.PatchTests: _patches,
    r.VerifyTests: _verified(e.PatchesVerified),
    r.ReplacePackage: _replacement,
    r.Diagnose: _diagnosis,
}
