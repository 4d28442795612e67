"""What every test starts with: an empty store in a directory of its own."""

import subprocess
import sys
import textwrap

import folddb
import pytest


@pytest.fixture
def path(tmp_path):
    return tmp_path / "s.folddb"


@pytest.fixture
def store(path):
    with folddb.create(path) as store:
        yield store


@pytest.fixture
def delays(store):
    return store.table("delays", key=(str, str), fold="stats:f64")


@pytest.fixture
def counts(store):
    return store.table("counts", key=str, fold="sum:i64")


def ends(program, *arguments):
    """Runs a Python program in a process of its own. It must end on its own; returns what it
    prints. A program that hangs is killed, and the stacks of its threads are printed."""
    begin = "import faulthandler, sys; faulthandler.dump_traceback_later(50, exit=True)\n"
    done = subprocess.run(
        [sys.executable, "-c", begin + textwrap.dedent(program), *map(str, arguments)],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout
