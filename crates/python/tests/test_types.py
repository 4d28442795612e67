"""The types that the package declares."""

import subprocess
import sys

import pytest

PROGRAM = """
import folddb
from datetime import timedelta
from typing import List, Optional

@folddb.fold("longest", version=1, value=str, samples=["", "a"])
def longest(earlier: str, later: str) -> str:
    return max(earlier, later, key=len)

events: List[str] = []
with folddb.open(
    "s", create=True, memory_bytes=1 << 20, folds=[longest], on_event=lambda event: events.append(event["kind"])
) as store:
    table = store.table("t", key=(str, int), fold="sum:u64")
    store.table("words", key=str, fold=longest, expire=timedelta(hours=1), index={"w": "value"})
    store.table("records", key="tuple(text,int?)", fold={"n": "sum:u64", "in": {"d": "stats:f64"}}, keep=3)
    made: List[int] = [backup["generation"] for backup in folddb.backups("b", durability="sync")]
    path = store.backup("b", keep=3)["path"]
    runs: int = table.stats()["runs"]
    seq: Optional[int] = table.fold(("a", 1), 1)
    rows: int = table.fold_many([("a", 1)], [1])
    names: List[str] = store.tables()
    answer: int = store.transact(lambda transaction: 7)
    with store.batch() as batch:
        batch.put(table, ("a", 1), 1)
    with store.snapshot() as past:
        past[table].count() + past.seq
"""


def mypy(program, tmp_path):
    pytest.importorskip("mypy")
    file = tmp_path / "program.py"
    file.write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), str(file)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    return done.stdout


def test_a_program_that_is_right_has_its_types(tmp_path):
    assert "Success" in mypy(PROGRAM, tmp_path)


@pytest.mark.parametrize(
    "right, wrong",
    [
        ("answer: int", "answer: str"),
        ("store.tables()", "store.table()"),
        ('fold="sum:u64"', 'fould="sum:u64"'),
        ('fold="sum:u64"', "fold=7"),
        ("keep=3)\n", "keep=3.5)\n"),
        ("memory_bytes=1 << 20", 'memory_bytes="1 MiB"'),
        ("memory_bytes=1 << 20", "memory=1 << 20"),
        ('durability="sync"', 'durability="always"'),
        ('event["kind"]', 'event["sort"]'),
        ('["path"]', '["place"]'),
        ("runs: int", "runs: str"),
    ],
)
def test_a_program_that_is_wrong_is_found(right, wrong, tmp_path):
    assert PROGRAM.count(right) == 1
    line = PROGRAM[: PROGRAM.index(right)].count("\n") + 1
    found = mypy(PROGRAM.replace(right, wrong), tmp_path)
    assert f"program.py:{line}: error" in found or f"program.py:{line - 1}: error" in found, found


def test_the_package_itself_has_its_types(tmp_path):
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), "-p", "folddb"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert "Success" in done.stdout, done.stdout


def test_the_stubs_say_what_the_module_has(tmp_path):
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "folddb", "--concise"], capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
