"""FoldDB from Python and other embedded stores, doing the same work in one run.

    pip install numpy pyarrow duckdb lmdb rocksdict plyvel polars
    python bench/rivals.py --rows 1000000

Rows are (carrier, origin, day) and a delay; the work is to keep count, sum, least and greatest by
key. What a store ends with, every key and its four figures, is compared with the others'. A store
that is not installed is left out. The data of all of them survives a crash of the process, and none
waits for the disk, but for DuckDB, which syncs its file when it is written.
"""

import argparse
import hashlib
import os
import platform
import random
import shutil
import sqlite3
import statistics
import struct
import tempfile
import time
from importlib import metadata

import folddb
import numpy as np
import pyarrow as pa

VALUE = struct.Struct("<qddd")


def flights(rows, seed=1):
    """Rows like those of a busy year: some carriers and airports have most of the flights."""
    random_of = np.random.default_rng(seed)
    carriers = np.array([f"C{number}" for number in range(16)])
    origins = np.array([f"A{number:02}" for number in range(100)])
    carrier = carriers[np.minimum(random_of.geometric(0.2, rows) - 1, 15)]
    origin = origins[np.minimum(random_of.geometric(0.04, rows) - 1, 99)]
    day = np.sort(random_of.integers(0, 365, rows))
    delay = np.round(random_of.normal(8, 30, rows)) + 0.0  # in whole minutes, and no -0.0
    return pa.table({"carrier": carrier, "origin": origin, "day": day, "delay": delay})


def packed(table):
    """The same rows for stores of bytes. The keys are ready, so no store pays for making them."""
    carrier, origin = table["carrier"].to_pylist(), table["origin"].to_pylist()
    day = table["day"].to_pylist()
    keys = [key_of(*key) for key in zip(carrier, origin, day)]
    return keys, table["delay"].to_pylist()


def folded(old, delay):
    if old is None:
        return VALUE.pack(1, delay, delay, delay)
    count, total, least, most = VALUE.unpack(old)
    return VALUE.pack(count + 1, total + delay, min(least, delay), max(most, delay))


def key_of(carrier, origin, day):
    return f"{carrier}\0{origin}\0{day:03}".encode()


def state(rows):
    """The final state of a store: how many keys there are, and a hash of them and their figures."""
    lines = sorted(key + VALUE.pack(count, *map(float, rest)) for key, count, *rest in rows)
    return len(lines), hashlib.sha256(b"\n".join(lines)).hexdigest()[:16]


def of_bytes(rows):
    return state((key, *VALUE.unpack(value)) for key, value in rows)


def of_columns(rows):
    return state((key_of(*row[:3]), *row[3:]) for row in rows)


def of_folddb(table):
    figures = ["count", "sum", "min", "max"]
    return state((key_of(*key), *(value[name] for name in figures)) for key, value in table.items())


def fold_folddb(path, table, _):
    with folddb.create(path) as store:
        delays = store.table("delays", key=(str, str, int), fold="stats:f64")
        begun = time.perf_counter()
        delays.fold_many(table.select(["carrier", "origin", "day"]), table["delay"])
        took = time.perf_counter() - begun
        return took, of_folddb(delays)


def fold_folddb_singly(path, table, _):
    keys = list(zip(table["carrier"].to_pylist(), table["origin"].to_pylist(), table["day"].to_pylist()))
    rows = list(zip(keys, table["delay"].to_pylist()))
    with folddb.create(path) as store:
        delays = store.table("delays", key=(str, str, int), fold="stats:f64")
        begun = time.perf_counter()
        for key, delay in rows:
            delays.fold(key, delay)
        took = time.perf_counter() - begun
        return took, of_folddb(delays)


def fold_sqlite(path, table, _):
    rows = list(zip(*(table[name].to_pylist() for name in ["carrier", "origin", "day", "delay"])))
    store = sqlite3.connect(path)
    store.execute("pragma journal_mode = wal")
    store.execute("pragma synchronous = off")
    store.execute(
        "create table delays (carrier, origin, day, count, sum, least, most, primary key (carrier, origin, day))"
        " without rowid"
    )
    begun = time.perf_counter()
    store.executemany(
        "insert into delays values (?1, ?2, ?3, 1, ?4, ?4, ?4) on conflict do update set count = count + 1,"
        " sum = sum + ?4, least = min(least, ?4), most = max(most, ?4)",
        rows,
    )
    store.commit()
    took = time.perf_counter() - begun
    return took, of_columns(store.execute("select * from delays"))


