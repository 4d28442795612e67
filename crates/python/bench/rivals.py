"""FoldDB from Python and other embedded stores, doing the same work in one run.

    pip install numpy pyarrow duckdb lmdb rocksdict plyvel polars
    python bench/rivals.py --rows 1000000

Rows are (carrier, origin, day) and a delay; the work is to keep count, sum, least and greatest by
key. What a store ends with is compared with the others'. A store that is not installed is left out.
The data of all of them survives a crash of the process, and none waits for the disk.
"""

import argparse
import os
import random
import shutil
import sqlite3
import statistics
import struct
import tempfile
import time

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
    delay = np.round(random_of.normal(8, 30, rows))  # in whole minutes, as flights have it
    return pa.table({"carrier": carrier, "origin": origin, "day": day, "delay": delay})


def packed(table):
    """The same rows for stores of bytes. The keys are ready, so no store pays for making them."""
    carrier, origin = table["carrier"].to_pylist(), table["origin"].to_pylist()
    day = table["day"].to_pylist()
    keys = [f"{c}\0{o}\0{d:03}".encode() for c, o, d in zip(carrier, origin, day)]
    return keys, table["delay"].to_pylist()


def folded(old, delay):
    if old is None:
        return VALUE.pack(1, delay, delay, delay)
    count, total, least, most = VALUE.unpack(old)
    return VALUE.pack(count + 1, total + delay, min(least, delay), max(most, delay))


def state(values):
    """The final state of a store: keys, rows, and the sum."""
    keys = rows = 0
    total = 0.0
    for count, part in values:
        keys, rows, total = keys + 1, rows + count, total + part
    return keys, rows, round(total)


def of_bytes(values):
    return state(VALUE.unpack(value)[:2] for value in values)


def fold_folddb(path, table, _):
    with folddb.create(path) as store:
        delays = store.table("delays", key=(str, str, int), fold="stats:f64")
        begun = time.perf_counter()
        delays.fold_many(table.select(["carrier", "origin", "day"]), table["delay"])
        took = time.perf_counter() - begun
        return took, state((value["count"], value["sum"]) for value in delays.values())


def fold_folddb_singly(path, table, _):
    keys = list(zip(table["carrier"].to_pylist(), table["origin"].to_pylist(), table["day"].to_pylist()))
    rows = list(zip(keys, table["delay"].to_pylist()))
    with folddb.create(path) as store:
        delays = store.table("delays", key=(str, str, int), fold="stats:f64")
        begun = time.perf_counter()
        for key, delay in rows:
            delays.fold(key, delay)
        took = time.perf_counter() - begun
        return took, state((value["count"], value["sum"]) for value in delays.values())


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
    return took, state(store.execute("select count, sum from delays"))


def fold_lmdb(path, _, rows):
    import lmdb

    with lmdb.open(path, map_size=4 << 30, sync=False) as store:
        begun = time.perf_counter()
        with store.begin(write=True) as transaction:
            for key, delay in zip(*rows):
                transaction.put(key, folded(transaction.get(key), delay))
        took = time.perf_counter() - begun
        with store.begin() as transaction:
            return took, of_bytes(value for _, value in transaction.cursor())


def fold_rocksdict(path, _, rows):
    from rocksdict import Options, Rdict

    store = Rdict(path, Options(raw_mode=True))
    begun = time.perf_counter()
    for key, delay in zip(*rows):
        store[key] = folded(store.get(key), delay)
    took = time.perf_counter() - begun
    result = of_bytes(value for _, value in store.items())
    store.close()
    return took, result


def fold_plyvel(path, _, rows):
    import plyvel

    store = plyvel.DB(path, create_if_missing=True)
    begun = time.perf_counter()
    for key, delay in zip(*rows):
        store.put(key, folded(store.get(key), delay))
    took = time.perf_counter() - begun
    result = of_bytes(value for _, value in store)
    store.close()
    return took, result


def fold_duckdb(path, table, _):
    import duckdb

    store = duckdb.connect(path)
    store.execute("set threads = " + str(os.cpu_count()))
    begun = time.perf_counter()
    store.register("flights", table)
    store.execute(
        "create table delays as select carrier, origin, day, count(delay) as count, sum(delay) as sum,"
        " min(delay) as least, max(delay) as most from flights group by all"
    )
    store.execute("checkpoint")
    took = time.perf_counter() - begun
    result = state(store.execute("select count, sum from delays").fetchall())
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
    return took, state(grouped.select("count", "sum").iter_rows())


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


