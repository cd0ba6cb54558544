"""A wrong argument is one line that names it, before anything happens; a secret is in no such line."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from codetape import AutoCoderAgent, Budget, Dir, ImageConfig, Resources, ToolMaker
from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox
from codetape.adapters.store.memory import MemoryStore
from tests.unit.codetape.test_agent import agent

OF_AN_AGENT: list[tuple[str, Any]] = [
    ("model", ""),
    ("model", None),
    ("models", ["a"]),
    ("models", {"plan": None}),
    ("fallback_models", "gpt-4.1"),
    ("fallback_models", [""]),
    ("name", "two\nlines"),
    ("max_iterations", 2.5),
    ("max_iterations", math.nan),
    ("max_iterations", "3"),
    ("max_sample_rows", True),
    ("sandbox_retries", 0.5),
    ("timeout", math.inf),
    ("timeout", math.nan),
    ("seed", "x"),
    ("plan", None),
    ("budget", {"usd": 1}),
    ("budget", Budget(usd=-1)),
    ("budget", Budget(seconds=math.inf)),
    ("resources", Resources(memory=1.5)),  # type: ignore[arg-type]
    ("resources", Resources(cpu=math.nan)),
    ("image_config", {"python": "3.12"}),
    ("image_config", ImageConfig(python="3.12; true")),
    ("image_config", ImageConfig(commands="apt-get update")),  # type: ignore[arg-type]
    ("env_vars", ["A"]),
    ("env_vars", {"A": "a\0b"}),
    ("secrets", ["NOBODY_SET_THIS"]),
    ("api_key", "NOBODY_SET_THIS"),
    ("api_base", "localhost:8000"),
    ("litellm_params", [1]),
    ("litellm_params", {"stop": b"bytes"}),
    ("litellm_params", {"temperature": math.nan}),
    ("base_packages", [1]),
    ("base_packages", 1),
    ("secrets", 1),
    ("cache", ["auto"]),
    ("on_event", 5),
    ("llm", 5),
    ("store", None),
    ("sandbox", None),
    ("clock", None),
    ("ids", 5),
]
OF_A_REQUEST: list[tuple[str, Any]] = [
    ("samples", "data.csv"),
    ("samples", {1: "data.csv"}),
    ("samples", {"a b": "data.csv"}),
    ("schema", {"a": "int"}),
    ("schema", pd.DataFrame({"a": [1]})),
    ("constraints", "a is positive"),
    ("constraints", [1]),
    ("constraints", [" "]),
    ("inputs", ["a"]),
    ("inputs", {1: int}),
    ("inputs", {"a": {}}),
    ("inputs", {"output_dir": str}),
    ("outputs", "a"),
]


def named(argument: str, error: pytest.ExceptionInfo[ValueError]) -> None:
    message = str(error.value)
    assert message.startswith(f"{argument}: ")
    assert "\n" not in message


@pytest.mark.parametrize(("argument", "value"), OF_AN_AGENT, ids=str)
def test_a_wrong_argument_of_an_agent_is_named(argument: str, value: Any) -> None:
    store = MemoryStore()
    with pytest.raises(ValueError) as error:  # noqa: PT011 - looked at below
        agent(**{"store": store, argument: value}).generate("x")
    named(argument, error)
    assert list(store.sessions()) == []


@pytest.mark.parametrize(("argument", "value"), OF_A_REQUEST, ids=str)
def test_a_wrong_argument_of_a_request_is_named(argument: str, value: Any) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - looked at below
        agent().generate("x", **{argument: value})
    named(argument, error)


@pytest.mark.parametrize(
    "argument", ["models", "fallback_models", "base_packages", "env_vars", "secrets"]
)
def test_none_is_an_empty_collection(argument: str) -> None:
    none: dict[str, Any] = {argument: None}
    assert agent(**none).generate("x").success


@pytest.mark.parametrize("declared", [str, float, Dir], ids=str)
def test_an_input_that_has_a_sample_is_what_the_sample_is(declared: Any, tmp_path: Any) -> None:
    sample = tmp_path / "data.csv"
    sample.write_text("a\n1\n")
    with pytest.raises(ValueError, match=r"^inputs: data has a sample that is a file, so"):
        agent().generate("x", samples={"data": sample}, inputs={"data": declared})
    made = agent().generate("x", samples={"data": tmp_path}, inputs={"data": Dir})
    assert made.declared_inputs == {"data": "Dir"}


@pytest.mark.parametrize("prompt", [None, b"x", ""])
def test_a_prompt_that_is_none_is_named(prompt: Any) -> None:
    with pytest.raises(ValueError, match=r"^prompt: "):
        agent().generate(prompt)


def test_a_frame_goes_nowhere_before_its_name_is_looked_at(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(ValueError, match="cannot be the name of an option"):
        agent().generate("x", samples={"../../evil": pd.DataFrame({"a": [1]})})
    assert list(tmp_path.iterdir()) == []


CANARY = "sk-canary-4711"


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("api_key", CANARY),
        ("api_key", "gsk_canary4711"),  # it could be the name of a variable
        ("secrets", [CANARY]),
        ("secrets", ["canary4711"]),
        ("litellm_params", {"api_key": CANARY}),
        ("litellm_params", {"aws_secret_access_key": CANARY}),
        ("litellm_params", {"extra_headers": {"Authorization": f"Bearer {CANARY}"}}),
        ("litellm_params", {"extra_headers": {"X-Api-Key": CANARY}}),
        ("api_base", f"https://me:{CANARY}@example.org/v1"),
        ("api_base", f"https://example.org/v1?api_key={CANARY}"),
        ("image_config", ImageConfig(base_image="python", registry_secret=CANARY)),
    ],
    ids=str,
)
@pytest.mark.parametrize("tool", [False, True], ids=["agent", "tool maker"])
def test_a_secret_in_the_wrong_place_is_refused_and_not_shown(
    argument: str, value: Any, tool: bool, tmp_path: Any
) -> None:
    store = MemoryStore()
    own = {"model": "scripted", "llm": ScriptedLlm({}), "sandbox": FakeSandbox()}
    given = {**own, "store": store, argument: value}
    start = ToolMaker(**given, project=tmp_path).make if tool else AutoCoderAgent(**given).generate
    with pytest.raises(ValueError) as error:  # noqa: PT011 - looked at below
        start("x")
    named(argument, error)
    assert "canary" not in str(error.value)
    assert list(store.sessions()) == []


def test_blanks_around_an_address_do_not_belong_to_it() -> None:
    made = agent(api_base=" http://localhost:8000/v1 \n").generate("x")
    assert made.folded.job.api_base == "http://localhost:8000/v1"


def test_parameters_that_only_sound_secret_are_taken() -> None:
    made = agent(litellm_params={"max_tokens": 5, "stop": ["key"], "logit_bias": {"token": 1}})
    assert made.generate("x").folded.job.parameters["max_tokens"] == 5


@pytest.mark.parametrize(
    ("argument", "value"),
    [("budget", Budget(calls=-1)), ("budget", {"calls": 9}), ("allow", "polars"), ("deny", [1])],
)
def test_a_wrong_answer_to_a_pause_is_named_and_not_recorded(argument: str, value: Any) -> None:
    made = agent(budget=Budget(calls=1))
    paused = made.generate("x")
    with pytest.raises(ValueError) as error:  # noqa: PT011 - looked at below
        made.resume(paused.session, **{argument: value})
    named(argument, error)
    assert made.load(paused.session).folded == paused.folded


def test_an_answer_that_contradicts_itself_is_refused() -> None:
    made = agent(budget=Budget(calls=1))
    paused = made.generate("x")
    with pytest.raises(ValueError, match=r"^allow: zope-interface is denied, too$"):
        made.resume(paused.session, allow=["polars", "Zope.Interface"], deny=["zope_interface"])
