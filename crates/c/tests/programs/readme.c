/* The README's listing, as it stands there, and the tour of the library's front page, in C. */
#include "check.h"
#include <unistd.h>

static void listing(void) {
    char *err = NULL; /* a call that fails leaves its text here */
    size_t len;
    folddb_store *store = folddb_create("library.folddb", NULL, &err);
    folddb_table *delays =
        folddb_table_open_or_create(store, "delays", "key=utf8\nfold=stats:f64", &err);
    char *delay = folddb_value_from_json(delays, "12.5", &len, &err);
    folddb_fold(delays, "UA EWR", 6, delay, len, &err); /* reads nothing */
    char *stats = folddb_get(delays, "UA EWR", 6, &len, &err);
    char *shown = folddb_value_to_json(delays, stats, len, &err);
    printf("%s\n", err ? err : shown);
    /* {"count":1,"sum":12.5,"min":12.5,"max":12.5,"mean":12.5,"variance":0.0} */
    folddb_free(shown), folddb_free(stats), folddb_free(delay);
    folddb_table_destroy(delays), folddb_close(store, &err);
    OK(err);
}

/* Folds a number onto statistics. */
static void fold_number(folddb_table *table, const char *key_json, const char *number_json) {
    char *err = NULL;
    size_t key_len = 0, value_len = 0;
    char *key = folddb_key_from_json(table, key_json, &key_len, &err);
    OK(err);
    char *value = folddb_value_from_json(table, number_json, &value_len, &err);
    OK(err);
    folddb_fold(table, key, key_len, value, value_len, &err); /* blind: reads nothing */
    OK(err);
    folddb_free(key);
    folddb_free(value);
}

/* Whether the value of a key is shown with this in it; NULL is an absent key. */
static int shows(folddb_table *table, const char *key_json, const char *words) {
    char *err = NULL;
    size_t key_len = 0, value_len = 0;
    char *key = folddb_key_from_json(table, key_json, &key_len, &err);
    OK(err);
    char *value = folddb_get(table, key, key_len, &value_len, &err);
    OK(err);
    folddb_free(key);
    if (value == NULL || words == NULL) {
        folddb_free(value);
        return value == NULL && words == NULL;
    }
    char *shown = folddb_value_to_json(table, value, value_len, &err);
    OK(err);
    int is = strstr(shown, words) != NULL;
    if (!is) fprintf(stderr, "%s has %s\n", key_json, shown);
    folddb_free(shown);
    folddb_free(value);
    return is;
}

/* Counts the rows of a scan of (carrier, origin), of one carrier. */
static uint64_t rows_of(folddb_table *table, const char *carrier_json) {
    char *err = NULL;
    folddb_scan *scan = folddb_scan_create(table, &err);
    OK(err);
    CHECK(folddb_scan_prefix_json(scan, carrier_json, &err));
    uint64_t rows = folddb_scan_count(scan, &err);
    OK(err);
    folddb_scan_destroy(scan);
    return rows;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    char *err = NULL;
    CHECK(chdir(argv[1]) == 0);
    listing();

    /* A store is a directory. A table folds as its rules say. */
    folddb_store *store = folddb_create("tour.folddb", NULL, &err);
    OK(err);
    folddb_table *delays =
        folddb_table_open_or_create(store, "delays", "key=tuple(text,text)\nfold=stats:f64", &err);
    OK(err);
    fold_number(delays, "[\"UA\", \"EWR\"]", "12.5");
    fold_number(delays, "[\"UA\", \"EWR\"]", "-3.0");
    fold_number(delays, "[\"DL\", \"JFK\"]", "7.0");
    CHECK(shows(delays, "[\"UA\", \"EWR\"]", "\"mean\":4.75"));

    /* A batch is atomic, over any tables of the store. */
    folddb_table *names = folddb_table_open_or_create(store, "names", "key=utf8", &err);
    OK(err);
    folddb_batch *batch = folddb_batch_create(store, &err);
    OK(err);
    size_t key_len = 0, value_len = 0;
    char *key = folddb_key_from_json(delays, "[\"UA\", \"LGA\"]", &key_len, &err);
    char *value = folddb_value_from_json(delays, "1.0", &value_len, &err);
    CHECK(folddb_batch_fold(batch, delays, key, key_len, value, value_len, &err));
    CHECK(folddb_batch_put(batch, names, S("UA"), S("United"), &err));
    CHECK(folddb_batch_len(batch, &err) == 2);
    CHECK(folddb_batch_commit(batch, FOLDDB_DURABILITY_SYNC, &err));
    OK(err);
    folddb_free(key);
    folddb_free(value);
    folddb_batch_destroy(batch);
    CHECK(has(names, "UA", "United"));

    /* A snapshot sees the store as it was. */
    folddb_snapshot *past = folddb_snapshot_create(store, &err);
    OK(err);
    key = folddb_key_from_json(delays, "[\"UA\", \"EWR\"]", &key_len, &err);
    CHECK(folddb_delete(delays, key, key_len, &err));
    folddb_free(key);
    folddb_table *delays_then = folddb_snapshot_table(past, delays, &err);
    OK(err);
    CHECK(rows_of(delays_then, "[\"UA\"]") == 2);
    CHECK(rows_of(delays, "[\"UA\"]") == 1);
    CHECK(shows(delays, "[\"UA\", \"EWR\"]", NULL));
    CHECK(shows(delays_then, "[\"UA\", \"EWR\"]", "\"count\":2"));

    /* Its rows, the last first. */
    folddb_scan *scan = folddb_scan_create(delays_then, &err);
    CHECK(folddb_scan_reverse(scan, &err));
    folddb_iterator *rows = folddb_iterator_create(scan, &err);
    OK(err);
    char seen[256] = "";
    for (bool is = folddb_iterator_seek_to_first(rows, &err); is; is = folddb_iterator_next(rows, &err)) {
        const char *row_key = folddb_iterator_key(rows, &key_len, &err);
        char *shown = folddb_key_to_json(delays_then, row_key, key_len, &err);
        OK(err);
        strcat(seen, shown);
        folddb_free(shown);
    }
    OK(err);
    CHECK(strcmp(seen, "[\"UA\",\"LGA\"][\"UA\",\"EWR\"][\"DL\",\"JFK\"]") == 0);
    folddb_iterator_destroy(rows);
    folddb_scan_destroy(scan);

    /* What a range adds up to. */
    scan = folddb_scan_create(delays_then, &err);
    uint64_t count = 0;
    char *sum = folddb_scan_aggregate(scan, &count, &value_len, &err);
    OK(err);
    char *shown = folddb_value_to_json(delays, sum, value_len, &err);
    CHECK(count == 3 && strstr(shown, "\"count\":4") && strstr(shown, "\"sum\":17.5"));
    folddb_free(shown);
    folddb_free(sum);
    folddb_scan_destroy(scan);

    folddb_table_destroy(delays_then);
    folddb_snapshot_destroy(past);
    folddb_table_destroy(delays);
    folddb_table_destroy(names);
    CHECK(folddb_close(store, &err));
    OK(err);
    return 0;
}
