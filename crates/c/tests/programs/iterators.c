/* Bounds, both directions, seeks, and an iterator that sees what there was. */
#include "check.h"

static folddb_table *table;

/* The keys from where an iterator stands on, one after the other, forward or backward. */
static const char *rest(folddb_iterator *at, bool is, bool forward) {
    static char keys[256];
    char *err = NULL;
    keys[0] = 0;
    while (is) {
        size_t len = 0;
        const char *key = folddb_iterator_key(at, &len, &err);
        OK(err);
        strncat(keys, key, len);
        is = forward ? folddb_iterator_next(at, &err) : folddb_iterator_prev(at, &err);
        OK(err);
    }
    return keys;
}

static bool appends(void *context, const char *key, size_t key_len, const char *value, size_t value_len) {
    strncat(context, key, key_len);
    strncat(context, value, value_len);
    return strlen(context) < 8;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    char *err = NULL;
    folddb_store *store = folddb_create(in(argv[1], "i.folddb"), NULL, &err);
    table = folddb_table_create(store, "t", NULL, &err);
    OK(err);
    for (char key = 'a'; key <= 'j'; key += 2) CHECK(folddb_put(table, &key, 1, "1", 1, &err)); /* acegi */

    folddb_scan *scan = folddb_scan_create(table, &err);
    folddb_iterator *all = folddb_iterator_create(scan, &err);
    OK(err);
    CHECK(strcmp(rest(all, folddb_iterator_seek_to_first(all, &err), true), "acegi") == 0);
    CHECK(strcmp(rest(all, folddb_iterator_seek_to_last(all, &err), false), "igeca") == 0);
    CHECK(strcmp(rest(all, folddb_iterator_seek(all, S("d"), &err), true), "egi") == 0);
    CHECK(strcmp(rest(all, folddb_iterator_seek(all, S("e"), &err), false), "eca") == 0);
    CHECK(!folddb_iterator_seek(all, S("z"), &err) && !folddb_iterator_valid(all, &err));

    /* to and fro */
    CHECK(folddb_iterator_seek(all, S("c"), &err) && folddb_iterator_next(all, &err));
    CHECK(folddb_iterator_prev(all, &err) && folddb_iterator_prev(all, &err));
    CHECK(at_key(all, "a"));
    CHECK(folddb_iterator_next(all, &err));
    size_t len = 0;
    const char *value = folddb_iterator_value(all, &len, &err);
    CHECK(same(value, len, "1"));
    OK(err);

    /* it sees what there was when it was made */
    CHECK(folddb_put(table, S("b"), S("2"), &err) && folddb_delete(table, S("e"), &err));
    CHECK(strcmp(rest(all, folddb_iterator_seek_to_first(all, &err), true), "acegi") == 0);
    folddb_iterator_destroy(all);

    /* bounds: b c g i are in them, without the ends */
    CHECK(folddb_scan_after(scan, S("a"), &err) && folddb_scan_before(scan, S("i"), &err));
    folddb_iterator *inner = folddb_iterator_create(scan, &err);
    CHECK(strcmp(rest(inner, folddb_iterator_seek_to_first(inner, &err), true), "bcg") == 0);
    CHECK(strcmp(rest(inner, folddb_iterator_seek_to_last(inner, &err), false), "gcb") == 0);
    CHECK(strcmp(rest(inner, folddb_iterator_seek(inner, S("a"), &err), true), "bcg") == 0);
    CHECK(!folddb_iterator_seek(inner, S("i"), &err));
    CHECK(folddb_iterator_seek(inner, S("b"), &err) && !folddb_iterator_prev(inner, &err));
    OK(err);
    folddb_iterator_destroy(inner);

    /* reversed: first is the highest, and a seek goes down */
    CHECK(folddb_scan_from(scan, S("b"), &err) && folddb_scan_through(scan, S("g"), &err));
    CHECK(folddb_scan_reverse(scan, &err));
    folddb_iterator *down = folddb_iterator_create(scan, &err);
    CHECK(strcmp(rest(down, folddb_iterator_seek_to_first(down, &err), true), "gcb") == 0);
    CHECK(strcmp(rest(down, folddb_iterator_seek_to_last(down, &err), false), "bcg") == 0);
    CHECK(strcmp(rest(down, folddb_iterator_seek(down, S("f"), &err), true), "cb") == 0);
    CHECK(strcmp(rest(down, folddb_iterator_seek(down, S("z"), &err), true), "gcb") == 0);
    folddb_iterator_destroy(down);

    /* a limit is the end of the range, whichever way one comes: a b c of a b c g i */
    folddb_scan *few = folddb_scan_create(table, &err);
    CHECK(folddb_scan_limit(few, 3, &err));
    folddb_iterator *of = folddb_iterator_create(few, &err);
    CHECK(strcmp(rest(of, folddb_iterator_seek_to_first(of, &err), true), "abc") == 0);
    CHECK(folddb_iterator_seek_to_first(of, &err) && folddb_iterator_next(of, &err));
    CHECK(strcmp(rest(of, folddb_iterator_prev(of, &err), true), "abc") == 0);
    CHECK(strcmp(rest(of, folddb_iterator_seek_to_last(of, &err), false), "cba") == 0);
    CHECK(strcmp(rest(of, folddb_iterator_seek(of, S("b"), &err), true), "bc") == 0);
    CHECK(strcmp(rest(of, folddb_iterator_seek(of, S("c"), &err), false), "cba") == 0);
    CHECK(!folddb_iterator_seek(of, S("d"), &err) && !folddb_iterator_valid(of, &err));
    CHECK(!folddb_iterator_seek(of, S("z"), &err));
    OK(err);
    folddb_iterator_destroy(of);
    CHECK(folddb_scan_limit(few, 0, &err));
    of = folddb_iterator_create(few, &err);
    CHECK(!folddb_iterator_seek(of, S("a"), &err) && !folddb_iterator_seek_to_last(of, &err));
    CHECK(!folddb_iterator_seek_to_first(of, &err));
    folddb_iterator_destroy(of);
    CHECK(folddb_scan_limit(few, 2, &err) && folddb_scan_reverse(few, &err));
    of = folddb_iterator_create(few, &err); /* i g */
    CHECK(strcmp(rest(of, folddb_iterator_seek_to_last(of, &err), false), "gi") == 0);
    CHECK(strcmp(rest(of, folddb_iterator_seek(of, S("z"), &err), true), "ig") == 0);
    CHECK(!folddb_iterator_seek(of, S("f"), &err));
    CHECK(folddb_iterator_seek_to_first(of, &err) && folddb_iterator_next(of, &err));
    CHECK(folddb_iterator_prev(of, &err) && strcmp(rest(of, true, true), "ig") == 0);
    OK(err);
    folddb_iterator_destroy(of);
    folddb_scan_destroy(few);

    /* a limit, keys only, a function, a prefix */
    CHECK(folddb_scan_limit(scan, 2, &err) && folddb_scan_keys_only(scan, &err));
    char seen[32] = "";
    CHECK(folddb_scan_each(scan, appends, seen, &err) && strcmp(seen, "gc") == 0);
    CHECK(folddb_scan_count(scan, &err) == 2);
    folddb_scan_destroy(scan);
    scan = folddb_scan_create(table, &err);
    seen[0] = 0;
    CHECK(!folddb_scan_each(scan, appends, seen, &err));
    FAILED(err, FOLDDB_ERROR_STOPPED, "no more rows");
    CHECK(strcmp(seen, "a1b2c1g1") == 0);
    CHECK(folddb_put(table, S("c2"), S(""), &err) && folddb_scan_prefix(scan, S("c"), &err));
    CHECK(folddb_scan_count(scan, &err) == 2);
    CHECK(!folddb_scan_aggregate(scan, NULL, &len, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "replace");
    folddb_scan_destroy(scan);

    folddb_table_destroy(table);
    CHECK(folddb_close(store, &err));
    OK(err);
    return 0;
}
