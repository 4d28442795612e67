/* What the programs check with: the first thing that is not so ends the program, and says where. */
#ifndef CHECK_H
#define CHECK_H

#include <folddb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Something holds. */
#define CHECK(holds)                                                          \
    do {                                                                      \
        if (!(holds)) {                                                       \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #holds); \
            exit(1);                                                          \
        }                                                                     \
    } while (0)

/* The last call has failed with nothing. */
#define OK(err)                                                               \
    do {                                                                      \
        if (err) {                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, err);          \
            exit(1);                                                          \
        }                                                                     \
    } while (0)

/* The last call has failed with this kind of error, whose text has this in it. The error is given back. */
#define FAILED(err, kind, words)                                              \
    do {                                                                      \
        if (folddb_error_kind(err) != (kind) || !strstr(err, words)) {        \
            fprintf(stderr, "%s:%d: expected `%s`, got: %s\n", __FILE__, __LINE__, words, err ? err : "nothing"); \
            exit(1);                                                          \
        }                                                                     \
        folddb_free(err);                                                     \
        err = NULL;                                                           \
    } while (0)

/* A text and its length. */
#define S(text) text, strlen(text)

/* Whether these bytes are this text. */
static inline int same(const char *bytes, size_t len, const char *text) {
    return bytes != NULL && len == strlen(text) && memcmp(bytes, text, len) == 0;
}

/* Whether an iterator stands at this key. */
static inline int at_key(folddb_iterator *iterator, const char *text) {
    char *err = NULL;
    size_t len = 0;
    const char *key = folddb_iterator_key(iterator, &len, &err);
    OK(err);
    return same(key, len, text);
}

/* Whether a key has this value. */
static inline int has(folddb_table *table, const char *key, const char *value) {
    char *err = NULL;
    size_t len = 0;
    char *found = folddb_get(table, S(key), &len, &err);
    OK(err);
    int is = value == NULL ? found == NULL : same(found, len, value);
    folddb_free(found);
    return is;
}

/* Whether a key has this number, of 8 bytes as the folds of u64 and i64 have it. */
static inline int counts(folddb_table *table, const char *key, unsigned long long number) {
    char *err = NULL;
    size_t len = 0;
    unsigned char found[8] = {0};
    bool is_there = folddb_get_into(table, S(key), (char *)found, sizeof found, &len, &err);
    OK(err);
    unsigned long long value = 0;
    for (int i = 7; i >= 0; i--) value = value << 8 | found[i];
    return is_there && len == 8 && value == number;
}

/* The 8 bytes of a number. */
static inline const char *number(unsigned long long value) {
    static _Thread_local char bytes[8];
    for (int i = 0; i < 8; i++) bytes[i] = (char)(value >> (8 * i));
    return bytes;
}

/* A path in the folder that the program was given. */
static inline const char *in(const char *folder, const char *name) {
    static char paths[16][4096];
    static int next;
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

#endif