def fold_lmdb(path, _, rows):
    import lmdb

    with lmdb.open(path, map_size=16 << 30, sync=False) as store:
        begun = time.perf_counter()
        with store.begin(write=True) as transaction:
            for key, delay in zip(*rows):
                transaction.put(key, folded(transaction.get(key), delay))
        took = time.perf_counter() - begun
        with store.begin() as transaction:
            return took, of_bytes(transaction.cursor())


def fold_rocksdict(path, _, rows):
    from rocksdict import Options, Rdict

    store = Rdict(path, Options(raw_mode=True))
    begun = time.perf_counter()
    for key, delay in zip(*rows):
        store[key] = folded(store.get(key), delay)
    took = time.perf_counter() - begun
    result = of_bytes(store.items())
    store.close()
    return took, result


def fold_plyvel(path, _, rows):
    import plyvel

    store = plyvel.DB(path, create_if_missing=True)
    begun = time.perf_counter()
    for key, delay in zip(*rows):
        store.put(key, folded(store.get(key), delay))
    took = time.perf_counter() - begun
    result = of_bytes(store)
    store.close()
    return took, result


def fold_duckdb(path, table, _):
    import duckdb

    store = duckdb.connect(path)
    store.execute("set threads = " + str(os.cpu_count()))
    store.execute(
        "create table delays (carrier text, origin text, day bigint, count bigint, sum double, least double,"
        " most double)"
    )
    begun = time.perf_counter()
    store.register("flights", table)
    store.execute(
        "insert into delays select carrier, origin, day, count(delay), sum(delay), min(delay), max(delay)"
        " from flights group by all"
    )
    store.execute("checkpoint")
    took = time.perf_counter() - begun
    result = of_columns(store.execute("select * from delays").fetchall())
    store.close()
    return took, result


def fold_polars(_, table, __):
    import polars

    frame = polars.from_arrow(table)
    begun = time.perf_counter()
    delay = polars.col("delay")
    grouped = frame.group_by("carrier", "origin", "day").agg(
        delay.count().alias("count"), delay.sum().alias("sum"), delay.min().alias("least"), delay.max().alias("most")
    )
    took = time.perf_counter() - begun
    return took, of_columns(grouped.iter_rows())


FOLDS = {
    "folddb fold_many": fold_folddb,
    "duckdb, into a file": fold_duckdb,
    "polars, in memory": fold_polars,
    "folddb fold, one by one": fold_folddb_singly,
    "sqlite3 upsert": fold_sqlite,
    "lmdb get, put": fold_lmdb,
    "plyvel get, put": fold_plyvel,
    "rocksdict get, put": fold_rocksdict,
}


def timed(work):
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


def get_folddb(path, keys, value, asked):
    with folddb.create(path) as store:
        table = store.table("t", key=bytes)
        table.put_many(keys, [value] * len(keys))
        store.flush()
        store.settle()
        return timed(lambda: [table.get(key) for key in asked])


def get_rocksdict(path, keys, value, asked):
    from rocksdict import Options, Rdict

    store = Rdict(path, Options(raw_mode=True))
    for key in keys:
        store[key] = value
    store.flush()
    result = timed(lambda: [store.get(key) for key in asked])
    store.close()
    return result


def get_plyvel(path, keys, value, asked):
    import plyvel

    store = plyvel.DB(path, create_if_missing=True)
    for key in keys:
        store.put(key, value)
    store.compact_range()
    result = timed(lambda: [store.get(key) for key in asked])
    store.close()
    return result


def get_lmdb(path, keys, value, asked):
    import lmdb

    with lmdb.open(path, map_size=16 << 30, sync=False) as store:
        with store.begin(write=True) as transaction:
            for key in keys:
                transaction.put(key, value)
        with store.begin() as transaction:
            return timed(lambda: [transaction.get(key) for key in asked])


GETS = {"folddb": get_folddb, "rocksdict": get_rocksdict, "plyvel": get_plyvel, "lmdb, one transaction": get_lmdb}


def scan(path, rows):
    """Seconds for a scan of (u64, u64) to Arrow, and by a loop of Python."""
    with folddb.create(path) as store:
        table = store.table("t", key="u64", fold="sum:u64")
        numbers = np.arange(rows, dtype="u8")
        table.put_many(numbers, numbers)
        store.flush()
        store.settle()
        took, arrow = timed(lambda: table.scan().to_arrow())
        assert all((column.to_numpy() == numbers).all() for column in arrow.columns) and arrow.num_rows == rows
        looped, seen = timed(lambda: sum(1 for _ in table.items()))
        assert seen == rows
        return took, looped


