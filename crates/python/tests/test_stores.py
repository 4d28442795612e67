"""Stores: opened and closed, their tables, and errors by kind."""

import pathlib
import re
import subprocess
import sys

import folddb
import pytest
from folddb import errors


def test_a_store_keeps_what_was_written(path):
    with folddb.create(path) as store:
        store.table("t", key=str, fold="sum:u64").fold("a", 1)
    with folddb.open(path) as store:
        assert store["t"]["a"] == 1
        assert store.tables() == ["t"]
        assert "t" in store and "u" not in store


def test_a_mistyped_path_is_an_error_and_creates_nothing(path):
    with pytest.raises(errors.StoreNotFound) as raised:
        folddb.open(path)
    assert isinstance(raised.value, FileNotFoundError) and str(path) in str(raised.value)
    assert not path.exists()
    folddb.open(path, create=True).close()
    with pytest.raises(FileExistsError):
        folddb.create(path)


def test_a_mistyped_table_is_an_error_and_creates_nothing(store):
    store.table("visits", key=str)
    with pytest.raises(errors.TableNotFound, match="visits"):
        store.table("visit")
    with pytest.raises(LookupError):
        store["visit"]
    assert store.tables() == ["visits"]


def test_a_table_that_exists_under_other_rules_is_not_opened_by_those(store):
    store.table("t", key=str, fold="sum:u64")
    store.table("t", key=str, fold="sum:u64")
    with pytest.raises(errors.RulesMismatch, match="`t`.*fold"):
        store.table("t", key=str, fold="max:u64")
    with pytest.raises(errors.AlreadyExists):
        store.create_table("t", key=str)


@pytest.mark.parametrize(
    "rules, words",
    [
        ({"key": "utf9"}, "utf9"),
        ({"fold": "sum:u65"}, "u65"),
        ({"flod": "set"}, "flod"),
        ({"keep": "often"}, "often"),
        ({"key": dict}, "dict"),
        ({"rules": "counters"}, "counter"),
        ({"index": "city"}, "city"),
    ],
)
def test_rules_that_cannot_be_are_named(store, rules, words):
    with pytest.raises(errors.InvalidInput, match=words):
        store.table("t", **rules)
    assert store.tables() == []


def test_settings_have_the_names_of_rust(path):
    with folddb.create(path, memory_bytes=32 << 20, durability="sync", merge_factor=4):
        pass
    for wrong in ({"memory": 1}, {"durability": "often"}, {"memory_bytes": -1}):
        with pytest.raises(errors.InvalidInput, match=next(iter(wrong))):
            folddb.open(path, **wrong)


def test_a_closed_store_says_so_in_every_handle(path):
    store = folddb.create(path)
    table = store.table("t", key=str, fold="sum:u64")
    rows = table.items()
    store.close()
    store.close()
    for call in (lambda: table.fold("a", 1), lambda: table["a"], lambda: list(table.scan()), store.sync):
        with pytest.raises(errors.Closed):
            call()
    del rows, table


def test_one_process_has_a_store_open(path, store):
    with pytest.raises(errors.Locked):
        folddb.open(path)


def test_a_secondary_reads_beside_the_writer(path, store, counts):
    counts.fold("a", 1)
    with folddb.open_secondary(path) as secondary:
        assert secondary["counts"]["a"] == 1
        with pytest.raises(errors.ReadOnly):
            secondary["counts"].fold("a", 1)
        counts.fold("a", 1)
        with secondary.refresh() as later:
            assert later["counts"]["a"] == 2


def test_a_dropped_table_is_gone(store, counts):
    store.drop_table("counts")
    assert store.tables() == []
    with pytest.raises(errors.Closed):
        counts.fold("a", 1)


def test_every_error_of_the_library_has_its_class():
    kinds = [name for name in vars(errors) if name[0].isupper() and name != "Error"]
    project = pathlib.Path(__file__).resolve().parents[3]
    source = (project / "crates/base/src/error.rs").read_text()
    source = source.split("pub enum ErrorKind {")[1].split("\n}")[0]
    assert sorted(kinds) == sorted(re.findall(r"^    (\w+),", source, re.MULTILINE))
    assert all(issubclass(getattr(errors, kind), errors.Error) for kind in kinds)


def test_an_interpreter_that_ends_with_a_store_open_has_closed_it(path):
    program = f"""
import folddb
store = folddb.create({str(path)!r}, durability="buffered")
table = store.table("t", key=str, fold="sum:u64")
for _ in range(1000): table.fold("a", 1)
rows = iter(table.items())
class Cycle: pass
cycle = Cycle(); cycle.self = cycle; cycle.store = store
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    with folddb.open(path) as store:
        assert store["t"]["a"] == 1000
