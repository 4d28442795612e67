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


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_stream_of_arrow_that_was_begun_before_a_fork_is_refused_in_the_child(path):
    pa = pytest.importorskip("pyarrow")
    with folddb.create(path) as store:
        counts = store.table("counts", key=int, fold="sum:i64")
        rows = 150_000  # more than two batches
        counts.fold_many(list(range(rows)), [1] * rows)
        begun = pa.RecordBatchReader.from_stream(counts.scan())
        fresh = pa.RecordBatchReader.from_stream(counts.scan())
        given = begun.read_next_batch().num_rows
        assert 0 < given < rows
        for reader in (begun, fresh):
            said = in_child(lambda: str(reader.read_next_batch().num_rows))
            assert "the store was opened before this process was forked" in said, said
            assert in_child(lambda: str(reader.schema.names)) == "['key', 'value']"
        assert given + sum(batch.num_rows for batch in begun) == rows
        assert sum(batch.num_rows for batch in fresh) == rows


# What needs no store, and answers in a child, too.
ANSWERS = {
    "Store.__enter__", "Batch.__enter__", "Transaction.__enter__", "Snapshot.__enter__", "Rows.__iter__",
    "Feed.__iter__", "Table.__bool__", "Scan.__bool__", "RawWriter.forget", "Batch.__exit__", "Transaction.__exit__",
    "Feed.name", "Table.name", "Scan.__repr__", "Snapshot.seq", "Snapshot.time", "RawReader.len_bytes",
}  # fmt: skip


def handles_of(path, tmp_path):
    """Every handle that a program can have of a store, and how each of its methods is called."""
    shared = folddb.Shared(8 << 20)
    store = folddb.create(path, shared=shared)
    table = store.table("t", key=str, value="json", index={"all": "value"}, expire="by-write")
    table.update({"a": "x", "b": "y"})
    blobs = store.table("blobs", key=str)
    blobs["a"] = b"long"
    row, t, a = ("t", "a", "x"), ("t",), ("a",)
    gathers = {
        "table": t, "__getitem__": t, "put": row, "put_if_absent": row, "fold": row, "delete": ("t", "a"),
        "delete_range": ("t", "a", "b"), "delete_prefix": ("t", "a"), "commit": (), "__enter__": (),
        "__exit__": (None, None, None), "__len__": (), "get": ("t", "a"), "take": ("t", "a"), "fold_and_get": row,
    }  # fmt: skip
    calls = {
        store: {
            "path": None, "last_seq": None, "table": t, "__getitem__": t, "__contains__": t, "create_table": ("n",),
            "drop_table": t, "tables": (), "batch": (), "snapshot": (), "transaction": (), "feed": ("f2",),
            "transact": (lambda _: None,), "feeds": (), "drop_feed": ("f",), "backup": (tmp_path / "b",), "doctor": (),
            "reclaim": (), "stats": (), "plot_tiers": (), "_repr_html_": (), "sync": (), "flush": (), "settle": (), "refresh": (),
            "close": (), "__enter__": (), "__exit__": (None, None, None), "__repr__": (),
        },
        table: {
            "name": None, "rules": None, "__getitem__": a, "__setitem__": ("a", "x"), "__delitem__": a,
            "__contains__": a, "__iter__": (), "__bool__": (), "get": a, "get_at": ("a", 1), "get_many": (["a"],),
            "head": a, "take": a, "history": a, "put": ("a", "x"), "put_if_absent": ("a", "x"), "fold": ("a", "x"), "delete": a,
            "delete_range": ("a", "b"), "delete_prefix": a, "update": ({"a": "x"},), "fold_many": (["a"], ["x"]),
            "put_many": (["a"], ["x"]), "scan": (), "keys": (), "values": (), "items": (), "count": (),
            "aggregate": (), "add_index": ("n:value",), "drop_index": ("all",), "indexes": (), "find": ("all", "x"),
            "reader": a, "writer": a, "compact": (), "stats": (), "runs": (), "with_durability": ("sync",),
            "with_type": (dict,), "with_lifetime": (None,), "_repr_html_": (), "__repr__": (),
        },
        table.scan(): {
            "__iter__": (), "__bool__": (), "__arrow_c_stream__": (), "keys": (), "values": (), "items": (),
            "heads": (), "count": (), "first": (), "last": (), "aggregate": (), "to_arrow": (), "_repr_html_": (),
            "__repr__": (),
        },
        table.items(): {"__iter__": (), "__next__": ()},
        table.find("all", "x"): {"__iter__": (), "count": (), "keys": (), "items": ()},
        store.batch(): gathers,
        store.transaction(): gathers,
        store.snapshot(): {
            "table": t, "__getitem__": t, "close": (), "seq": None, "time": None, "__enter__": (),
            "__exit__": (None, None, None),
        },
        store.feed("f"): {
            "__iter__": (), "__next__": (), "next": (0.0,), "acknowledge": (), "seq": None, "name": None,
        },
        shared: {"set_background_bytes_per_s": (None,), "memory_bytes": None, "used_bytes": None, "stores": None,
                 "__repr__": ()},
        blobs.reader("a").raw._raw: {"len_bytes": None, "read": (1,), "seek": (0,)},
        blobs.writer("b")._raw: {"write": (b"x",), "finish": (), "forget": ()},
    }  # fmt: skip
    return store, calls


def methods_of(handle):
    ours = {name for name in vars(type(handle)) if name not in ("__doc__", "__new__", "__module__")}
    return {name for name in ours if not name.startswith("__") or callable(getattr(handle, name))}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_method_of_every_handle_is_refused_in_a_forked_child(path, tmp_path):
    store, calls = handles_of(path, tmp_path)

    def tried():
        said = []
        for handle, methods in calls.items():
            for name in methods_of(handle):
                of = f"{type(handle).__name__}.{name}"
                try:
                    if name not in methods:
                        raise LookupError("is not in the list of this test")
                    got = getattr(handle, name)
                    answer = got if methods[name] is None else got(*methods[name])
                    if of not in ANSWERS:
                        said.append(f"{of} answers {answer!r}")
                except errors.Closed:
                    pass
                except BaseException as raised:
                    if "needs pyarrow" in str(raised) or "needs Matplotlib" in str(raised):
                        continue
                    said.append(f"{of}: {type(raised).__name__}: {raised}")
        return "\n".join(said)

    assert in_child(tried) == "nothing"
    assert store["t"]["a"] == "x" and sorted(store.tables()) == ["blobs", "t"]
    store.close()
