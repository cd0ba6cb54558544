"""Imports become distributions, wishes become requirements, and nothing else gets through."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from codetape.states.distributions import DECOYS, DISTRIBUTIONS, GENERIC, NAMESPACES
from codetape.states.packages import (
    distribution_of,
    distributions_of,
    merged,
    name_of,
    requirement,
    system_package,
)
from codetape.states.stdlib import STDLIB


@pytest.mark.parametrize(
    ("imported", "distribution"),
    [
        ("cv2", "opencv-python-headless"),
        ("sklearn.linear_model.Ridge", "scikit-learn"),
        ("yaml", "pyyaml"),
        ("PIL.Image", "pillow"),
        ("bs4", "beautifulsoup4"),
        ("git", "gitpython"),
        ("dotenv.load_dotenv", "python-dotenv"),
        ("Crypto.Cipher.AES", "pycryptodome"),
        ("dateutil.parser", "python-dateutil"),
        ("numpy", "numpy"),
        ("Flask_Login", "flask-login"),
    ],
)
def test_c4_an_import_leads_to_its_distribution(imported: str, distribution: str) -> None:
    assert distribution_of(imported) == distribution


@pytest.mark.parametrize(
    ("imported", "distribution"),
    [
        ("google.cloud.storage.Client", "google-cloud-storage"),
        ("google.cloud.storage", "google-cloud-storage"),
        ("google.cloud.bigquery", "google-cloud-bigquery"),
        ("google.protobuf.message", "protobuf"),
        ("azure.storage.blob.BlobServiceClient", "azure-storage-blob"),
        ("azure.identity", "azure-identity"),
        ("ruamel.yaml.YAML", "ruamel-yaml"),
    ],
)
def test_c5_the_longest_dotted_prefix_wins(imported: str, distribution: str) -> None:
    assert distribution_of(imported) == distribution


def test_c5_a_shorter_prefix_in_the_table_does_not_hide_a_longer_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(DISTRIBUTIONS, "google.cloud", "nobody-asked")
    assert distribution_of("google.cloud.storage.Client") == "google-cloud-storage"
    assert distribution_of("google.cloud.other") == "nobody-asked"


@pytest.mark.parametrize("imported", ["google", "google.cloud.nobody", "azure.nobody", "backports"])
def test_c5_a_shared_first_part_is_nobodys_distribution(imported: str) -> None:
    assert distribution_of(imported) is None


@pytest.mark.parametrize("imported", ["solution", "solution.add", "test_solution", "conftest"])
def test_c6_what_the_session_provides_is_asked_of_no_index(imported: str) -> None:
    assert distribution_of(imported) is None


@pytest.mark.parametrize("imported", ["models", "utils.text", "src.models", "config", "helpers"])
def test_c6_names_that_every_project_has_are_asked_of_no_index(imported: str) -> None:
    assert distribution_of(imported) is None


@pytest.mark.parametrize("imported", ["os.path", "asyncio", "tomllib", "distutils", "_thread"])
def test_the_standard_library_of_any_python_needs_no_distribution(imported: str) -> None:
    assert distribution_of(imported) is None


def test_the_list_of_the_library_holds_what_this_python_has() -> None:
    public = {name for name in sys.stdlib_module_names if not name.startswith("_")}
    assert public <= STDLIB


def test_many_imports_are_sorted_and_each_is_there_once() -> None:
    assert distributions_of(["yaml", "os", "PIL.Image", "PIL"]) == ("pillow", "pyyaml")


def test_the_tables_hold_requirements_in_their_one_form() -> None:
    for name in (*DISTRIBUTIONS.values(), *DECOYS.values()):
        assert requirement(name) == name
    assert not DECOYS.keys() & set(DECOYS.values())
    assert not {name.partition(".")[0] for name in DISTRIBUTIONS if "." not in name} & NAMESPACES
    assert not GENERIC & DISTRIBUTIONS.keys()


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (" Pandas ", "pandas"),
        ("ruamel_yaml>=0.18", "ruamel-yaml>=0.18"),
        ("Foo.Bar[b, A]==1.*", "foo-bar[A,b]==1.*"),
        ("foo[e,d,c,b,a]", "foo[a,b,c,d,e]"),
        ("numpy >=1, <3", "numpy<3,>=1"),
        ("sklearn", "scikit-learn"),
        ("opencv-python>=4", "opencv-python-headless>=4"),
        ("dataclasses", "dataclasses"),  # a distribution may be called like a module of the library
        ("x~=1.4.2", "x~=1.4.2"),
        ("torch==2.1.0+cpu", "torch==2.1.0+cpu"),
    ],
)
def test_a_requirement_has_one_form(text: str, form: str) -> None:
    assert requirement(text) == form
    assert requirement(form) == form


@pytest.mark.parametrize(
    "text",
    [
        "pandas; id",
        "pandas; python_version > '3'",
        "--index-url=https://evil.example",
        "-r requirements.txt",
        "-e .",
        "a\nRUN b",
        "pandas\n--pre",
        "foo @ https://evil.example/foo.whl",
        "https://evil.example/foo.whl",
        "../foo",
        "/etc/passwd",
        "foo bar",
        "foo===`id`",
        "foo===$(id",
        "foo&&id",
        "",
        " ",
        "-",
        "föö",
    ],
)
def test_c2_what_is_no_package_name_is_refused_and_quoted(text: str) -> None:
    with pytest.raises(ValueError, match="is no package name") as caught:
        requirement(text)
    assert repr(text) in str(caught.value)


@given(st.text(alphabet="aZ09._-[]=<>!~,; $`&|\n/@:'\"", max_size=20))
def test_what_gets_through_is_a_word_of_the_grammar(text: str) -> None:
    try:
        form = requirement(text)
    except ValueError:
        return
    assert not set(form) & set(" \n;&|$`'\"/@:")
    assert not form.startswith("-")
    assert Requirement(form).name == name_of(form)
    assert requirement(form) == form


@pytest.mark.parametrize("text", ["libgl1", "g++", "libstdc++6", " curl ", "python3.11-dev"])
def test_debian_names_are_taken(text: str) -> None:
    assert system_package(text) == text.strip()


@pytest.mark.parametrize(
    "text", ["-y", "a b", "curl;id", "curl\nrm", "Curl", "a", "", "libx=1.2", "$(id)", "/x.deb"]
)
def test_c2_what_is_no_debian_name_is_refused_and_quoted(text: str) -> None:
    with pytest.raises(ValueError, match="is no system package name") as caught:
        system_package(text)
    assert repr(text) in str(caught.value)


def test_each_distribution_is_there_once_with_all_versions_that_are_asked_for() -> None:
    asked = ["pandas", "numpy>=2", "pandas>=2", "pandas<3", "numpy", "attrs"]
    assert merged(asked) == ("attrs", "numpy>=2", "pandas<3,>=2")


@given(st.lists(st.sampled_from(["a", "a>=1", "a[x]", "b", "b==2", "c"])))
def test_merging_loses_no_distribution_and_is_done_once(asked: list[str]) -> None:
    once = merged(asked)
    assert merged(once) == once
    assert [name_of(one) for one in once] == sorted({name_of(one) for one in asked})


@pytest.mark.parametrize("name", ["evil\n", "evil\n.part", "evil\r", "evil\u2028"])
def test_a_name_with_white_space_is_no_distribution(name: str) -> None:
    """A missing module is named by the code that raised the error."""
    assert distribution_of(name) is None
