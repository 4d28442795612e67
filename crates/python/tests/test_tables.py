"""Tables: reading and writing one key, and ranges of keys."""

import time
import types
from datetime import datetime, timedelta, timezone
from typing import Optional

import folddb
import pytest
from folddb import errors


def test_the_value_of_a_key_is_the_fold_of_everything_written_to_it(delays):
    delays.fold(("UA", "EWR"), 12.5)
    delays.fold(("UA", "EWR"), -3.0)
    assert delays["UA", "EWR"]["mean"] == 4.75
    assert delays["UA", "EWR"]["count"] == 2


def test_an_absent_key_is_a_key_error_or_the_default(counts):
    with pytest.raises(KeyError) as raised:
        counts["/index"]
    assert raised.value.args == ("/index",)
    assert counts.get("/index") is None
    assert counts.get("/index", 0) == 0
    assert "/index" not in counts


def test_the_ops_do_what_the_readme_says(counts):
    counts.put("a", 1)
    counts.put("a", 2)
    assert counts["a"] == 2
    counts.put_if_absent("a", 9)
    counts.put_if_absent("b", 3)
    assert (counts["a"], counts["b"]) == (2, 3)
    counts.fold("a", 10)
    counts.fold("c", 7)
    assert (counts["a"], counts["c"]) == (12, 7)
    counts.delete("a")
    del counts["b"]
    assert list(counts.items()) == [("c", 7)]
    counts["d"] = 1
    assert "d" in counts


def test_a_write_returns_its_seq(store, counts):
    first = counts.fold("a", 1)
    assert counts.fold("a", 1) == first + 1 == store.last_seq


def test_keys_of_every_type_come_back_as_they_were_given(store):
    cases = {
        bytes: [b"", b"\x00\xff", b"text"],
        str: ["", "naïve", "0x12"],
        "u32": [0, 2**32 - 1],
        "u64": [0, 2**64 - 1],
        int: [-(2**63), -1, 0, 2**63 - 1],
        tuple: [(), (None,), (1, "a", b"b", 2.5, True, (1, ("x",)))],
        (str, int, float, bytes, bool): [("a", -(2**100), 1.5, b"\x00", False)],
        "tuple(text,int?)": [("a", None), ("a", 1)],
    }
    for number, (key, keys) in enumerate(cases.items()):
        table = store.table(f"t{number}", key=key, value=int)
        for value, one in enumerate(keys):
            table[one] = value
        assert sorted(table.items(), key=lambda row: row[1]) == list(zip(keys, range(len(keys))))
        assert [table[one] for one in keys] == list(range(len(keys)))


def test_values_of_every_type_come_back_as_they_were_given(store):
    cases = {
        bytes: [b"", b"\x00\xff", b"text"],
        str: ["", "naïve", "0x12", '{"$hex":"00"}'],
        int: [-(2**63), 2**63 - 1],
        float: [0.5, float("inf"), 3],
        bool: [True, False],
        "json": [None, "text", 1.5, [1, {"a": [None, True]}], {"b": "c"}],
        "u8": [0, 255],
    }
    for number, (value, values) in enumerate(cases.items()):
        table = store.table(f"t{number}", key=int, value=value)
        for key, one in enumerate(values):
            table[key] = one
        assert list(table.values()) == values


def test_a_record_of_several_folds_is_a_dict(store):
    flights = store.table(
        "flights", key=str, fold={"flights": "sum:u64", "delay": "stats:f64", "tails": "set"}
    )
    flights.fold("UA", {"flights": 1, "delay": 12.5, "tails": "N14228"})
    flights.fold("UA", {"flights": 2, "tails": ["N24211"]})
    row = flights["UA"]
    assert row["flights"] == 3
    assert row["delay"]["count"] == 1
    assert row["tails"] == ["N14228", "N24211"]


def test_a_dataclass_is_a_record(store):
    import dataclasses

    @dataclasses.dataclass
    class Flight:
        flights: int
        delay: float

    flights = store.table("flights", key=str, fold={"flights": "sum:u64", "delay": "max:f64"})
    flights.fold("UA", Flight(1, 2.5))
    flights.fold("UA", Flight(1, 1.5))
    assert flights["UA"] == {"flights": 2, "delay": 2.5}


