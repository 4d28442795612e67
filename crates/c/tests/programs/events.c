/* What a store tells its listener: space that is reclaimed, and poison. */
#include "check.h"
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>

static atomic_int events[FOLDDB_EVENT_KIND_OTHER + 1];
static atomic_ullong freed;

static void count(void *context, const folddb_event *event) {
    (void)context;
    CHECK(event->kind < FOLDDB_EVENT_KIND_OTHER);
    if (event->kind == FOLDDB_EVENT_KIND_RECLAIM) {
        CHECK(event->count > 0 && event->bytes_freed > 0 && event->table == NULL);
        freed += event->bytes_freed;
    }
    if (event->kind == FOLDDB_EVENT_KIND_POISON) {
        CHECK(event->error_kind == FOLDDB_ERROR_POISONED && strstr(event->text, "File too large"));
    }
    events[event->kind]++;
}

static folddb_store *create(const char *path, const char *background) {
    char *err = NULL;
    folddb_options *options = folddb_options_create(&err);
    CHECK(folddb_options_on_event(options, count, NULL, NULL, &err));
    CHECK(folddb_options_set(options, "background", background, &err));
    CHECK(folddb_options_set(options, "mapped_log", "false", &err));
    CHECK(folddb_options_set(options, "value_segment_bytes", "65536", &err));
    folddb_store *store = folddb_create(path, options, &err);
    folddb_options_destroy(options);
    OK(err);
    return store;
}

/* Puts values of this length for so many keys, but not for each `except`th. */
static void fill(folddb_table *table, int keys, size_t len, int except) {
    char *err = NULL, key[16], *value = malloc(len);
    memset(value, 'v', len);
    for (int i = 0; i < keys; i++) {
        if (i % except == except - 1) continue;
        snprintf(key, sizeof key, "%08d", i);
        CHECK(folddb_put(table, S(key), value, len, &err));
    }
    OK(err);
    free(value);
}

/* Files of dead values are given back, the few that live in them are copied, and the event tells so. */
static void reclaims(const char *path) {
    char *err = NULL;
    folddb_store *store = create(path, "manual");
    folddb_table *table = folddb_table_create(store, "t", "key=utf8\nseparate=1000", &err);
    OK(err);
    fill(table, 200, 3000, 1000);
    fill(table, 200, 3000, 10);
    fill(table, 200, 3000, 10);
    CHECK(folddb_compact(table, NULL, NULL, &err));
    uint64_t bytes = 0;
    CHECK(folddb_reclaim(store, &bytes, &err) && folddb_settle(store, &err));
    OK(err);
    CHECK(bytes > 200 * 3000 && events[FOLDDB_EVENT_KIND_RECLAIM] > 0 && freed > 0);
    CHECK(!has(table, "00000099", NULL) && !has(table, "00000100", NULL));
    folddb_table_destroy(table);
    CHECK(folddb_close(store, &err));
}

/* A write that the system refuses poisons the store, which is told once; reads go on. */
static void poisons(const char *path) {
    char *err = NULL;
    folddb_store *store = create(path, "threads");
    folddb_table *table = folddb_table_create(store, "t", "key=utf8", &err);
    CHECK(folddb_put(table, S("a"), S("1"), &err) && folddb_settle(store, &err));
    OK(err);
    struct rlimit before, none;
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && getrlimit(RLIMIT_FSIZE, &before) == 0);
    none = before;
    none.rlim_cur = 1; /* no file may be longer */
    CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
    bool is_put = folddb_put(table, S("b"), S("2"), &err);
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK(!is_put);
    FAILED(err, FOLDDB_ERROR_POISONED, "File too large");
    CHECK(!folddb_put(table, S("b"), S("2"), &err));
    FAILED(err, FOLDDB_ERROR_POISONED, "");
    CHECK(has(table, "a", "1") && has(table, "b", NULL));
    folddb_table_destroy(table);
    folddb_close(store, &err);
    folddb_free(err);
    CHECK(events[FOLDDB_EVENT_KIND_POISON] == 1);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    reclaims(in(argv[1], "reclaims.folddb"));
    poisons(in(argv[1], "poisons.folddb"));
    CHECK(events[FOLDDB_EVENT_KIND_MISSED] == 0);
    return 0;
}
