"""Values that pass between the rules and the adapters.

Every value here is frozen, compares by content and has one canonical JSON form. `None` always means
*unknown* or *not there*, never zero and never "fine": an unknown price is not 0, a missing report is
not a pass.
"""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from codetape.states.null_solutions import Kind


class Value(BaseModel):
    """A frozen value; unknown fields are an error, so that nothing is lost in silence."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        ignored_types=(cached_property,),
        ser_json_inf_nan="constants",
    )

    @cached_property
    def key(self) -> str:
        """SHA-256 (hex) of the canonical JSON form: equal keys, equal values."""
        return content_key(self.model_dump(mode="json"))


def content_key(value: JsonValue) -> str:
    """Return the SHA-256 (hex) of the canonical JSON form of `value`."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def canonical(value: JsonValue) -> str:
    """Return the one JSON text of `value`: sorted keys, no spaces, no NaN (raises ValueError)."""
    return _CANONICAL.encode(value)


_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


class FailureClass(StrEnum):
    """Why something failed, and with that: who has to repair it."""

    LOGIC = "logic"  # the solution is wrong
    TEST_ERROR = "test_error"  # the test is wrong
    ENVIRONMENT = "environment"  # the image lacks something
    RESOURCE = "resource"  # memory, time or disk ran out
    INFRASTRUCTURE = "infrastructure"  # the sandbox broke or is missing
    MODEL = "model"  # the language model could not be used
    STUCK = "stuck"  # every repair was tried in vain
    CANCELLED = "cancelled"  # somebody ended the session
    UNKNOWN = "unknown"  # nobody has said yet


# --- the language model ---------------------------------------------------------------------------


class Message(Value):
    """One message of a conversation; `parts` are joined by a blank line when it is sent.

    Parts that recur (a data description, the system text) are stored once on a tape.
    """

    role: Literal["system", "user", "assistant"]
    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n\n".join(self.parts)


class LlmCall(Value):
    """One question to a language model.

    `kind` names the shape of the answer (plan, code, tests, …). `answer_schema` is a JSON schema as
    text, or None for plain text. `parameters` go to the provider as they are (temperature,
    max_tokens, …); keys and addresses are not among them, they belong to the adapter. `seconds` is
    the limit of wall clock for the whole call.
    """

    kind: str
    model: str
    messages: tuple[Message, ...]
    answer_schema: str | None = None
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    seconds: float = 600.0


