"""Work on tables beyond single keys: aggregates, indexes, time, streams, feeds, maintenance."""

import datetime
import io
import sys

import folddb
import pytest
from folddb import errors, records


def test_a_range_adds_up_to_its_rows_and_their_fold(delays):
    delays.fold(("UA", "EWR"), 2.0)
    delays.fold(("UA", "LGA"), 4.0)
    delays.fold(("AA", "JFK"), 6.0)
    rows, value = delays.scan("UA").aggregate()
    assert (rows, value["count"], value["mean"]) == (2, 2, 3.0)
    assert delays.aggregate().value["sum"] == 12.0
    assert delays.scan("XX").aggregate() == records.Aggregate(0, None)


def test_records_are_found_by_what_is_in_them(store):
    people = store.table("people", key=int, value="json", index={"city": "json:/city"})
    people.update({1: {"city": "Bern"}, 2: {"city": "Basel"}, 3: {"city": "Bern"}, 4: {"age": 7}})
    assert people.find("city", "Bern").keys() == [1, 3]
    assert list(people.find("city", "Basel")) == [(2, {"city": "Basel"})]
    assert people.find("city").count() == 3
    assert people.find("city", start="Basel", before="Bern").keys() == [2]
    assert people.find("city", prefix="B", limit=1).keys() == [2]
    people.add_index("age:json:/age")
    assert people.find("age", 7).keys() == [4]
    assert people.indexes() == [("age", "json:/age"), ("city", "json:/city")]
    people.drop_index("age")
    with pytest.raises(errors.Error, match="age"):
        people.find("age", 7)


def test_values_expire(store):
    sessions = store.table("sessions", key=str, value=str, expire="by-write")
    hour = datetime.timedelta(hours=1)
    sessions.with_lifetime(hour).put("a", "x")
    sessions.with_lifetime(datetime.datetime.now(datetime.timezone.utc) + hour).put("b", "x")
    sessions.with_lifetime(datetime.datetime(2001, 1, 1, tzinfo=datetime.timezone.utc)).put("c", "x")
    sessions.put("d", "x")
    assert list(sessions) == ["a", "b", "d"]
    assert sessions.head("a").deadline > datetime.datetime.now(datetime.timezone.utc)
    assert sessions.head("d").deadline is None
    with pytest.raises(errors.InvalidInput, match="timedelta"):
        sessions.with_lifetime(7)
    hours = store.table("hours", key=str, value=str, expire=hour)
    hours.put("a", "x")
    assert hours.head("a").deadline is not None


def test_a_table_keeps_its_past(store):
    prices = store.table("prices", key=str, value=float, keep="forever")
    first = prices.put("a", 1.0)
    prices.put("a", 2.0)
    assert [entry.value for entry in prices.history("a")] == [2.0, 1.0]
    assert prices.get_at("a", first) == 1.0
    assert prices.get_at("b", first, "none") == "none"
    with store.snapshot(first) as past:
        assert past[prices]["a"] == 1.0


def test_a_head_says_what_a_value_is_without_reading_it(store):
    blobs = store.table("blobs", key=str, separate=1000)
    blobs.put("a", b"x" * 5000)
    head = blobs.head("a")
    assert (head.size_bytes, head.is_separated) == (5000, True)
    assert blobs.head("b") is None
    assert [(key, head.size_bytes) for key, head in blobs.scan().heads()] == [("a", 5000)]


def test_long_values_are_files(store):
    blobs = store.table("blobs", key=str, separate=1000)
    content = bytes(range(256)) * 20_000
    with blobs.writer("a") as file:
        file.write(content[:3_000_000])
        assert "a" not in blobs
        file.write(memoryview(content)[3_000_000:])
    with blobs.reader("a") as file:
        assert file.seek(0, io.SEEK_END) == len(content)
        file.seek(1_000_001)
        assert file.read(5) == content[1_000_001:1_000_006]
        file.seek(0)
        assert file.read() == content
    assert blobs.reader("b") is None
    with pytest.raises(RuntimeError):
        with blobs.writer("c") as file:
            file.write(b"x")
            raise RuntimeError
    assert "c" not in blobs


