"""No deadlocks: threads and folds of Python, the lock of the interpreter, and its end.

Each program runs in a process of its own, since a deadlocked one never ends.
"""

import folddb
import pytest
from conftest import ends

FOLD = """
import gc, threading, folddb
path = sys.argv[1]

inside = lambda: None

@folddb.fold("later", version=1, value=str, samples=["", "a", "b"])
def later(earlier, later):
    inside()
    return later
"""


@pytest.mark.parametrize(
    "call",
    [
        "store.transaction()",
        "store.transact(lambda t: t.get(words, 'a'))",
        "store.transact(lambda t: t.put(words, 'b', 'x'))",
        "store.snapshot().close()",
        "store.table('words')",
        "store.tables(); store.feeds(); store.last_seq; 'words' in store; words.indexes()",
        "list(words.scan()); words.scan().first(); words.count()",
        "bool(words.scan()), words.aggregate()",
        "with store.batch() as batch: batch.put(words, 'c', 'x')",
        "words.stats(), store.stats()",
        "words.with_durability('process').fold('c', 'x')",
    ],
)
def test_no_call_waits_for_the_store_with_the_lock_that_a_fold_wants(path, call):
    program = FOLD + f"""
store = folddb.create(path, folds=[later], memory_bytes=8 << 20)
words = store.table("words", key=str, fold=later)
sys.setswitchinterval(1e-5)
inside = lambda: sum(range(300))  # the other thread has its turn in between
done = threading.Event()

def write():
    for number in range(3000):
        words.fold("a", "x" * 100)
    done.set()

def call():
    while not done.is_set():
        {call}

threads = [threading.Thread(target=write), threading.Thread(target=call), threading.Thread(target=call)]
for thread in threads: thread.start()
for thread in threads: thread.join()
store.close()
"""
    ends(program, path)


@pytest.mark.parametrize("kept", ["table", "rows", "feed", "scan", "store"])
def test_an_interpreter_ends_with_what_outlives_its_store(path, kept):
    ends(
        FOLD
        + f"""
def used():
    store = folddb.create(path, folds=[later], memory_bytes=4 << 20, durability="buffered")
    table = store.table("words", key=int, fold=later)
    table.put(1000, "x")
    counts = store.table("counts", key=str, fold="sum:u64")
    feed, scan, rows = store.feed("feed"), table.scan(), iter(table.items())
    for number in range(60_000):  # the store's own threads are at work when this ends
        table.fold(number % 1000, "x" * 400)
        counts.fold("folds", 1)
    return {kept}

kept = used()
gc.collect()
""",
        path,
    )
    with folddb.open_read_only(path) as store:
        assert store["counts"]["folds"] == 60_000


def test_a_collection_inside_a_fold_drops_the_last_handle_of_its_store(path):
    ends(
        FOLD
        + """
class Cycle: pass

main, entered, dropped, over = threading.get_ident(), *(threading.Event() for _ in range(3))

def inside():
    if threading.get_ident() != main and not entered.is_set():
        entered.set()
        dropped.wait()
        gc.collect()
        over.set()

def used():
    cycle = Cycle()
    cycle.itself = cycle
    cycle.store = folddb.create(path, folds=[later], memory_bytes=8 << 20)
    cycle.table = cycle.store.table("words", key=int, fold=later)
    number = 0
    while not entered.is_set():  # until a thread of the store folds
        cycle.table.fold(number % 100, "x" * 400)
        number += 1

gc.disable()
used()
dropped.set()
over.wait()
while True:
    try:
        store = folddb.open(path, folds=[later])
        break
    except folddb.errors.Locked:
        pass
assert store["words"][7] == "x" * 400
""",
        path,
    )


def test_a_fold_that_calls_a_store_is_an_error_and_no_deadlock(path):
    said = ends(
        FOLD
        + """
store = folddb.create(path, folds=[later])
table = store.table("words", key=str, fold=later)
table.fold("k", "a")
table.fold("k", "b")
calls = [
    lambda: table["k"], lambda: table.put("a", "b"), lambda: store.transaction(), lambda: store.flush(),
    lambda: next(rows), lambda: store.close(), lambda: list(table), lambda: feed.next(timeout_s=0),
    lambda: table.writer("k"), lambda: store.batch().commit(),
]
for number, call in enumerate(calls):
    rows, feed = table.items(), store.feed(f"feed{number}")
    inside = call
    try:
        next(rows)
    except folddb.errors.FoldFailed as error:
        print("must not call" in str(error))
    else:
        print("nothing raised")
inside = lambda: None
""",
        path,
    )
    assert said == "True\n" * 10
