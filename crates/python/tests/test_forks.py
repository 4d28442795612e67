"""A forked child gets errors, and leaves the store of its parent alone."""

import os

import folddb
import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")


def in_child(work):
    """Runs `work` in a forked child; what it says."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = work() or "nothing"
        except BaseException as raised:
            said = f"{type(raised).__name__}: {raised}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return said


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_gets_an_error_from_every_handle(path):
    store = folddb.create(path)
    counts = store.table("counts", key=str, fold="sum:i64")
    counts.fold("a", 1)
    rows, batch, snapshot = counts.items(), store.batch(), store.snapshot()
    calls = [
        lambda: counts.fold("a", 1),
        lambda: counts["a"],
        lambda: next(rows),
        lambda: batch.put("counts", "a", 1),
        lambda: snapshot[counts],
        lambda: store.table("counts"),
        store.close,
        store.sync,
    ]
    for call in calls:
        assert in_child(call).startswith("Closed: the store was opened before this process was forked")
    assert counts["a"] == 1
    store.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_that_ends_leaves_the_store_whole(path):
    store = folddb.create(path)
    counts = store.table("counts", key=str, fold="sum:i64")
    counts.fold("a", 1)
    child = os.fork()
    if child == 0:
        del counts, store
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    counts.fold("a", 1)
    store.close()
    with folddb.open(path) as store:
        assert store["counts"]["a"] == 2


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_opens_a_store_that_its_parent_has_closed(path):
    store = folddb.create(path)
    store.table("counts", key=str, fold="sum:i64").fold("a", 1)
    store.close()

    def work():
        with folddb.open(path) as own:
            own["counts"].fold("a", 1)
            return str(own["counts"]["a"])

    assert in_child(work) == "2"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_cannot_open_what_its_parent_has_open(path, store):
    assert in_child(lambda: folddb.open(path)).startswith("Locked")
