"""The types that the package declares."""

import subprocess
import sys

import pytest

PROGRAM = """
import folddb
from typing import List, Optional

with folddb.open("s", create=True, memory_bytes=1 << 20) as store:
    table = store.table("t", key=(str, int), fold="sum:u64")
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


def test_a_program_that_is_wrong_is_found(tmp_path):
    found = mypy(PROGRAM.replace("answer: int", "answer: str").replace("store.tables()", "store.table()"), tmp_path)
    assert "program.py:9: error" in found and "program.py:10: error" in found


def test_the_stubs_say_what_the_module_has(tmp_path):
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "folddb", "--concise"], capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
