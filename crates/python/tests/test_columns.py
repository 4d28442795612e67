"""Whole columns in and out: Arrow, NumPy and lists."""

import json
import random

import folddb
import pytest
from folddb import errors

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")


@pytest.fixture
def flights():
    return pa.table(
        {
            "carrier": ["UA", "UA", "AA", "UA"],
            "origin": ["EWR", "LGA", "JFK", "EWR"],
            "delay": [2.0, None, 4.0, 6.0],
        }
    )


def test_columns_of_arrow_fold_as_their_rows_do(delays, flights):
    assert delays.fold_many(flights.select(["carrier", "origin"]), flights["delay"]) == 3
    assert list(delays) == [("AA", "JFK"), ("UA", "EWR")]
    assert delays["UA", "EWR"]["count"] == 2 and delays["UA", "EWR"]["sum"] == 8.0


def test_keys_are_a_table_a_tuple_of_columns_or_a_list(store, flights):
    wanted = {("UA", "EWR"): 2, ("UA", "LGA"): 1, ("AA", "JFK"): 1}
    carrier, origin = flights["carrier"], flights["origin"]
    keys = [
        flights.select(["carrier", "origin"]),
        (carrier, origin),
        (carrier.dictionary_encode(), origin.cast("large_string")),
        list(zip(carrier.to_pylist(), origin.to_pylist())),
        (np.array(carrier.to_pylist()), origin),
    ]
    for number, key in enumerate(keys):
        table = store.table(f"t{number}", key=(str, str), fold="sum:u64")
        assert table.fold_many(key, 1) == 4
        assert dict(table.items()) == wanted


def test_chunks_need_not_end_at_the_same_rows(store):
    table = store.table("t", key=int, value=int)
    numbers = list(range(1000))
    keys = pa.chunked_array([numbers[:1], numbers[1:700], [], numbers[700:]], pa.int64())
    values = pa.chunked_array([numbers[:500], numbers[500:]], pa.int32())
    assert table.put_many(keys, values) == 1000
    assert list(table.items()) == list(zip(numbers, numbers))


def test_more_rows_than_a_chunk_are_all_there(store):
    table = store.table("t", key="u64", fold="sum:u64")
    keys = np.arange(200_000, dtype="u8") % 70_000
    assert table.fold_many(keys, np.ones(200_000, "u8")) == 200_000
    assert table.count() == 70_000
    assert sum(table.values()) == 200_000


def test_every_type_of_numpy_and_arrow_is_a_key_or_a_value(store):
    for number, of in enumerate(["u1", "u2", "u4", "i1", "i2", "i4", "i8"]):
        table = store.table(f"i{number}", key=int, value=int)
        table.put_many(np.array([1, 2], of), np.array([3, 4], of))
        assert dict(table.items()) == {1: 3, 2: 4}
    floats = store.table("f", key="tuple(double)", value=float)
    floats.put_many(np.array([0.5], "f4"), np.array([2.5], "f8"))
    assert dict(floats.items()) == {(0.5,): 2.5}
    raw = store.table("b", key=bytes, value=bytes)
    raw.put_many(pa.array([b"k"], pa.binary_view()), pa.array([b"v"], pa.large_binary()))
    assert dict(raw.items()) == {b"k": b"v"}
    text = store.table("s", key=str, value=str)
    text.put_many(pa.array(["k"], pa.string_view()), np.array(["v"]))
    assert dict(text.items()) == {"k": "v"}
    truth = store.table("o", key="tuple(bool)", value=bool)
    truth.put_many(np.array([True, False]), pa.array([False, True]))
    assert dict(truth.items()) == {(True,): False, (False,): True}


def test_a_record_takes_a_table_or_a_dict_of_columns(store, flights):
    fold = {"flights": "sum:u64", "delay": "stats:f64"}
    one = store.table("one", key=str, fold=fold)
    one.fold_many(flights["carrier"], {"flights": 1, "delay": flights["delay"]})
    assert one["UA"]["flights"] == 3 and one["UA"]["delay"]["count"] == 2
    two = store.table("two", key=str, fold=fold)
    two.fold_many(flights["carrier"], flights.select(["delay"]))
    assert two["UA"]["flights"] is None and two["UA"]["delay"]["sum"] == 8.0
    with pytest.raises(errors.InvalidInput, match="no field `origin`"):
        two.fold_many(flights["carrier"], flights.select(["delay", "origin"]))


