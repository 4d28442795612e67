"""A value has the type that its table says, row by row and in columns, and nothing is lost."""

import json
import math
import os

import folddb
import pytest
from folddb import errors

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")

WHOLE = [True, 1.0, "1", b"1"]
NUMBER = [True, "1.5", b"1"]


@pytest.mark.parametrize(
    "rules, right, wrong",
    [
        ({"fold": "sum:i64"}, [1, np.int32(1)], WHOLE),
        ({"fold": "max:u64"}, [1, 2**64 - 1], [*WHOLE, -1, 2**64]),
        ({"fold": "sum:i128"}, [1, 2**100], [*WHOLE, 2**127]),
        ({"fold": "stats:f64"}, [1, 1.5, np.float32(1)], NUMBER),
        ({"fold": "quantiles"}, [1, 1.5], NUMBER),
        ({"fold": "set"}, ["1", b"1", ["1", b"2"]], [1, 1.0, True, [1]]),
        ({"fold": "append:,"}, ["1", b"1"], [1, 1.0, True]),
        ({"value": int}, [1], WHOLE),
        ({"value": "u8"}, [0, 255], [*WHOLE, 256]),
        ({"value": float}, [1, 1.5], NUMBER),
        ({"value": bool}, [True, False], [1, 0, "true", 1.0]),
        ({"value": str}, ["1"], [1, b"1", True]),
        ({"fold": {"n": "sum:u64", "s": "stats:f64", "t": "set"}}, [{"n": 1, "s": 1.5, "t": "x"}, {"n": None, "s": 1}],
         [{"n": True}, {"n": "1"}, {"n": 1.0}, {"s": "1"}, {"s": False}, {"t": 1}, {"u": 1}, [1]]),
    ],
)  # fmt: skip
def test_no_bool_int_float_or_str_is_taken_for_another(store, rules, right, wrong):
    table = store.table("t", key=str, **rules)
    for value in right:
        table.put("right", value)
    for value in wrong:
        for call in (table.put, table.fold, lambda key, value: table.put_many([key], [value])):
            with pytest.raises(errors.InvalidInput) as raised:
                call("wrong", value)
            assert "`t`" in str(raised.value), (value, raised.value)
    assert list(table) == ["right"]


@pytest.mark.parametrize(
    "rules, wrong",
    [
        ({"fold": "sum:i64"}, [pa.array([True]), pa.array(["1"]), pa.array([1.0])]),
        ({"fold": "stats:f64"}, [pa.array([True]), pa.array(["1"])]),
        ({"value": int}, [pa.array([True]), pa.array(["1"]), pa.array([1.0])]),
        ({"value": bool}, [pa.array([1])]),
        ({"fold": "set"}, [pa.array([1]), pa.array([[1]])]),
        ({"fold": {"n": "sum:u64", "t": "set"}},
         [{"n": pa.array([True])}, {"n": pa.array(["1"])}, {"t": pa.array([1])}, {"n": "1"}, {"n": True},
          {"t": pa.array([[pa.scalar(1, pa.date32())]])}]),
    ],
)  # fmt: skip
def test_nor_in_columns(store, rules, wrong):
    table = store.table("t", key=str, **rules)
    for values in wrong:
        with pytest.raises(errors.InvalidInput, match="`t`"):
            table.fold_many(pa.array(["k"]), values)
    assert table.count() == 0


RULES = [
    *({"fold": fold} for fold in [
        "sum:i64", "sum:u64", "sum:i128", "sum:f64", "min:i64", "max:u64", "min:f64", "max:bytes", "stats:f64",
        "append", "append:,", "set", "intersect", "bitmap", "counters", "lww:ts", "top:10", "hll:12", "quantiles",
        "json-merge", "first", {"a": "sum:u64", "b": "set"},
    ]),
    *({"value": value} for value in [bytes, str, int, float, bool, "u8", "i128", "u128", "f32", "json"]),
]  # fmt: skip
VALUES = [
    True, 0, -1, 256, 2**62, 2**63, 1.0, 1.5, -0.0, math.inf, math.nan, "1", "x", "", "{}", b"1", b"", [1], ["a"], [True],
]  # fmt: skip


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_columns_take_what_rows_take_and_refuse_what_they_refuse(store, rules):
    table = store.table("t", key=int, **rules)

    def taken(call, *arguments):
        try:
            call(*arguments)
        except errors.InvalidInput:
            return False
        return True

    for value in VALUES:
        array = pa.array([value], pa.uint64() if value == 2**63 else None)
        for one, many in ((table.put, table.put_many), (table.fold, table.fold_many)):
            table.delete_range(0, 10)
            ways = [taken(one, 1, value), taken(many, [2], [value]), taken(many, pa.array([3]), array)]
            assert len(set(ways)) == 1, (value, ways)
            assert len({repr(table.get(key)) for key in (1, 2, 3)}) == 1, value


