/* Folds and reads keys so many times, as examples/overhead.rs does in Rust: `run` counts both. */
#include <folddb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK(e) do { if (e) { fprintf(stderr, "%s\n", e); exit(1); } } while (0)

static void big_endian(uint64_t n, char *out) {
    for (int i = 7; i >= 0; i--, n >>= 8) out[i] = (char)(n & 0xff);
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    uint64_t folds = strtoull(argv[2], NULL, 10), gets = strtoull(argv[3], NULL, 10), total = 0;
    char *err = NULL, key[8], one[8] = {1};
    folddb_options *options = folddb_options_create(&err);
    OK(err);
    folddb_options_set(options, "background", "manual", &err);
    OK(err);
    folddb_store *store = folddb_create(argv[1], options, &err);
    OK(err);
    folddb_table *table = folddb_table_create(store, "counts", "key=u64\nfold=sum:u64", &err);
    OK(err);
    for (uint64_t n = 0; n < folds; n++) {
        big_endian(n % 1000, key);
        folddb_fold(table, key, 8, one, 8, &err);
        OK(err);
    }
    for (uint64_t n = 0; n < gets; n++) {
        uint64_t value = 0;
        size_t len = 0;
        big_endian(n % 1000, key);
        folddb_get_into(table, key, 8, (char *)&value, 8, &len, &err);
        OK(err);
        total += value;
    }
    printf("%llu\n", (unsigned long long)total);
    folddb_table_destroy(table);
    folddb_close(store, &err);
    OK(err);
    return 0;
}
