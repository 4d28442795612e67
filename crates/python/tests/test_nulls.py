"""What null is for every fold: a missing operand, which folds nothing and cannot be put.

A null is a null of Arrow, a `None` in a list, `None` for all rows, and a missing value of a pandas
frame. Only a row call on a table of JSON takes `None` as a value. NaN is a number.
"""

import math
import pathlib
import re

import folddb
import pytest
from folddb import errors

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")

PROJECT = pathlib.Path(__file__).resolve().parents[3]


@folddb.fold("later", version=1, value=str, samples=["a", "b"])
def later(earlier, later):
    return later


@folddb.fold("merged", version=1, value="json", samples=[{}, {"a": 1}, {"b": None}])
def merged(earlier, later):
    return {**earlier, **later}


# Each fold with an operand of it, and the type of Arrow where it cannot be inferred.
FOLDS = {
    "first": b"v", "sum:i64": 2, "sum:u64": 2, "sum:i128": 2, "sum:f64": 2.5, "min:i64": 2, "min:u64": 2,
    "min:f64": 2.5, "min:bytes": b"v", "max:i64": 2, "max:u64": 2, "max:f64": 2.5, "max:bytes": b"v",
    "stats:f64": 2.5, "append": b"v", "append:,": b"v", "set": b"v", "intersect": [b"v"], "bitmap": 7,
    "counters": {"a": 1}, "lww:ts": {"ts": 1, "value": "v"}, "top:10": "12.5 alice", "hll:12": b"v",
    "quantiles": 2.5, "json-merge": {"a": 1}, "patch": b"v", "matmul:2:f64": [[1.0, 0.0], [0.0, 1.0]],
    "replace": b"v", "min:time": "2026-11-22T08:30:00Z", "max:time": "2026-11-22T08:30:00Z",
}  # fmt: skip
VALUES = {
    "bytes": b"v", "utf8": "v", "json": {"a": 1}, "u8": 2, "u16": 2, "u32": 2, "u64": 2, "u128": 2, "i8": 2, "i16": 2,
    "i32": 2, "i64": 2, "i128": 2, "f32": 2.5, "f64": 2.5, "bool": True, "time": "2026-11-22T08:30:00Z",
}  # fmt: skip
RECORD = {"n": "sum:u64", "d": "stats:f64", "t": "set"}
CASES = [
    *(({"fold": fold}, value) for fold, value in FOLDS.items()),
    *(({"fold": fold, "value": of}, value) for fold in ("replace", "first") for of, value in VALUES.items()),
    ({"fold": RECORD}, {"n": 1, "d": None, "t": "x"}),
    ({"fold": later}, "v"),
    ({"fold": merged}, {"a": 1}),
]


def test_every_fold_and_every_type_of_values_is_among_the_cases():
    specs = (PROJECT / "crates/rules/src/folds/spec.rs").read_text()
    specs = re.findall(r'"([^"]+)"', specs.split("pub const SPECS")[1].split("];")[0])
    assert len(specs) > 20 and set(specs) <= FOLDS.keys()
    codecs = (PROJECT / "crates/rules/src/codec/value.rs").read_text()
    codecs = re.findall(r'ValueCodec::\w+ => "(\w+)"', codecs)
    assert len(codecs) > 10 and set(codecs) == VALUES.keys()


def takes_none(rules):
    return rules.get("value") == "json" or rules.get("fold") in ("json-merge", merged)


@pytest.mark.parametrize("rules, value", CASES, ids=str)
def test_a_null_folds_nothing_and_cannot_be_put(path, rules, value):
    with folddb.create(path, folds=[later, merged]) as store:
        table = store.table("t", key=int, **rules)
        table.fold(1, value)
        once = table[1]
        ways = {"list": [None, value], "constant": None}
        if rules.get("fold") is not RECORD:
            ways["arrow"] = pa.array([None, value], pa.uint64() if type(value) is int else None)
        else:
            ways["struct"] = pa.array([None, value])
            ways["columns"] = {"n": pa.array([None, 1]), "d": None, "t": pa.array([None, "x"])}
            ways["rows"] = [{"n": None, "d": None}, value]
            ways["empty"] = [{}, value]
        if type(value) is dict and rules.get("fold") is not RECORD:
            del ways["arrow"]  # its columns are the members of the value
            ways["struct"] = pa.array([None, value])
        for way, values in ways.items():
            table.delete_range(0, 10)
            rows = 0 if values is None else 1
            assert table.fold_many([2, 1], values) == rows, way
            assert dict(table.items()) == ({1: once} if rows else {}), way
            for call in (table.put_many, lambda *given: store.batch()[table].put_many(*given)):
                with pytest.raises(errors.InvalidInput, match="row 0: table `t`, key .*2.*null, which cannot be put"):
                    call([2, 1], values)
            assert dict(table.items()) == ({1: once} if rows else {}), way
            assert table.put_many([2, 1], values, skip_invalid=True) == rows, way


