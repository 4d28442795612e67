"""What every test starts with: an empty store in a directory of its own."""

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
