"""What a session was asked to do: the only input of its rules besides what happened."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from codetape.states.values import Declared, Limits, Value


class Column(Value):
    """A column of a sample that is a table. `type` is unknown if it has no values."""

    name: str
    type: str  # bool, int, float, datetime, str, object, unknown
    nullable: bool


class Sample(Value):
    """Sample data for an input: where it lies on the host, and the description a model gets.

    `columns` are those of a table, empty for other files.
    """

    name: str
    path: str
    file: str  # its name in the sandbox, below /var/inputs
    description: str
    columns: tuple[Column, ...] = ()


class Budget(Value):
    """What a session may spend in all; None is no limit.

    Checked before each call, with the most money and tokens that its own limits let it take.

    `tokens` counts input and output of every answered call, a resent context each time it is sent.
    `seconds` sums the time of all requests to models and sandboxes; no call is given longer than
    the whole of it.
    """

    usd: float | None = None
    tokens: int | None = None
    calls: int | None = None
    seconds: float | None = None


LANES = {
    "plan": "orchestrator",
    "diagnosis": "orchestrator",
    "verify_code": "orchestrator",
    "verify_tests": "orchestrator",
    "parse_constraint": "orchestrator",
    "replace_package": "orchestrator",
}
"""Kind of call to lane: who thinks about the work, and who does it. All others are the coder's."""


class Persona(Value):
    """Somebody who is asked in turn; `directive` says as whom.

    `model` and `temperature` are their own where they are set. The code is what those who
    `writes_code` write, the newest of it; if nobody does, the last one is asked for it.
    """

    name: str
    directive: str
    model: str = ""
    temperature: float | None = None
    writes_code: bool = False


class Price(Value):
    """US dollars for a token of input and of output; `output_limit` is the most that a model writes."""

    input: float
    output: float
    output_limit: int | None = None


class Job(Value):
    """The whole request, as it was validated before the first event.

    `models` names another model for a kind of call or for a lane, orchestrator or coder;
    `fallback_models` answer, one after the other, when a model is given up. `prices` are those of the
    models as they were known when the session was opened. `api_key`, `registry_secret` and `secrets`
    are names of variables, never their values. `sandbox` is auto, podman, bubblewrap, process or the
    name of another one. `package_policy` is known, cautious, ask, or custom for a function of the
    caller's. `max_iterations` limits attempts, `call_seconds` each call to a model, `build_seconds`
    each build. `context` is what was found out before, `today` a date as YYYY-MM-DD, `guidance` what
    earlier sessions taught. `personas` and `fix_cycles`, the most repairs of a crash, are the tool
    maker's. With `script_runs` a pass includes a run of the script itself; older tapes have none.
    """

    prompt: str
    name: str = "auto-coder"
    model: str = "scripted"
    api_key: str | None = None
    api_base: str | None = None
    sandbox: str = "auto"
    cache: Literal["auto", "override", "disable"] = "auto"
    models: dict[str, str] = Field(default_factory=dict)
    fallback_models: tuple[str, ...] = ()
    system_prompt: str = ""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    schema_text: str = ""
    constraints: tuple[str, ...] = ()
    inputs: tuple[Declared, ...] = ()
    outputs: tuple[Declared, ...] = ()
    samples: tuple[Sample, ...] = ()
    base_packages: tuple[str, ...] = ()
    system_packages: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    base_image: str = ""
    registry_secret: str | None = None
    python: str | None = None
    limits: Limits = Limits()
    max_iterations: int = 10
    skip_tests: bool = False
    script_runs: bool = False
    plan: bool = True
    network_access: bool = False
    sandbox_retries: int = 0
    call_retries: int = 5
    call_seconds: float = 600.0
    build_seconds: float = 900.0
    environment: dict[str, str] = Field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    budget: Budget = Budget()
    prices: dict[str, Price] = Field(default_factory=dict)
    package_policy: str = "known"
    context: str = ""
    today: str = ""
    guidance: tuple[str, ...] = ()
    personas: tuple[Persona, ...] = ()
    fix_cycles: int = 3
    seed: int = 0

    @property
    def attempts(self) -> int:
        """How many attempts there are: without tests there is nothing that a second one could learn."""
        return 1 if self.skip_tests else self.max_iterations

    def model_for(self, kind: str, given_up: int = 0, first: str = "") -> str:
        """The model that answers calls of `kind`, after so many were given up.

        `models` names it by the kind or by its lane; `first` goes before both.
        """
        if given_up:
            return self.fallback_models[given_up - 1]
        lane = LANES.get(kind, "coder")
        return first or self.models.get(kind) or self.models.get(lane) or self.model
