"""The testing kit: for people who change rules, write workflows of their own, or write adapters.

Names are imported when they are first used: what needs Hypothesis is loaded only if it is asked for.
docs/testing-kit.md shows what each part is for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "codetape.adapters.llm.scripted": ("ScriptedLlm",),
    "codetape.adapters.sandbox.fake": ("FakeSandbox",),
    "codetape.adapters.store.memory": ("MemoryStore",),
    "codetape.adapters.system": ("FixedClock", "FixedIds"),
    "codetape.testing.answering": ("Bodies",),
    "codetape.testing.chance": ("Chance", "deviations", "seeded"),
    "codetape.testing.exploring": ("Exploration", "Finding", "explore"),
    "codetape.testing.invariants": ("GENERAL", "Invariant", "check"),
    "codetape.testing.llms": ("LlmContract",),
    "codetape.testing.machines": ("WorkflowMachine", "machine_for"),
    "codetape.testing.playing": ("Step", "Trace", "played"),
    "codetape.testing.sandboxes": ("SandboxContract",),
    "codetape.testing.stores": ("EventStoreContract",),
    "codetape.testing.strategies": (
        *("answers", "builds", "chances", "event_sequences", "good_answers", "hostile_answers"),
        *("jobs", "malformed_answers", "outcomes", "outside_events", "runs", "scripts", "tape_of"),
        *("tapes", "traces", "truncated_answers", "unusable_answers"),
    ),
}

_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605 - it is a list of names, made of the table above

_CONTRACTS = (
    *("llms", "sandbox_cheats", "sandbox_files", "sandbox_floods", "sandbox_harm"),
    *("sandbox_isolation", "sandbox_limits", "sandbox_nulls", "sandbox_reports"),
    *("sandbox_runs", "sandbox_scripts", "sandbox_skips", "sandboxes"),
    *("store_cases", "store_forks", "store_leases", "store_tapes", "stores"),
    *("invariants", "autocoder_invariants", "machines"),
)
"""The modules that assert."""


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'codetape.testing' has no attribute {name!r}")
    try:
        return getattr(import_module(_HOME_OF[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "hypothesis":
            raise
        extra = "pip install 'codetape[testing]'"
        raise ImportError(f"codetape.testing.{name} needs Hypothesis: {extra}") from error


def __dir__() -> list[str]:
    return [*globals(), *__all__]


def _show_why() -> None:
    """Have pytest, where it runs, explain assertions that fail here."""
    import sys

    if pytest := sys.modules.get("pytest"):
        pytest.register_assert_rewrite(*(f"codetape.testing.{name}" for name in _CONTRACTS))


_show_why()
