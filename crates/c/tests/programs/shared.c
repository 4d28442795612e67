/* Stores that share a budget of memory. */
#include "check.h"

#define STORES 3
#define BUDGET ((size_t)32 << 20)

int main(int argc, char **argv) {
    CHECK(argc == 2);
    char *err = NULL;
    folddb_shared *shared = folddb_shared_create(BUDGET, &err);
    folddb_options *options = folddb_options_create(&err);
    CHECK(folddb_options_set(options, "memory_bytes", "8388608", &err));
    CHECK(folddb_options_set_shared(options, shared, &err));
    CHECK(folddb_shared_set_background_bytes_per_s(shared, 100 << 20, &err));
    OK(err);
    CHECK(folddb_shared_memory_bytes(shared, &err) == BUDGET && folddb_shared_stores(shared, &err) == 0);

    folddb_store *stores[STORES], *alone = folddb_create(in(argv[1], "alone.folddb"), NULL, &err);
    folddb_table *tables[STORES];
    for (int i = 0; i < STORES; i++) {
        char name[32];
        snprintf(name, sizeof name, "s%d.folddb", i);
        stores[i] = folddb_create(in(argv[1], name), options, &err);
        OK(err);
        tables[i] = folddb_table_create(stores[i], "counts", "key=u32\nfold=sum:u64", &err);
        OK(err);
    }
    CHECK(folddb_shared_stores(shared, &err) == STORES); /* the one that is alone is none of them */
    for (int n = 0; n < 3000; n++) {
        char key[4] = {0, 0, (char)(n >> 8), (char)n};
        for (int i = 0; i < STORES; i++) CHECK(folddb_fold(tables[i], key, 4, number(n), 8, &err));
    }
    uint64_t used = folddb_shared_used_bytes(shared, &err);
    CHECK(used > 0 && used <= BUDGET);
    CHECK(folddb_shared_set_background_bytes_per_s(shared, 0, &err));

    /* one closes, the others go on, also where the handle is gone */
    folddb_table_destroy(tables[0]);
    CHECK(folddb_close(stores[0], &err));
    CHECK(folddb_shared_stores(shared, &err) == STORES - 1);
    folddb_shared_destroy(shared);
    CHECK(folddb_shared_stores(shared, &err) == 0);
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "this folddb_shared was destroyed");
    CHECK(!folddb_options_set_shared(options, (folddb_shared *)options, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "a folddb_options was given where a folddb_shared is expected");
    folddb_options_destroy(options);
    for (int i = 1; i < STORES; i++) {
        char *value = folddb_get(tables[i], "\0\0\0\7", 4, NULL, &err);
        CHECK(value != NULL && value[0] == 7);
        folddb_free(value);
        CHECK(folddb_flush(stores[i], &err));
        folddb_table_destroy(tables[i]);
        CHECK(folddb_close(stores[i], &err));
    }
    CHECK(folddb_close(alone, &err));
    OK(err);
    return 0;
}