def test_the_order_of_rows_is_that_of_the_columns(store):
    latest = store.table("latest", key=int, value=int)
    rows = 300_000
    latest.put_many(np.zeros(rows, "i8"), np.arange(rows))
    assert latest[0] == rows - 1
    words = store.table("words", key=int, fold="append:,")
    words.fold_many(np.zeros(100, "i8"), pa.array([str(n) for n in range(100)]))
    assert words[0] == ",".join(str(n) for n in range(100))


@pytest.mark.parametrize(
    "fold",
    ["stats:f64", "sum:f64", "sum:i64", "min:f64", "max:i64", "hll:12", "quantiles:0.01", "set", "append:,",
     "replace", "first"],
)  # fmt: skip
def test_columns_come_to_the_same_as_their_rows_one_by_one(store, fold):
    random = np.random.default_rng(7)
    keys = random.integers(0, 40, 5000)
    whole = fold in ("sum:i64", "max:i64")
    values = random.integers(-9, 9, 5000) if whole else random.normal(0, 1e9, 5000).round(3)
    if fold in ("stats:f64", "sum:f64"):
        values[:4] = [1e300, -1e300, 1e-300, -0.0]
    if fold in ("replace", "first"):
        whole = store.table("whole", key=int, fold=fold, value=float)
        single = store.table("single", key=int, fold=fold, value=float)
    else:
        whole = store.table("whole", key=int, fold=fold)
        single = store.table("single", key=int, fold=fold)
    texts = fold in ("set", "append:,")
    values = values.tolist()
    whole.fold_many(keys, pa.array([str(value) for value in values] if texts else values))
    for key, value in zip(keys.tolist(), values):
        single.fold(key, str(value) if texts else value)
    assert whole.scan().to_arrow() == single.scan().to_arrow()
    assert dict(whole.items()) == dict(single.items())


def test_one_bad_row_is_named_and_nothing_of_the_call_is_written(store):
    table = store.table("t", key="u64", fold="sum:u64")
    keys = np.arange(200_000, dtype="i8")
    keys[150_000] = -1
    with pytest.raises(errors.InvalidInput, match=r"^row 150000: table `t`: the key \[-1\] is not of type u64"):
        table.fold_many(keys, 1)
    assert table.count() == 0
    assert table.fold_many(keys, 1, skip_invalid=True) == 199_999
    assert table.count() == 199_999


@pytest.mark.parametrize(
    "keys, values, words",
    [
        (["a", 7], 1, "row 1.*7.*str"),
        (pa.array(["a", None]), 1, "row 1.*null"),
        (pa.array([1, 2]), 1, r"row 0.*\[1\].*utf8"),
        (pa.array(["a"]), pa.array([1, 2]), "one column has 1 rows, another 2"),
        (pa.array(["a"]), pa.array(["x"]), "row 0.*x"),
        ("a", 1, "no column"),
        ((pa.array(["a"]), pa.array(["b"])), 1, "1 columns, not of 2"),
        (pa.array(["a"]), (pa.array([1]), pa.array([2])), "one column, not of 2"),
        (pa.array([1], pa.date32()), 1, "Date32"),
        (pa.array(["a" * 70_000]), 1, "row 0.*70000 bytes"),
        (np.array([[1, 2]]), 1, "."),
    ],
)
def test_columns_that_do_not_fit_are_refused_before_anything_is_written(counts, keys, values, words):
    with pytest.raises((errors.InvalidInput, TypeError, ValueError), match=words):
        counts.fold_many(keys, values)
    assert counts.count() == 0


def test_a_null_cannot_be_put(counts):
    with pytest.raises(errors.InvalidInput, match='^row 1: table `counts`, key "b": the value is null, which cannot be put '):
        counts.put_many(pa.array(["a", "b"]), pa.array([1, None]))
    optional = counts
    assert optional.fold_many(pa.array(["a", "b"]), pa.array([1, None])) == 1
    assert dict(optional.items()) == {"a": 1}


