"""Nothing but the standard library is needed; what needs more says so."""

import sys

import folddb
import pytest
from folddb import errors

MISSING = ["numpy", "pyarrow", "polars", "pandas", "duckdb", "matplotlib"]


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    for name in MISSING:
        monkeypatch.setitem(sys.modules, name, None)


def test_a_program_needs_only_the_standard_library(path, tmp_path):
    with folddb.create(path) as store:
        delays = store.table("delays", key=(str, str), fold="stats:f64")
        assert delays.fold_many([("UA", "EWR"), ("DL", "JFK"), ("UA", "EWR")], [12.5, None, -3.0]) == 2
        records = store.table("records", key=int, fold={"n": "sum:u64", "s": "set"})
        assert records.fold_many([1, 1, 2], [{"n": 1}, {"n": 2, "s": "x"}, None]) == 2
        documents = store.table("documents", key=str, value="json", index={"city": "json:/city"})
        assert documents.put_many(["a"], [{"city": "Bern"}]) == 1
        assert dict(delays.scan("UA").items())["UA", "EWR"]["mean"] == 4.75
        assert records[1] == {"n": 3, "s": ["x"]} or records[1]["n"] == 3
        assert documents.find("city", "Bern").keys() == ["a"]
        assert len(delays.get_many([("UA", "EWR"), ("XX", "YY")])) == 2
        assert "UA" in delays._repr_html_() and "delays" in store._repr_html_()
        store.backup(tmp_path / "backups")
    assert folddb.verify(path, deep=True)["is_clean"]


def test_what_needs_more_says_what_to_install(store):
    table = store.table("t", key=(str, int), fold="sum:u64")
    table.fold(("a", 1), 1)
    with pytest.raises((errors.Error, ImportError), match="needs pyarrow: install it"):
        table.scan().to_arrow()
    with pytest.raises(errors.InvalidInput, match="`t`: .*needs pyarrow: install it"):
        table.fold_many((["a"], [1]), 1)
    with pytest.raises((errors.Error, ImportError), match="(?i)matplotlib"):
        store.plot_tiers()
    assert table["a", 1] == 1