@pytest.mark.parametrize(
    "key", ["int", "double", "float", "bool", "text", "bytes", "text?", "int?", "double?", "uuid", "any"]
)
@pytest.mark.parametrize("is_tuple", [True, False])
def test_columns_of_keys_take_what_rows_take_and_refuse_what_they_refuse(store, key, is_tuple):
    plain = {"int": "i64", "text": "utf8", "double": "u64", "float": "u32"}.get(key, "bytes")
    table = store.table("t", key=f"tuple({key})" if is_tuple else plain, fold="sum:u64")
    uuid = "00000000-0000-0000-0000-000000000001"
    for value in [None, True, 2**31, 2**33, 2**53 + 1, 0.1, uuid, *VALUES[:-3]]:
        array = pa.array([value], pa.uint64() if value == 2**63 else None)
        keys = []
        for call in (
            lambda: table.fold((value,) if is_tuple else value, 1),
            lambda: table.fold_many([(value,) if is_tuple else value], 1),
            lambda: table.fold_many((array,), 1),
        ):
            for old in list(table):
                table.delete(old)
            try:
                call()
            except errors.InvalidInput:
                pass
            keys.append(repr(list(table)))
        assert len(set(keys)) == 1, (value, keys)
        if key in ("double", "float") and is_tuple:
            assert (keys[0] == "[]") == (value is None or type(value) in (bool, str, bytes) or value == 2**53 + 1)


def test_rows_of_a_frame_are_documents_of_a_table_of_json(store):
    table = store.table("t", key=int, value="json")
    frame = pa.table({"a": [1, None], "b": [["x"], ["y", "z"]]})
    for values in (frame, {"a": frame["a"], "b": frame["b"]}, pa.array(frame.to_pylist())):
        table.delete_range(0, 10)
        assert table.put_many([1, 2], values) == 2
        assert dict(table.items()) == {1: {"a": 1, "b": ["x"]}, 2: {"a": None, "b": ["y", "z"]}}
    merged = store.table("m", key=int, fold="json-merge")
    merged.fold_many([1, 1], frame)
    merged.fold_many([1], frame.select(["a"])[:1])
    assert merged[1] == {"a": 1, "b": ["y", "z"]}


@pytest.mark.parametrize("rules", [{"value": "json"}, {"fold": "json-merge"}], ids=str)
def test_a_document_comes_back_as_it_was_given(store, rules):
    table = store.table("t", key=int, **rules)
    for document in ["x", "1", '"', None, True, 1, 2**100, 1.5, [], ["x", None], {}, {"a": {"b": "c"}}]:
        table.put(1, document)
        assert table.get(1, "absent") == document and dict(table.items()) == {1: document}
        assert table.scan().to_arrow()["value"].to_pylist() == [json.dumps(document, separators=(",", ":"))]
        table.put_many([1], pa.array([{"a": 1}]))
        table.fold(1, document)
        assert table.get(1, "absent") == ({"a": 1, **document} if document and type(document) is dict else document) or (
            "fold" in rules and document == {} and table[1] == {"a": 1}
        )


def test_a_null_field_leaves_its_field_as_it_is_however_it_is_given(store):
    table = store.table("t", key=str, fold={"n": "sum:u64", "d": "stats:f64"})
    n, d = pa.array([1, None], pa.int64()), pa.array([None, 2.0])
    ways = [
        {"n": n, "d": d},
        pa.table({"n": n, "d": d}),
        pa.array([{"n": 1, "d": None}, {"n": None, "d": 2.0}]),
        [{"n": 1, "d": None}, {"n": None, "d": 2.0}],
        [{"n": 1}, {"d": 2.0}],
    ]
    for way in ways:
        assert table.fold_many(["a", "b"], way) == 2
    assert table["a"]["n"] == len(ways) and table["a"]["d"] is None
    assert table["b"]["n"] is None and table["b"]["d"]["count"] == len(ways)
    assert table.fold_many(["a", "b"], {"n": pa.nulls(2), "d": None}) == 0
    assert table.fold_many(["a"], {"n": 1, "d": None}) == 1
    assert table["a"]["n"] == len(ways) + 1 and table["a"]["d"] is None


