"""Running one case through the real agent, and holding the result against the recorded one."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codetape import AutoCoderAgent
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.system import FixedClock, FixedIds
from codetape.replay.replayer import replay
from codetape.result import Result
from codetape.states.python_source import defined_tests
from tests.reference.scripts import CaseLlm, CaseSandbox, Script

OURS = {"verify_logic": "verify_code", "fix_tests": "patch_tests", "tests_structured": "tests"}
"""Their kinds of calls to ours, where the names differ."""

GONE = frozenset({"detect_packages", "constraint_parse", "parse_constraint"})
"""Calls that are not needed any more."""

FEWER = frozenset({"verify_code", "verify_tests", "diagnosis", "code", "patch_tests"})
"""Calls that may be left out where evidence decides or nothing could follow."""


BY_DESIGN = {
    "reclass-paraphrase": "a failure is known by its report, not by how a model words it: it flips",
}
"""Cases that differ by a rule of ours and carry no tag of theirs; both sessions end without success."""


@dataclass(frozen=True)
class Compared:
    """What came of a case: same, better or worse, with the reasons."""

    id: str
    verdict: str
    why: tuple[str, ...]
    calls: int
    their_calls: int


def compare(case: dict[str, Any], folder: Path) -> Compared:
    """Run a case and judge it."""
    script = Script(case["script"])
    llm, sandbox = CaseLlm(script), CaseSandbox(script)
    found: Result | ValueError
    try:
        found = _agent(case, llm, sandbox).generate(**_arguments(case, folder))
    except ValueError as error:
        found = error
    differences = _differences(case, found, llm, sandbox)
    theirs = sum(entry["llm"] for entry in case["trace"])
    verdict = _verdict(case, found, differences)
    return Compared(case["id"], verdict, tuple(differences), len(llm.kinds), theirs)


def _verdict(case: dict[str, Any], found: Result | ValueError, differences: list[str]) -> str:
    if not differences:
        return "same"
    ended = isinstance(found, Result) and found.success
    replayed = not isinstance(found, Result) or replay(found.store, found.session).identical
    their_success = bool(case["result"].get("success"))
    as_well = ended or not their_success
    meant = case["tags"] or case["id"] in BY_DESIGN or ended > their_success
    return "better" if meant and as_well and replayed else "worse"


def _agent(case: dict[str, Any], llm: CaseLlm, sandbox: CaseSandbox) -> AutoCoderAgent:
    config = case["config"]
    return AutoCoderAgent(
        model="case",
        llm=llm,
        sandbox=sandbox,
        store=MemoryStore(),
        clock=FixedClock(),
        ids=FixedIds(),
        base_packages=config["base_packages"] or (),
        max_iterations=config["max_iterations"],
        skip_tests=config["skip_tests"],
        package_policy=_allow,
    )


def _allow(_: object) -> str:
    """Allow packages and commands: their system asks no person before a command runs."""
    return "allow"


def _arguments(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    config = case["config"]
    return {
        "prompt": config["prompt"],
        "schema": config["schema"],
        "constraints": config["constraints"],
        "samples": _samples(config["samples"] or {}, folder),
        "inputs": config["inputs"],
        "outputs": config["outputs"],
    }


def _samples(samples: dict[str, Any], folder: Path) -> dict[str, Path]:
    made = {}
    for name, sample in samples.items():
        columns = sample["columns"]
        rows = zip(*columns.values(), strict=True)
        lines = [",".join(map(str, row)) for row in (tuple(columns), *rows)]
        made[name] = folder / f"{name}.csv"
        made[name].write_text("\n".join(lines) + "\n")
    return made


def _differences(
    case: dict[str, Any], found: Result | ValueError, llm: CaseLlm, sandbox: CaseSandbox
) -> list[str]:
    theirs = case["result"]
    if isinstance(found, ValueError) or "raised" in theirs:
        raised = "ValueError" if isinstance(found, ValueError) else None
        return [] if theirs.get("raised") == raised else [f"raised {raised}"]
    fields = {**_end(case, found), **_made(case, found)}
    differences = [f"{k}: {a!r}, not {b!r}" for k, (a, b) in fields.items() if a != b]
    return differences + _calls(case, llm) + _runs(case, sandbox)


def _end(case: dict[str, Any], found: Result) -> dict[str, tuple[Any, Any]]:
    theirs = case["result"]
    runnable = found.success and found.image is not None
    return {
        "success": (found.success, theirs["success"]),
        "attempts": (found.attempts or 1, theirs["attempts"]),
        "runnable": (runnable, theirs["runnable"]),
        "inputs": (found.declared_inputs, _declared(case, theirs["declared_inputs"])),
        "outputs": (found.declared_outputs, theirs["declared_outputs"]),
    }


def _declared(case: dict[str, Any], inputs: dict[str, str]) -> dict[str, str]:
    """Their samples are inputs too, whatever they call the type of a frame."""
    samples = case["config"]["samples"] or {}
    return {
        **dict.fromkeys(samples, "File"),
        **{k: v for k, v in inputs.items() if k not in samples},
    }


def _made(case: dict[str, Any], found: Result) -> dict[str, tuple[Any, Any]]:
    theirs = case["result"]
    code = found.solution.code if found.solution else None
    return {
        "code": (_sha(code), theirs["code_sha"]),
        "tests": (_names(found.tests), _their_names(case)),
        "packages": (set(found.detected_packages), _normalised(theirs["detected_packages"])),
        "system": (set(found.detected_system_packages), set(theirs["detected_system_packages"])),
    }


def _normalised(names: list[str]) -> set[str]:
    return {name.lower().replace("_", "-") for name in names}


def _sha(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.strip().encode()).hexdigest()[:12]


def functions_of(tests: str) -> set[str]:
    """Return the functions of a test file that are tests; classes and their methods left out."""
    return {test.id for test in defined_tests(tests) if "::" not in test.id}


def _names(tests: str | None) -> set[str] | None:
    return None if tests is None else functions_of(tests)


def _their_names(case: dict[str, Any]) -> set[str] | None:
    if case["result"]["tests_sha"] is None:
        return None
    made = [part for entry in case["trace"] for part in (entry, entry.get("out") or {})]
    functions = [part["functions"] for part in made if "functions" in part]
    return {name for name in functions[-1] if name.startswith("test")}


def _calls(case: dict[str, Any], llm: CaseLlm) -> list[str]:
    """Our calls are theirs in their order; calls that evidence spares may be missing."""
    theirs = [OURS.get(e["kind"], e["kind"]) for e in case["trace"] if e["llm"]]
    left = iter([kind for kind in theirs if kind not in GONE])
    mine = [kind for kind in llm.kinds if kind not in GONE]
    for kind in mine:
        for other in left:
            if other == kind:
                break
            if other not in FEWER:
                return [f"calls {' '.join(mine)}, not {' '.join(theirs)}"]
        else:
            return [f"calls {' '.join(mine)}, not {' '.join(theirs)}"]
    return []


def _runs(case: dict[str, Any], sandbox: CaseSandbox) -> list[str]:
    theirs = sum(entry["kind"] == "run_tests" for entry in case["trace"])
    more = len(sandbox.runs) > theirs
    return [f"{len(sandbox.runs)} runs, not {theirs}"] if more else []