class Times:
    """What was measured: the seconds of each round by name."""

    def __init__(self):
        self.seconds = {}
        self.missing = set()

    def run(self, name, work):
        """Runs `work` with a path, and gives its result but the seconds; none if it needs a package."""
        folder = tempfile.mkdtemp()
        try:
            took, result = work(f"{folder}/store")
        except ImportError:
            self.missing.add(name)
            return None
        finally:
            shutil.rmtree(folder)
        self.seconds.setdefault(name, []).append(took)
        return result

    def __contains__(self, name):
        return name in self.seconds

    def of(self, name):
        return statistics.median(self.seconds[name])


def fold_all(given, table):
    times, states = Times(), {}
    wanted = [name for name in FOLDS if not given.only or name.startswith(tuple(given.only.split(",")))]
    rows = packed(table) if any(name.endswith("get, put") for name in wanted) else None
    for _ in range(given.rounds):
        for name in wanted:
            result = times.run(name, lambda path: FOLDS[name](path, table, rows))
            if result is not None:
                assert states.setdefault(name, result) == result, name
    assert len(set(states.values())) == 1, states
    keys, digest = next(iter(states.values()))
    print(f"{given.rows:,} rows into {keys:,} keys; all {len(states)} end with the same state, {digest}")
    best = times.of(next(iter(states)))
    for name in states:
        print(f"{name:26} {given.rows / times.of(name) / 1e6:8.2f} M rows/s {times.of(name) / best:8.2f} x the time")
    return times


def get_all(given):
    keys = [number.to_bytes(8, "big") for number in range(given.rows)]
    random.Random(1).shuffle(keys)
    value, asked = b"v" * 32, keys[:200_000]
    times = Times()
    for _ in range(given.rounds):
        for name, get in GETS.items():
            found = times.run(name, lambda path: get(path, keys, value, asked))
            assert found is None or found == [value] * len(asked), name
    for name in times.seconds:
        rate = len(asked) / times.of(name)
        print(f"get, {name:21} {rate / 1e3:8.0f} K/s {times.of('folddb') / times.of(name):11.2f} x the rate")
    return times


def scan_all(given):
    times = Times()
    for _ in range(given.rounds):
        looped = times.run("to_arrow", lambda path: scan(path, given.rows))
        times.seconds.setdefault("loop", []).append(looped)
    for name in times.seconds:
        print(f"scan, {name:20} {given.rows / times.of(name) / 1e6:8.2f} M rows/s")
    return times


def show_aims(given, folds, gets, scans):
    """What FoldDB aims at beside its rivals, and what this run has measured."""

    def show(aim, measured, unit):
        print(f"{aim:62} {measured:8.2f} {unit}")

    many, singly, duck = "folddb fold_many", "folddb fold, one by one", "duckdb, into a file"
    stores = [name for name in folds.seconds if name.endswith(("get, put", "upsert"))]
    if many in folds and stores:
        best = min(stores, key=folds.of)
        show(f"fold_many: at least 5 times the best store ({best})", folds.of(best) / folds.of(many), "x")
    if many in folds and duck in folds:
        show("fold_many: not slower than a file of DuckDB's", folds.of(duck) / folds.of(many), "x")
    if singly in folds and "rocksdict get, put" in folds:
        show("fold: at least 3 times rocksdict", folds.of("rocksdict get, put") / folds.of(singly), "x")
    for rival in ("rocksdict", "plyvel"):
        if gets and rival in gets:
            show(f"get: at least the rate of {rival}", gets.of(rival) / gets.of("folddb"), "x")
    if scans:
        show("scan to Arrow: at least 5 M rows/s", given.rows / scans.of("to_arrow") / 1e6, "M rows/s")


def versions():
    packages = ["folddb", "duckdb", "polars", "pyarrow", "lmdb", "rocksdict", "plyvel"]
    told = [f"Python {platform.python_version()}", f"sqlite3 {sqlite3.sqlite_version}"]
    for package in packages:
        try:
            told.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            told.append(f"{package} is not installed")
    return ", ".join(told)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="names of folds that begin so, separated by commas")
    parser.add_argument("--skip", default="", help="gets, scan")
    given = parser.parse_args()
    print(f"medians of {given.rounds}, {os.cpu_count()} processors; {versions()}")
    folds = fold_all(given, flights(given.rows))
    gets = None if "gets" in given.skip else get_all(given)
    scans = None if "scan" in given.skip else scan_all(given)
    show_aims(given, folds, gets, scans)


if __name__ == "__main__":
    main()
