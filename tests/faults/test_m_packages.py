"""Packages that a solution needs: no namesakes, no guesses, and no wish that is lost."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from codetape.adapters.sandbox.bubblewrap import BubblewrapSandbox
from codetape.states.classify import missing_module
from codetape.states.packages import distribution_of, merged, not_in_library, not_provided
from codetape.states.values import BuildFailure, ImageSpec, Problem

# --- D1 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("imported", "listed"),
    [
        ("jwt", "pyjwt"),
        ("jwt", "pyjwt[crypto]>=2"),
        ("bson", "pymongo"),
        ("gridfs", "pymongo>=4"),
        ("docx", "python-docx"),
        ("cv2", "opencv-contrib-python"),
        ("cv2", "opencv-contrib-python-headless"),
        ("tensorflow.keras", "tensorflow-cpu"),
        ("psycopg2", "psycopg2"),
        ("PIL.Image", "pillow-simd"),
        ("Levenshtein", "python-levenshtein"),
        ("Crypto.Cipher", "pycryptodome"),
        ("serial", "pyserial"),
        ("faiss", "faiss-gpu"),
        ("onnxruntime", "onnxruntime-gpu"),
    ],
)
def test_d1_no_namesake_is_added_to_a_distribution_that_provides_the_import(
    imported: str, listed: str
) -> None:
    assert not_provided([imported], [listed]) == ()


@pytest.mark.parametrize(
    ("imported", "listed", "added"),
    [
        ("jwt", "requests", "pyjwt"),
        ("bson", "requests", "pymongo"),
        ("markdown", "markdown-it-py", "markdown"),
        ("mysql.connector", "mysql-python", "mysql-connector-python"),
        ("jose", "josepy", "python-jose"),
        ("mysql.connector", "pymysql", "mysql-connector-python"),
        ("numpy", "pandas-stubs", "numpy"),
        ("google.protobuf", "google-genai", "protobuf"),
    ],
)
def test_d1_an_import_that_no_listed_one_provides_is_added(
    imported: str, listed: str, added: str
) -> None:
    assert not_provided([imported], [listed]) == (added,)


@pytest.mark.parametrize(
    "word",
    [
        *("None", "none", "NULL", "n/a", "N/A.", "-", "", " ", "nil", "stdlib", "(none)", "None."),
        *("standard library", "Standard library only", "builtins", "no packages", "python"),
    ],
)
def test_d1_words_for_none_are_no_packages(word: str) -> None:
    assert not_in_library([word, "pandas"]) == ["pandas"]


# --- D2 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("imported", "distribution"),
    [
        ("google.genai", "google-genai"),
        ("google.genai.types", "google-genai"),
        ("google.cloud.vision", "google-cloud-vision"),
        ("google.cloud.secretmanager_v1", None),
        ("google.protobuf.json_format", "protobuf"),
        ("azure.ai.ml", "azure-ai-ml"),
        ("azure.ai.ml.entities", "azure-ai-ml"),
        ("azure.servicebus", "azure-servicebus"),
        ("azure.data.tables", "azure-data-tables"),
        ("zope.interface", "zope-interface"),
        ("ruamel.yaml.comments", "ruamel-yaml"),
        ("backports.zoneinfo", "backports-zoneinfo"),
        ("snowflake.snowpark", "snowflake-snowpark-python"),
        ("azure.nobody", None),
    ],
)
def test_d2_a_namespace_is_told_by_its_longest_prefix(
    imported: str, distribution: str | None
) -> None:
    assert distribution_of(imported) == distribution


@pytest.mark.parametrize(
    ("missing", "imports", "needed"),
    [
        ("google.auth", ("google.protobuf",), None),
        ("google.auth", ("google.auth.transport",), "google.auth"),
        ("google.protobuf", ("google.protobuf.json_format",), "google.protobuf"),
        ("azure.core", ("azure.identity",), None),
        ("google.cloud.storage", ("google.cloud",), "google.cloud.storage"),
        ("google.auth", ("google",), None),
        ("yaml", ("yaml",), "yaml"),
        ("pandas.io", ("pandas",), "pandas.io"),
        ("requests", ("pandas",), None),
    ],
)
def test_d2_only_what_our_code_imports_is_installed(
    missing: str, imports: tuple[str, ...], needed: str | None
) -> None:
    problem = Problem(type="ModuleNotFoundError", message="no such module", module=missing)
    assert missing_module(problem, imports) == needed


# --- D3 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "together"),
    [
        (["idna<3", "idna>=3"], "idna<3,>=3"),
        (["pandas>=2", "pandas<3"], "pandas<3,>=2"),
        (["requests==2.31", "requests[socks]"], "requests[socks]==2.31"),
        (["requests[socks]", "requests[security]>=2"], "requests[security,socks]>=2"),
        (["numpy", "numpy>=2", "numpy"], "numpy>=2"),
        (["numpy>=2", "numpy>=2"], "numpy>=2"),
    ],
)
def test_d3_every_wish_reaches_the_resolver(asked: list[str], together: str) -> None:
    assert merged(asked) == (together,)
    assert merged(reversed(asked)) == (together,)
    assert merged(merged(asked)) == (together,)


@given(st.lists(st.sampled_from(["a", "a>=1", "a<3", "a==2", "a[x]", "a[y]>=1", "a!=2.5"])))
def test_d3_what_all_wishes_allow_is_allowed_and_nothing_else(asked: list[str]) -> None:
    versions = ("0.5", "1", "2", "2.5", "2.9", "3")
    for one in merged(asked):
        for version in versions:
            each = [Requirement(wish).specifier.contains(version) for wish in asked]
            assert Requirement(one).specifier.contains(version) == all(each)
        assert Requirement(one).extras == {x for wish in asked for x in Requirement(wish).extras}


@pytest.mark.parametrize("text", ["", "a b", "--index-url=x", "a==", "\x00", "a @ file:///x"])
def test_d3_a_text_of_a_tape_that_is_no_requirement_is_folded_all_the_same(text: str) -> None:
    assert merged([text, "numpy"]) == tuple(sorted([text, "numpy"], key=str))


@pytest.mark.bubblewrap
@pytest.mark.slow
def test_d3_a_contradiction_is_a_conflict_that_names_both_sides() -> None:
    async def build() -> object:
        sandbox = BubblewrapSandbox()
        try:
            asked = ("pytest", *merged(["idna<3", "idna>=3"]))
            return await sandbox.build(ImageSpec(base="", requirements=asked))
        finally:
            await sandbox.close()

    failure = asyncio.run(build())
    assert isinstance(failure, BuildFailure)
    assert failure.cause == "conflict"
    told = f"{failure.message}\n{failure.log}"
    assert "idna<3" in told
    assert "idna>=3" in told or ">=3" in told
