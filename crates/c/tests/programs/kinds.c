/* Hashed tables, heads, large values in files, and the events of what a store does on its own. */
#include "check.h"

static int events[8];

static void count(void *context, const folddb_event *event) {
    (void)context;
    CHECK(event->kind <= FOLDDB_EVENT_KIND_OTHER);
    if (event->kind == FOLDDB_EVENT_KIND_MERGE) {
        CHECK(event->table != NULL && event->text != NULL && event->count > 1 && event->records_in > 0);
    }
    if (event->kind == FOLDDB_EVENT_KIND_RECLAIM) CHECK(event->count > 0 && event->bytes_freed > 0);
    events[event->kind]++;
}

static bool adds(void *context, const char *key, size_t key_len, const char *value, size_t value_len) {
    (void)key, (void)key_len, (void)value, (void)value_len;
    ++*(int *)context;
    return true;
}

/* A hashed table has no order: gets and whole scans, and no bounds. */
static void hashed(folddb_store *store) {
    char *err = NULL;
    folddb_table *table = folddb_table_create(store, "hashed", "kind=hashed\nfold=sum:u64", &err);
    OK(err);
    char key[8];
    for (int i = 0; i < 500; i++) {
        snprintf(key, sizeof key, "%d", i);
        CHECK(folddb_fold(table, S(key), number(1), 8, &err) && folddb_fold(table, S(key), number(1), 8, &err));
    }
    CHECK(folddb_delete(table, S("7"), &err) && counts(table, "8", 2) && has(table, "7", NULL));
    CHECK(!folddb_delete_range(table, S("1"), S("2"), &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "hashed");
    CHECK(!folddb_index_add(table, "x:bytes", NULL, NULL, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "");
    folddb_scan *scan = folddb_scan_create(table, &err);
    int rows = 0;
    CHECK(folddb_scan_each(scan, adds, &rows, &err) && rows == 499);
    CHECK(folddb_scan_from(scan, S("1"), &err));
    CHECK(!folddb_scan_each(scan, adds, &rows, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "hashed");
    folddb_scan_destroy(scan);
    folddb_table_destroy(table);
}

/* A separated value is read only where it is asked for; its head is with the key. */
static void heads(folddb_store *store) {
    char *err = NULL;
    folddb_table *table =
        folddb_table_create(store, "heads", "key=utf8\nseparate=100\nhead=first:4\nexpire=by-write\nvalue_placement=segments", &err);
    OK(err);
    folddb_table *hour = folddb_table_lasting_for(table, 3600 * 1000, &err);
    char value[1000];
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < 200; i++) {
            char key[8];
            snprintf(key, sizeof key, "%03d", i);
            memset(value, 'a' + round, sizeof value);
            CHECK(folddb_put(hour, S(key), value, sizeof value, &err));
        }
        CHECK(folddb_flush(store, &err));
    }
    OK(err);
    folddb_value_head head;
    size_t len = 0;
    char *begin = folddb_head(table, S("000"), &head, &len, &err);
    OK(err);
    CHECK(same(begin, len, "ffff") && head.size_bytes == 1000 && head.pieces == 1);
    CHECK(head.is_separated && head.has_version && head.version > 0);
    CHECK(head.written_ms > 0 && head.deadline_ms > head.written_ms);
    folddb_free(begin);
    CHECK(folddb_compact(table, NULL, NULL, &err) && folddb_settle(store, &err));
    OK(err);
    folddb_table_destroy(hour);
    folddb_table_destroy(table);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    char *err = NULL;
    folddb_options *options = folddb_options_create(&err);
    CHECK(folddb_options_on_event(options, count, NULL, NULL, &err));
    CHECK(folddb_options_set(options, "value_segment_bytes", "65536", &err));
    CHECK(folddb_options_set(options, "value_space_max", "1.2", &err));
    folddb_store *store = folddb_create(in(argv[1], "k.folddb"), options, &err);
    folddb_options_destroy(options);
    OK(err);
    hashed(store);
    heads(store);
    CHECK(folddb_close(store, &err));
    OK(err);
    CHECK(events[FOLDDB_EVENT_KIND_FLUSH] > 0 && events[FOLDDB_EVENT_KIND_MERGE] > 0);
    return 0;
}
