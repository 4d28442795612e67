/* Plays a script of ops, and prints an answer for each line that asks something: see tests/door. */
#include "check.h"

static folddb_store *store;
static folddb_table *table;
static folddb_snapshot *past;
static folddb_table *then;

static char *err;

static void opened(folddb_store *another) {
    OK(err);
    store = another;
    table = folddb_table_open_or_create(store, "t", "key=utf8\nfold=sum:i64", &err);
    past = folddb_snapshot_create(store, &err);
    then = folddb_snapshot_table(past, table, &err);
    OK(err);
}

static void closed(void) {
    folddb_table_destroy(then);
    folddb_snapshot_destroy(past);
    folddb_table_destroy(table);
    CHECK(folddb_close(store, &err));
}

static void print_number(const char *bytes, size_t len) {
    uint64_t value = 0;
    CHECK(len == 8);
    for (int i = 7; i >= 0; i--) value = value << 8 | (unsigned char)bytes[i];
    printf("%lld", (long long)value);
}

static void print_value(folddb_table *of, const char *key) {
    size_t len = 0;
    char *value = folddb_get(of, S(key), &len, &err);
    OK(err);
    if (value == NULL) printf("absent");
    else print_number(value, len);
    folddb_free(value);
}

static bool print_row(void *context, const char *key, size_t key_len, const char *value, size_t value_len) {
    (void)context;
    printf("%.*s=", (int)key_len, key);
    print_number(value, value_len);
    printf(" ");
    return true;
}

static void print_here(folddb_iterator *at) {
    size_t key_len = 0, value_len = 0;
    const char *key = folddb_iterator_key(at, &key_len, &err);
    const char *value = folddb_iterator_value(at, &value_len, &err);
    OK(err);
    print_row(NULL, key, key_len, value, value_len);
}

/* By a function forward, by an iterator backward. */
static void scan(const char *a, const char *b) {
    folddb_scan *range = folddb_scan_create(table, &err);
    CHECK(folddb_scan_from(range, S(a), &err) && folddb_scan_before(range, S(b), &err));
    CHECK(folddb_scan_each(range, print_row, NULL, &err));
    folddb_scan_destroy(range);
}

static void reverse(const char *a, const char *b) {
    folddb_scan *range = folddb_scan_create(table, &err);
    CHECK(folddb_scan_after(range, S(a), &err) && folddb_scan_through(range, S(b), &err));
    folddb_iterator *at = folddb_iterator_create(range, &err);
    for (bool is = folddb_iterator_seek_to_last(at, &err); is; is = folddb_iterator_prev(at, &err)) print_here(at);
    OK(err);
    folddb_iterator_destroy(at);
    folddb_scan_destroy(range);
}

/* Three rows from a key on, and the one before it, by one iterator that turns round. */
static void around(const char *key) {
    folddb_scan *range = folddb_scan_create(table, &err);
    folddb_iterator *at = folddb_iterator_create(range, &err);
    bool is = folddb_iterator_seek(at, S(key), &err);
    int rows = 0;
    while (is) {
        print_here(at);
        if (++rows == 3) break;
        is = folddb_iterator_next(at, &err);
    }
    OK(err);
    printf("|");
    is = rows ? folddb_iterator_seek(at, S(key), &err) && folddb_iterator_prev(at, &err)
              : folddb_iterator_seek_to_last(at, &err);
    if (is) print_here(at);
    OK(err);
    folddb_iterator_destroy(at);
    folddb_scan_destroy(range);
}

/* So many rows from a key on, or from the end down to it: from another key on, backward, and each
 * with the one before it. */
static void few(const char *from, const char *key, int limit) {
    folddb_scan *range = folddb_scan_create(table, &err);
    CHECK(folddb_scan_from(range, S(from), &err) && folddb_scan_limit(range, limit, &err));
    if (limit % 2) CHECK(folddb_scan_reverse(range, &err));
    folddb_iterator *at = folddb_iterator_create(range, &err);
    for (bool is = folddb_iterator_seek(at, S(key), &err); is; is = folddb_iterator_next(at, &err)) print_here(at);
    printf("|");
    for (bool is = folddb_iterator_seek_to_last(at, &err); is; is = folddb_iterator_prev(at, &err)) print_here(at);
    printf("|");
    for (bool is = folddb_iterator_seek_to_first(at, &err); is; is = folddb_iterator_next(at, &err)) {
        print_here(at);
        if (folddb_iterator_prev(at, &err)) {
            print_here(at);
            CHECK(folddb_iterator_next(at, &err));
        } else {
            CHECK(folddb_iterator_seek_to_first(at, &err));
        }
    }
    OK(err);
    folddb_iterator_destroy(at);
    folddb_scan_destroy(range);
}

