"""What a session came to: a projection of the end of its tape, and running the solution."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from codetape import composition, learning, saving, shapes, validation
from codetape.authority import Authority, allowed_anyway, permit
from codetape.both import both
from codetape.engine.ports import EventStore, Sandbox
from codetape.engine.tape import Recorded, read, request_of
from codetape.engine.visible import safe
from codetape.engines import standing
from codetape.needs import Act
from codetape.notebook import folded, table
from codetape.run_log import log_of
from codetape.running import run_solution
from codetape.states.changed_tests import changes_since
from codetape.states.constraints import schemas_of
from codetape.states.ending import not_done
from codetape.states.events import CodeWritten
from codetape.states.failures import Failure
from codetape.states.job import Job
from codetape.states.session import Session
from codetape.states.values import Answer, RunOutcome, WeakTest
from codetape.task import Task
from codetape.validation import CACHES
from codetape.values import CodePlan, CodeSolution, Resources, Secret


@dataclass(frozen=True)
class Result:
    """The result of a session. It is a view: every field is read from the folded tape."""

    folded: Session
    store: EventStore = field(repr=False)
    sandbox: str | Sandbox = field(default="auto", repr=False)
    original_samples: Mapping[str, Any] = field(default_factory=dict, repr=False)
    authority: Authority | None = field(default=None, repr=False)
    on_tape: Job | None = field(default=None, repr=False)  # where the job was changed since

    @classmethod
    def of(
        cls,
        session: Session,
        store: EventStore,
        *,
        sandbox: str | Sandbox = "auto",
        samples: Mapping[str, Any] | None = None,
        authority: Authority | None = None,
    ) -> Result:
        """Wrap a folded session. `samples` are the caller's own values, kept as they are."""
        chosen = sandbox if not isinstance(sandbox, str) else session.sandbox_name
        return cls(session, store, chosen, dict(samples or {}), authority)

    @classmethod
    def load(
        cls,
        session: str,
        store: str | Path | EventStore,
        *,
        sandbox: str | Sandbox = "auto",
        authority: Authority | None = None,
    ) -> Result:
        """Read a session from a store: by its id, a unique prefix, or "last".

        `authority` is what it may do here when it is run, if it was not opened here. Raises
        UnknownSession, DamagedTape.
        """
        stands = standing(composition.open_store(store), session)
        return cls.of(stands.session, stands.store, sandbox=sandbox, authority=authority)

    def __repr__(self) -> str:
        return safe(f"<result of {self.session}: {self._in_words}>")

    @property
    def _in_words(self) -> str | None:
        untested = "built, no tests were asked for"
        return self.error or (untested if self.folded.job.skip_tests else "passed")

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        facts = {
            "session": self.session,
            "result": self._in_words,
            "attempts": self.attempts,
            "tokens": f"{self.total_input_tokens:,} in, {self.total_output_tokens:,} out",
            "cost": "unknown" if self.cost is None else f"${self.cost:.4f}",
            "packages": ", ".join(self.detected_packages) or "none",
            "changed tests": "; ".join(self.changed_tests) or "none",
            "weak tests": ", ".join(test.test_id for test in self.weak_tests) or "none",
        }
        code = self.solution.code if self.solution else None
        shown = table(self.folded.job.name, facts)
        return shown + folded("solution.py", code) + folded("test_solution.py", self.tests)

    # --- how it ended ---

    @property
    def session(self) -> str:
        """The id of the session."""
        return self.folded.id

    @property
    def success(self) -> bool:
        """True if the tests passed, or the image was built where no tests were asked for."""
        return self.folded.ending is not None and self.folded.ending.failure is None

    @property
    def error(self) -> str | None:
        """Why it did not succeed, in words; None if it did."""
        if self.folded.ending is None:
            return not_done(self.folded)
        return None if self.success else self.folded.ending.reason

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The failures of the last run, with their labels."""
        return self.folded.failures

    @property
    def weak_tests(self) -> tuple[WeakTest, ...]:
        """Tests of the pass that check no result, as null solutions show: they are not counted."""
        return self.folded.weak_tests

    @property
    def attempts(self) -> int:
        """How many attempts were made."""
        return self.folded.attempts

    @property
    def output(self) -> str:
        """The log of the last run: each test with its outcome, and what was printed."""
        return log_of(self.folded.run) if self.folded.run else ""

    @property
    def exit_code(self) -> int | None:
        """The exit status of the last run; None if there was none."""
        return self.folded.run.exit_status if self.folded.run else None

    # --- what was made ---

    @property
    def plan(self) -> CodePlan | None:
        """The plan, if one was asked for."""
        return CodePlan(*self.folded.plan) if self.folded.plan else None

    @property
    def solution(self) -> CodeSolution | None:
        """The newest code."""
        code = self.folded.code
        if code is None:
            return None
        return CodeSolution("python", code.source, code.packages, code.system_packages)

    @property
    def tests(self) -> str | None:
        """The newest test file."""
        return self.folded.tests.source if self.folded.tests else None

    @property
    def image(self) -> str | None:
        """The image that was built last, as the sandbox names it."""
        return self.folded.image.ref if self.folded.image else None

    @property
    def detected_packages(self) -> tuple[str, ...]:
        """The distributions that the image holds beyond the base packages and pytest."""
        given = {"pytest", *self.folded.job.base_packages}
        return tuple(p for p in self.folded.spec.requirements if p not in given)

    @property
    def detected_system_packages(self) -> tuple[str, ...]:
        """The Debian packages that the image holds beyond those of the image configuration."""
        given = self.folded.job.system_packages
        return tuple(p for p in self.folded.spec.system_packages if p not in given)

    # --- what was asked ---

    @property
    def declared_inputs(self) -> dict[str, str]:
        """Declared inputs: name to the name of the type; samples are inputs too."""
        return {d.name: d.type for d in self.folded.job.inputs}

    @property
    def declared_outputs(self) -> dict[str, str]:
        """Declared outputs: name to the name of the type."""
        return {d.name: d.type for d in self.folded.job.outputs}

    @property
    def data_context(self) -> str:
        """What the model was told of the samples."""
        return "\n\n".join(f"{s.name}:\n{s.description}" for s in self.folded.job.samples)

    @property
    def generated_schemas(self) -> dict[str, str]:
        """A Pandera schema as code for each sample that is a table, with the constraints in it."""
        return schemas_of(self.folded.job, self.folded.checks)

    # --- what it took ---

    @property
    def total_input_tokens(self) -> int:
        """Input tokens of all answered calls, as far as providers counted them."""
        return self.folded.totals.input_tokens

    @property
    def total_output_tokens(self) -> int:
        """Output tokens of all answered calls, as far as providers counted them."""
        return self.folded.totals.output_tokens

    @property
    def cost(self) -> float | None:
        """US dollars of all answered calls; None if the price of any is unknown."""
        return self.folded.totals.cost

    @cached_property
    def records(self) -> tuple[Recorded, ...]:
        """The events of the tape that led here: of a session as it was once, the ones until then."""
        return tuple(islice(read(self.store, self.session), self.folded.seq))

    @cached_property
    def conversation_history(self) -> tuple[dict[str, str], ...]:
        """The real conversation: what was asked and answered, call by call, from the tape."""
        turns: list[dict[str, str]] = []
        for record in self.records:
            if record.request_key and isinstance(answer := record.event.outcome, Answer):
                body = request_of(self.store, record)
                messages = body.get("call", {}).get("messages", ())
                turns += [_turn(message) for message in messages]
                turns.append({"role": "assistant", "content": answer.text or ""})
        return tuple(turns)

    @property
    def versions(self) -> tuple[str, ...]:
        """Every code that was written, the first one first."""
        events = (record.event for record in self.records)
        return tuple(event.source for event in events if isinstance(event, CodeWritten))

    @cached_property
    def changed_tests(self) -> tuple[str, ...]:
        """What the tests ask for otherwise than those that were written first, in words: a repair of
        tests may change expected values. Empty if they ask for the same."""
        return changes_since(record.event for record in self.records)

    # --- judging it ---

    def feedback(self, good: bool, note: str = "") -> None:
        """Say whether it is any good. A note is told to later sessions with similar requests: as
        something to do if it is, to avoid if it is not. Said again, it takes the place of the first."""
        learning.give_feedback(self.store, self.session, good, note)

    # --- running it ---

    @both
    async def run(
        self,
        /,
        *,
        output_dir: str | Path | None = None,
        overwrite: bool = False,
        unverified: bool = False,
        **inputs: Any,
    ) -> Any:
        """Run the solution in its sandbox and return its declared outputs, typed.

        An input that is not given takes its sample. One output comes back as itself, several as a
        named tuple. Files are put into `output_dir` (default: a new folder), where files of their
        names are replaced with `overwrite` alone. Code that has not passed its tests is run only if it
        may be `unverified`. Raises ValueError for that, for a wrong input, and for a file that is
        there already, NotGranted for what a session that was opened elsewhere may not do here (see
        `load`), RunFailed if the code failed.
        """
        how: dict[str, Any] = {"output_dir": output_dir, "overwrite": overwrite}
        values, _ = await self.run_outcome.aio(unverified=unverified, **how, **inputs)
        return values

    @both
    async def run_outcome(
        self,
        /,
        *,
        output_dir: str | Path | None = None,
        overwrite: bool = False,
        unverified: bool = False,
        **inputs: Any,
    ) -> tuple[Any, RunOutcome]:
        """Like `run`, with the facts of the run beside the outputs."""
        self._refuse_unverified(unverified)
        acts: tuple[Act, ...] = ("sandbox",) if isinstance(self.sandbox, str) else ("run",)
        given, job = self.authority or Authority(), self.on_tape or self.folded.job
        uses = _reading(job, inputs)
        ours = permit(self.store, self.folded, given, acts, job, uses)
        return await run_solution(
            self.folded,
            self.sandbox,
            inputs,
            output_dir,
            overwrite=overwrite,
            allowed=allowed_anyway(self.store, self.folded, given, self.on_tape),
            foreign=not ours,
        )

    def _refuse_unverified(self, unverified: bool) -> None:
        if not (self.success or unverified or self.folded.code is None):
            raise ValueError(
                f"the code of session {self.session} has not passed its tests ({self.error}); "
                "it runs only with unverified=True (--unverified)"
            )

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Write a folder that works without codetape: the code, its tests, requirements.txt, a
        Containerfile and a README. Raises ValueError if there is no code yet."""
        return saving.save(self.folded, Path(folder))

    def as_task(
        self,
        name: str | None = None,
        *,
        retries: int = 0,
        timeout: float | None = None,
        env_vars: Mapping[str, str] | None = None,
        secrets: Iterable[Secret | str] | None = None,
        resources: Resources | None = None,
        cache: str | None = None,
        unverified: bool = False,
    ) -> Task:
        """Return the solution as a function of its inputs; `retries` repeats a failed run.

        Code that has not passed its tests is taken only if it may be `unverified`.

        The others replace what the session ran with: `timeout` in seconds, `env_vars` beside those of
        the session, the names of `secrets`, limits, and whether equal runs come from the cache.
        Raises ValueError, which names the argument that is wrong.
        """
        self._refuse_unverified(unverified)
        check, job = validation, self.folded.job
        changes = {
            "limits": check.other_limits(job.limits, resources, timeout),
            "environment": {**job.environment, **check.variables("env_vars", env_vars or {})},
            "secrets": job.secrets if secrets is None else check.secrets(secrets),
            "cache": check.one_of("cache", cache or job.cache, CACHES),
        }
        again = shapes.whole("retries", retries, 0)
        folded = dataclasses.replace(self.folded, job=job.model_copy(update=changes))
        result = dataclasses.replace(self, folded=folded, on_tape=self.on_tape or job)
        named = job.name if name is None else shapes.text("name", name)
        return Task(name=named, result=result, retries=again, unverified=unverified)


def _reading(job: Job, given: Mapping[str, Any]) -> Job:
    """Return a job with those samples alone that a run reads, in the place of inputs not given."""
    read = {declared.name for declared in job.inputs} - given.keys()
    return job.model_copy(update={"samples": tuple(s for s in job.samples if s.name in read)})


def _turn(message: Mapping[str, Any]) -> dict[str, str]:
    return {"role": message["role"], "content": "\n\n".join(message["parts"])}