def test_values_come_as_instances_of_a_dataclass(store):
    import dataclasses

    @dataclasses.dataclass
    class Flight:
        flights: int
        delay: Optional[float] = None

    rules = {"flights": "sum:u64", "delay": "max:f64"}
    plain = store.table("flights", key=str, fold=rules, keep="forever")
    flights = plain.with_type(Flight)
    first = flights.put("UA", Flight(1, 2.5))
    flights.fold("UA", Flight(1))
    whole = Flight(2, 2.5)
    assert flights["UA"] == flights.get("UA") == whole
    assert flights.get("AA", 7) == 7 and flights.get_at("UA", first) == Flight(1, 2.5)
    assert list(flights.items()) == [("UA", whole)]
    assert list(flights.scan().values()) == [whole] and flights.scan().first() == ("UA", whole)
    assert flights.aggregate().value == whole
    assert flights.history("UA")[0].value == whole
    assert store.transact(lambda t: t[flights]["UA"]) == whole
    assert plain["UA"] == flights.with_type(None)["UA"] == {"flights": 2, "delay": 2.5}
    people = store.table("people", key=int, value="json", index={"city": "json:/city"})
    people.update({1: {"city": "Bern"}, 2: "nobody"})
    people = people.with_type(types.SimpleNamespace)
    assert list(people.find("city", "Bern")) == [(1, types.SimpleNamespace(city="Bern"))] and people[2] == "nobody"
    with pytest.raises(TypeError):
        plain.with_type(lambda flights: flights)["UA"]  # what the class raises
    with pytest.raises(errors.InvalidInput, match="class"):
        plain.with_type(7)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda t: t.fold("UA", 1.0), ["delays", "'UA'", "tuple(text,text)"]),
        (lambda t: t.fold(("UA",), 1.0), ["delays", "('UA',)", "1 elements instead of 2"]),
        (lambda t: t.fold(("UA", 7), 1.0), ["delays", "element 2", "7", "str"]),
        (lambda t: t.fold(("UA", "EWR"), object()), ["object"]),
        (lambda t: t.fold(("UA", "EWR"), {"a": 1}), ["delays", "a"]),
        (lambda t: t.fold(("UA", "EWR"), "late"), ["delays", "late"]),
        (lambda t: t.get(7), ["delays", "7"]),
    ],
)
def test_a_key_or_value_of_another_type_is_named_and_nothing_is_written(delays, call, words):
    with pytest.raises(errors.InvalidInput) as raised:
        call(delays)
    assert all(word in str(raised.value) for word in words), raised.value
    assert delays.count() == 0


def test_bytes_and_text_are_never_taken_for_one_another(store):
    raw = store.table("raw", key=bytes, value=bytes)
    text = store.table("text", key=str, value=str)
    for wrong in (lambda: raw.put("k", b"v"), lambda: raw.put(b"k", "v")):
        with pytest.raises(errors.InvalidInput):
            wrong()
    for wrong in (lambda: text.put(b"k", "v"), lambda: text.put("k", b"v")):
        with pytest.raises(errors.InvalidInput):
            wrong()


def test_scans_have_bounds_prefixes_limits_and_go_both_ways(delays):
    rows = [("AA", "EWR"), ("AA", "JFK"), ("UA", "EWR"), ("UA", "JFK"), ("UA", "LGA")]
    for row in rows:
        delays.fold(row, 1.0)
    keys = lambda scan: list(scan.keys())  # noqa: E731
    assert list(delays) == keys(delays.scan()) == rows
    assert keys(delays.scan(("UA",))) == rows[2:]
    assert keys(delays.scan("UA")) == rows[2:]
    assert keys(delays.scan(prefix=("UA",), reverse=True, limit=2)) == [rows[4], rows[3]]
    assert keys(delays.scan(start=("AA", "JFK"), before=("UA", "JFK"))) == rows[1:3]
    assert keys(delays.scan(after=("AA", "JFK"), through=("UA", "JFK"))) == rows[2:4]
    assert keys(delays.scan(after="AA")) == rows[2:]
    assert keys(delays.scan(through="AA")) == rows[:2]
    assert keys(delays[("AA", "JFK"):("UA", "JFK")]) == rows[1:3]
    assert keys(delays[("UA",):]) == rows[2:]
    assert delays.scan("UA").count() == 3
    assert delays.scan("UA").first()[0] == rows[2]
    assert delays.scan("UA").last()[0] == rows[4]
    assert delays.scan("XX").first() is None
    assert not delays.scan("XX") and delays.scan("UA")


def test_a_scan_of_many_rows_gives_each_once(counts):
    with_many = [(f"{number:05}", number) for number in range(3000)]
    counts.update(with_many)
    assert list(counts.items()) == with_many
    assert list(counts.scan(reverse=True)) == with_many[::-1]


