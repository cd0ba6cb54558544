"""Commands to copy hold each name as one word, whatever it is."""

from __future__ import annotations

import asyncio
import shlex
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape.adapters.store.sqlite import SqliteStore
from codetape.cli import main
from codetape.cli.machine import mended
from codetape.cli.stores import command_line
from tests.support.sessions import HAPPY, play


@pytest.mark.parametrize("name", [";reboot;", "$(id)", "`id`", "'", "-rf", "|sh", "&"])
def test_copied_commands_hold_ids_as_words(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An id of an imported tape is not the user's choice."""
    monkeypatch.chdir(tmp_path)
    with closing(SqliteStore(tmp_path / "source.db")) as kept:
        asyncio.run(play(HAPPY, store=kept, session_id=name))
    main(["export", "last", "one.tape.jsonl", "--store", "source.db"])
    capsys.readouterr()
    assert main(["import", "one.tape.jsonl", "--store", "new.db"]) == 0
    said = capsys.readouterr().out.split("look at it:", 1)[1].strip()
    script = "codetape() { printf '%s\\0' \"$@\"; }\n" + said
    ran = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    words = ran.stdout.split("\0")[:-1]
    assert words[0] == "show"
    assert name in words[1:]
    assert main(words) == 0


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"))), st.text(min_size=1)
)
def test_a_command_splits_into_its_words(operands: list[str], store: str) -> None:
    """A shell reads what was meant."""
    words = shlex.split(command_line("diff", operands, ["--json"], store=store))
    assert sorted(word for word in words if word != "--") == sorted(
        [words[0], "diff", "--json", "--store", store, *(w for w in operands if w != "--")]
    )


def test_stores_are_named_in_hints_if_given() -> None:
    """The next command finds the same store."""
    assert command_line("lessons").endswith("lessons")
    assert command_line("lessons", store="my tapes.db").endswith(" --store 'my tapes.db'")


@pytest.mark.parametrize("name", ["x$(reboot)", "x&reboot", "x|reboot", "-x"])
def test_remedies_hold_no_second_command(name: str) -> None:
    """The name of an image may come from a tape, and a message from elsewhere."""
    found = mended(f"podman has no image {name}; to get it: podman pull {name}")
    assert found is None or not set("$&|()") & set(found[1])
