"""What may reach a command line, what may reach a build, and what complaints mean."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape.adapters.sandbox.installers import Uv, acceptable, diagnose, settings

UV = "error: No solution found when resolving dependencies\n  cause: Because {}, we can conclude that"
COMPLAINTS = {
    UV.format("nosuch was not found in the package\n registry and you require nosuch"): (
        "unknown_package",
        ("nosuch",),
    ),
    UV.format("there is no version of requests==99 and you require requests==99"): (
        "unknown_package",
        ("requests",),
    ),
    UV.format("only Some_Thing<=2.3 is available and you require Some_Thing>=99"): (
        "unknown_package",
        ("some-thing",),
    ),
    UV.format("docopt==0.6.2 has no usable wheels and you require docopt==0.6.2"): (
        "unknown_package",
        ("docopt",),
    ),
    UV.format("all versions of docopt have no usable wheels and you require docopt"): (
        "unknown_package",
        ("docopt",),
    ),
    UV.format("flask==3.0.0 depends on werkzeug>=3.0.0 and you require flask==3.0.0"): (
        "conflict",
        (),
    ),
    UV.format("flask was not found in the cache\nhint: the network was disabled"): ("download", ()),
    "error: Failed to fetch: http://index/x/\n  cause: Connection refused": ("download", ()),
    "cause: failed to copy file: No space left on device (os error 28)": ("disk", ()),
    "ERROR: No matching distribution found for nosuch-xyz": ("unknown_package", ("nosuch-xyz",)),
    "ERROR: ResolutionImpossible: for help": ("conflict", ()),
    "Retrying: NewConnectionError\nERROR: No matching distribution found for x": ("download", ()),
    "error: Failed to fetch: http://index/x/\n  cause: operation timed out": ("download", ()),
    "cause: invalid peer certificate: UnknownIssuer": ("download", ()),
    "cause: HTTP status client error (403 Forbidden) for url (http://index/x/)": ("download", ()),
    "Retrying: ReadTimeoutError(Read timed out)\nERROR: No matching distribution found for x": (
        "download",
        (),
    ),
    "[Errno 28] No space left on device": ("disk", ()),
    "The package `flask` requires `jinja2>=3`, but `2.0` is installed": ("conflict", ()),
    "flask 3.0 requires jinja2, which is not installed.": ("conflict", ()),
    "flask 3.0 has requirement jinja2>=3, but you have jinja2 2.0.": ("conflict", ()),
    "Segmentation fault": ("other", ()),
}


@pytest.mark.parametrize("log", COMPLAINTS, ids=range(len(COMPLAINTS)))
def test_w46_a_complaint_has_a_cause(log: str) -> None:
    assert diagnose(log) == COMPLAINTS[log]


@pytest.mark.parametrize(
    "name", ["pandas", "ruamel.yaml", "a[b,c]", "a>=1,<2", "a==1.0.*", "a~=1.4", "a!=2", "A_b-c"]
)
def test_names_with_extras_and_versions_are_acceptable(name: str) -> None:
    assert acceptable(name)


@pytest.mark.parametrize(
    "name",
    [
        *("", "-r", "--index-url=x", "a b", "a;b", "a\n", "a @ http://x", "./a", "a/b", "$(a)"),
        *("a`b`", "a==1 ; x", "a>1;python_version>'3'", "a,b", "é", "a==", "a" * 400, "a\0"),
        *("@a", "a=1"),
    ],
)
def test_anything_else_is_not(name: str) -> None:
    assert not acceptable(name)


@given(st.text(alphabet="ab-_.[]<>=!~*+,;@/ \n'\"$`&|\\()", max_size=12))
def test_what_is_acceptable_is_one_harmless_word(text: str) -> None:
    if acceptable(text):
        assert not text.startswith("-")
        assert not set(text) & set(" \n'\"$`&|\\();@/")


def test_a_build_knows_where_packages_come_from_and_nothing_else() -> None:
    host = {
        "AWS_SECRET": "x",
        "PATH": "/bin",
        "HTTPS_PROXY": "p",
        "PIP_INDEX_URL": "i",
        "UV_X": "y",
    }
    chosen = settings(host)
    assert chosen["UV_DEFAULT_INDEX"] == "i"
    assert chosen["HTTPS_PROXY"] == "p"
    assert not {"AWS_SECRET", "UV_X"} & chosen.keys()


def test_what_was_configured_for_uv_wins() -> None:
    assert settings({"PIP_INDEX_URL": "pip", "UV_DEFAULT_INDEX": "uv"})["UV_DEFAULT_INDEX"] == "uv"


def test_nothing_is_built_from_source_and_no_name_is_an_option(tmp_path: Path) -> None:
    command = Uv("uv").install(tmp_path, ("a", "b"))
    assert command[-3:] == ("--", "a", "b")
    assert command[command.index("--only-binary") + 1] == ":all:"
