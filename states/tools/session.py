"""The folded session of the tool maker."""

from __future__ import annotations

from dataclasses import dataclass

from codetape.states.job import Persona
from codetape.states.session import Session, Solution
from codetape.states.values import RunOutcome


@dataclass(frozen=True)
class Finding:
    """What a persona found."""

    persona: str
    text: str


@dataclass(frozen=True)
class ToolSession(Session):
    """A session of the tool maker after its last event.

    `code` is the script, `tests` the harness. `ran`: the present script runs to its end; `sound` is the
    newest that did; `script_run` is the last run of the script alone, without one that was taken back.
    `fixes` counts repairs of crashes, `logic_repairs` those of what the harness found. `refusals` are
    why the last harness could not be used.
    """

    findings: tuple[Finding, ...] = ()
    ran: bool = False
    sound: Solution | None = None
    script_run: RunOutcome | None = None
    fixes: int = 0
    logic_repairs: int = 0
    refused: int = 0
    refusals: tuple[str, ...] = ()
    refused_harness: str = ""

    @property
    def persona(self) -> Persona | None:
        """Whose turn it is; None when all have been asked."""
        asked = len(self.findings)
        return self.job.personas[asked] if asked < len(self.job.personas) else None

    def writes(self, persona: Persona) -> bool:
        """True if the code is this persona's to write."""
        everybody = self.job.personas
        return persona.writes_code or (
            persona == everybody[-1] and not any(who.writes_code for who in everybody)
        )

    @property
    def runs_of_harness(self) -> bool:
        """True if a harness has run, whatever came of it."""
        return any(tests for _, tests, _ in self.runs)

    @property
    def run_key(self) -> tuple[str, str, str]:
        """Equal for equal runs: a script runs without its harness first."""
        code, tests, spec = super().run_key
        return code, tests if self.ran else "", spec