def test_a_feed_tells_of_what_was_committed_and_goes_on_where_it_was(store):
    counts = store.table("counts", key=str, fold="sum:i64")
    counts.fold("a", 1)
    feed = store.feed("copy", table="counts")
    kinds = [type(event).__name__ for event in feed]
    assert kinds == ["Begin", "TableCreated", "Row", "RowsEnd"]
    with store.batch() as batch:
        batch.fold(counts, "a", 2)
        batch.delete(counts, "b")
    (changes,) = list(feed)
    assert [(op.table, op.op, op.key, op.value) for op in changes.ops] == [
        ("counts", "fold", "a", 2),
        ("counts", "delete", "b", None),
    ]
    feed.acknowledge()
    assert feed.next(timeout_s=0) is None
    del feed
    counts.put("c", 3)
    (changes,) = list(store.feed("copy", table="counts"))
    assert changes.ops[0].key == "c"
    assert store.feeds() == ["copy"]
    store.drop_feed("copy")
    assert store.feeds() == []


def test_a_feed_gives_deletes_of_ranges_and_of_prefixes(store):
    trips = store.table("trips", key=(str, int), fold="sum:i64")
    names = store.table("names", key=str, value=str)
    feed = store.feed("copy", from_now=True)
    list(feed)
    trips.delete_prefix("UA")
    trips.delete_range(("AA", 1), ("AA", 5))
    names.delete_prefix("a")
    ops = [op for changes in feed for op in changes.ops]
    assert [op.op for op in ops] == ["delete_range"] * 3
    assert (ops[1].key, ops[1].value) == (("AA", 1), ("AA", 5))
    assert ops[0].key == ("UA",) and isinstance(ops[0].value, bytes)
    assert (ops[2].key, ops[2].value) == ("a", "b")


def test_each_row_of_columns_is_a_change_where_a_feed_reads_them(store, counts):
    feed = store.feed("copy", table="counts", from_now=True)
    list(feed)
    counts.fold_many(["a", "a", "b"], [1, 2, 3])
    (changes,) = list(feed)
    assert [(op.key, op.value) for op in changes.ops] == [("a", 1), ("a", 2), ("b", 3)]


def test_a_store_is_backed_up_restored_and_verified(tmp_path, path, store, counts):
    counts.fold("a", 7)
    told = []
    report = store.backup(tmp_path / "backups", progress=lambda done, total: told.append((done, total)))
    assert report["generation"] == 1 and told
    folddb.restore(tmp_path / "backups", tmp_path / "copy")
    with folddb.open(tmp_path / "copy") as copy:
        assert copy["counts"]["a"] == 7
    report = folddb.verify(tmp_path / "copy", deep=True)
    assert report["is_clean"] and report["tables"] == 1 and report["damage"] == []


def test_a_backup_is_restored_by_its_generation_or_as_of_a_seq(tmp_path, store, counts):
    place = tmp_path / "backups"
    store.backup(place)
    seqs = [counts.fold("a", 1) for _ in range(3)]
    store.backup(place, copy=True, check_all=True)
    first, second = folddb.backups(place)
    assert (first["generation"], second["generation"], second["last_seq"]) == (1, 2, seqs[-1])
    assert second["made"] > first["made"] - datetime.timedelta(hours=1) and second["damage"] is None
    for name, what, value in [
        ("first", {"generation": 1}, None),
        ("then", {"at_seq": seqs[1], "copy": True}, 2),
        ("last", {}, 3),
    ]:
        report = folddb.restore(place, tmp_path / name, **what)
        assert report["generation"] == what.get("generation", 2)
        with folddb.open_read_only(tmp_path / name) as copy:
            assert copy["counts"].get("a") == value
    assert store.backup(place, keep=1)["removed"] == [1, 2]
    assert [backup["generation"] for backup in folddb.backups(place)] == [3]
    with pytest.raises(errors.StoreNotFound):
        folddb.backups(tmp_path / "nowhere")