def test_none_in_a_list_folds_nothing_and_is_no_key(counts):
    assert counts.fold_many(["a", "b"], [None, 2]) == 1
    with pytest.raises(errors.InvalidInput, match="row 1"):
        counts.fold_many(["a", None], [1, 2])
    with pytest.raises(errors.InvalidInput, match="row 1"):
        counts.put_many(["a", "b"], [1, None])
    assert dict(counts.items()) == {"b": 2}


def test_rows_of_lists_that_do_not_fit_are_passed_over(counts):
    assert counts.fold_many(["a", None, 7, "b", "c"], [1, 2, 3, "four", None], skip_invalid=True) == 1
    assert counts.put_many(["x", "y", None], [None, 5, 6], skip_invalid=True) == 1
    assert dict(counts.items()) == {"a": 1, "y": 5}


def test_what_is_raised_while_a_list_is_read_is_raised(counts):
    class Odd:
        def __index__(self):
            raise KeyboardInterrupt

    for skips in (False, True):
        with pytest.raises(KeyboardInterrupt):
            counts.fold_many(["a"], [Odd()], skip_invalid=skips)
    with pytest.raises(KeyboardInterrupt):
        counts.update({"a": Odd()})


def test_columns_of_keys_go_by_their_names(store):
    names = ["carrier", "origin"]
    table = store.table("t", key=(str, str), key_names=names, fold="sum:u64")
    swapped = pa.table({"origin": ["EWR"], "carrier": ["UA"]})
    table.fold_many(swapped, 1)
    table.fold_many({"origin": pa.array(["EWR"]), "carrier": "UA"}, 1)
    table.fold_many((pa.array(["UA"]), pa.array(["EWR"])), 1)
    assert dict(table.items()) == {("UA", "EWR"): 3}
    assert table.get_many(swapped).to_arrow()["value"].to_pylist() == [3]
    for call in (table.get_many, lambda keys: table.fold_many(keys, 1)):
        with pytest.raises(errors.InvalidInput, match="`t`.*carrier, origin.*origin, airline"):
            call(pa.table({"origin": ["EWR"], "airline": ["UA"]}))


def test_a_frame_without_rows_is_nothing_to_write(store):
    table = store.table("t", key=(str, int), fold={"n": "sum:u64"})
    types = pa.schema([("a", pa.string()), ("b", pa.int64()), ("n", pa.int64())])
    for frame in (types.empty_table(), pa.Table.from_batches([], types)):
        assert table.fold_many(frame.select(["a", "b"]), frame.select(["n"])) == 0
        assert table.fold_many(frame.select(["a", "b"]), {"n": 1}) == 0
        assert len(table.get_many(frame.select(["a", "b"]))) == 0
    assert table.fold_many([], []) == 0
    plain = store.table("u", key=int, value=int)
    assert plain.put_many(np.array([], "i8"), np.array([], "i8")) == 0
    assert table.scan().to_arrow().num_rows == 0
    assert table.scan().to_arrow().column_names == ["key_0", "key_1", "n"]


def test_a_row_that_is_null_as_a_whole_is_refused(store):
    table = store.table("t", key=(str, int), fold="sum:u64")
    with pytest.raises(errors.InvalidInput, match="null as a whole"):
        table.fold_many(pa.array([{"a": "x", "b": 1}, None]), 1)


def test_columns_of_keys_that_are_not_as_long_as_one_another_are_refused(store):
    table = store.table("t", key=(str, int), fold="sum:u64")
    for keys in ((pa.array(["a", "b"]), pa.array([1])), (pa.array(["a"]), pa.array([1, 2]))):
        with pytest.raises(errors.InvalidInput, match="one column has"):
            table.get_many(keys)
        with pytest.raises(errors.InvalidInput, match="one column has"):
            table.fold_many(keys, 1)
    with pytest.raises(errors.InvalidInput, match="no column"):
        table.get_many(("a", 1))


