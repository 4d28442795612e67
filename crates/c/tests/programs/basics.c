/* A store is created, written to, read, closed and opened again. */
#include "check.h"

int main(int argc, char **argv) {
    CHECK(argc == 2);
    char *err = NULL;
    const char *path = in(argv[1], "basics.folddb");

    folddb_options *options = folddb_options_create(&err);
    OK(err);
    CHECK(folddb_options_set(options, "memory_bytes", "16777216", &err));
    CHECK(folddb_options_set(options, "durability", "buffered", &err));
    folddb_store *store = folddb_create(path, options, &err);
    OK(err);
    folddb_table *names = folddb_table_create(store, "names", NULL, &err);
    OK(err);
    folddb_table *visits = folddb_table_create(store, "visits", "key=utf8\nfold=sum:u64", &err);
    OK(err);

    /* put, put_if_absent, delete */
    CHECK(folddb_put(names, S("UA"), S("United"), &err));
    CHECK(folddb_put(names, S("UA"), S("United Air Lines"), &err));
    CHECK(folddb_put_if_absent(names, S("UA"), S("somebody"), &err));
    CHECK(folddb_put_if_absent(names, S("DL"), S("Delta"), &err));
    CHECK(folddb_put(names, S("XX"), S(""), &err));
    CHECK(has(names, "UA", "United Air Lines"));
    CHECK(has(names, "DL", "Delta"));
    CHECK(has(names, "XX", ""));
    CHECK(has(names, "nobody", NULL));
    CHECK(folddb_delete(names, S("DL"), &err));
    CHECK(has(names, "DL", NULL));
    CHECK(folddb_contains(names, S("UA"), &err));
    CHECK(!folddb_contains(names, S("DL"), &err));
    OK(err);

    /* fold */
    for (int i = 0; i < 1000; i++) CHECK(folddb_fold(visits, S("/index"), number(2), 8, &err));
    CHECK(counts(visits, "/index", 2000));

    /* a value of any bytes, also into room of one's own */
    char blob[5] = {0, 1, 0, (char)0xff, 0};
    CHECK(folddb_put(names, blob, 5, blob, 5, &err));
    size_t len = 0;
    char *found = folddb_get(names, blob, 5, &len, &err);
    CHECK(len == 5 && memcmp(found, blob, 5) == 0 && found[5] == 0);
    folddb_free(found);
    char room[3] = "..";
    CHECK(folddb_get_into(names, S("UA"), room, 2, &len, &err));
    CHECK(len == strlen("United Air Lines") && strcmp(room, "Un") == 0);
    CHECK(folddb_get_into(names, S("UA"), NULL, 0, &len, &err));
    CHECK(!folddb_get_into(names, S("nobody"), room, 2, &len, &err));
    OK(err);

    /* several keys at once */
    const char *keys[3] = {"UA", "nobody", "XX"};
    const size_t lens[3] = {2, 6, 2};
    folddb_value values[3];
    CHECK(folddb_get_many(names, 3, keys, lens, values, &err));
    CHECK(same(values[0].data, values[0].len, "United Air Lines"));
    CHECK(values[1].data == NULL);
    CHECK(same(values[2].data, values[2].len, ""));
    for (int i = 0; i < 3; i++) folddb_free(values[i].data);
    CHECK(folddb_get_many(names, 0, NULL, NULL, NULL, &err));

    /* what is known without reading */
    folddb_value_head head;
    char *taken = folddb_head(names, S("UA"), &head, &len, &err);
    OK(err);
    CHECK(len == 0 && head.size_bytes == strlen("United Air Lines") && !head.is_separated && head.deadline_ms == 0);
    folddb_free(taken);
    CHECK(!folddb_head(names, S("nobody"), NULL, NULL, &err));
    OK(err);

    /* ranges */
    CHECK(folddb_put(visits, S("a"), number(1), 8, &err) && folddb_put(visits, S("b"), number(1), 8, &err));
    CHECK(folddb_delete_range(visits, S("a"), S("b"), &err));
    CHECK(!folddb_contains(visits, S("a"), &err) && counts(visits, "b", 1));
    CHECK(folddb_put(visits, S("ba"), number(1), 8, &err) && folddb_put(visits, S("c"), number(1), 8, &err));
    CHECK(folddb_delete_prefix(visits, S("b"), &err) && !folddb_contains(visits, S("b"), &err));
    CHECK(!folddb_contains(visits, S("ba"), &err) && counts(visits, "c", 1));

    /* what there is */
    size_t count = 0;
    char **tables = folddb_tables(store, &count, &err);
    OK(err);
    CHECK(count == 2 && strcmp(tables[0], "names") == 0 && strcmp(tables[1], "visits") == 0 && !tables[2]);
    folddb_free(tables);
    char *name = folddb_table_name(visits, &err);
    CHECK(strcmp(name, "visits") == 0);
    folddb_free(name);
    char *rules = folddb_table_rules(visits, &err);
    CHECK(strstr(rules, "fold=sum:u64"));
    folddb_table *again = folddb_table_open_or_create(store, "visits", rules, &err);
    OK(err);
    folddb_table_destroy(again);
    folddb_free(rules);
    CHECK(!folddb_table_open_or_create(store, "visits", "key=utf8\nfold=sum:i64", &err));
    FAILED(err, FOLDDB_ERROR_RULES_MISMATCH, "sum:i64");
    CHECK(!folddb_table_create(store, "visits", NULL, &err));
    FAILED(err, FOLDDB_ERROR_ALREADY_EXISTS, "visits");
    CHECK(!folddb_table_open(store, "visit", &err));
    FAILED(err, FOLDDB_ERROR_TABLE_NOT_FOUND, "visits");
    CHECK(folddb_last_seq(store, &err) > 1000);

    folddb_table_destroy(names);
    folddb_table_destroy(visits);
    CHECK(folddb_sync(store, &err) && folddb_flush(store, &err) && folddb_settle(store, &err));
    CHECK(folddb_close(store, &err));
    OK(err);

    /* all of it is there again; another one is refused meanwhile */
    store = folddb_open(path, options, &err);
    OK(err);
    CHECK(!folddb_open(path, options, &err));
    FAILED(err, FOLDDB_ERROR_LOCKED, "basics.folddb");
    names = folddb_table_open(store, "names", &err);
    CHECK(has(names, "UA", "United Air Lines"));
    folddb_table *counters = folddb_table_open_or_create(store, "counters", "counter", &err);
    OK(err);
    CHECK(folddb_fold(counters, S("x"), number(3), 8, &err) && counts(counters, "x", 3));
    CHECK(folddb_drop_table(store, "counters", &err));
    CHECK(!folddb_fold(counters, S("x"), number(3), 8, &err));
    FAILED(err, FOLDDB_ERROR_CLOSED, "counters");
    folddb_table_destroy(counters);
    folddb_table_destroy(names);
    CHECK(folddb_close(store, &err));

    /* frozen, and thawed */
    CHECK(folddb_freeze(path, options, &err) && folddb_is_frozen(path, options, &err));
    CHECK(!folddb_open(path, options, &err));
    FAILED(err, FOLDDB_ERROR_READ_ONLY, "frozen");
    store = folddb_open_read_only(path, options, &err);
    OK(err);
    names = folddb_table_open(store, "names", &err);
    CHECK(has(names, "UA", "United Air Lines"));
    CHECK(!folddb_put(names, S("UA"), S("x"), &err));
    FAILED(err, FOLDDB_ERROR_READ_ONLY, "");
    folddb_table_destroy(names);
    CHECK(folddb_close(store, &err));
    CHECK(folddb_thaw(path, options, &err) && !folddb_is_frozen(path, options, &err));
    OK(err);

    /* a secondary beside a writer */
    store = folddb_open(path, NULL, &err);
    OK(err);
    names = folddb_table_open(store, "names", &err);
    folddb_store *reader = folddb_open_secondary(path, NULL, &err);
    OK(err);
    CHECK(folddb_put(names, S("new"), S("row"), &err));
    folddb_table *seen = folddb_table_open(reader, "names", &err);
    CHECK(has(seen, "new", NULL) && has(seen, "UA", "United Air Lines"));
    folddb_store *later = folddb_refresh(reader, &err);
    OK(err);
    folddb_table *newer = folddb_table_open(later, "names", &err);
    CHECK(has(newer, "new", "row"));
    folddb_table_destroy(newer);
    folddb_table_destroy(seen);
    folddb_table_destroy(names);
    CHECK(folddb_close(later, &err) && folddb_close(reader, &err) && folddb_close(store, &err));
    folddb_options_destroy(options);
    OK(err);
    return 0;
}