def test_optional_elements_of_keys_may_be_null(store):
    table = store.table("t", key="tuple(text?,int?)", fold="sum:i64")
    table.fold_many((pa.array(["a", None]), pa.array([None, 2])), 1)
    assert list(table) == [(None, 2), ("a", None)]


def test_columns_in_a_batch_a_transaction_and_a_table_that_keeps_its_past(store):
    kept = store.table("kept", key=str, fold="sum:i64", keep="forever")
    kept.fold_many(["a", "a", "a"], [1, 2, 3])
    assert len(kept.history("a")) == 3
    with store.batch() as batch:
        batch[kept].fold_many(["a"], [4])
        assert kept["a"] == 6
    assert store.transact(lambda t: t[kept].fold_many(["a"], [5])) == 1
    assert kept["a"] == 15


def test_get_many_gives_columns_with_null_where_a_key_is_absent(delays, counts):
    counts.update({"a": 1, "b": 2})
    found = counts.get_many(["b", "x", "a"])
    assert len(found) == 3
    assert found.to_arrow().to_pydict() == {"key": ["b", "x", "a"], "value": [2, None, 1]}
    delays.fold(("UA", "EWR"), 2.0)
    found = pa.table(delays.get_many((pa.array(["UA", "AA"]), pa.array(["EWR", "JFK"]))))
    assert found.column_names[:4] == ["key_0", "key_1", "count", "sum"]
    assert found["count"].to_pylist() == [1, None]


@pytest.mark.parametrize("key", ["time", "tuple(time)", "tuple(time?)"])
def test_times_in_keys_are_microseconds(store, key):
    table = store.table("t", key=key, fold="sum:i64")
    micros = [1_795_341_600_000_000, 1_795_341_600_000_001]
    table.fold_many(micros, [1, 2])
    found = table.scan().to_arrow().to_pydict()
    assert list(found.values()) == [micros, [1, 2]]
    table.fold_many(["2026-11-22T10:00:00Z"], [5])
    key_of_one = micros[0] if key == "time" else (micros[0],)
    assert table.get(key_of_one) == 6
    assert next(iter(table)) == key_of_one


def test_a_scan_is_a_stream_of_arrow(store):
    table = store.table("t", key="u64", fold="sum:u64")
    table.fold_many(np.arange(150_000, dtype="u8"), np.arange(150_000, dtype="u8"))
    arrow = table.scan(start=10).to_arrow()
    assert arrow.schema.types == [pa.uint64(), pa.uint64()]
    assert arrow.num_rows == 149_990
    assert arrow["value"].to_numpy().sum() == sum(range(10, 150_000))
    assert pa.table(table.scan(reverse=True, limit=2)).to_pydict() == {
        "key": [149_999, 149_998],
        "value": [149_999, 149_998],
    }
    assert pa.RecordBatchReader.from_stream(table.scan()).read_next_batch().num_rows == 65_536


def test_columns_have_the_names_that_the_command_line_prints(store):
    table = store.table(
        "t",
        key=(str, str),
        key_names=["carrier", "origin"],
        fold={"flights": "sum:u64", "delay": "stats:f64", "tails": "hll:12", "seen": "set"},
    )
    table.fold(("UA", "EWR"), {"flights": 1, "delay": 2.5, "tails": "N1", "seen": ["b", "a"]})
    table.fold(("UA", "LGA"), {"flights": 1})
    arrow = table.scan().to_arrow()
    assert arrow.column_names == [
        "carrier", "origin", "flights", "delay.count", "delay.sum", "delay.min", "delay.max", "delay.mean",
        "delay.variance", "tails", "seen",
    ]  # fmt: skip
    assert arrow.to_pylist()[0] == {
        "carrier": "UA", "origin": "EWR", "flights": 1, "delay.count": 1, "delay.sum": 2.5, "delay.min": 2.5,
        "delay.max": 2.5, "delay.mean": 2.5, "delay.variance": 0.0, "tails": 1, "seen": '["a","b"]',
    }  # fmt: skip
    assert arrow["delay.sum"].to_pylist() == [2.5, None]


