/* Folds and orders of one's own, events, and contexts that are given back. */
#include "check.h"

static int given_back;

static void give_back(void *context) {
    given_back++;
    free(context);
}

/* The longer of two values; of two as long, the earlier. It fails on `bad`. */
static int longer(void *context, const char *key, size_t key_len, const char *earlier, size_t earlier_len,
                  const char *later, size_t later_len, folddb_output *output) {
    (void)key, (void)key_len, (void)earlier;
    CHECK(strcmp(context, "mine") == 0);
    if (same(later, later_len, "bad")) {
        folddb_output_append(output, S("I do not like it"));
        return FOLDDB_FOLD_OUTCOME_FAILED;
    }
    if (same(later, later_len, "odd")) return 99;
    if (same(later, later_len, "none")) return FOLDDB_FOLD_OUTCOME_DELETE;
    return later_len > earlier_len ? FOLDDB_FOLD_OUTCOME_KEEP_LATER : FOLDDB_FOLD_OUTCOME_KEEP_EARLIER;
}

/* One after the other, through the output. */
static int joined(void *context, const char *key, size_t key_len, const char *earlier, size_t earlier_len,
                  const char *later, size_t later_len, folddb_output *output) {
    (void)context, (void)key, (void)key_len;
    CHECK(folddb_output_append(output, earlier, earlier_len) && folddb_output_append(output, later, later_len));
    CHECK(!folddb_output_append(NULL, "x", 1) && !folddb_output_append((folddb_output *)1000000007, "x", 1));
    return FOLDDB_FOLD_OUTCOME_VALUE;
}

/* By the last byte. */
static int by_last_byte(void *context, const char *a, size_t a_len, const char *b, size_t b_len) {
    (void)context;
    int last_a = a_len ? (unsigned char)a[a_len - 1] : -1, last_b = b_len ? (unsigned char)b[b_len - 1] : -1;
    return last_a - last_b;
}

static void count_flushes(void *context, const folddb_event *event) {
    if (event->kind == FOLDDB_EVENT_KIND_FLUSH) {
        CHECK(event->table != NULL && event->records_out > 0 && event->text == NULL);
        ++*(int *)context;
    }
}