def overwrite(blobs):
    """Leaves files of which few values are alive."""
    for round in range(3):
        blobs.update({number: bytes([round]) * 3000 for number in range(200) if round == 0 or number % 10})
    blobs.compact()


def test_space_is_reclaimed_on_request(path):
    with folddb.create(path, background="manual", value_segment_bytes=1 << 16) as store:
        blobs = store.table("blobs", key=int, separate=1000)
        overwrite(blobs)
        report = store.reclaim()
        assert report["bytes_before"] - report["bytes_after"] > 200 * 3000
        assert report["bytes_copied"] > 0 and report["left_alone"] == []
        assert store.reclaim()["bytes_copied"] == 0
        assert blobs[100] == b"\0" * 3000 and blobs[101] == b"\2" * 3000


def test_a_listener_is_told_what_a_store_does(path):
    told = []
    with folddb.create(path, background="manual", value_segment_bytes=1 << 16, on_event=told.append) as store:
        table = store.table("t", key=int, separate=1000)
        for _ in range(5):
            table.update({number: b"x" * 3000 for number in range(100)})
            store.flush()
        overwrite(table)
        store.reclaim()
    of = {event["kind"]: event for event in told}
    assert set(of) == {"flush", "merge", "reclaim"}
    assert sum(event["records"] for event in told if event["kind"] == "flush") >= 500
    assert of["merge"]["table"] == "t" and of["merge"]["runs"] > 1 and of["merge"]["plan"]
    assert of["reclaim"]["bytes_freed"] > 0 and of["flush"]["took_s"] > 0
    with pytest.raises(errors.InvalidInput, match="on_event"):
        folddb.open(path, on_event=7)


def test_a_listener_that_raises_or_calls_the_store_harms_nothing(path, monkeypatch):
    raised = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: raised.append(unraisable.exc_value))
    with folddb.create(path, on_event=lambda event: table.count()) as store:
        table = store.table("t", key=int, fold="sum:u64")
        table.fold(1, 1)
        store.flush()
        store.settle()
        assert table[1] == 1
    assert raised and all("a listener must not call a store" in str(error) for error in raised)


def test_progress_is_a_line_of_tqdm(tmp_path, store, counts):
    tqdm = pytest.importorskip("tqdm")
    counts.update({f"{number:05}": number for number in range(20_000)})
    shown = io.StringIO()
    with tqdm.tqdm(total=0, file=shown, unit="B", mininterval=0) as bar:

        def told(done, total):
            bar.total = total
            bar.update(done - bar.n)

        store.backup(tmp_path / "backups", progress=told)
        assert bar.n == bar.total > 0
    assert "100%" in shown.getvalue()


def test_long_work_tells_its_progress_and_ends_where_that_raises(tmp_path, store, counts):
    counts.update({f"{number:05}": number for number in range(20_000)})
    store.flush()
    store.backup(tmp_path / "backups")
    people = store.table("people", key=int, value="json")
    people.update({number: {"city": "Bern"} for number in range(5000)})
    works = {
        "restore": lambda told: folddb.restore(tmp_path / "backups", tmp_path / "copy", progress=told),
        "index": lambda told: people.add_index("city:json:/city", progress=told),
    }

    def stop(done, total):
        raise ZeroDivisionError

    for name, work in works.items():
        with pytest.raises(ZeroDivisionError):
            work(stop)
        told = []
        work(lambda done, total: told.append((done, total)))
        assert told and all(done <= total for done, total in told) and told == sorted(told), name
        assert told[-1][0] > 0, name
    assert people.find("city", "Bern").count() == 5000
    with folddb.open(tmp_path / "copy") as copy:
        assert copy["counts"].count() == 20_000


def test_a_backup_and_a_check_end_where_their_progress_raises(tmp_path, path, store, counts):
    counts.fold("a", 7)

    def stop(done, total):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.backup(tmp_path / "backups", progress=stop)
    store.flush()  # a check counts the bytes of parts
    with pytest.raises(ZeroDivisionError):
        store.backup(tmp_path / "backups", progress=stop)
    assert store.backup(tmp_path / "backups")["generation"] == 1
    folddb.restore(tmp_path / "backups", tmp_path / "copy")
    with pytest.raises(ZeroDivisionError):
        folddb.verify(tmp_path / "copy", deep=True, progress=stop)