def test_every_fold_shows_in_columns_what_it_shows_in_rows(store):
    folds = [
        "sum:i64", "sum:i128", "sum:f64", "min:u64", "max:f64", "max:bytes", "stats:f64", "append", "set", "bitmap",
        "counters", "hll:12", "quantiles", "json-merge",
    ]  # fmt: skip
    folds.append({"c": "counters", "n": "sum:u64", "q": "quantiles", "s": "set", "w": "sum:i128"})
    values = [1, 7, 2.5, "x", "a b", b"1", ["x", "y"], {"x": 3, "y": 4}, {"c": {"x": 3}, "n": 2}, {"q": 1, "s": "x", "w": 5}]

    def part(row, name):
        if name == "value" or not isinstance(row, dict):
            return row
        if name in row:
            return row[name]
        field, part = name.split(".")
        return (row[field] or {}).get(part)

    tried = 0
    for fold in folds:
        table = store.table(str(fold), key=int, fold=fold)
        for value in values:
            try:
                table.put(1, value)
            except errors.InvalidInput:
                continue
            tried += 1
            columns = table.scan().to_arrow().drop(["key"]).to_pydict()
            shown = {name: part(table[1], name) for name in columns}
            for name, (cell,) in columns.items():
                texts = {str(shown[name]), json.dumps(shown[name], separators=(",", ":"))}
                assert cell == shown[name] or cell in texts, (fold, value, name)
            # Nothing of the row is left out.
            parts = [column for column, (cell,) in columns.items() if cell is not None]
            assert parts or table[1] is None or not any(table[1].values()), (fold, value)
    assert tried > 30


def test_what_goes_out_comes_in_again(store):
    cases = {bytes: b"\x00\xff", str: "naïve", int: -7, float: 0.5, bool: True, "u64": 2**64 - 1}
    for number, (of, value) in enumerate(cases.items()):
        one = store.table(f"one{number}", key="tuple(text,int,bool,bytes,double)", value=of)
        one["a", -1, True, b"\x00", 2.5] = value
        arrow = one.scan().to_arrow()
        two = store.table(f"two{number}", key="tuple(text,int,bool,bytes,double)", value=of)
        two.put_many(arrow.select(range(5)), arrow["value"])
        assert list(two.items()) == list(one.items())


def test_a_failing_scan_raises_in_the_reader(path):
    @folddb.fold("picky", version=1, value=str, samples=["a", "b"])
    def picky(earlier, later):
        if "bad" in later:
            raise RuntimeError("I do not like this")
        return later

    with folddb.create(path, folds=[picky]) as store:
        table = store.table("t", key=str, fold=picky)
        table.fold("k", "a")
        table.fold("k", "bad")
        with pytest.raises(errors.FoldFailed, match="I do not like this"):
            table.scan().to_arrow()