class Usage(Value):
    """Tokens of one call as the provider counted them; None where it did not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None


class Answer(Value):
    """What a language model answered.

    `text` is the content as received (None: there was none); `raw` is a JSON string literal of the
    original text and is set only when the text had to be cleaned to be stored. `cost` is in US
    dollars, None if the price is unknown. `model` is the model that answered, which need not be the
    one that was asked. `notes` tell what the adapter had to do (a parameter that it dropped).
    """

    outcome: Literal["answer"] = "answer"
    text: str | None
    finish_reason: str | None = None
    usage: Usage = Usage()
    cost: float | None = None
    model: str | None = None
    request_id: str | None = None
    notes: tuple[str, ...] = ()
    raw: str | None = None
    seconds: float | None = None  # set by the engine


class CallFailure(Value):
    """A call to a language model that brought no answer.

    `retryable` says whether the same call may succeed later; `retry_after` is what the provider
    asked for, in seconds.
    """

    outcome: Literal["call_failure"] = "call_failure"
    reason: Literal[
        "rate_limited",  # 429
        "server_error",  # 5xx, overloaded
        "connection",  # refused, reset, cut in the middle
        "timeout",  # no answer, or a silent stream, within the limit
        "auth",  # key missing or refused
        "not_found",  # no such model or address
        "bad_request",  # any other 4xx, also an input that is too long
        "unsupported",  # the model takes neither a schema nor JSON in the prompt
        "script_dry",  # a scripted model has no answer left
        "other",
    ]
    message: str
    retryable: bool = False
    retry_after: float | None = None
    seconds: float | None = None  # set by the engine


# --- the sandbox ----------------------------------------------------------------------------------


class ImageSpec(Value):
    """What an image has to hold. Equal keys mean the same image, whoever asks for it.

    `requirements` are distribution names with optional version specifiers, normalised and sorted;
    `system_packages` are sorted; `commands` run in the given order after both. `allowed` has the
    permissions that a person gave: they change who is asked, not what the image holds.
    """

    base: str
    python: str | None = None
    requirements: tuple[str, ...] = ()
    system_packages: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()

    @cached_property
    def key(self) -> str:
        """SHA-256 (hex) of what the image holds."""
        return content_key(self.model_dump(mode="json", exclude={"allowed"}))


class ImageRef(Value):
    """A built image: `ref` is the adapter's own name for it, `python` its version ("3.11").

    `sandbox` is set where one of several sandboxes was chosen: the name of the one that has the image.
    `tool` names the program that isolates, with its version, where the adapter knows it.
    """

    outcome: Literal["image"] = "image"
    ref: str
    spec_key: str
    python: str | None = None
    sandbox: str | None = None
    # Left out where it is not known: tapes from before it was told have the same requests as today.
    tool: str | None = Field(default=None, exclude_if=lambda name: name is None)
    cached: bool | None = None
    seconds: float | None = None  # set by the engine


class BuildFailure(Value):
    """A build that ended without an image.

    `packages` names what was refused where `cause` is about a package or a command.
    """

    outcome: Literal["build_failure"] = "build_failure"
    cause: Literal[
        "unknown_package",  # the index has no such distribution (or version)
        "unknown_system_package",
        "refused_package",  # a policy does not want it
        "refused_system_package",
        "refused_command",
        "undecided_package",  # a policy leaves it to a person
        "undecided_system_package",
        "undecided_command",
        "conflict",  # the requirements cannot be had together
        "command",  # one of `commands` failed
        "download",  # the index or mirror could not be reached
        "disk",
        "timeout",
        "other",
    ]
    message: str
    packages: tuple[str, ...] = ()
    log: str = ""
    seconds: float | None = None  # set by the engine


class SandboxFailure(Value):
    """The sandbox itself did not work: nothing is known about the code.

    `missing` is true where there is no sandbox at all, so that trying again is of no use.
    """

    outcome: Literal["sandbox_failure"] = "sandbox_failure"
    message: str
    missing: bool = False
    seconds: float | None = None  # set by the engine


class Limits(Value):
    """Limits of one run. None means that the caller asked for no limit."""

    memory: int | None = 1 << 30  # bytes
    cpus: float | None = 1.0
    processes: int | None = 128
    seconds: float = 120.0  # wall clock, of the whole process tree
    output: int = 1 << 20  # bytes kept of each stream (head and tail)
    disk: int | None = 256 << 20  # bytes below /var/outputs


class TextFile(Value):
    """A file that is given as text; `name` is relative to /var/inputs."""

    name: str
    text: str


class HostFile(Value):
    """A file or folder of the host that appears, read-only, as /var/inputs/<name>."""

    name: str
    path: str


TypeName = Literal["str", "int", "float", "bool", "datetime", "timedelta", "File", "Dir"]


class Declared(Value):
    """A declared input or output of the solution and its type."""

    name: str
    type: TypeName


class RunSpec(Value):
    """One run in a sandbox.

    For purpose "tests" pytest runs test_solution.py and a structured report is written; for "script"
    solution.py runs with `arguments`. Files named in `outputs` are collected from /var/outputs.
    `secrets` are names of variables; their values never travel in a value.

    With `script`, tests that pass are followed by a run of solution.py with `arguments`, in the same
    container: what the tests left in /var/outputs, in /tmp and as processes is gone before it begins.
    `declared` gives the types of its outputs. With `nulls`, tests that pass are run against the null
    solutions first, likewise.
    """

    purpose: Literal["tests", "script"]
    image: ImageRef
    files: tuple[TextFile, ...]
    host_files: tuple[HostFile, ...] = ()
    arguments: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    environment: dict[str, str] = Field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    network: bool = False
    limits: Limits = Limits()
    # Left out where there is no script to run: tapes from before have the same requests as today.
    script: bool = Field(default=False, exclude_if=lambda wanted: not wanted)
    declared: tuple[Declared, ...] = Field(default=(), exclude_if=lambda outputs: not outputs)
    nulls: bool = Field(default=False, exclude_if=lambda wanted: not wanted)

    @property
    def seconds(self) -> float:
        """The limit of wall clock of all that runs; each part has the whole limit."""
        return self.limits.seconds * (1 + self.script + self.nulls)


class Frame(Value):
    """A line of a traceback. `place` tells whose code it is."""

    place: Literal["solution", "tests", "installed", "other"]
    file: str
    line: int
    function: str


class Problem(Value):
    """An exception as the runner saw it; `module` is the name that an ImportError lacks."""

    type: str
    message: str
    frames: tuple[Frame, ...] = ()
    module: str | None = None


class TestResult(Value):
    """The result of one test. `id` is what follows the file name in pytest's node id."""

    __test__ = False

    id: str
    outcome: Literal["passed", "failed", "skipped", "xfailed", "xpassed"]
    phase: Literal["setup", "call", "teardown"] = "call"
    problem: Problem | None = None
    captured: str = ""


