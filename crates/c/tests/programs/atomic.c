/* Batches, transactions, lifetimes, and threads at once. */
#include "check.h"
#include <pthread.h>

static folddb_store *store;
static folddb_table *counters;

/* Folds one onto a counter if it is below ten. */
static bool below_ten(void *context, folddb_transaction *transaction) {
    char *err = NULL;
    folddb_table *inside = folddb_transaction_table(transaction, counters, &err);
    OK(err);
    unsigned char value[8] = {0};
    folddb_get_into(inside, S("shared"), (char *)value, 8, NULL, &err);
    OK(err);
    bool is_below = value[0] < 10;
    if (is_below) CHECK(folddb_fold(inside, S("shared"), number(1), 8, &err));
    folddb_table_destroy(inside);
    *(int *)context += 1;
    return is_below;
}

static void *counts_up(void *unused) {
    char *err = NULL;
    int tries = 0;
    for (int i = 0; i < 4; i++) {
        folddb_transact(store, FOLDDB_DURABILITY_BUFFERED, below_ten, &tries, &err);
        OK(err);
    }
    for (int i = 0; i < 200; i++) CHECK(folddb_fold(counters, S("sum"), number(1), 8, &err));
    CHECK(tries >= 4);
    return unused;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    char *err = NULL;
    store = folddb_create(in(argv[1], "a.folddb"), NULL, &err);
    counters = folddb_table_create(store, "counters", "counter", &err);
    OK(err);

    /* a batch, which is empty after its commit */
    folddb_table *names = folddb_table_create(store, "names", NULL, &err);
    CHECK(folddb_put(names, S("x"), S("1"), &err));
    folddb_batch *batch = folddb_batch_create(store, &err);
    CHECK(folddb_batch_put_if_absent(batch, names, S("x"), S("2"), &err));
    CHECK(folddb_batch_put(batch, names, S("y"), S("3"), &err));
    CHECK(folddb_batch_delete(batch, names, S("y"), &err));
    CHECK(folddb_batch_put(batch, names, S("z"), S("4"), &err));
    CHECK(folddb_batch_delete_range(batch, names, S("yy"), S("zz"), &err));
    CHECK(has(names, "z", NULL) && folddb_batch_len(batch, &err) == 5);
    CHECK(folddb_batch_commit(batch, FOLDDB_DURABILITY_BUFFERED, &err));
    OK(err);
    CHECK(has(names, "x", "1") && has(names, "y", NULL) && has(names, "z", NULL));
    CHECK(folddb_batch_len(batch, &err) == 0);
    CHECK(folddb_batch_put(batch, names, S("pre1"), S(""), &err) && folddb_batch_put(batch, names, S("pq"), S(""), &err));
    CHECK(folddb_batch_delete_prefix(batch, names, S("pre"), &err));
    CHECK(folddb_batch_commit(batch, FOLDDB_DURABILITY_BUFFERED, &err));
    CHECK(has(names, "pre1", NULL) && has(names, "pq", "") && folddb_delete(names, S("pq"), &err));
    OK(err);
    CHECK(folddb_put(names, S("t"), S("9"), &err));
    size_t last_len = 0;
    char *last = folddb_take(names, S("t"), &last_len, &err);
    CHECK(last != NULL && last_len == 1 && last[0] == '9');
    folddb_free(last);
    CHECK(has(names, "t", NULL) && folddb_take(names, S("t"), &last_len, &err) == NULL);
    OK(err);
    /* one bad row, and nothing of it is written */
    CHECK(folddb_batch_put(batch, names, S("w"), S("5"), &err));
    CHECK(folddb_batch_fold(batch, counters, S("w"), S("not eight"), &err));
    CHECK(!folddb_batch_commit(batch, FOLDDB_DURABILITY_BUFFERED, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "counters");
    CHECK(has(names, "w", NULL));
    folddb_batch_destroy(batch);

    /* a transaction reads what it writes, and is overtaken */
    folddb_transaction *transaction = folddb_transaction_create(store, &err);
    folddb_table *inside = folddb_transaction_table(transaction, names, &err);
    OK(err);
    CHECK(has(inside, "x", "1") && folddb_put(inside, S("x"), S("6"), &err) && has(inside, "x", "6"));
    CHECK(folddb_contains(inside, S("x"), &err) && has(names, "x", "1"));
    folddb_scan *scan = folddb_scan_create(inside, &err);
    CHECK(folddb_scan_count(scan, &err) == 1);
    folddb_scan_destroy(scan);
    folddb_value_head head;
    size_t taken = 9;
    char *shown = folddb_head(inside, S("x"), &head, &taken, &err);
    CHECK(shown && taken == 0 && head.size_bytes == 1);
    folddb_free(shown);
    folddb_reader *reader = folddb_reader_create(inside, S("x"), &err);
    CHECK(reader && folddb_reader_len(reader, &err) == 1);
    folddb_reader_destroy(reader);
    CHECK(folddb_put(inside, S("xx"), S("8"), &err) && folddb_delete_prefix(inside, S("xx"), &err));
    CHECK(!folddb_contains(inside, S("xx"), &err) && folddb_contains(inside, S("x"), &err));
    CHECK(folddb_delete_range(inside, S("x"), S("y"), &err) && !folddb_contains(inside, S("x"), &err));
    CHECK(!folddb_reader_create(inside, S("x"), &err) && has(names, "x", "1"));
    CHECK(folddb_put(names, S("x"), S("7"), &err));
    CHECK(!folddb_transaction_commit(transaction, FOLDDB_DURABILITY_PROCESS, &err));
    FAILED(err, FOLDDB_ERROR_CONFLICT, "");
    CHECK(has(names, "x", "7"));
    folddb_table_destroy(inside);
    folddb_transaction_destroy(transaction);

    /* threads */
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, counts_up, NULL) == 0);
    for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(counts(counters, "shared", 10) && counts(counters, "sum", 800));

    /* values that expire, and a durability of one's own */
    folddb_table *sessions = folddb_table_create(store, "sessions", "expire=by-write", &err);
    OK(err);
    folddb_table *over = folddb_table_lasting_until(sessions, 1000, &err);
    folddb_table *long_lived = folddb_table_lasting_for(sessions, 3600000, &err);
    folddb_table *synced = folddb_table_with_durability(long_lived, FOLDDB_DURABILITY_SYNC, &err);
    OK(err);
    CHECK(folddb_put(over, S("old"), S("1"), &err) && folddb_put(synced, S("new"), S("1"), &err));
    CHECK(has(sessions, "old", NULL) && has(sessions, "new", "1") && folddb_delete(synced, S("new"), &err));
    folddb_table *not_expiring = folddb_table_lasting_for(names, 1, &err);
    CHECK(!folddb_put(not_expiring, S("x"), S("1"), &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "names");
    folddb_table_destroy(not_expiring);
    folddb_table_destroy(synced);
    folddb_table_destroy(long_lived);
    folddb_table_destroy(over);
    folddb_table_destroy(sessions);

    folddb_table_destroy(names);
    folddb_table_destroy(counters);
    CHECK(folddb_close(store, &err));
    OK(err);
    return 0;
}
