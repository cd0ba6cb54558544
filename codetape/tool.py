"""What the tool maker made: a projection of the end of its tape, and the files that it left."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from codetape import learning
from codetape.artifacts import Artifacts
from codetape.engine.ports import EventStore
from codetape.engine.visible import safe
from codetape.notebook import folded, table
from codetape.states.ending import not_done
from codetape.states.failures import Failure
from codetape.states.tools.ending import HarnessStatus, Status, harness_status, status
from codetape.states.tools.session import Finding, ToolSession


@dataclass(frozen=True)
class Tool:
    """A tool, or how far it came. Every field but the paths is read from the folded tape."""

    folded: ToolSession
    store: EventStore = field(repr=False)
    artifacts: Artifacts = field(repr=False)

    def __repr__(self) -> str:
        return safe(f"<tool of {self.session}: {self.status or self.error}>")

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        facts = {
            "session": self.session,
            "status": self.status or self.error,
            "harness": self.harness_status,
            "fix cycles": self.cycles,
            "file": self.path or "none",
        }
        shown = table(self.folded.job.prompt[:80], facts) + folded("the tool", self.code)
        return shown + "".join(folded(f.persona, f.text) for f in self.findings)

    @property
    def session(self) -> str:
        """The id of the session."""
        return self.folded.id

    @property
    def status(self) -> Status | None:
        """passed, fixed, logic_test_failed, exhausted, skipped or cancelled; None: not done yet.

        passed: it runs and its harness passed; fixed: after one repair of its logic.
        """
        return status(self.folded)

    @property
    def harness_status(self) -> HarnessStatus:
        """passed, failed, refused (none of use could be had), or missing (it never ran)."""
        return harness_status(self.folded)

    @property
    def success(self) -> bool:
        """True if the tool runs and its harness passed."""
        return self.status in ("passed", "fixed")

    @property
    def error(self) -> str | None:
        """Why it did not succeed, in words; None if it did."""
        if self.folded.ending is None:
            return not_done(self.folded)
        return None if self.success else self.folded.ending.reason

    @property
    def code(self) -> str | None:
        """The newest code; None if no answer had any."""
        return self.folded.code.source if self.folded.code else None

    @property
    def harness(self) -> str | None:
        """The check of its logic."""
        return self.folded.tests.source if self.folded.tests else None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What each persona found, in the order in which they were asked."""
        return self.folded.findings

    @property
    def cycles(self) -> int:
        """How many repairs of crashes were made."""
        return self.folded.fixes

    @property
    def output(self) -> str:
        """What the tool printed on stdout when it last ran, without its harness."""
        return self.folded.script_run.stdout if self.folded.script_run else ""

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What the last run showed to be wrong."""
        return self.folded.failures

    @property
    def cost(self) -> float | None:
        """US dollars of all answered calls; None if the price of any is unknown."""
        return self.folded.totals.cost

    @property
    def path(self) -> Path | None:
        """Where the tool is."""
        return self.artifacts.tool

    @property
    def report_path(self) -> Path | None:
        """Where the report of its making is."""
        return self.artifacts.report

    def feedback(self, good: bool, note: str = "") -> None:
        """Say whether it is any good; see `Result.feedback`."""
        learning.give_feedback(self.store, self.session, good, note)