class TestReport(Value):
    """What our runner wrote inside the sandbox.

    `finished` is the end marker: without it the run was cut short. `collected` are the ids that
    pytest found, `lines` where their functions begin in the test file (0: not in it); `errors` are
    what kept it from finding them, `warnings` its words on classes that it left out; `running` is the
    test that had started and not ended.
    """

    __test__ = False

    finished: bool
    collected: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()
    results: tuple[TestResult, ...] = ()
    errors: tuple[Problem, ...] = ()
    running: str | None = None
    python: str | None = None


class OutputFile(Value):
    """A collected output: `path` is where it lies on the host, `text` its content if it is short."""

    name: str
    path: str
    is_folder: bool = False
    size: int = 0  # bytes
    text: str | None = None  # of files up to 4 KiB that are UTF-8


class ScriptRun(Value):
    """The run of the script that followed its tests, as facts.

    It has neither `exit_status` nor `signal` if it did not end by itself: it was `timed_out`, another
    limit of the whole run ended it, or it could not begin.
    """

    exit_status: int | None = None
    signal: int | None = None
    timed_out: bool = False
    stdout: str = ""
    stderr: str = ""
    seconds: float | None = None


class NullRun(Value):
    """The tests against one null solution: the ids of those that failed; None: nothing is known.

    It has not `ended` where the whole run ended in the middle of it.
    """

    solution: Kind
    failed: tuple[str, ...] | None = None
    ended: bool = True


class WeakTest(Value):
    """A test that passes and checks no result: a smoke test shows that nothing is raised."""

    test_id: str
    kind: Literal["vacuous", "smoke"]


class RunOutcome(Value):
    """What a run did, as facts. None: could not be known.

    What ended it is told by evidence: the kernel's counters for memory and processes, the sandbox's own
    clock and measures for time, disk and output. A run that a limit has ended has no exit status.
    """

    outcome: Literal["run"] = "run"
    exit_status: int | None = None
    signal: int | None = None
    timed_out: bool = False
    out_of_memory: bool | None = None
    disk_full: bool | None = None
    too_much_output: bool = False  # it was ended for printing without end
    forks_refused: int | None = (
        None  # processes and threads that the kernel refused, by its counter
    )
    did_not_exit: bool = False  # a thread or child kept the process alive after its end marker
    stdout: str = ""
    stderr: str = ""
    stdout_cut: int | None = None  # bytes that were left out between head and tail
    stderr_cut: int | None = None
    seconds: float | None = None
    cpu_seconds: float | None = None  # of all processes together
    peak_memory: int | None = None  # bytes
    report: TestReport | None = None
    outputs: tuple[OutputFile, ...] = ()
    refused_outputs: tuple[str, ...] = ()  # names with the reason: links, device nodes, too large
    nulls: tuple[NullRun, ...] = ()  # the runs against null solutions that began
    script: ScriptRun | None = None  # None: tests alone were run
    cached: bool = False


Outcome = Annotated[
    Answer | CallFailure | ImageRef | BuildFailure | SandboxFailure | RunOutcome,
    Field(discriminator="outcome"),
]
