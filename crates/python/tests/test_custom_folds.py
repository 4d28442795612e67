"""Folds that are written in Python."""

import threading

import folddb
import pytest
from folddb import errors


@folddb.fold("longest", version=1, value=str, samples=["", "a", "ab", "ba", "abc"])
def longest(earlier, later):
    return later if len(later) > len(earlier) else earlier


@folddb.fold("merged", version=1, value="json", samples=[{}, {"a": 1}, {"a": 2}, {"b": 3}])
def merged(earlier, later):
    return {**earlier, **later}


def test_a_table_folds_by_a_function_of_python(path):
    with folddb.create(path, folds=[longest, merged]) as store:
        words = store.table("words", key=str, fold=longest)
        for word in ["a", "abc", "ab"]:
            words.fold("k", word)
        assert words["k"] == "abc"
        store.flush()
        words.fold("k", "abcd")
        words.compact()
        documents = store.table("documents", key=str, fold=merged)
        documents.fold("k", {"a": 1})
        documents.fold("k", {"b": [None]})
        assert documents["k"] == {"a": 1, "b": [None]}
    with folddb.open(path, folds=[longest]) as store:
        assert store["words"]["k"] == "abcd"
        with pytest.raises(errors.Error, match="merged"):
            store["documents"].fold("k", {})


def test_a_function_that_breaks_the_law_on_its_samples_is_refused():
    with pytest.raises(errors.InvalidInput, match="breaks the law"):

        @folddb.fold("minus", version=1, value=int, samples=[1, 2, 3])
        def minus(earlier, later):
            return earlier - later

    with pytest.raises(errors.InvalidInput, match="samples"):
        folddb.fold("none", version=1, samples=[])(lambda earlier, later: later)
    with pytest.raises(errors.InvalidInput, match="sample does not fit"):
        folddb.fold("wrong", version=1, value=int, samples=["x"])(max)


def test_what_a_function_raises_is_the_error_of_its_key(path):
    pytest.importorskip("pyarrow")

    @folddb.fold("picky", version=1, value=str, samples=["a", "b"])
    def picky(earlier, later):
        if "bad" in later:
            raise RuntimeError("I do not like this")
        return later

    with folddb.create(path, folds=[picky]) as store:
        table = store.table("t", key=str, fold=picky)
        table.fold("good", "a")
        table.fold("k", "a")
        table.fold("k", "bad")
        for call in (
            lambda: table["k"],
            lambda: list(table.items()),
            lambda: table.scan().to_arrow(),
            lambda: table.get_many(["good", "k"]),
            lambda: store.transact(lambda transaction: transaction.get(table, "k")),
        ):
            with pytest.raises(errors.FoldFailed, match="I do not like this") as raised:
                call()
            cause = raised.value.__cause__
            assert isinstance(cause, RuntimeError) and cause.__traceback__ is not None
        assert table["good"] == "a"
        with pytest.raises(errors.InvalidInput) as raised:
            table.put("good", 7)
        assert raised.value.__cause__ is None


def test_an_interrupt_in_a_fold_is_an_interrupt(path):
    @folddb.fold("slow", version=1, value=str, samples=["a", "b"])
    def slow(earlier, later):
        if "bad" in later:
            raise KeyboardInterrupt
        return later

    with folddb.create(path, folds=[slow]) as store:
        table = store.table("t", key=str, fold=slow)
        table.fold("k", "a")
        table.fold("k", "bad")
        with pytest.raises(KeyboardInterrupt):
            table["k"]


def test_background_threads_fold_in_python_while_python_writes(path):
    with folddb.create(path, folds=[longest], memory_bytes=8 << 20) as store:
        table = store.table("t", key=int, fold=longest)

        def work(offset):
            for number in range(6000):
                table.fold(number % 50, "x" * ((number + offset) % 40))

        threads = [threading.Thread(target=work, args=(offset,)) for offset in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert max(map(len, table.values())) == 39
        table.fold_many([1, 1], ["y" * 50, "z"])
        assert table[1] == "y" * 50