static char *own(const char *text) {
    return strcpy(malloc(strlen(text) + 1), text);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    char *err = NULL;
    const char *path = in(argv[1], "c.folddb");
    int flushes = 0;
    folddb_options *options = folddb_options_create(&err);
    CHECK(folddb_options_add_fold(options, "longer", 3, longer, own("mine"), give_back, &err));
    CHECK(folddb_options_add_fold(options, "joined", 1, joined, NULL, NULL, &err));
    CHECK(folddb_options_add_order(options, "by-last-byte", by_last_byte, own("order"), give_back, &err));
    CHECK(folddb_options_on_event(options, count_flushes, &flushes, NULL, &err));
    OK(err);
    CHECK(!folddb_options_add_fold(options, "none", 1, NULL, own("none"), give_back, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "the fold is NULL");
    CHECK(given_back == 1);

    folddb_store *store = folddb_create(path, options, &err);
    OK(err);
    folddb_table *longest = folddb_table_create(store, "longest", "custom_fold=longer\nfold_version=3", &err);
    OK(err);
    CHECK(folddb_fold(longest, S("k"), S("one"), &err) && folddb_fold(longest, S("k"), S("three"), &err));
    CHECK(folddb_fold(longest, S("k"), S("six"), &err) && has(longest, "k", "three"));
    CHECK(folddb_fold(longest, S("f"), S("one"), &err) && folddb_fold(longest, S("f"), S("bad"), &err));
    CHECK(!folddb_get(longest, S("f"), NULL, &err));
    FAILED(err, FOLDDB_ERROR_FOLD_FAILED, "I do not like it");
    CHECK(folddb_put(longest, S("f"), S("one"), &err) && folddb_fold(longest, S("f"), S("odd"), &err));
    CHECK(!folddb_get(longest, S("f"), NULL, &err));
    FAILED(err, FOLDDB_ERROR_FOLD_FAILED, "returned 99");

    /* a fold that deletes leaves nothing, in memory and in runs, and later values begin again */
    CHECK(folddb_put(longest, S("d"), S("long ago"), &err) && folddb_fold(longest, S("d"), S("none"), &err));
    CHECK(has(longest, "d", NULL) && folddb_flush(store, &err) && has(longest, "d", NULL));
    CHECK(folddb_fold(longest, S("d"), S("now"), &err) && has(longest, "d", "now"));
    CHECK(folddb_fold(longest, S("d"), S("none"), &err) && folddb_compact(longest, NULL, NULL, &err));
    CHECK(has(longest, "d", NULL));
    OK(err);

    /* an iterator goes on behind a key whose fold fails */
    folddb_scan *scan = folddb_scan_create(longest, &err);
    folddb_iterator *iterator = folddb_iterator_create(scan, &err);
    CHECK(!folddb_iterator_seek_to_first(iterator, &err));
    FAILED(err, FOLDDB_ERROR_FOLD_FAILED, "returned 99");
    CHECK(folddb_iterator_next(iterator, &err) && at_key(iterator, "k"));
    folddb_iterator_destroy(iterator);
    folddb_scan_destroy(scan);

    folddb_table *texts = folddb_table_create(store, "texts", "custom_fold=joined", &err);
    OK(err);
    for (int i = 0; i < 3; i++) CHECK(folddb_fold(texts, S("k"), S("ab"), &err));
    CHECK(has(texts, "k", "ababab"));

    folddb_table *ordered = folddb_table_create(store, "ordered", "order=by-last-byte", &err);
    OK(err);
    CHECK(folddb_put(ordered, S("a3"), S(""), &err) && folddb_put(ordered, S("b1"), S(""), &err));
    CHECK(folddb_put(ordered, S("c2"), S(""), &err));
    scan = folddb_scan_create(ordered, &err);
    iterator = folddb_iterator_create(scan, &err);
    CHECK(folddb_iterator_seek_to_first(iterator, &err));
    CHECK(at_key(iterator, "b1"));
    CHECK(folddb_iterator_seek(iterator, S("a2"), &err));
    CHECK(at_key(iterator, "c2"));
    CHECK(!folddb_scan_prefix(scan, S("a"), &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "custom order");
    folddb_iterator_destroy(iterator);
    folddb_scan_destroy(scan);

    folddb_options_destroy(options);
    CHECK(folddb_flush(store, &err) && given_back == 1);
    folddb_table_destroy(longest);
    folddb_table_destroy(texts);
    folddb_table_destroy(ordered);
    CHECK(folddb_close(store, &err));
    OK(err);
    CHECK(flushes >= 3 && given_back == 3);

    /* without the functions the tables are not opened for writing, and the store is whole */
    CHECK(!folddb_open(path, NULL, &err));
    FAILED(err, FOLDDB_ERROR_RULES_MISMATCH, "by-last-byte");
    options = folddb_options_create(&err);
    CHECK(folddb_options_add_order(options, "by-last-byte", by_last_byte, own("order"), give_back, &err));
    store = folddb_open(path, options, &err);
    OK(err);
    longest = folddb_table_open(store, "longest", &err);
    OK(err);
    CHECK(!folddb_fold(longest, S("k"), S("seven"), &err));
    FAILED(err, FOLDDB_ERROR_RULES_MISMATCH, "longer");
    folddb_table_destroy(longest);
    CHECK(folddb_close(store, &err));
    size_t findings = 9;
    CHECK(folddb_verify(path, options, true, &findings, NULL, NULL, &err) && findings == 0);
    folddb_options_destroy(options);
    OK(err);
    CHECK(given_back == 4);
    return 0;
}