def gets(rows, keys_of):
    """Single gets of existing keys, once in memory only and once in files."""
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        keys = [number.to_bytes(8, "big") for number in range(rows)]
        random.Random(1).shuffle(keys)
        value = b"v" * 32
        asked = keys[:keys_of]
        with folddb.create(f"{folder}/f") as store:
            table = store.table("t", key=bytes)
            table.put_many(keys, [value] * rows)
            store.flush()
            store.settle()
            results["folddb"] = timed(lambda: [table.get(key) for key in asked])
        try:
            from rocksdict import Options, Rdict

            store = Rdict(f"{folder}/r", Options(raw_mode=True))
            for key in keys:
                store[key] = value
            store.flush()
            results["rocksdict"] = timed(lambda: [store.get(key) for key in asked])
            store.close()
        except ImportError:
            pass
        try:
            import plyvel

            store = plyvel.DB(f"{folder}/p", create_if_missing=True)
            for key in keys:
                store.put(key, value)
            store.compact_range()
            results["plyvel"] = timed(lambda: [store.get(key) for key in asked])
            store.close()
        except ImportError:
            pass
        try:
            import lmdb

            with lmdb.open(f"{folder}/l", map_size=4 << 30, sync=False) as store:
                with store.begin(write=True) as transaction:
                    for key in keys:
                        transaction.put(key, value)
                with store.begin() as transaction:
                    results["lmdb"] = timed(lambda: [transaction.get(key) for key in asked])
        except ImportError:
            pass
    return {name: len(asked) / took for name, took in results.items()}


def timed(work):
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def scan(rows):
    """Rows per second of (u64, u64), to Arrow and by a loop of Python."""
    with tempfile.TemporaryDirectory() as folder, folddb.create(f"{folder}/f") as store:
        table = store.table("t", key="u64", fold="sum:u64")
        numbers = np.arange(rows, dtype="u8")
        table.put_many(numbers, numbers)
        store.flush()
        store.settle()
        out = []
        for _ in range(3):
            begun = time.perf_counter()
            arrow = table.scan().to_arrow()
            out.append(rows / (time.perf_counter() - begun))
            assert arrow.num_rows == rows
        begun = time.perf_counter()
        seen = sum(1 for _ in table.items())
        return {"to_arrow": statistics.median(out), "loop": seen / (time.perf_counter() - begun)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="names of folds that begin so, separated by commas")
    parser.add_argument("--skip", default="", help="gets, scan")
    given = parser.parse_args()
    table = flights(given.rows)
    wanted = [name for name in FOLDS if not given.only or name.startswith(tuple(given.only.split(",")))]
    needs_rows = any(name.endswith("get, put") for name in wanted)
    rows = packed(table) if needs_rows else None
    times, states = {}, {}
    for _ in range(given.rounds):
        for name in wanted:
            folder = tempfile.mkdtemp()
            try:
                took, states[name] = FOLDS[name](f"{folder}/store", table, rows)
                times.setdefault(name, []).append(took)
            except ImportError:
                print(f"{name}: not installed")
            finally:
                shutil.rmtree(folder)
    assert len(set(states.values())) == 1, states
    best = statistics.median(times[wanted[0]])
    print(f"{given.rows:,} rows into {next(iter(states.values()))[0]:,} keys, median of {given.rounds}")
    for name, took in times.items():
        median = statistics.median(took)
        print(f"{name:26} {given.rows / median / 1e6:8.2f} M rows/s {median / best:8.2f} x the time")
    if "gets" not in given.skip:
        found = gets(given.rows, min(given.rows, 200_000))
        for name, rate in found.items():
            print(f"get, {name:21} {rate / 1e3:8.0f} K/s {rate / found['folddb']:11.2f} x the rate")
    if "scan" not in given.skip:
        for name, rate in scan(given.rows).items():
            print(f"scan, {name:20} {rate / 1e6:8.2f} M rows/s")


if __name__ == "__main__":
    main()
