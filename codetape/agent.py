"""AutoCoderAgent: the auto-coder as a Python object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codetape import composition, engines, jobs, shapes, validation
from codetape.adapters.aside import aside
from codetape.adapters.system import SystemClock, SystemIds
from codetape.authority import Authority
from codetape.both import both
from codetape.description.samples import Choice, samples_of
from codetape.engine.ports import Clock, EventStore, Ids, Llm, Sandbox
from codetape.models import prices
from codetape.notebook import table
from codetape.result import Result
from codetape.states.job import Budget, Job, Sample
from codetape.states.values import Declared, TypeName
from codetape.states.workflow import AUTOCODER
from codetape.values import ImageConfig, Resources, Secret

if TYPE_CHECKING:
    from codetape.adapters.sandbox.gate import Policy


@dataclass(kw_only=True)
class AutoCoderAgent:
    """Writes Python code that passes its tests in a sandbox, and keeps a tape of how it got there.

    `model` is a LiteLLM name such as "gpt-4.1" or "ollama/qwen3-coder:30b"; `models` names others for
    kinds of calls (plan, code, tests, diagnosis, …), and `fallback_models` those that take over, one
    after the other, when a model gives no answer. `api_key` is the name of
    the environment variable that holds the key (None: the provider's own). `timeout` is the limit of
    one run in the sandbox, in seconds. `store` is the file of the tapes, or a store. `sandbox` is
    auto, podman, bubblewrap, process, or a sandbox. `llm` replaces the model, for tests. `on_event` is
    called with each recorded event and the session after it, `on_engine` with the engine of each run
    before it starts, so that one can see what is in flight. `seed` makes random choices repeatable.
    `package_policy` decides which packages may be installed beyond those that are listed here: "known"
    (what the index has), "cautious" (a person is asked about young packages and names that resemble a
    popular one), "ask" (about all), or a function of a Package that returns "allow", "deny", "ask" or
    a Decision. A person is asked about each command that a model wants in the image, unless such a
    function decides. A session that has to ask pauses; `resume(…, allow=…, deny=…)` answers; a command
    is named exactly as it is written.
    `cache` says what is done about equal runs (code, tests, image, inputs), of tests in one of our
    sandboxes and of `result.run`: "auto" takes them from the cache, and the event or outcome says so;
    "override" runs and keeps anew, "disable" does neither. `lessons` says whether a session is told
    what earlier ones with similar requests taught, and the store keeps what it teaches itself.

    Arguments are checked when a session starts; ValueError names the one that is wrong. None stands for
    the default.
    """

    model: str
    models: Mapping[str, str] = field(default_factory=dict)
    fallback_models: Iterable[str] = ()
    name: str = "auto-coder"
    system_prompt: str | None = ""
    api_key: str | None = None
    api_base: str | None = None
    litellm_params: Mapping[str, Any] = field(default_factory=dict)
    base_packages: Iterable[str] = ()
    resources: Resources | None = field(default_factory=Resources)
    image_config: ImageConfig | None = field(default_factory=ImageConfig)
    max_iterations: int = 10
    max_sample_rows: int = 100
    skip_tests: bool = False
    network_access: bool = False
    sandbox_retries: int = 1
    timeout: float | None = 120.0
    env_vars: Mapping[str, str] = field(default_factory=dict)
    secrets: Iterable[Secret | str] = ()
    package_policy: str | Policy = "known"
    cache: str = "auto"
    plan: bool = True
    budget: Budget = field(default_factory=Budget)
    seed: int = 0
    lessons: bool = True
    store: str | Path | EventStore = composition.DEFAULT_STORE
    sandbox: str | Sandbox = "auto"
    llm: Llm | None = None
    on_event: engines.OnEvent | None = None
    on_engine: engines.OnEngine | None = None
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=SystemIds)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        facts = {
            "model": self.model,
            "sandbox": self.sandbox
            if isinstance(self.sandbox, str)
            else type(self.sandbox).__name__,
            "attempts": f"at most {self.max_iterations}",
            "store": self.store
            if isinstance(self.store, str | Path)
            else type(self.store).__name__,
        }
        return table(self.name, facts)

    @both
    async def generate(
        self,
        prompt: str,
        *,
        samples: Mapping[str, Any] | None = None,
        schema: str | None = None,
        constraints: Iterable[str] | None = None,
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None,
    ) -> Result:
        """Run a session to its end or its next pause and return what came of it.

        `samples` are data frames or paths by name; each is an input too, of type File, or Dir if it is
        a folder. `inputs` and `outputs` map names to str, int, float, bool, datetime, timedelta, File,
        Dir or their names.
        Raises ValueError before anything happens if an argument is wrong. A session that fails is a
        result, not an exception.
        """
        job = self._job(prompt, schema, constraints, inputs, outputs)
        shapes.whole("max_sample_rows", self.max_sample_rows, 1)
        samples = validation.sample_names(samples)
        job = job.model_copy(update={"prices": await aside(prices, job, self.llm)})
        session_id = self.ids.new()
        folder = composition.session_folder(session_id)
        choice = Choice(self.max_sample_rows, self.seed, folder / "samples")
        described = samples_of(samples, choice)
        job = _with_samples(job, described)
        stands = await engines.start(self._adapters(), AUTOCODER, session_id, job)
        return Result.of(stands.session, stands.store, sandbox=self.sandbox, samples=samples)

    @both
    async def resume(
        self,
        session: str,
        *,
        budget: Budget | None = None,
        allow: Iterable[str] = (),
        deny: Iterable[str] = (),
        authority: Authority | None = None,
    ) -> Result:
        """Go on with a session from the end of its tape; what is on the tape is not paid again.

        `budget` replaces the old one. `allow` and `deny` decide on the packages that the session
        waits for (see `package_policy`); what neither names is asked again. `authority` is what a
        session that was not opened here may do here. Raises NotGranted for one that wants more,
        UnknownSession, SessionOwned if somebody is running it, DamagedTape.
        """
        resumed = engines.decision(budget, allow, deny)
        stands = await engines.resume(self._adapters(), session, resumed, authority)
        return Result.of(stands.session, stands.store, sandbox=self.sandbox, authority=authority)

    def load(self, session: str, *, authority: Authority | None = None) -> Result:
        """Return the result of a session in the store: its id, a unique prefix of it, or "last".

        `authority` is what it may do here when it is run, if it was not opened here. Raises
        UnknownSession, DamagedTape.
        """
        return Result.load(session, self.store, sandbox=self.sandbox, authority=authority)

    def _adapters(self) -> engines.Adapters:
        return engines.Adapters(
            store=self.store,
            sandbox=self.sandbox,
            llm=self.llm,
            clock=self.clock,
            package_policy=self.package_policy,
            on_event=self.on_event,
            on_engine=self.on_engine,
            lessons=self.lessons,
        )

    def _job(
        self,
        prompt: str,
        schema: str | None,
        constraints: Iterable[str] | None,
        inputs: Mapping[str, Any] | None,
        outputs: Mapping[str, Any] | None,
    ) -> Job:
        """Check every argument and return the job. Raises ValueError."""
        check = validation
        return jobs.job(
            prompt=check.prompt(prompt),
            name=check.name(self.name),
            models=check.kinds("models", self.models),
            cache=check.one_of("cache", self.cache, check.CACHES),
            system_prompt=shapes.text(
                "system_prompt", "" if self.system_prompt is None else self.system_prompt
            ),
            schema_text=shapes.text("schema", "" if schema is None else schema),
            constraints=shapes.texts("constraints", constraints),
            inputs=check.declared("inputs", inputs),
            outputs=check.declared("outputs", outputs),
            max_iterations=shapes.whole("max_iterations", self.max_iterations, 1),
            skip_tests=self.skip_tests,
            script_runs=True,
            plan=self.plan,
            **jobs.shared(self),
        )


def _with_samples(job: Job, samples: tuple[Sample, ...]) -> Job:
    """Return the job with its samples, each an input of type File or Dir. Raises ValueError."""
    declared = {d.name: d.type for d in job.inputs}
    inputs = [_input_of(sample, declared.get(sample.name)) for sample in samples]
    extra = (one for one in inputs if one.name not in declared)
    return job.model_copy(update={"samples": samples, "inputs": (*extra, *job.inputs)})


def _input_of(sample: Sample, declared: TypeName | None) -> Declared:
    """Return the input that a sample is. Raises ValueError if it was declared as something else."""
    folder = Path(sample.path).is_dir()
    kind: TypeName = "Dir" if folder else "File"
    if declared not in (None, kind):
        found = "a folder" if folder else "a file"
        raise ValueError(
            f"inputs: {sample.name} has a sample that is {found}, so its type is {kind}"
        )
    return Declared(name=sample.name, type=kind)