static void sum(void) {
    folddb_scan *range = folddb_scan_create(table, &err);
    uint64_t rows = 0;
    size_t len = 0;
    char *value = folddb_scan_aggregate(range, &rows, &len, &err);
    OK(err);
    printf("%llu ", (unsigned long long)rows);
    if (value == NULL) printf("absent");
    else print_number(value, len);
    folddb_free(value);
    folddb_scan_destroy(range);
}

static void batch(const char *a, const char *b, const char *bytes) {
    folddb_batch *both = folddb_batch_create(store, &err);
    CHECK(folddb_batch_fold(both, table, S(a), bytes, 8, &err) && folddb_batch_delete(both, table, S(b), &err));
    CHECK(folddb_batch_commit(both, FOLDDB_DURABILITY_PROCESS, &err));
    folddb_batch_destroy(both);
}

static void transact(const char *a, const char *b, const char *bytes) {
    folddb_transaction *transaction = folddb_transaction_create(store, &err);
    folddb_table *inside = folddb_transaction_table(transaction, table, &err);
    OK(err);
    bool is_there = folddb_contains(inside, S(a), &err);
    CHECK(is_there ? folddb_put(inside, S(b), bytes, 8, &err) : folddb_fold(inside, S(b), bytes, 8, &err));
    CHECK(folddb_transaction_commit(transaction, FOLDDB_DURABILITY_PROCESS, &err));
    folddb_table_destroy(inside);
    folddb_transaction_destroy(transaction);
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    const char *path = in(argv[1], "c.folddb");
    opened(folddb_create(path, NULL, &err));
    FILE *script = fopen(argv[2], "r");
    CHECK(script != NULL);
    char line[256];
    while (fgets(line, sizeof line, script)) {
        line[strcspn(line, "\n")] = 0;
        char op[32] = "", a[32] = "", b[32] = "", c[32] = "";
        sscanf(line, "%31s %31s %31s %31s", op, a, b, c);
        const char *bytes = number(strtoull(c[0] ? c : b, NULL, 10));
        bool asks = strstr("get past scan reverse around sum few", op) != NULL;
        if (asks) printf("%s: ", line);
        if (!strcmp(op, "put")) CHECK(folddb_put(table, S(a), bytes, 8, &err));
        else if (!strcmp(op, "put_if_absent")) CHECK(folddb_put_if_absent(table, S(a), bytes, 8, &err));
        else if (!strcmp(op, "fold")) CHECK(folddb_fold(table, S(a), bytes, 8, &err));
        else if (!strcmp(op, "delete")) CHECK(folddb_delete(table, S(a), &err));
        else if (!strcmp(op, "delete_range")) CHECK(folddb_delete_range(table, S(a), S(b), &err));
        else if (!strcmp(op, "batch")) batch(a, b, bytes);
        else if (!strcmp(op, "transact")) transact(a, b, bytes);
        else if (!strcmp(op, "get")) print_value(table, a);
        else if (!strcmp(op, "past")) print_value(then, a);
        else if (!strcmp(op, "scan")) scan(a, b);
        else if (!strcmp(op, "reverse")) reverse(a, b);
        else if (!strcmp(op, "around")) around(a);
        else if (!strcmp(op, "few")) few(a, b, atoi(c));
        else if (!strcmp(op, "sum")) sum();
        else if (!strcmp(op, "flush")) CHECK(folddb_flush(store, &err));
        else if (!strcmp(op, "compact")) CHECK(folddb_compact(table, NULL, NULL, &err));
        else if (!strcmp(op, "snapshot")) {
            folddb_table_destroy(then);
            folddb_snapshot_destroy(past);
            past = folddb_snapshot_create(store, &err);
            then = folddb_snapshot_table(past, table, &err);
        } else if (!strcmp(op, "reopen")) {
            closed();
            opened(folddb_open(path, NULL, &err));
        } else CHECK(!"an op that is known");
        OK(err);
        if (asks) printf("\n");
    }
    fclose(script);
    closed();
    return 0;
}
