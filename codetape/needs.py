"""What a tape wants of this machine: each field that touches the host, with the grant that it needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

from codetape.composition import SANDBOXES, SCRIPTED
from codetape.engine.visible import in_one_line
from codetape.states.job import Budget, Job
from codetape.states.session import Session
from codetape.states.values import Limits

Act = Literal["sandbox", "run", "model", "folder", "list"]
"""A thing that a command does: run code in the sandbox that the tape names, or in the caller's own;
ask a model, write into the folder of a tool, take its lists of packages for one's own."""

LONGEST = 200
"""Characters of a value that are told."""

HARMLESS = {
    *("temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "seed", "stop"),
    *("presence_penalty", "frequency_penalty", "reasoning_effort", "verbosity"),
}
"""Parameters of a model that say nothing of where a call goes, and with which key."""


@dataclass(frozen=True, slots=True)
class Need:
    """A field of a tape that touches the host, its value, and the grant that it needs."""

    grant: str
    field: str
    value: Any

    def __str__(self) -> str:
        """One line, escaped and bounded."""
        value = str(self.value)
        told = value if len(value) <= LONGEST else f"{value[:LONGEST]} …"
        return f"{in_one_line(self.field)}: {in_one_line(told)}"


def needs(session: Session, acts: tuple[Act, ...], job: Job) -> Iterator[Need]:
    """Yield the fields that these acts would use and that touch the host."""
    if "sandbox" in acts:
        yield from _of_a_sandbox(session, job)
    if "sandbox" in acts or "run" in acts:
        yield from _of_a_run(session, job)
    if "model" in acts:
        yield from _of_a_call(job)
        yield from _of_a_budget(job)
    if "folder" in acts:
        yield Need("files", "folder of the tool", job.name)
    if "list" in acts:
        yield from _of_packages(session, job)


def of_events(session: Session, acts: tuple[Act, ...], job: Job) -> Iterator[Need]:
    """Yield what a marked job leaves open: no key covers events, nor the mark of a job its budget."""
    if "sandbox" in acts:
        yield from (need for need in _of_a_sandbox(session, job) if need.value != job.sandbox)
    if "model" in acts:
        yield from _of_a_budget(job)


def _of_packages(session: Session, job: Job) -> Iterator[Need]:
    """Yield what an image holds that the tape asks for, and what the tape says was allowed."""
    spec = session.spec
    listed = (*job.base_packages, *job.system_packages, *session.allowed)
    for name in dict.fromkeys((*spec.requirements, *spec.system_packages, *listed)):
        if name != "pytest":
            yield Need(name, "package", name)


def _of_a_sandbox(session: Session, job: Job) -> Iterator[Need]:
    for name in dict.fromkeys((session.sandbox_name, job.sandbox)):
        if name not in SANDBOXES or name == "process":
            yield Need(f"sandbox={name}", "sandbox", name)


def _of_a_run(session: Session, job: Job) -> Iterator[Need]:
    if job.network_access:
        yield Need("network", "network_access", "yes")
    for name in job.secrets:
        yield Need(f"secrets={name}", "secret", name)
    for sample in job.samples:
        yield Need("files", f"sample {sample.name}", sample.path)
    for name, value in job.environment.items():
        yield Need("environment", f"variable {name}", value)
    if job.base_image:
        yield Need("image", "base_image", job.base_image)
    if job.registry_secret:
        yield Need(f"secrets={job.registry_secret}", "registry_secret", job.registry_secret)
    for limit, usual in Limits():
        value = getattr(job.limits, limit)
        if value is None or value > usual:
            yield Need("limits", f"limit of {limit}", "none" if value is None else value)
    for command in dict.fromkeys((*job.commands, *session.asked_commands)):
        yield Need("image", "command", command)


def _of_a_call(job: Job) -> Iterator[Need]:
    if job.api_base:
        yield Need("address", "api_base", job.api_base)
    if job.api_key:
        yield Need(f"secrets={job.api_key}", "api_key", job.api_key)
    for model in dict.fromkeys(_models(job)):
        if "://" in model:  # for some providers a name is an address, to which their key is sent
            yield Need("address", "model", model)
    for name, value in job.parameters.items():
        if name not in HARMLESS:
            yield Need("address", f"parameter {name}", value)


def _of_a_budget(job: Job) -> Iterator[Need]:
    """Yield what calls may cost; those of a shipped script cost nothing."""
    if not job.model.startswith(SCRIPTED):
        yield Need("budget", "budget", _spending(job.budget))


def _spending(budget: Budget) -> str:
    """Say what a budget lets a session spend. What is no number is no limit."""
    words = {"usd": "${:,.2f}", "tokens": "{:,} tokens", "calls": "{:,} calls"}
    words["seconds"] = "{:,g} seconds"
    limits = {name: value for name, value in budget if value is not None and isfinite(value)}
    told = ", ".join(words[name].format(value) for name, value in limits.items())
    return f"up to {told}" if told else "no limit"


def _models(job: Job) -> Iterator[str]:
    yield from (job.model, *job.models.values(), *job.fallback_models)
    yield from (persona.model for persona in job.personas)
