/* A store with damaged files is told by a check, and by the reader who meets the damage. */
#include "check.h"
#include <dirent.h>
#include <sys/stat.h>

/* Flips a byte in the middle of every file of a folder that has this ending; returns how many. */
static int flip(const char *folder, const char *ending) {
    int flipped = 0;
    DIR *files = opendir(folder);
    CHECK(files != NULL);
    for (struct dirent *file; (file = readdir(files)) != NULL;) {
        char path[4096];
        struct stat what;
        snprintf(path, sizeof path, "%s/%s", folder, file->d_name);
        if (file->d_name[0] == '.' || stat(path, &what) != 0) continue;
        if (S_ISDIR(what.st_mode)) flipped += flip(path, ending);
        size_t len = strlen(path);
        if (!S_ISREG(what.st_mode) || what.st_size < 64 || len < strlen(ending)) continue;
        if (strcmp(path + len - strlen(ending), ending) != 0) continue;
        FILE *open = fopen(path, "r+b");
        CHECK(open != NULL && fseek(open, (long)what.st_size / 2, SEEK_SET) == 0);
        int byte = fgetc(open);
        CHECK(byte != EOF && fseek(open, (long)what.st_size / 2, SEEK_SET) == 0);
        CHECK(fputc(byte ^ 0xff, open) != EOF && fclose(open) == 0);
        flipped++;
    }
    closedir(files);
    return flipped;
}

static bool reaches(void *context, const char *key, size_t key_len, const char *value, size_t value_len) {
    (void)key, (void)key_len, (void)value, (void)value_len;
    ++*(int *)context;
    return true;
}

static bool stops(void *context, uint64_t done, uint64_t total) {
    (void)context, (void)done, (void)total;
    return false;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    char *err = NULL;
    const char *path = in(argv[1], "d.folddb");
    folddb_store *store = folddb_create(path, NULL, &err);
    folddb_table *table = folddb_table_create(store, "t", "key=utf8\ncompression=none", &err);
    OK(err);
    char key[8], value[200];
    memset(value, 'v', sizeof value);
    for (int i = 0; i < 2000; i++) {
        snprintf(key, sizeof key, "%05d", i);
        CHECK(folddb_put(table, S(key), value, sizeof value, &err));
    }
    CHECK(folddb_compact(table, NULL, NULL, &err));
    folddb_table_destroy(table);
    CHECK(folddb_close(store, &err));
    OK(err);

    size_t findings = 9;
    CHECK(folddb_verify(path, NULL, true, &findings, NULL, NULL, &err) && findings == 0);
    CHECK(!folddb_verify(path, NULL, true, &findings, stops, NULL, &err));
    FAILED(err, FOLDDB_ERROR_STOPPED, "");
    CHECK(flip(path, ".part") > 0);
    CHECK(!folddb_verify(path, NULL, true, &findings, NULL, NULL, &err) && findings > 0);
    FAILED(err, FOLDDB_ERROR_CORRUPTION, ".part");

    /* a reader is told where, and what is elsewhere is read */
    store = folddb_open(path, NULL, &err);
    table = folddb_table_open(store, "t", &err);
    OK(err);
    CHECK(folddb_get_into(table, S("00000"), value, sizeof value, NULL, &err) && value[199] == 'v');
    OK(err);
    folddb_scan *scan = folddb_scan_create(table, &err);
    int rows = 0;
    CHECK(!folddb_scan_each(scan, reaches, &rows, &err) && rows < 2000);
    FAILED(err, FOLDDB_ERROR_CORRUPTION, ".part");
    folddb_scan_destroy(scan);
    folddb_table_destroy(table);
    CHECK(folddb_close(store, &err));
    OK(err);
    return 0;
}