def test_a_scan_that_meets_damage_raises_in_the_reader(path):
    with folddb.create(path) as store:
        table = store.table("t", key=int, value=int)
        table.put_many(np.arange(200_000), np.random.default_rng(7).integers(0, 1 << 60, 200_000))
        store.flush()
    largest = max((file for file in path.rglob("*") if file.is_file()), key=lambda file: file.stat().st_size)
    content = bytearray(largest.read_bytes())
    content[len(content) // 2] ^= 255
    largest.write_bytes(content)
    with folddb.open(path) as store:
        reader = pa.RecordBatchReader.from_stream(store["t"].scan())
        assert reader.read_next_batch().num_rows == 65_536
        with pytest.raises(pa.ArrowException, match="checksum"):
            for _ in range(10):
                reader.read_next_batch()


def test_columns_tell_of_their_progress_and_end_where_it_raises(store):
    table = store.table("t", key=int, value=int)
    told, keys = [], np.arange(200_000)
    assert table.put_many(keys, keys, progress=lambda done, total: told.append((done, total))) == 200_000
    assert told == [(65_536, 200_000), (131_072, 200_000), (196_608, 200_000), (200_000, 200_000)]
    with pytest.raises(ZeroDivisionError):
        table.fold_many(keys + 1_000_000, keys, progress=lambda done, total: 1 // (done < 70_000))
    assert table.scan(start=1_000_000).count() == 131_072
    with pytest.raises(errors.InvalidInput, match="progress must not call a store"):
        table.put_many([1], [1], progress=lambda done, total: table.count())


def test_a_batch_of_long_rows_is_short(store):
    table, told = store.table("t", key=int, value=bytes), []
    table.put_many(np.arange(100), pa.array([b"x" * (1 << 20)] * 100), progress=lambda done, total: told.append(done))
    assert len(told) > 2 and told[-1] == 100 and table.count() == 100


@pytest.fixture
def named(store):
    return store.table("t", key=(str, int), key_names=["name", "day"], fold="sum:i64")


GIVEN = {"name": ["a", "b", "a"], "day": [1, 2, 1], "value": [1, 2, 3]}
WANTED = [("a", 1, 4), ("b", 2, 2)]


def test_polars_reads_a_scan_and_its_frames_fold(named):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(GIVEN)
    named.fold_many(frame.select("day", "name"), frame["value"])
    assert polars.DataFrame(named.scan()).rows() == WANTED
    assert polars.from_arrow(named.scan()).struct.unnest().rows() == WANTED
    found = polars.DataFrame(named.get_many(frame.select("name", "day")))
    assert found["value"].to_list() == [4, 2, 4]
    assert named.fold_many(frame.clear().select("name", "day"), frame.clear()["value"]) == 0


def test_duckdb_reads_a_scan_and_its_results_fold(named):
    duckdb = pytest.importorskip("duckdb")
    given = pa.table(GIVEN)  # noqa: F841
    keys, values = duckdb.sql("select name, day from given"), duckdb.sql("select value from given")
    named.fold_many(keys if hasattr(keys, "__arrow_c_stream__") else pa.table(keys), pa.table(values)["value"])
    scan = named.scan()  # noqa: F841
    assert duckdb.sql("select * from scan order by name").fetchall() == WANTED


def test_pandas_reads_a_scan_and_its_frames_fold(named):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(GIVEN)
    named.fold_many(frame[["name", "day"]], frame["value"].to_numpy())
    assert [tuple(row) for row in named.scan().to_arrow().to_pandas().to_numpy().tolist()] == WANTED
    if hasattr(pandas.DataFrame, "from_arrow"):
        assert [tuple(row) for row in pandas.DataFrame.from_arrow(named.scan()).to_numpy().tolist()] == WANTED
    if hasattr(pandas.Series, "__arrow_c_stream__"):
        assert named.fold_many((frame["name"], frame["day"]), frame["value"]) == 3
        assert named.count() == 2 and named["a", 1] == 8
    assert named.fold_many(frame[["name", "day"]][:0], frame["value"].to_numpy()[:0]) == 0


def test_keys_of_statistics_are_told_apart_as_single_rows_are(store):
    """Rows of one key in a chunk become one operand."""
    random_of = random.Random(4)
    texts = [None, "", "a", "ab", "b", "\0", "a\0", "\uffff"]
    floats = [0.0, -0.0, 1.5, -1.5, float("inf"), float("-inf"), 5e-324]
    kinds = {
        "tuple(text?,text?)": (texts, texts),
        "tuple(int?,int)": ([None, 0, 1, -1, 2**62], [0, 1, 256]),
        "tuple(bytes,bool)": ([b"", b"a", b"a\0"], [True, False]),
        "tuple(double,text)": (floats, ["", "x"]),
    }
    for at, (types, cells) in enumerate(kinds.items()):
        rows = [tuple(random_of.choice(column) for column in cells) for _ in range(3_000)]
        numbers = [random_of.choice([None, 0.5, 2.25, -7.0]) for _ in rows]
        single, many = (store.table(f"{name}{at}", key=types, fold="stats:f64") for name in ("single", "many"))
        for row, number in zip(rows, numbers):
            if number is not None:
                single.fold(row, number)
        columns = tuple(pa.array(column) for column in zip(*rows))
        assert many.fold_many(columns, pa.array(numbers)) == sum(number is not None for number in numbers)
        assert list(many.items()) == list(single.items())
        assert 4 < len(list(many)) <= 64
