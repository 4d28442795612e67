"""Work that belongs together: batches, snapshots, transactions, threads."""

import sys
import threading

import folddb
import pytest
from folddb import errors


def test_a_batch_is_committed_when_its_block_ends(store, delays, counts):
    with store.batch() as batch:
        batch.fold(delays, ("UA", "LGA"), 1.0)
        batch.put("counts", "a", 7)
        batch[counts].fold("a", 1)
        batch.put_if_absent(counts, "b", 2)
        batch.delete(counts, "c")
        assert len(batch) == 5
        assert counts.count() == 0
    assert counts["a"] == 8 and delays["UA", "LGA"]["count"] == 1
    with pytest.raises(errors.InvalidInput, match="over"):
        batch.put(counts, "a", 1)


def test_a_batch_whose_block_raises_writes_nothing(store, counts):
    with pytest.raises(RuntimeError):
        with store.batch() as batch:
            batch.put(counts, "a", 1)
            raise RuntimeError
    assert counts.count() == 0


def test_a_batch_reads_nothing(store, counts):
    with store.batch() as batch:
        with pytest.raises(errors.InvalidInput, match="reads nothing"):
            batch[counts]["a"]


def test_a_snapshot_sees_what_was(store, counts):
    counts.fold("a", 1)
    with store.snapshot() as past:
        counts.fold("a", 1)
        counts.fold("b", 1)
        assert past[counts]["a"] == past["counts"]["a"] == 1
        assert list(past[counts].items()) == [("a", 1)]
        assert past.seq < store.last_seq
        with pytest.raises(errors.ReadOnly):
            past[counts].fold("a", 1)
    assert counts["a"] == 2
    with pytest.raises(errors.Closed):
        past[counts]


def test_a_transaction_is_begun_anew_until_nobody_comes_between(store):
    accounts = store.table("accounts", key=str, value=int)
    accounts.update({"ann": 100, "bob": 0})
    tries = []

    def transfer(transaction):
        tries.append(1)
        balance = transaction.get(accounts, "ann")
        if len(tries) == 1:
            accounts.put("ann", 50)
        transaction.put(accounts, "ann", balance - 30)
        transaction.put(accounts, "bob", transaction[accounts]["bob"] + 30)
        return balance

    assert store.transact(transfer) == 50
    assert dict(accounts.items()) == {"ann": 20, "bob": 30}
    assert len(tries) == 2


def test_a_transaction_that_raises_writes_nothing(store, counts):
    def work(transaction):
        transaction.fold(counts, "a", 1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.transact(work)
    assert counts.count() == 0


def test_a_transaction_by_hand_raises_conflict(store, counts):
    with pytest.raises(errors.Conflict):
        with store.transaction() as transaction:
            transaction.get(counts, "a", 0)
            counts.fold("a", 1)
            transaction.fold(counts, "b", 1)
    assert "b" not in counts
    with store.transaction() as transaction:
        assert transaction.fold_and_get(counts, "a", 1) == 2
    assert counts["a"] == 2


def test_what_is_taken_is_gone(store, counts):
    counts["a"] = 3
    assert counts.take("a") == 3
    assert "a" not in counts and counts.take("a") is None and counts.take("a", 0) == 0
    counts["a"] = 4
    with pytest.raises(errors.Conflict):
        with store.transaction() as transaction:
            assert transaction.take(counts, "a") == 4
            assert transaction.take("counts", "a", 7) == 7
            counts.fold("a", 1)
    assert counts["a"] == 5
    with store.snapshot() as past, pytest.raises(errors.ReadOnly):
        past[counts].take("a")
    with store.batch() as batch, pytest.raises(errors.InvalidInput):
        batch[counts].take("a")


def test_a_transaction_reads_no_further_than_it_is_walked(store, counts):
    counts.update({f"{number:03}": number for number in range(600)})
    with store.transaction() as transaction:
        rows = iter(transaction[counts].items())
        assert [next(rows)[1] for _ in range(3)] == [0, 1, 2]
        counts.fold("500", 1)
        transaction.fold(counts, "sum", 3)
    assert counts["sum"] == 3


def test_threads_share_a_table(counts):
    def work():
        for _ in range(500):
            counts.fold("a", 1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts["a"] == 2000


def test_two_threads_in_one_batch_are_refused_or_served(store, counts):
    refused = []
    with store.batch() as batch:
        def work():
            for _ in range(200):
                try:
                    batch.fold(counts, "a", 1)
                except errors.InvalidInput:
                    refused.append(1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert counts["a"] == 800 - len(refused)


def test_stores_share_a_budget_of_memory(tmp_path):
    shared = folddb.Shared(64 << 20)
    shared.set_background_bytes_per_s(100 << 20)
    assert (shared.memory_bytes, shared.stores, shared.used_bytes) == (64 << 20, 0, 0)
    stores = [
        folddb.create(tmp_path / f"{number}.folddb", memory_bytes=16 << 20, shared=shared) for number in range(3)
    ]
    with folddb.create(tmp_path / "alone.folddb"):
        assert shared.stores == 3
    for store in stores:
        store.table("t", key=int, value=int).put_many(list(range(10_000)), list(range(10_000)))
    assert 0 < shared.used_bytes <= 64 << 20
    shared.set_background_bytes_per_s(None)
    del shared
    for store in stores:
        assert store["t"][7] == 7
        store.close()
    with pytest.raises(errors.InvalidInput, match="shared"):
        folddb.open(tmp_path / "0.folddb", shared=64 << 20)


def test_other_threads_go_on_while_columns_are_written_and_read(store):
    np = pytest.importorskip("numpy")
    pytest.importorskip("pyarrow")
    table = store.table("t", key=int, fold="sum:i64")
    rows = 200_000
    works = [
        lambda: table.fold_many(np.arange(rows), np.arange(rows)),
        lambda: table.scan().to_arrow(),
        lambda: table.get_many(np.arange(rows)),
    ]
    turns, over, interval = [0], threading.Event(), sys.getswitchinterval()

    def count():
        while not over.wait(0.0001):
            turns[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    sys.setswitchinterval(1000)  # no thread is asked for the interpreter's lock, which it gives up by itself or not
    try:
        for work in works:
            before, tries = turns[0], 0
            while turns[0] == before and tries < 100:
                work()
                tries += 1
            assert tries < 100
    finally:
        over.set()
        sys.setswitchinterval(interval)
        thread.join()
