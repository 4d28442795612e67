/* A listener is told how many events it has missed where it is slower than the store, and that a
 * writer has waited where this is faster than the disk, or deletes more ranges than merges remove. */
#include "check.h"
#include <pthread.h>

enum { FLUSHES = 1100 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool may_go_on;
static unsigned long long flushes, missed, stalls, range_stalls;

/* Waits at the first event until all flushes are over. */
static void waits(void *context, const folddb_event *event) {
    (void)context;
    pthread_mutex_lock(&lock);
    while (!may_go_on) pthread_cond_wait(&changed, &lock);
    if (event->kind == FOLDDB_EVENT_KIND_FLUSH) flushes++;
    if (event->kind == FOLDDB_EVENT_KIND_MISSED) missed += event->count;
    if (event->kind == FOLDDB_EVENT_KIND_STALL_MEMORY) {
        CHECK(event->took_us > 0 && event->table == NULL);
        stalls++;
    }
    if (event->kind == FOLDDB_EVENT_KIND_STALL_RANGE_DELETES) {
        CHECK(event->took_us > 0 && event->table == NULL);
        range_stalls++;
    }
    pthread_mutex_unlock(&lock);
}

static folddb_store *create(const char *path, const char *memory) {
    char *err = NULL;
    folddb_options *options = folddb_options_create(&err);
    CHECK(folddb_options_on_event(options, waits, NULL, NULL, &err));
    CHECK(folddb_options_set(options, "memory_bytes", memory, &err));
    folddb_store *store = folddb_create(path, options, &err);
    folddb_options_destroy(options);
    OK(err);
    return store;
}

/* Writes until a writer has waited. */
static void stall(const char *path) {
    char *err = NULL, key[16];
    static char value[20000];
    folddb_store *store = create(path, "1048576");
    folddb_table *table = folddb_table_create(store, "t", "key=utf8", &err);
    OK(err);
    for (int i = 0; folddb_stat(store, "writes.stalls", &err) == 0; i++) {
        CHECK(i < 100000);
        snprintf(key, sizeof key, "%d", i);
        CHECK(folddb_put(table, S(key), value, sizeof value, &err));
    }
    folddb_table_destroy(table);
    CHECK(folddb_close(store, &err)); /* after the last event */
    OK(err);
    CHECK(stalls > 0);
}

static bool is_stalled_by_ranges(void) {
    pthread_mutex_lock(&lock);
    bool is_stalled = range_stalls > 0;
    pthread_mutex_unlock(&lock);
    return is_stalled;
}

/* Deletes ranges, each of one row of many in runs, until a writer has waited for the merges. */
static void stall_by_ranges(const char *path) {
    char *err = NULL, from[16], to[16];
    folddb_store *store = create(path, "1048576");
    folddb_table *table = folddb_table_create(store, "t", "key=utf8", &err);
    OK(err);
    for (int i = 0; i < 100000; i++) {
        snprintf(from, sizeof from, "%06d", i);
        CHECK(folddb_put(table, S(from), S("value"), &err));
    }
    CHECK(folddb_flush(store, &err));
    /* On a busy machine a writer may wait for something else first. */
    for (int i = 0; !is_stalled_by_ranges(); i++) {
        CHECK(i < 50000);
        snprintf(from, sizeof from, "%06d", 2 * i);
        snprintf(to, sizeof to, "%06d", 2 * i + 1);
        CHECK(folddb_delete_range(table, S(from), S(to), &err));
    }
    folddb_table_destroy(table);
    CHECK(folddb_close(store, &err)); /* after the last event */
    OK(err);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    char *err = NULL;
    folddb_store *store = create(in(argv[1], "m.folddb"), "8388608");
    folddb_table *table = folddb_table_create(store, "t", "fold=sum:u64", &err);
    OK(err);
    for (int i = 0; i < FLUSHES; i++) CHECK(folddb_fold(table, S("k"), number(1), 8, &err) && folddb_flush(store, &err));
    OK(err);
    pthread_mutex_lock(&lock);
    may_go_on = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    CHECK(counts(table, "k", FLUSHES));
    folddb_table_destroy(table);
    CHECK(folddb_close(store, &err)); /* after the last event */
    OK(err);
    CHECK(missed > 0 && flushes + missed >= FLUSHES && stalls == 0);
    stall(in(argv[1], "s.folddb"));
    stall_by_ranges(in(argv[1], "r.folddb"));
    return 0;
}
