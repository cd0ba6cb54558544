"""From what a reference case scripts for builds and runs to the outcomes of a sandbox."""

from __future__ import annotations

import re
from typing import Any

from codetape.adapters.sandbox.fake import with_script
from codetape.adapters.sandbox.podman.failures import explain
from codetape.engine.ports import SandboxBroken
from codetape.states.failures import base_id, plain_id
from codetape.states.python_source import defined_tests
from codetape.states.values import (
    BuildFailure,
    Frame,
    ImageRef,
    ImageSpec,
    Problem,
    RunOutcome,
    RunSpec,
    SandboxFailure,
    TestReport,
    TestResult,
)

_SECTION = re.compile(r"^_{5,} (.+?) _{5,}$", re.MULTILINE)
_FRAME = re.compile(r"^(\S+\.py):(\d+)(?:: in (\S+))?$", re.MULTILINE)
_RAISED = re.compile(r"^E {3}(\w+): ?(.*)$", re.MULTILINE)
_PHASE = re.compile(r"^ERROR at (?:setup|teardown) of ")
_MISSING = re.compile(r"Unable to locate package '?([\w.+-]+)")
_MODULE = re.compile(r"No module named '([^']+)'")


def is_of_another_build(item: dict[str, Any], spec: ImageSpec) -> bool:
    """True if an item misses a system package that this image does not ask for."""
    named = _MISSING.findall(item.get("backend_error", ""))
    named += [item["invalid_package"]] if "invalid_package" in item else []
    return bool(named) and not set(named) & set(spec.system_packages)


def build_outcome(item: dict[str, Any], spec: ImageSpec, number: int) -> ImageRef | BuildFailure:
    """Return what an item of `build_image` stands for."""
    if "raise" in item:
        return BuildFailure(cause="other", message=f"{item['raise']}: {item['message']}")
    if package := item.get("invalid_package"):
        message = f"E: Unable to locate package {package}"
        return BuildFailure(
            cause="unknown_system_package", message=message, packages=(package,), log=message
        )
    if text := item.get("backend_error"):
        return explain("system", text, text, spec.system_packages)
    name = item.get("ok", "auto")
    ref = f"img:{number}" if name == "auto" else name
    return ImageRef(ref=ref, spec_key=spec.key, python="3.11")


def run_outcome(item: dict[str, Any], spec: RunSpec) -> RunOutcome:
    """Return what an item of `run_tests` stands for, or raise it."""
    if "raise" in item:
        raise SandboxBroken(SandboxFailure(message=item["message"]))
    status, output = item["exit_code"].strip(), item["output"]
    report = _report(status, output, spec)
    number = int(status) if status.lstrip("-").isdigit() else None
    run = RunOutcome(exit_status=number, stdout=output, report=report, out_of_memory=False)
    return with_script(spec, run) if spec.script and number == 0 else run


def _report(status: str, output: str, spec: RunSpec) -> TestReport | None:
    if not output.strip() or not status.isdigit():
        return None
    sections = _sections(output)
    errors = tuple(_problem(text) for name, text in sections if name.startswith("ERROR collecting"))
    if errors:
        return TestReport(finished=True, errors=errors)
    failed = {name: _problem(text) for name, text in sections}
    passed = _defined(spec) if " passed" in output else ()
    bases = {base_id(name) for name in failed}
    results = [TestResult(id=test, outcome="passed") for test in passed if test not in bases]
    results += [TestResult(id=i, outcome="failed", problem=p) for i, p in failed.items()]
    return TestReport(finished=True, results=tuple(results))


def _defined(spec: RunSpec) -> tuple[str, ...]:
    texts = [file.text for file in spec.files if file.name == "test_solution.py"]
    return tuple(test.id for text in texts for test in defined_tests(text))


def _sections(output: str) -> list[tuple[str, str]]:
    """Return the titled sections of pytest's output and their texts."""
    parts = _SECTION.split(output)
    return list(zip(map(_titled, parts[1::2]), parts[2::2], strict=True))


def _titled(title: str) -> str:
    """Return the id of the test that a section is of; other titles stay."""
    return title if title.startswith("ERROR collecting") else plain_id(_PHASE.sub("", title))


def _problem(text: str) -> Problem:
    raised = _RAISED.findall(text)
    kind, message = raised[-1] if raised else ("Unknown", text.strip()[-200:])
    module = _MODULE.search(message)
    return Problem(
        type=kind,
        message=message,
        frames=tuple(_frame(*found) for found in _FRAME.findall(text)),
        module=module[1] if module else None,
    )


def _frame(file: str, line: str, function: str) -> Frame:
    name = file.rpartition("/")[2]
    installed = "site-packages" in file
    places = {"solution.py": "solution", "test_solution.py": "tests"}
    place = "installed" if installed else places.get(name, "other")
    return Frame.model_validate(
        {"place": place, "file": name, "line": int(line), "function": function or "<module>"}
    )
