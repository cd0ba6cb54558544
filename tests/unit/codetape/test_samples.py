"""Sample data in words: bounded, true, and never a crash."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codetape.samples import LARGEST_READ, SHOWN, describe, samples_of


def test_a_table_is_described_by_its_columns(tmp_path: Path) -> None:
    file = tmp_path / "readings.csv"
    file.write_text("sensor,value,unit\na,1.5,C\na,,C\nb,-3,F\n")
    words = describe(file, 2)
    assert "3 rows and 3 columns" in words
    assert "- sensor: text, 'a' (2), 'b' (1)" in words
    assert "- value: number, 1 missing, from -3 to 1.5, median -0.75" in words
    assert "a,1.5,C\na,,C" in words
    assert "b,-3,F" not in words


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.tsv", "a\tb\n1\t2\n"),
        ("t.jsonl", '{"a": 1, "b": "x"}\n{"a": 2}\n'),
        ("t.json", '[{"a": 1, "b": null}]'),
    ],
)
def test_other_tables_are_tables_too(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    assert "2 columns" in describe(file, 10)


def test_text_is_shown_by_its_beginning(tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    file.write_text("line\n" * 5000)
    words = describe(file, 10)
    assert "25,000 bytes" in words
    assert len(words) < SHOWN + 200


def test_binary_is_told_by_size_and_ending(tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    file.write_bytes(b"\xff\xfe\x00\x01" * 10)
    assert describe(file, 10) == "A binary file of 40 bytes, named *.parquet."


def test_a_large_file_is_read_in_part_and_says_so(tmp_path: Path) -> None:
    file = tmp_path / "big.csv"
    with file.open("w") as out:
        out.write("a\n")
        out.writelines(["12345678\n"] * (LARGEST_READ // 8))
    assert "Only the first" in describe(file, 10)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=400), st.sampled_from([".csv", ".json", ".jsonl", ".tsv", ".txt"]))
def test_no_file_is_a_crash(tmp_path: Path, content: bytes, ending: str) -> None:
    file = tmp_path / f"f{ending}"
    file.write_bytes(content)
    words = describe(file, 100)
    assert words
    assert len(words) < 40_000


class Frame:
    """What a data frame has to have."""

    def to_csv(self, path: Path, *, index: bool) -> None:
        assert index is False
        path.write_text("a,b\n1,2\n")


def test_a_frame_becomes_a_file_of_the_session(tmp_path: Path) -> None:
    (sample,) = samples_of({"data": Frame()}, 10, tmp_path / "private")
    assert Path(sample.path).parent == tmp_path / "private"
    assert sample.file == "data.csv"
    assert "2 columns" in sample.description


def test_a_folder_is_a_sample(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("1")
    (sample,) = samples_of({"data": tmp_path}, 10, tmp_path)
    assert "- one.txt" in sample.description
