/* The store as it was, by a seq and by a time; a store that is opened or made. */
#include "check.h"

int main(int argc, char **argv) {
    CHECK(argc == 2);
    char *err = NULL;
    const char *path = in(argv[1], "past.folddb");
    folddb_store *store = folddb_open_or_create(path, NULL, &err);
    OK(err);
    CHECK(folddb_close(store, &err));
    store = folddb_open_or_create(path, NULL, &err);
    folddb_table *prices = folddb_table_create(store, "prices", "key=utf8\nkeep=forever", &err);
    OK(err);
    CHECK(folddb_put(prices, S("a"), S("one"), &err));
    uint64_t first = folddb_last_seq(store, &err);
    CHECK(folddb_put(prices, S("a"), S("two"), &err) && folddb_last_seq(store, &err) == first + 1);

    folddb_snapshot *past = folddb_snapshot_at_seq(store, first, &err);
    OK(err);
    CHECK(folddb_snapshot_seq(past, &err) == first);
    folddb_table *then = folddb_snapshot_table(past, prices, &err);
    CHECK(has(then, "a", "one") && has(prices, "a", "two"));
    folddb_table_destroy(then);
    folddb_snapshot_destroy(past);
    CHECK(!folddb_snapshot_at_seq(store, first + 99, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "");

    past = folddb_snapshot_at_time(store, 4102444800000, &err); /* a time to come is the present */
    OK(err);
    CHECK(folddb_snapshot_seq(past, &err) == first + 1);
    then = folddb_snapshot_table(past, prices, &err);
    CHECK(has(then, "a", "two"));
    folddb_table_destroy(then);
    folddb_snapshot_destroy(past);
    past = folddb_snapshot_at_time(store, 1000, &err); /* nothing was there in 1970 */
    OK(err);
    CHECK(folddb_snapshot_seq(past, &err) < first);
    folddb_snapshot_destroy(past);
    CHECK(folddb_snapshot_seq(past, &err) == 0);
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "this folddb_snapshot was destroyed");

    folddb_table_destroy(prices);
    CHECK(folddb_close(store, &err));
    OK(err);
    return 0;
}
