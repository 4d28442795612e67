"""The benchmark beside other stores runs, and all of them end with the same state."""

import pathlib
import re
import subprocess
import sys

import pytest

BENCH = pathlib.Path(__file__).resolve().parents[1] / "bench/rivals.py"


def test_all_stores_end_with_the_same_state():
    pytest.importorskip("numpy")
    pytest.importorskip("pyarrow")
    done = subprocess.run(
        [sys.executable, str(BENCH), "--rows", "3000", "--rounds", "1"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (stores,) = re.findall(r"all (\d+) end with the same state", done.stdout)
    assert int(stores) >= 3  # both of FoldDB, and sqlite3
    assert "scan to Arrow: at least 5 M rows/s" in done.stdout