def test_bounds_that_contradict_one_another_are_refused(counts):
    for bounds in ({"start": "a", "after": "b"}, {"prefix": "a", "start": "b"}, {"before": "a", "through": "b"}):
        with pytest.raises(errors.InvalidInput):
            counts.scan(**bounds)
    with pytest.raises(errors.InvalidInput):
        counts["a":"z":2]


def test_numbers_have_no_prefixes(store):
    table = store.table("n", key=int, value=int)
    with pytest.raises(errors.InvalidInput, match="n"):
        table.scan(7)


def test_ranges_of_a_reversed_table_are_the_same_keys(store):
    table = store.table("r", key=str, value=int, order="reversed")
    table.update({"a": 1, "ab": 2, "b": 3})
    assert list(table) == ["b", "ab", "a"]
    assert list(table.scan("a").keys()) == ["ab", "a"]


def test_deleted_ranges_and_prefixes_are_gone(counts):
    counts.update({"a": 1, "ab": 2, "b": 3, "c": 4})
    counts.delete_range("b", "c")
    assert list(counts) == ["a", "ab", "c"]
    counts.delete_prefix("a")
    assert list(counts) == ["c"]


def test_an_update_is_one_commit_and_names_the_row_that_is_wrong(counts):
    counts.update({"a": 1, "b": 2})
    counts.update([("c", 3)])
    assert dict(counts.items()) == {"a": 1, "b": 2, "c": 3}
    with pytest.raises(errors.InvalidInput, match="row 1"):
        counts.update([("d", 4), ("e", "five"), ("f", 6)])
    assert "d" not in counts


def test_hashed_tables_are_dicts_of_blobs(store):
    blobs = store.table("blobs", kind="hashed", key=bytes)
    blobs[b"k"] = b"v" * 100_000
    assert blobs[b"k"] == b"v" * 100_000
    assert list(blobs) == [b"k"]


def test_a_table_shows_itself(delays):
    assert repr(delays) == "<folddb.Table `delays`, key tuple(text,text), fold `stats:f64`>"
    assert delays.name == "delays"
    assert delays.rules["fold"] == "stats:f64"


def test_every_rule_is_an_argument_and_is_stored_as_the_page_says(store):
    given = {
        "keep": [(3, "versions:3"), (timedelta(days=3), "window:3d"), ("forever", "forever"), ("window:90s", "window:90s")],
        "head": [("first:4", "first:4"), ("json:/a", "json:/a")],
        "compression": [("lz4", "lz4")],
        "bottom_compression": [("lz4", "lz4"), ("none", "none")],
        "block_bytes": [(4096, "4096")],
        "filter_bits": [(12, "12")],
        "summaries": [(True, "on")],
        "archive_log": [(True, "on")],
        "value_placement": [("files", "files"), ("segments", "segments")],
        "separate": [(100, "100")],
        "order": [("reversed", "reversed")],
        "kind": [("hashed", "hashed")],
        "expire": [("by-write", "by-write"), (timedelta(hours=1), "1h")],
        "value": [("u8", "u8"), (int, "i64"), (str, "utf8")],
        "key": [(int, "i64"), ((str, "int?"), "tuple(text,int?)")],
        "fold": [("sum:i64", "sum:i64")],
        "index": [({"city": "json:/city"}, "city:json:/city")],
    }
    for rule, values in given.items():
        for number, (value, stored) in enumerate(values):
            more = {"separate": 100} if rule in ("value_placement", "head") else {}
            more = {"value": "json"} if rule == "index" else more
            table = store.table(f"{rule}-{number}", **{rule: value}, **more)
            rules = {**table.rules, "index": ":".join(*table.indexes()) if rule == "index" else ""}
            assert rules.get(rule, "segments") == stored, (rule, value)
            assert store.table(f"{rule}-{number}", **{rule: value}, **more).name == table.name
    for ready in ("counter", "stats", "postings", "key=utf8\nfold=sum:i64"):
        assert store.table(f"ready {ready[:5]}", rules=ready).rules["fold"]


def test_the_past_is_read_by_its_time(store):
    table = store.table("t", key=str, value=int, keep="forever")
    table["a"] = 1
    then = store.snapshot().time
    time.sleep(1.5)  # moments are known to about a second
    between = datetime.now(timezone.utc)
    time.sleep(1.5)  # moments are known to about a second
    table["a"] = 2
    assert table.get_at("a", between) == 1 and table["a"] == 2 and then <= between
    with store.snapshot(between) as past:
        assert past[table]["a"] == 1
    with pytest.raises(errors.InvalidInput, match="(?i)time ?zone|datetime"):
        table.get_at("a", between.replace(tzinfo=None))
