"""What an error says: the table, the key, the row where there are many, and what to do."""

import pytest
from folddb import errors

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")


class NotStorable:
    def __repr__(self):
        return "<NotStorable>"


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


# What is refused: the rules, and values with what the message says of each.
REFUSED = [
    ({"fold": "sum:i64"}, {"four": "'four'.*fold=sum:i64.*not a whole number", 1.5: "1.5.*not a whole number",
                           2**63: "9223372036854775808.*fold=sum:i64"}),
    ({"fold": "stats:f64"}, {True: "True.*not a number", NotStorable(): "NotStorable.*cannot be stored"}),
    ({"fold": {"n": "sum:u64"}}, {"x": "'x'", -1: "-1"}),
    ({"value": str}, {b"x": "b'x'.*value=utf8.*not a str", "\udcff": r"udcff.*value=utf8.*surrogates"}),
    ({"value": bytes}, {"x": "'x'.*value=bytes.*not bytes"}),
    ({"value": "json"}, {NotStorable(): "cannot be stored", "\udcff": "surrogates"}),
    ({"value": "u8"}, {256: "256.*value=u8"}),
]  # fmt: skip
UNHASHABLE = [
    ({"value": "json"}, nested(200), "nested more than 100 deep"),
    ({"value": "json"}, {1: 2}, "mapping has the name 1, which is not a str"),
    ({"value": "json"}, {"a": NotStorable()}, "NotStorable.*cannot be stored"),
    ({"fold": {"n": "sum:u64"}}, {"m": 1}, "m"),
]
CASES = [
    *((rules, value, words) for rules, values in REFUSED for value, words in values.items()),
    *UNHASHABLE,
]


@pytest.mark.parametrize("rules, value, words", CASES, ids=repr)
def test_a_value_that_does_not_fit_is_named_with_its_table_and_key(store, rules, value, words):
    table = store.table("t", key=(str, int), **rules)
    key = ("UA", 7)
    batch = store.batch()
    calls = [
        lambda: table.put(key, value),
        lambda: table.fold(key, value),
        lambda: table.put_if_absent(key, value),
        lambda: table.__setitem__(key, value),
        lambda: batch.fold(table, key, value),
        lambda: store.transact(lambda transaction: transaction.put(table, key, value)),
    ]
    for call in calls:
        with pytest.raises(errors.InvalidInput, match=rf"(?s)^table `t`, key \('UA', 7\): .*{words}.*nothing is written"):
            call()
    with pytest.raises(errors.InvalidInput, match=rf"(?s)^row 0: table `t`, key \('UA', 7\): .*{words}"):
        table.update({key: value})
    for call in (table.put_many, table.fold_many, batch[table].put_many):
        for keys in ([key], (pa.array(["UA"]), np.array([7]))):
            with pytest.raises(errors.InvalidInput, match=rf'(?s)^row 0: table `t`, key \["UA",7\]: .*{words}'):
                call(keys, [value])
    assert len(batch) == 0 and table.count() == 0


@pytest.mark.parametrize("key, of", [("\udcff", str), ("\udcff", bytes), (1.5, int), (("a",), (str, int)), (None, str)])
def test_a_key_that_does_not_fit_is_named_with_its_table(store, key, of):
    table = store.table("t", key=of, fold="sum:i64")
    calls = [
        lambda: table.fold(key, 1),
        lambda: table.get(key),
        lambda: table.delete(key),
        lambda: table.update({key: 1}),
        lambda: table.fold_many([key], 1),
        lambda: table.get_many([key]),
    ]
    for call in calls:
        with pytest.raises(errors.InvalidInput, match=r"table `t`: the key (.* is not |is null)"):
            call()
    assert table.count() == 0


ROWS = 1_000_000


@pytest.mark.parametrize("bad", [0, 654_321])
def test_one_bad_row_of_a_million_is_named_with_its_key_and_nothing_is_written(store, bad):
    table = store.table("t", key=int, fold="sum:u64")
    keys, values = np.arange(ROWS), np.ones(ROWS, "i8")
    values[bad] = -1
    chunks = pa.chunked_array([values[:400_000], values[400_000:]])
    for given in (values, chunks, values.tolist()):
        words = rf"^row {bad}: table `t`, key {bad}: the value -1 does not fit.*nothing is written"
        with pytest.raises(errors.InvalidInput, match=words):
            table.fold_many(keys, given)
        assert table.count() == 0
    assert table.fold_many(keys, values, skip_invalid=True) == ROWS - 1
    assert bad not in table and table.count() == ROWS - 1


def test_what_is_no_column_is_named_with_its_table(store):
    table = store.table("t", key=str, value="json")
    for call in (table.put_many, table.fold_many):
        for values in (NotStorable(), {"a": NotStorable()}, {1: 2}, np.array([["a"]], "O"), nested(200)[0]):
            with pytest.raises(errors.InvalidInput, match="`t`"):
                call(pa.array(["k"]), values)
    assert table.count() == 0


def test_objects_of_numpy_are_taken_one_by_one(store):
    table = store.table("t", key=str, value=str)
    assert table.put_many(np.array(["a", "b"], "O"), np.array(["x", "y"], "O")) == 2
    assert dict(table.items()) == {"a": "x", "b": "y"}
    with pytest.raises(errors.InvalidInput, match='^row 1: table `t`, key "b": the value nan'):
        table.put_many(np.array(["a", "b"], "O"), np.array(["x", float("nan")], "O"))
    pairs = store.table("pairs", key=(str, str), fold="sum:i64")
    pairs.fold_many((np.array(["a"], "O"), np.array(["b"], "O")), 1)
    assert dict(pairs.items()) == {("a", "b"): 1}


def test_an_exception_of_an_object_is_the_cause(store):
    table = store.table("t", key=str, value="json")
    with pytest.raises(errors.InvalidInput) as raised:
        table.put("k", "\udcff")
    assert isinstance(raised.value.__cause__, UnicodeEncodeError)