@pytest.mark.parametrize("rules, value", CASES, ids=str)
def test_none_is_a_value_of_a_row_only_where_values_are_json(path, rules, value):
    with folddb.create(path, folds=[later, merged]) as store:
        table = store.table("t", key=int, **rules)
        for call in (table.put, table.fold, table.put_if_absent, table.__setitem__, lambda *row: table.update([row])):
            if takes_none(rules):
                call(1, None)
                assert table.get(1, "absent") is None
                table.delete(1)
                continue
            with pytest.raises(errors.InvalidInput, match="`t`, key 1: the value None does not fit.*null folds nothing"):
                call(1, None)
            assert table.count() == 0


@pytest.mark.parametrize("fold", ["sum:f64", "stats:f64", "min:f64", "max:f64", "quantiles"])
def test_nan_is_a_number_and_no_null(store, fold):
    table = store.table("t", key=int, fold=fold)
    nan = math.nan
    ways = [lambda: table.fold(1, nan), lambda: table.fold_many([1], [nan]), lambda: table.fold_many([1], np.array([nan]))]
    shown = []
    for way in ways:
        table.delete(1)
        try:
            way()
            shown.append(repr(table.get(1)))
        except errors.InvalidInput as refused:
            shown.append("NaN" if "NaN" in str(refused) or "nan" in str(refused) else str(refused))
    assert len(set(shown)) == 1 and shown[0] != "None", shown
    with pytest.raises(errors.InvalidInput, match="key 1|row 0"):
        store.table("whole", key=int, fold="sum:i64").fold_many([1], np.array([nan]))


def test_missing_values_of_a_pandas_frame_are_null_but_nan_in_its_numpy_arrays(store):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"key": ["a", "a", "b"], "delay": [1.0, None, None], "note": ["x", None, None]})
    delays = store.table("delays", key=str, fold="stats:f64")
    notes = store.table("notes", key=str, fold="set")
    assert delays.fold_many(frame[["key"]], frame[["delay"]]) == 1
    assert notes.fold_many(frame[["key"]], frame[["note"]]) == 1
    assert delays["a"]["count"] == 1 and "b" not in delays and dict(notes.items()) == {"a": [b"x"]} or notes["a"] == ["x"]
    if hasattr(frame["delay"], "__arrow_c_stream__"):
        assert delays.fold_many(frame["key"], frame["delay"]) == 1
    assert delays.fold_many(frame["key"].to_numpy(), frame["delay"].to_numpy()) == 3
    assert math.isnan(delays["a"]["sum"]) and math.isnan(delays["b"]["sum"])
    assert notes.fold_many(frame["key"].to_numpy(), frame["note"].astype(object).where(frame["note"].notna(), None).to_numpy()) == 1


def test_a_null_in_a_list_of_a_value_is_what_the_fold_says(store):
    table = store.table("t", key=int, fold="set")
    for call in (
        lambda: table.fold(1, ["a", None]),
        lambda: table.fold_many([1], [["a", None]]),
        lambda: table.fold_many([1], pa.array([["a", None]])),
    ):
        with pytest.raises(errors.InvalidInput, match="`t`, key 1: "):
            call()
    documents = store.table("d", key=int, value="json")
    documents.put_many([1, 2], pa.array([["a", None], [None]]))
    assert dict(documents.items()) == {1: ["a", None], 2: [None]}


def test_a_null_is_a_key_only_where_an_element_is_optional(store):
    optional = store.table("optional", key="tuple(text?)", fold="sum:i64")
    plain = store.table("plain", key="tuple(text)", fold="sum:i64")
    for keys in ([(None,), ("a",)], (pa.array([None, "a"]),)):
        optional.fold_many(keys, 1)
        with pytest.raises(errors.InvalidInput, match="`plain`.*(None|null)"):
            plain.fold_many(keys, 1)
    assert dict(optional.items()) == {(None,): 2, ("a",): 2} and plain.count() == 0
