"""What a call of `fold` from Python costs beside the work of the store, in instructions.

    python bench/calls.py

Counted under valgrind, so the same on a busy machine, with the FoldDB that is installed. A loop of
calls is run with many rows and with twice as many: the difference is what a row costs. Of that, the
store has what is below its own function, the library for Python what is below its method, and the
interpreter the rest.
"""

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile

import folddb

MANY = 10_000
# The function under which the store works, and the one that Python calls.
STORE = re.compile(r"BytesTable\S*write")
METHOD = re.compile(r"__pymethod_fold__")


def work(path, what, rows):
    """The program that is counted."""
    with folddb.create(path) as store:
        sums = store.table("sums", key=int, fold="sum:i64")
        flights = store.table("flights", key=(str, str, int), fold="stats:f64")
        for number in range(1000):
            sums.fold(number, 1)
        keys = [(number * 7919) % 1000 for number in range(rows)]
        if what == "fold":
            for key in keys:
                sums.fold(key, 1)
        else:
            for key in [("UA", "EWR", key) for key in keys]:
                flights.fold(key, 12.5)


def counted(what, rows):
    """The instructions of it: all, below the methods, and below the store's functions."""
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/out"
        command = ["valgrind", "--tool=callgrind", "--separate-threads=no", f"--callgrind-out-file={out}"]
        command += [sys.executable, __file__, "--work", what, "--rows", str(rows), "--path", f"{folder}/store"]
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        everything = int(re.findall(r"Collected : *(\d+)", done.stderr)[0])
        listed = subprocess.run(
            ["callgrind_annotate", "--inclusive=yes", "--threshold=100", "--auto=no", out],
            capture_output=True,
            text=True,
        )
        below = collections.Counter()
        for line in listed.stdout.splitlines():
            found = re.match(r" *([\d,]+) \(.*?\) (.*)", line)
            for name, pattern in (("store", STORE), ("method", METHOD)):
                if found and pattern.search(found[2]):
                    below[name] = max(below[name], int(found[1].replace(",", "")))
        return everything, below["method"], below["store"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work")
    parser.add_argument("--rows", type=int, default=MANY)
    parser.add_argument("--path")
    given = parser.parse_args()
    if given.work:
        return work(given.path, given.work, given.rows)
    print(f"{'':16} {'all':>8} {'store':>8} {'library':>8} {'interpreter':>12}")
    for what in ("fold", "fold of a tuple"):
        few, more = counted(what, given.rows), counted(what, 2 * given.rows)
        everything, method, store = ((two - one) // given.rows for one, two in zip(few, more))
        print(f"{what:16} {everything:8,} {store:8,} {method - store:8,} {everything - method:12,}")


if __name__ == "__main__":
    main()
