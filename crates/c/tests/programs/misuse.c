/* Every misuse of a handle that can be found is an error: NULL, destroyed, of another type, of another
   store, used by two calls at once. */
#include "check.h"

static folddb_scan *walked;

/* Uses the transaction that calls it in a way that it may not. */
static bool commits_itself(void *context, folddb_transaction *transaction) {
    char *err = NULL;
    CHECK(folddb_transaction_commit(transaction, FOLDDB_DURABILITY_PROCESS, &err));
    OK(err);
    return context == NULL;
}

static bool destroys_it(void *context, folddb_transaction *transaction) {
    folddb_transaction_destroy(transaction);
    return context == NULL;
}

static bool destroys_the_scan(void *context, const char *key, size_t key_len, const char *value, size_t value_len) {
    (void)key, (void)key_len, (void)value, (void)value_len;
    folddb_scan_destroy(walked);
    return context == NULL;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    char *err = NULL;
    size_t len = 0;
    folddb_store *store = folddb_create(in(argv[1], "one.folddb"), NULL, &err);
    folddb_store *other = folddb_create(in(argv[1], "other.folddb"), NULL, &err);
    OK(err);
    folddb_table *table = folddb_table_create(store, "t", NULL, &err);
    folddb_table *foreign = folddb_table_create(other, "t", NULL, &err);
    OK(err);
    CHECK(folddb_put(table, S("a"), S("1"), &err) && folddb_put(table, S("b"), S("2"), &err));

    /* NULL */
    CHECK(!folddb_put(NULL, S("k"), S("v"), &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "the folddb_table is NULL");
    CHECK(!folddb_put(table, NULL, 3, S("v"), &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "the key is NULL, but its length is 3");
    CHECK(!folddb_put(table, S("k"), NULL, 1, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "the value is NULL");
    CHECK(!folddb_put(table, "k", (size_t)-1, S("v"), &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "the key has a length of");
    CHECK(!folddb_get(NULL, S("k"), &len, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "NULL");
    CHECK(!folddb_get_into(table, S("a"), NULL, 5, &len, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "the buffer is NULL");
    const char *keys[1] = {"a"};
    const size_t lens[1] = {1};
    folddb_value value;
    CHECK(!folddb_get_many(table, 1, NULL, lens, &value, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "the list of keys is NULL");
    CHECK(!folddb_get_many(table, 1, keys, NULL, &value, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "lengths is NULL");
    CHECK(!folddb_get_many(table, 1, keys, lens, NULL, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "the list of values is NULL");
    CHECK(!folddb_get_many(table, (size_t)-1, keys, lens, &value, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "which no list has");
    CHECK(!folddb_open(NULL, NULL, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "the path is NULL");
    CHECK(!folddb_close(NULL, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "the folddb_store is NULL");
    CHECK(!folddb_scan_create(NULL, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "NULL");
    CHECK(!folddb_scan_each(NULL, NULL, NULL, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "the function is NULL");
    CHECK(!folddb_transact(store, FOLDDB_DURABILITY_SYNC, NULL, NULL, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "the work is NULL");
    folddb_table_destroy(NULL);
    folddb_options_destroy(NULL);
    folddb_scan_destroy(NULL);
    folddb_free(NULL);
    CHECK(folddb_error_kind(NULL) == FOLDDB_ERROR_OK);

    /* an error that nobody asked for, and one in the place of an earlier one */
    CHECK(!folddb_put(NULL, S("k"), S("v"), NULL));
    CHECK(!folddb_put(NULL, S("k"), S("v"), &err));
    CHECK(!folddb_table_open(store, "nowhere", &err));
    FAILED(err, FOLDDB_ERROR_TABLE_NOT_FOUND, "nowhere");

    /* a handle of another type, and an address that is none */
    CHECK(!folddb_put((folddb_table *)store, S("k"), S("v"), &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "a folddb_store was given where a folddb_table is expected");
    CHECK(!folddb_put((folddb_table *)&len, S("k"), S("v"), &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "was destroyed, or was never created");
    CHECK(!folddb_close((folddb_store *)table, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "a folddb_table was given");
    folddb_scan_destroy((folddb_scan *)table);
    CHECK(has(table, "a", "1"));

    /* used after it was destroyed, and destroyed twice */
    folddb_table *gone = folddb_table_open(store, "t", &err);
    folddb_table_destroy(gone);
    folddb_table_destroy(gone);
    CHECK(!folddb_contains(gone, S("a"), &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "was destroyed");
    folddb_table *next = folddb_table_open(store, "t", &err);
    OK(err);
    CHECK(!folddb_contains(gone, S("a"), &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "was destroyed");
    folddb_table_destroy(next);

    /* a table of another store */
    folddb_batch *batch = folddb_batch_create(store, &err);
    folddb_batch_put(batch, table, S("c"), S("3"), &err);
    folddb_batch_put(batch, foreign, S("c"), S("3"), &err);
    folddb_free(err);
    err = NULL;
    CHECK(!folddb_batch_commit(batch, FOLDDB_DURABILITY_PROCESS, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "store");
    CHECK(has(table, "c", NULL));
    CHECK(!folddb_batch_commit(batch, 17, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "17 is not one of folddb_durability");
    folddb_snapshot *snapshot = folddb_snapshot_create(store, &err);
    CHECK(!folddb_snapshot_table(snapshot, foreign, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "own store");
    folddb_transaction *transaction = folddb_transaction_create(store, &err);
    CHECK(!folddb_transaction_table(transaction, foreign, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "own store");

    /* a table as a snapshot sees it is not written to */
    folddb_table *then = folddb_snapshot_table(snapshot, table, &err);
    CHECK(!folddb_put(then, S("a"), S("9"), &err));
    FAILED(err, FOLDDB_ERROR_READ_ONLY, "as a snapshot sees it");
    CHECK(!folddb_batch_delete(batch, then, S("a"), &err));
    FAILED(err, FOLDDB_ERROR_READ_ONLY, "as a snapshot sees it");
    CHECK(!folddb_delete_range(then, S("a"), S("b"), &err));
    FAILED(err, FOLDDB_ERROR_READ_ONLY, "as a snapshot sees it");
    CHECK(!folddb_delete_prefix(then, S("a"), &err));
    FAILED(err, FOLDDB_ERROR_READ_ONLY, "as a snapshot sees it");
    folddb_batch_destroy(batch);

    /* a transaction that is over */
    folddb_table *inside = folddb_transaction_table(transaction, table, &err);
    OK(err);
    CHECK(!folddb_writer_create(inside, FOLDDB_STREAM_OP_PUT, S("a"), &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "in a transaction");
    CHECK(!folddb_compact(inside, NULL, NULL, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "in a transaction");
    CHECK(folddb_transaction_commit(transaction, FOLDDB_DURABILITY_PROCESS, &err));
    CHECK(!folddb_put(inside, S("a"), S("9"), &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "was committed, and is over");
    CHECK(!folddb_get(inside, S("a"), NULL, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "was committed, and is over");
    CHECK(!folddb_transaction_commit(transaction, FOLDDB_DURABILITY_PROCESS, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "was committed, and is over");
    CHECK(!folddb_transact(store, FOLDDB_DURABILITY_PROCESS, commits_itself, NULL, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "was committed, and is over");
    CHECK(!folddb_transact(store, FOLDDB_DURABILITY_PROCESS, destroys_it, NULL, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "was destroyed");
    folddb_table_destroy(inside);
    folddb_transaction_destroy(transaction);

    /* what is used meanwhile lives on */
    walked = folddb_scan_create(table, &err);
    CHECK(folddb_scan_each(walked, destroys_the_scan, NULL, &err));
    OK(err);
    CHECK(!folddb_scan_count(walked, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "was destroyed");

    /* an iterator at no row */
    folddb_scan *scan = folddb_scan_create(table, &err);
    folddb_iterator *iterator = folddb_iterator_create(scan, &err);
    CHECK(!folddb_iterator_valid(iterator, &err) && !folddb_iterator_next(iterator, &err));
    OK(err);
    CHECK(!folddb_iterator_key(iterator, &len, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "is at no row");

    /* settings and rules that are none */
    folddb_options *options = folddb_options_create(&err);
    CHECK(!folddb_options_set(options, "memory", "1", &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "`memory` is not a setting");
    CHECK(!folddb_options_set(options, "memory_bytes", "much", &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "a whole number, not `much`");
    CHECK(!folddb_table_create(store, "u", "fold", &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "expected a rule such as `key=utf8`");
    CHECK(!folddb_table_create(store, "u", "key=tuple(utf8)", &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "use bytes, utf8, u32");
    CHECK(!folddb_table_create(store, "u", "color=blue", &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "color");
    CHECK(!folddb_table_create(store, "u", "fold=summ:u64", &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "summ");
    CHECK(!folddb_table_create(store, "\xff", NULL, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "the name is not UTF-8");
    folddb_options_destroy(options);

    /* a store that is closed under all of these */
    CHECK(folddb_iterator_seek_to_first(iterator, &err));
    folddb_batch *late = folddb_batch_create(store, &err);
    folddb_transaction *open = folddb_transaction_create(store, &err);
    OK(err);
    CHECK(folddb_close(store, &err));
    OK(err);
    CHECK(!folddb_put(table, S("a"), S("9"), &err));
    FAILED(err, FOLDDB_ERROR_CLOSED, "");
    CHECK(!folddb_get(table, S("a"), &len, &err));
    FAILED(err, FOLDDB_ERROR_CLOSED, "");
    CHECK(!folddb_get(then, S("a"), &len, &err));
    FAILED(err, FOLDDB_ERROR_CLOSED, "");
    CHECK(!folddb_iterator_seek(iterator, S("a"), &err));
    FAILED(err, FOLDDB_ERROR_CLOSED, "");
    CHECK(folddb_batch_put(late, table, S("a"), S("9"), &err));
    CHECK(!folddb_batch_commit(late, FOLDDB_DURABILITY_PROCESS, &err));
    FAILED(err, FOLDDB_ERROR_CLOSED, "");
    CHECK(!folddb_close(store, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "this folddb_store was destroyed");
    CHECK(!folddb_snapshot_create(store, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "was destroyed");

    folddb_batch_destroy(late);
    folddb_transaction_destroy(open);
    folddb_iterator_destroy(iterator);
    folddb_scan_destroy(scan);
    folddb_table_destroy(then);
    folddb_snapshot_destroy(snapshot);
    folddb_table_destroy(table);
    folddb_table_destroy(foreign);
    CHECK(folddb_close(other, &err));
    OK(err);
    return 0;
}
