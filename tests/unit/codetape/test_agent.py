"""The front door: what is checked before anything happens, and what a result says."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

import codetape
from codetape import (
    AutoCoderAgent,
    Budget,
    Dir,
    File,
    ImageConfig,
    Resources,
    Secret,
    UnknownSession,
    fork,
    open_tape,
)
from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox, broke, failed
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.system import FixedClock, FixedIds
from codetape.result import Result
from codetape.states.values import Answer
from tests.support.sessions import HAPPY, ONE_REPAIR, RIGHT

WRONG_SUM = failed({"test_add": ("AssertionError", "assert -1 == 3")})


def agent(script: Mapping[str, Any] = HAPPY, **options: Any) -> AutoCoderAgent:
    defaults: dict[str, Any] = {
        "model": "scripted",
        "llm": ScriptedLlm(script),
        "sandbox": FakeSandbox(),
        "store": MemoryStore(),
        "clock": FixedClock(),
        "ids": FixedIds(),
        "cache": "disable",  # all sessions have one id here: a run of one test is none of another's
    }
    return AutoCoderAgent(**(defaults | options))


def test_generate_gives_a_result_that_is_a_view_of_the_tape() -> None:
    store = MemoryStore()
    made = agent(ONE_REPAIR, store=store, sandbox=FakeSandbox(runs=[WRONG_SUM]))
    result = made.generate("Write add(a, b).")
    assert result.success
    assert result.error is None
    assert result.attempts == 2
    assert result.solution is not None
    assert result.solution.code == RIGHT["code"]
    assert result.tests is not None
    assert "test_add" in result.tests
    assert result.plan is not None
    assert result.plan.description == "Add two numbers."
    assert result.failures == ()
    assert result.cost is None
    assert Result.load(result.session, store).folded == result.folded
    assert len(result.versions) == 2


def test_generate_is_awaited_where_a_loop_runs() -> None:
    async def main() -> Result:
        return await agent().generate.aio("Write add(a, b).")

    assert asyncio.run(main()).success


def test_tokens_are_the_sum_over_the_tape() -> None:
    result = agent(ONE_REPAIR, sandbox=FakeSandbox(runs=[WRONG_SUM])).generate("Write add(a, b).")
    outcomes = (record.event.outcome for record in result.records)
    answers = [outcome for outcome in outcomes if isinstance(outcome, Answer)]
    assert len(answers) == 5
    assert result.total_input_tokens == sum(a.usage.input_tokens or 0 for a in answers)
    assert result.total_output_tokens == sum(a.usage.output_tokens or 0 for a in answers)


def test_the_conversation_is_the_real_one() -> None:
    llm = ScriptedLlm(HAPPY)
    result = agent(llm=llm).generate("Write add(a, b).")
    asked = [turn["content"] for turn in result.conversation_history if turn["role"] != "assistant"]
    assert asked == [message.text for call in llm.calls for message in call.messages]
    said = [turn["content"] for turn in result.conversation_history if turn["role"] == "assistant"]
    assert len(said) == 3
    assert RIGHT["code"].splitlines()[0] in said[1]


def test_a_failed_session_is_a_result() -> None:
    result = agent(sandbox=FakeSandbox(builds=[broke("nothing here", missing=True)])).generate("x")
    assert not result.success
    assert result.error == "nothing here"
    assert result.exit_code is None
    assert result.solution is None
    assert result.tests is None
    assert result.output == ""


def test_a_paused_session_says_so_and_goes_on() -> None:
    made = agent(budget=Budget(calls=1))
    paused = made.generate("Write add(a, b).")
    assert not paused.success
    assert paused.error is not None
    assert "budget of 1 call " in paused.error
    assert made.resume(paused.session, budget=Budget(calls=9)).success


WRONG: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("prompt", {}, {"prompt": "  "}),
    ("inputs: n", {}, {"inputs": {"n": list}}),
    ("outputs: n", {}, {"outputs": {"n": dict}}),
    ("outputs: n", {}, {"outputs": {"n": "set"}}),
    ("outputs", {}, {"outputs": {"../x": str}}),
    ("outputs", {}, {"outputs": {"a/b": str}}),
    ("outputs", {}, {"outputs": {"": str}}),
    ("inputs", {}, {"inputs": {"two words": str}}),
    ("inputs", {}, {"inputs": {"help": str}}),
    ("samples: s", {}, {"samples": {"s": "/no/such/file.csv"}}),
    ("samples: s", {}, {"samples": {"s": 7}}),
    ("max_iterations", {"max_iterations": 0}, {}),
    ("max_iterations", {"max_iterations": True}, {}),
    ("sandbox_retries", {"sandbox_retries": -1}, {}),
    ("max_sample_rows", {"max_sample_rows": 0}, {}),
    ("timeout", {"timeout": 0}, {}),
    ("cache", {"cache": "sometimes"}, {}),
    ("sandbox", {"sandbox": "docker"}, {}),
    ("base_packages", {"base_packages": ["pandas; id"]}, {}),
    ("base_packages", {"base_packages": ["--index-url=x"]}, {}),
    ("base_packages", {"base_packages": ["a\nRUN b"]}, {}),
    ("base_packages", {"base_packages": "pandas"}, {}),
    ("image_config", {"image_config": ImageConfig(system_packages=("a b",))}, {}),
    ("resources", {"resources": Resources(memory="much")}, {}),
    ("resources: cpu", {"resources": Resources(cpu=0)}, {}),
    ("env_vars", {"env_vars": {"A-B": "x"}}, {}),
    ("secrets", {"secrets": ["not a name"]}, {}),
    ("models", {"models": {"poetry": "gpt-4.1"}}, {}),
    ("api_key", {"api_key": "sk-1234 5678"}, {}),
]


@pytest.mark.parametrize(("argument", "options", "call"), WRONG)
def test_w38_w40_a_wrong_argument_is_named_before_anything_happens(
    argument: str, options: dict[str, Any], call: dict[str, Any]
) -> None:
    store, llm = MemoryStore(), ScriptedLlm(HAPPY)
    made = agent(store=store, llm=llm, **options)
    with pytest.raises(ValueError, match="^" + argument.replace(".", r"\.")):
        made.generate(**({"prompt": "Write add(a, b)."} | call))
    assert store.sessions() == []
    assert llm.calls == ()


def test_b12_a_limit_of_money_needs_a_known_price() -> None:
    with pytest.raises(ValueError, match="budget: the price of openai/some-model is unknown"):
        agent(llm=None, model="openai/some-model", budget=Budget(usd=1.0)).generate("Add.")


def test_b12_it_needs_one_when_it_comes_with_a_resume_too() -> None:
    store = MemoryStore()
    paused = agent(store=store, model="openai/some-model", budget=Budget(calls=1)).generate("Add.")
    before = len(list(store.read(paused.session)))
    later = AutoCoderAgent(model="as on the tape", store=store, sandbox=FakeSandbox())
    with pytest.raises(ValueError, match="budget: the price of openai/some-model is unknown"):
        later.resume(paused.session, budget=Budget(usd=1.0))
    assert len(list(store.read(paused.session))) == before, "nothing has happened"


def test_b12_a_fork_to_another_model_knows_its_price() -> None:
    store = MemoryStore()
    session = agent(store=store, model="openai/some-model").generate("Add.").session
    forked = fork(open_tape(store, session), 3, model="gpt-4.1")
    assert forked[-1].session.job.prices["gpt-4.1"].output == 8e-6


@pytest.mark.parametrize("model", ["", "no-such-provider-at-all"])
def test_a_model_without_a_provider_is_refused(model: str) -> None:
    with pytest.raises(ValueError, match="model"):
        agent(llm=None, model=model).generate("Write add(a, b).")


def test_w37_arguments_are_never_changed(tmp_path: Path) -> None:
    data = tmp_path / "d.csv"
    data.write_text("a,b\n1,2\n")
    given: dict[str, Any] = {
        "samples": {"d": data},
        "inputs": {"threshold": float},
        "outputs": {"report": File, "total": int},
        "constraints": ["a is positive"],
    }
    before = copy.deepcopy(given)
    result = agent().generate("Write add(a, b).", **given)
    assert given == before
    assert result.declared_inputs == {"d": "File", "threshold": "float"}
    assert result.declared_outputs == {"report": "File", "total": "int"}
    assert result.original_samples == {"d": data}
    assert "A table of 1 rows and 2 columns." in result.data_context


def test_every_type_is_taken_as_a_type_or_by_its_name() -> None:
    types = (str, int, float, bool, datetime, timedelta, File, Dir)
    result = agent().generate("x", outputs={f"o{n}": kind for n, kind in enumerate(types)})
    names = list(result.declared_outputs.values())
    assert names == ["str", "int", "float", "bool", "datetime", "timedelta", "File", "Dir"]
    again = agent().generate("x", outputs={f"o{n}": name for n, name in enumerate(names)})
    assert list(again.declared_outputs.values()) == names


def test_secrets_are_on_no_tape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "canary-77aa")
    store = MemoryStore()
    sandbox = FakeSandbox(runs=[failed({"test_add": ("KeyError", "canary-77aa")})] * 3)
    made = agent(store=store, sandbox=sandbox, secrets=[Secret("SERVICE_TOKEN")])
    made.generate("Say canary-77aa.")
    rows = [row.data for session in store.sessions() for row in store.read(session.id)]
    assert rows
    assert not any("canary" in row for row in rows)
    assert sandbox.runs[0].secrets == ("SERVICE_TOKEN",)


def test_everything_public_is_listed_and_there() -> None:
    assert len(set(codetape.__all__)) == len(codetape.__all__)
    assert set(codetape.__all__) == set(codetape._HOMES)
    for name in codetape.__all__:
        assert getattr(codetape, name).__doc__
    with pytest.raises(AttributeError):
        codetape.nothing_of_this_name  # noqa: B018


def test_an_image_is_named_with_its_registry() -> None:
    config = ImageConfig(base_image="team/python:3.12", registry="registry.example:5000/")
    result = agent(image_config=config).generate("x")
    assert result.folded.spec.base == "registry.example:5000/team/python:3.12"
    named = ImageConfig(base_image="quay.io/team/python", registry="registry.example")
    assert agent(image_config=named).generate("x").folded.spec.base == "quay.io/team/python"


@pytest.mark.parametrize(
    "config",
    [
        ImageConfig(base_image="a b"),
        ImageConfig(base_image="--privileged"),
        ImageConfig(registry="registry.example"),
        ImageConfig(base_image="python", registry="https://registry.example"),
        ImageConfig(base_image="python", registry_secret="NOBODY_SET_THIS"),
        ImageConfig(base_image="python", registry_secret="no name"),
    ],
    ids=str,
)
def test_an_image_that_cannot_be_named_is_an_error(config: ImageConfig) -> None:
    with pytest.raises(ValueError, match="image_config: "):
        agent(image_config=config).generate("x")


def test_a_registry_secret_is_on_no_tape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGISTRY_LOGIN", "ann:canary-7151")
    store = MemoryStore()
    config = ImageConfig(base_image="team/python", registry_secret="REGISTRY_LOGIN")
    result = agent(store=store, image_config=config).generate(
        "Use canary-7151 and ann:canary-7151."
    )
    assert result.folded.job.registry_secret == "REGISTRY_LOGIN"
    assert all("ann:canary-7151" not in repr(record) for record in result.records)


def test_a_task_replaces_what_the_session_ran_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLD", "the-first-value-1")
    monkeypatch.setenv("NEW", "the-second-value-2")
    sandbox = FakeSandbox()
    made = agent(sandbox=sandbox, env_vars={"A": "1", "B": "2"}, secrets=["OLD"], timeout=30)
    result = made.generate("Write add(a, b).")
    task = result.as_task(
        timeout=5,
        env_vars={"B": "3"},
        secrets=[Secret("NEW")],
        resources=Resources(memory="64Mi"),
        cache="disable",
    )
    task()
    spec = sandbox.runs[-1]
    assert (spec.limits.seconds, spec.limits.memory) == (5, 64 << 20)
    assert spec.environment == {"A": "1", "B": "3"}
    assert spec.secrets == ("NEW",)
    result.as_task()()
    assert (sandbox.runs[-1].limits.seconds, sandbox.runs[-1].secrets) == (30, ("OLD",))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"timeout": 0}, "timeout"),
        ({"retries": -1}, "retries"),
        ({"name": 3}, "name"),
        ({"cache": "maybe"}, "cache"),
        ({"env_vars": {"a b": "1"}}, "env_vars"),
        ({"secrets": ["a b"]}, "secrets"),
        ({"secrets": "KEY"}, "secrets"),
        ({"resources": Resources(memory="much")}, "resources"),
    ],
    ids=str,
)
def test_an_argument_of_a_task_that_is_wrong_is_named(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=f"^{named}: "):
        agent().generate("x").as_task(**options)


def test_a_session_is_named_by_a_text() -> None:
    with pytest.raises(ValueError, match=r"^session: "):
        agent().load(cast(Any, None))


def test_a_paused_session_says_what_makes_it_go_on() -> None:
    spent = agent(budget=Budget(calls=1)).generate("Add.")
    assert str(spent.error).endswith(
        "(1 spent, up to 1 next); resume it with a larger one to go on"
    )
    script = {**HAPPY, "code": [{**RIGHT, "packages": ["pandas"]}]}
    asked = agent(script, package_policy="ask").generate("Add.")
    assert str(asked.error).endswith("Resume it with allow or deny to answer.")


def test_a_result_holds_no_file_open_and_reads_from_it_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "tapes.db"
    made = agent(ONE_REPAIR, store=path, sandbox=FakeSandbox(runs=[WRONG_SUM]))
    result = made.generate("Write add(a, b).")
    assert [file.name for file in tmp_path.iterdir()] == ["tapes.db"], "the log was emptied"
    assert len(result.records) == result.folded.seq
    result.store.close()
    with pytest.raises(UnknownSession):
        made.resume("nothing")
    assert [file.name for file in tmp_path.iterdir()] == ["tapes.db"]
    assert made.resume(result.session).success
    assert [file.name for file in tmp_path.iterdir()] == ["tapes.db"]


def test_each_name_is_listed_once() -> None:
    assert len(dir(codetape)) == len({*dir(codetape)}) > len(codetape.__all__)