def test_damage_is_found_and_named(tmp_path, path):
    with folddb.create(path) as store:
        counts = store.table("counts", key=str, fold="sum:i64")
        counts.update({f"{number:05}": number for number in range(10_000)})
        store.flush()
    for file in path.rglob("*"):
        if file.is_file() and file.stat().st_size > 10_000:
            content = bytearray(file.read_bytes())
            content[len(content) // 2] ^= 255
            file.write_bytes(content)
    try:
        report = folddb.verify(path, deep=True)
    except errors.Corruption as damage:
        report = {"is_clean": False, "damage": [str(damage)]}
    assert not report["is_clean"] and report["damage"]


def test_compaction_tells_and_ends_where_it_is_told_to(store, counts):
    counts.update({f"{number:05}": number for number in range(10_000)})
    store.flush()
    counts.update({f"{number:05}": number for number in range(10_000)})
    store.flush()
    told = []

    def stop(done, total):
        told.append(done)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        counts.compact(progress=stop)
    assert told  # what is merged by then stays merged
    counts.put("00000", 0)
    store.flush()
    assert counts.stats()["runs"] >= 2
    told.clear()
    counts.compact(progress=lambda done, total: told.append((done, total)))
    assert told and all(0 <= done <= total for done, total in told)
    assert counts.stats()["runs"] == 1
    assert counts.stats()["records"] == 10_000


def test_stats_are_figures_by_group(store, counts):
    counts.fold("a", 1)
    counts.get("a")
    stats = store.stats()
    assert {"writes", "reads", "memory", "disk", "background"} <= set(stats)
    assert stats["writes"]["commits"] >= 1 and stats["reads"]["gets"] >= 1
    assert isinstance(store.doctor(), list)


def test_a_table_shows_itself_in_a_notebook(delays):
    for number in range(12):
        delays.fold((f"<{number:02}>", "EWR"), 1.0)
    html = delays._repr_html_()
    assert "&lt;00&gt;" in html and "<00>" not in html and "mean" in html and "first 10 rows" in html
    assert "mean" in delays.scan("<11>")._repr_html_()


def test_a_store_shows_its_tables_in_a_notebook(store, counts):
    counts.fold("a", 1)
    store.flush()
    html = store._repr_html_()
    assert "<b>store " in html and "<th>counts</th><td>1</td><td>1</td><td>1</td>" in html


def test_columns_show_their_first_rows_in_a_notebook(counts):
    keys = [f"<{number:02}>" for number in range(12)]
    counts.fold_many(keys, list(range(12)))
    html = counts.get_many([*keys, "missing"])._repr_html_()
    assert "13 rows" in html and "<td>9</td>" in html and "<td>10</td>" not in html and "first 10 rows" in html
    assert "<td></td>" in counts.get_many(["missing"])._repr_html_()


def test_the_runs_of_a_table_are_told_and_drawn(store, counts):
    for round in range(2):
        counts.fold(f"{round}", 1)
        store.flush()
    runs = counts.runs()
    assert [run["records"] for run in runs] == [1, 1] and all(run["disk_bytes"] > 0 for run in runs)
    pytest.importorskip("matplotlib").use("Agg")
    axes = store.plot_tiers()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["counts"]
    assert len(axes.patches) == 2 and store.plot_tiers(axes) is axes


def test_pictures_say_what_they_need(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        store.plot_tiers()


def test_a_feed_of_a_prefix_gives_its_keys_alone(store):
    table = store.table("t", key=(str, int), fold="sum:i64")
    feed = store.feed("copy", table="t", prefix="UA", from_now=True)
    table.update({("AA", 1): 1, ("UA", 2): 2, ("UAL", 3): 3})
    assert [op.key for event in feed for op in event.ops] == [("UA", 2)]
    with pytest.raises(errors.InvalidInput, match="table="):
        store.feed("other", prefix="UA")
