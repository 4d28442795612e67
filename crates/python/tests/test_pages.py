"""The listings of the README and of the page run as they are printed."""

import doctest
import pathlib
import re
from datetime import timedelta

import folddb
import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[3]
PAGE = PROJECT / "docs/PYTHON.md"


def test_the_programs_of_the_page_run(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert programs
    names = {}
    for program in programs:
        exec(compile(program, str(PAGE), "exec"), names)


def test_the_sql_of_the_reports_runs(tmp_path, monkeypatch):
    pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "samples").symlink_to(PROJECT / "samples")
    page = PROJECT / "docs/REPORTS.md"
    (program,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    exec(compile(program, str(page), "exec"), {})


def tour():
    page = PAGE.read_text()
    rows = page[page.index("| Rust | Python |") :].split("\n\n")[0].splitlines()[2:]
    return [line for row in rows for line in re.findall(r"`([^`]+)`", row.split(" | ")[1])]


def test_each_line_of_the_tour_runs(tmp_path):
    names = {"folddb": folddb, "timedelta": timedelta, "path": str(tmp_path / "tour"), "key": ("UA", "EWR")}
    lines = tour()
    assert len(lines) > 30
    for line in lines:
        exec(line, names)
        if line.startswith("store ="):
            store = names["store"]
            names["counts"] = store.table("counts", key=str, fold="sum:i64", keep="forever")
            names["people"] = store.table("people", key=int, value="json", index={"city": "json:/city"})
            names["people"].put(1, {"city": "Bern"})
            names["sessions"] = store.table("sessions", key=str, value=str, expire="by-write")
            names["blobs"] = store.table("blobs", key=str)
    names["store"].close()


def test_the_listing_of_the_readme_runs_and_prints_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (listing,) = re.findall(r"```python\n(.*?)```", (PROJECT / "README.md").read_text(), re.DOTALL)
    test = doctest.DocTestParser().get_doctest(listing, {}, "README", "README.md", 0)
    assert len(test.examples) > 7
    assert doctest.DocTestRunner().run(test).failed == 0


def test_the_examples_of_the_package_run():
    failed, tried = doctest.testmod(folddb)
    assert failed == 0 and tried > 3