def test_a_number_that_fits_no_column_is_an_error_and_never_null(store):
    tuples = store.table("tuples", key=(str, int), fold="sum:u64")
    tuples.update({("a", 2**63 - 1): 1, ("b", -(2**63)): 2**64 - 1})
    arrow = tuples.scan().to_arrow()
    assert arrow["key_1"].to_pylist() == [2**63 - 1, -(2**63)] and arrow["value"].to_pylist() == [1, 2**64 - 1]
    tuples.put(("c", 2**63), 1)
    with pytest.raises(Exception, match="`tuples`.*9223372036854775808.*`key_1`"):
        tuples.scan().to_arrow()
    with pytest.raises(errors.InvalidInput, match="9223372036854775808"):
        tuples.get_many([("c", 2**63)])
    for fold in ("sum:i128", "max:u64", "min:u64", {"n": "sum:i128"}, {"n": "max:u64"}):
        big = 2**100 if "128" in str(fold) else 2**64 - 1
        wide = store.table(str(fold), key=str, fold=fold)
        wide.put("a", {"n": big} if isinstance(fold, dict) else big)
        column = wide.scan().to_arrow()["n" if isinstance(fold, dict) else "value"]
        assert [int(value) for value in column.to_pylist()] == [big], fold
    for value in ("u128", "i128", "u64"):
        wide = store.table(value, key=str, value=value)
        wide.put("a", 2**64 - 1)
        assert [int(n) for n in wide.scan().to_arrow()["value"].to_pylist()] == [2**64 - 1]


def test_batches_of_long_values_are_short(store):
    table = store.table("t", key=int, value=bytes)
    documents = store.table("d", key=int, value="json")
    for number in range(40):
        table.put(number, bytes([number]) * (4 << 20))
        documents.put(number, "\x01" * (1 << 20))  # six bytes each in JSON
    for scanned in (table, documents):
        sizes = [batch.nbytes for batch in pa.RecordBatchReader.from_stream(scanned.scan())]
        assert len(sizes) > 2 and max(sizes) < 80 << 20
    found = table.get_many(list(range(40))).to_arrow()
    assert found["value"].num_chunks > 2 and found["value"][39].as_py() == b"\x27" * (4 << 20)


def test_values_that_are_too_long_are_refused_before_anything_is_written(store):
    table = store.table("t", key=int, value=bytes)
    long = pa.chunked_array([[b"x"] * 70_000, [b"y" * ((16 << 20) + 1)]], pa.large_binary())
    keys = np.arange(70_001)
    for values in (long, long.to_pylist()):
        with pytest.raises(errors.InvalidInput, match=r"row 70000: .* bytes"):
            table.put_many(keys, values)
        assert table.count() == 0
        assert table.put_many(keys, values, skip_invalid=True) == 70_000
        table.delete_range(0, 100_000)
    most = pa.array([b"z" * (16 << 20)] * 3, pa.large_binary())
    assert table.put_many(np.arange(3), most) == 3
    assert len(table[2]) == 16 << 20


def test_operands_that_come_to_more_than_a_record_holds_are_folded_all_the_same(store):
    table = store.table("t", key=int, fold="append")
    parts = pa.array([os.urandom(1) * (1 << 20) for _ in range(40)], pa.large_binary())
    assert table.fold_many(np.zeros(40, "i8"), parts) == 40
    with table.reader(0) as file:
        assert file.read() == b"".join(parts.to_pylist())


def test_a_key_error_has_the_key(store):
    for number, (of, key) in enumerate({tuple: ("UA", "EWR"), "tuple(text?)": (None,), bytes: b"k", int: 7}.items()):
        table = store.table(f"t{number}", key=of, value=int)
        with pytest.raises(KeyError) as raised:
            table[key]
        assert raised.value.args == (key,)


def test_a_time_that_is_none_is_refused(store):
    feed = store.feed("copy")
    list(feed)
    with pytest.raises(errors.InvalidInput, match="nan"):
        feed.next(timeout_s=math.nan)
    assert feed.next(timeout_s=-math.inf) is None


def test_the_lock_of_the_interpreter_is_used():
    source = folddb.__file__ and open(os.path.join(os.path.dirname(__file__), "../src/lib.rs")).read()
    assert "#[pymodule(gil_used = true)]" in source
