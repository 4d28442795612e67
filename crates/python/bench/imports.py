"""Import of an access log of 4.5 million rows with quoted fields, beside DuckDB, which writes the
result into a file.

    cargo install --path crates/cli
    pip install duckdb
    python crates/python/bench/imports.py [--rows 4500000] [--rounds 5] [--dir DIRECTORY]

The file is made first, always the same for a number of rows, and both read it from the page cache,
in turns: FoldDB with `--memory 64MiB`, DuckDB as it comes. Printed are medians: clock, CPU, peak
resident memory, and the median of the ratios of the rounds.
"""

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import time

COUNTRIES = [a + b for a in "ABDEFGIN" for b in "RTEOU"]
AGENTS = [
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/119.0.0.0 Safari/537.36",
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:109.0) Gecko/20100101 (KHTML stock), ""Firefox""/118.0',
    "Mozilla/5.0 (compatible, bot/2.1), plain",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko),"
    " Version/17.1 Mobile/15E148 Safari/604.1",
]
# What is asked: a name, the key and fold of FoldDB, and the query of DuckDB.
LOADS = [
    (
        "count, sum, statistics, distinct users by country (40 keys)",
        "country",
        "n: sum:u64 = 1, bytes: sum:u64 = bytes, latency: stats:f64 = latency_ms, users: hll:12 = user_id",
        "select country, count(*), sum(bytes), avg(latency_ms), min(latency_ms), max(latency_ms),"
        " stddev(latency_ms), approx_count_distinct(user_id) from file group by all",
    ),
    (
        "count, sum by bytes (50,000 keys)",
        "bytes",
        "n: sum:u64 = 1, latency: sum:f64 = latency_ms",
        "select bytes, count(*), sum(latency_ms) from file group by all",
    ),
    (
        "count, sum by country and a part of the path (39,000 keys)",
        'country, split(path, "?", 1)',
        "n: sum:u64 = 1, bytes: sum:u64 = bytes",
        "select country, split_part(path, '?', 1) page, count(*), sum(bytes) from file group by all",
    ),
    (
        "count, sum by user and bytes (a key for almost each row)",
        "user_id, bytes",
        "n: sum:u64 = 1, latency: sum:f64 = latency_ms",
        "select user_id, bytes, count(*), sum(latency_ms) from file group by all",
    ),
]


def make(path, rows):
    """Writes the file."""
    chance = random.Random(7)
    pages = [f"/shop/{chance.choice(['item', 'list', 'cart', 'user', 'help'])}/{n:05d}" for n in range(975)]
    with open(path, "w") as file:
        file.write("ts,country,path,user_id,status,bytes,latency_ms,agent\n")
        for row in range(rows):
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_700_000_000 + row // 52))
            pick = lambda some: some[int(chance.random() * len(some))]
            file.write(
                f'{at},{pick(COUNTRIES)},"{pick(pages)}?ref=mail, page {int(chance.random() * 1000)}",'
                f"u{int(chance.random() * 900_000)},{pick((200, 200, 200, 304, 404, 500))},"
                f'{int(chance.random() * 50_000)},{chance.expovariate(1 / 80):.3f},"{pick(AGENTS)}"\n'
            )


def run(command):
    """Clock and CPU in seconds, and peak resident memory in MiB."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"failed: {command}")
    return time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main():
    words = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    words.add_argument("--rows", type=int, default=4_500_000)
    words.add_argument("--rounds", type=int, default=5)
    words.add_argument("--dir", default="import-bench")
    words = words.parse_args()
    os.makedirs(words.dir, exist_ok=True)
    file, store, other = (os.path.join(words.dir, name) for name in ("log.csv", "store", "other.duckdb"))
    make(file, words.rows)
    print(f"{words.rows:,} rows, {os.path.getsize(file) / 1e6:.0f} MB, {os.cpu_count()} cores")
    for name, key, fold, query in LOADS:
        query = "create table t as " + query.replace("from file", f"from read_csv('{file}')")
        rivals = {
            "FoldDB": ["folddb", "import", store, "t", file, "--create", "--memory", "64MiB", "--key", key]
            + ["--fold", fold],
            "DuckDB": [sys.executable, "-c", f"import duckdb; duckdb.connect({other!r}).execute({query!r})"],
        }
        times = {rival: [] for rival in rivals}
        for turn in range(words.rounds):
            for rival in list(rivals) if turn % 2 == 0 else reversed(rivals):
                shutil.rmtree(store, ignore_errors=True)
                for left in (other, other + ".wal"):
                    if os.path.exists(left):
                        os.remove(left)
                times[rival].append(run(rivals[rival]))
        print(name)
        for rival, rounds in times.items():
            clock, cpu, memory = (statistics.median(part) for part in zip(*rounds))
            print(f"  {rival}  {clock:.2f} s, CPU {cpu:.2f} s, {memory:.0f} MiB")
        ratios = [a[0] / b[0] for a, b in zip(times["FoldDB"], times["DuckDB"])]
        print(f"  ratio   {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
