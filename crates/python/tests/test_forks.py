"""A forked child gets errors, and leaves the store of its parent alone."""

import os
import signal
import threading

import folddb
import pytest
from folddb import errors

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")


def in_child(work):
    """Runs `work` in a forked child, and returns what it reports. A signal ends one that hangs."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
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
    feed, writer = store.feed("copy"), store.table("blobs", key=str).writer("a")
    calls = [
        lambda: counts.fold("a", 1),
        lambda: counts["a"],
        lambda: next(rows),
        lambda: batch.put("counts", "a", 1),
        lambda: snapshot[counts],
        lambda: store.table("counts"),
        lambda: next(iter(feed)),
        lambda: snapshot.close(),
        lambda: writer.write(b"x"),
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


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_that_lives_on_holds_no_lock_of_a_store_that_its_parent_has_closed(path):
    store = folddb.create(path)
    counts = store.table("counts", key=str, fold="sum:i64")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    counts.fold("a", 1)
    store.close()
    with folddb.open(path) as store:
        assert store["counts"]["a"] == 1
    with folddb.open_read_only(path):
        pass
    os.close(writing)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_that_ends_as_usual_closes_nothing_of_its_parent(path):
    store = folddb.create(path)
    counts = store.table("counts", key=str, fold="sum:i64")
    counts.fold("a", 1)
    child = os.fork()
    if child == 0:
        import atexit

        atexit._run_exitfuncs()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    counts.fold("a", 1)
    with pytest.raises(errors.Locked):
        folddb.open(path)
    store.close()
    with folddb.open(path) as store:
        assert store["counts"]["a"] == 2


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_beside_threads_that_iterate_gives_an_error_and_no_wait(path):
    with folddb.create(path) as store:
        counts = store.table("counts", key=int, fold="sum:i64")
        counts.update({number: 1 for number in range(50_000)})
        rows, over = counts.items(), threading.Event()

        def walk():
            while not over.is_set() and next(rows, None):
                pass

        thread = threading.Thread(target=walk)
        thread.start()
        try:
            for _ in range(20):
                assert in_child(lambda: next(rows)).startswith("Closed")
        finally:
            over.set()
            thread.join()
