/* Indexes, feeds, compaction, backups, checks and figures. */
#include "check.h"

static bool collects(void *context, const char *key, size_t key_len, const char *value, size_t value_len) {
    (void)value, (void)value_len;
    strncat(context, key, key_len);
    return true;
}

static bool goes_on(void *context, uint64_t done, uint64_t total) {
    CHECK(total > 0 || done == 0);
    ++*(int *)context;
    return true;
}

static bool stops(void *context, uint64_t done, uint64_t total) {
    (void)context, (void)done, (void)total;
    return false;
}

/* Whether a store at `to`, restored as `what` says, has a value of `bob`. */
static int restored_has(const char *from, const char *to, const char *what, const char *value) {
    char *err = NULL;
    CHECK(folddb_restore(from, to, what, NULL, NULL, NULL, &err));
    OK(err);
    folddb_store *store = folddb_open_read_only(to, NULL, &err);
    folddb_table *people = folddb_table_open(store, "people", &err);
    OK(err);
    int is = has(people, "bob", value);
    folddb_table_destroy(people);
    CHECK(folddb_close(store, &err));
    return is;
}

/* Some generations, of which one is restored by its number or by a seq, and old ones are removed. */
static void generations(folddb_store *store, folddb_table *people, const char *backups, const char *folder) {
    char *err = NULL, what[64];
    CHECK(folddb_put(people, S("bob"), S("{\"city\":\"Rome\"}"), &err));
    uint64_t rome = folddb_last_seq(store, &err);
    CHECK(folddb_put(people, S("bob"), S("{\"city\":\"Paris\"}"), &err));
    CHECK(folddb_backup(store, backups, "copy=true\ncheck_all=true\n", NULL, NULL, &err));
    OK(err);
    size_t count = 0;
    folddb_backup_generation *found = folddb_backups(backups, NULL, &count, &err);
    OK(err);
    CHECK(count == 2 && found[0].number < found[1].number && found[0].last_seq < found[1].last_seq);
    CHECK(found[1].last_seq == rome + 1 && found[1].files > 0 && found[1].bytes > 0 && found[1].made_ms > 0);
    CHECK(!found[0].is_damaged && !found[1].is_damaged);

    snprintf(what, sizeof what, "generation=%llu\ncopy=true", (unsigned long long)found[0].number);
    CHECK(restored_has(backups, in(folder, "first.folddb"), what, "{\"city\":\"Basel\"}"));
    snprintf(what, sizeof what, "at_seq=%llu", (unsigned long long)rome);
    CHECK(restored_has(backups, in(folder, "then.folddb"), what, "{\"city\":\"Rome\"}"));
    CHECK(restored_has(backups, in(folder, "last.folddb"), "", "{\"city\":\"Paris\"}"));
    const char *nowhere = in(folder, "nowhere.folddb");
    CHECK(!folddb_restore(backups, nowhere, "generation=77", NULL, NULL, NULL, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "77");
    CHECK(!folddb_restore(backups, nowhere, "at_seq=soon", NULL, NULL, NULL, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "`at_seq` is a whole number, not `soon`");
    CHECK(!folddb_restore(backups, nowhere, "keep=1", NULL, NULL, NULL, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "not `keep`");
    CHECK(!folddb_backup(store, backups, "keep", NULL, NULL, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "NAME=VALUE, not `keep`");
    CHECK(!folddb_backup(store, backups, "at_seq=1", NULL, NULL, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "not `at_seq`");
    uint64_t newest = found[1].number;
    folddb_free(found);

    CHECK(folddb_put(people, S("bob"), S("{\"city\":\"Basel\"}"), &err));
    CHECK(folddb_backup(store, backups, "keep=1", NULL, NULL, &err));
    found = folddb_backups(backups, NULL, &count, &err);
    CHECK(count == 1 && found[0].number > newest);
    folddb_free(found);
    CHECK(!folddb_backups(nowhere, NULL, &count, &err));
    FAILED(err, FOLDDB_ERROR_STORE_NOT_FOUND, "nowhere");

    char **advice = folddb_doctor(store, &count, &err);
    OK(err);
    CHECK(advice != NULL && advice[count] == NULL);
    folddb_free(advice);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    char *err = NULL;
    const char *path = in(argv[1], "k.folddb");
    folddb_options *options = folddb_options_create(&err);
    CHECK(folddb_options_set(options, "background", "manual", &err)); /* nothing is merged before it is asked for */
    folddb_store *store = folddb_create(path, options, &err);
    folddb_options_destroy(options);
    folddb_table *people = folddb_table_create(store, "people", "key=utf8\nfold=json-merge", &err);
    OK(err);

    /* a feed, from the beginning */
    folddb_feed *feed = folddb_feed_open(store, "copy", "people", NULL, 0, 0, true, &err);
    OK(err);
    CHECK(!folddb_feed_open(store, "copy", NULL, NULL, 0, 0, false, &err));
    FAILED(err, FOLDDB_ERROR_LOCKED, "copy");

    /* an index */
    CHECK(folddb_put(people, S("ann"), S("{\"city\":\"Bern\"}"), &err));
    int told = 0;
    CHECK(folddb_index_add(people, "city:json:/city", goes_on, &told, &err) && told > 0);
    CHECK(folddb_index_drop(people, "city", &err));
    CHECK(!folddb_index_add(people, "city:json:/city", stops, NULL, &err));
    FAILED(err, FOLDDB_ERROR_STOPPED, "the build of the index was stopped");
    CHECK(folddb_index_add(people, "city:json:/city", NULL, NULL, &err)); /* continues */
    CHECK(folddb_put(people, S("bob"), S("{\"city\":\"Basel\"}"), &err));
    CHECK(folddb_put(people, S("cleo"), S("{\"city\":\"Bern\"}"), &err));
    char found[64] = "";
    CHECK(folddb_find(people, "city", "Bern", collects, found, &err) && strcmp(found, "anncleo") == 0);
    found[0] = 0;
    CHECK(folddb_find_range(people, "city", "Ba", "Be", collects, found, &err) && strcmp(found, "bob") == 0);
    found[0] = 0;
    CHECK(folddb_find_range(people, "city", NULL, NULL, collects, found, &err));
    CHECK(strcmp(found, "bobanncleo") == 0);
    folddb_snapshot *past = folddb_snapshot_create(store, &err);
    CHECK(folddb_delete(people, S("ann"), &err));
    folddb_table *then = folddb_snapshot_table(past, people, &err);
    found[0] = 0;
    CHECK(folddb_find(then, "city", "Bern", collects, found, &err) && strcmp(found, "anncleo") == 0);
    folddb_table_destroy(then);
    folddb_snapshot_destroy(past);
    CHECK(!folddb_find(people, "street", "x", collects, found, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "street");
    CHECK(!folddb_index_add(people, "nonsense", NULL, NULL, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "NAME:RULE");
    size_t listed = 0;
    char **list = folddb_indexes(people, &listed, &err);
    CHECK(listed == 1 && strcmp(list[0], "city:json:/city") == 0 && list[1] == NULL);
    folddb_free(list);
    CHECK(folddb_index_drop(people, "city", &err));
    list = folddb_indexes(people, &listed, &err);
    CHECK(listed == 0 && list[0] == NULL);
    folddb_free(list);
    list = folddb_feeds(store, &listed, &err);
    OK(err);
    CHECK(listed == 1 && strcmp(list[0], "copy") == 0);
    folddb_free(list);

    /* what the feed gives: a batch for each write */
    int batches = 0;
    char *seen = found;
    seen[0] = 0;
    folddb_feed_event *event;
    while ((event = folddb_feed_next(feed, 0, &err)) != NULL) {
        if (folddb_feed_event_type(event, &err) == FOLDDB_FEED_EVENT_KIND_BATCH) {
            batches++;
            for (size_t i = 0; i < folddb_feed_event_len(event, &err); i++) {
                folddb_feed_change change;
                CHECK(folddb_feed_event_change(event, i, &change, &err));
                CHECK(strcmp(change.table, "people") == 0 && change.seq > 0);
                strncat(seen, change.key, change.key_len);
                strcat(seen, change.kind == FOLDDB_FEED_CHANGE_KIND_PUT ? "+" : "-");
            }
        }
        CHECK(!folddb_feed_event_change(event, 99, NULL, &err));
        FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "no change 99");
        CHECK(folddb_feed_acknowledge(feed, event, &err));
        folddb_feed_event_destroy(event);
    }
    OK(err);
    CHECK(batches >= 4 && strcmp(seen, "ann+bob+cleo+ann-") == 0);

    /* and the rows of the present, when it begins again */
    CHECK(folddb_feed_begin_again(feed, &err));
    int rows = 0;
    while ((event = folddb_feed_next(feed, 0, &err)) != NULL) {
        rows += folddb_feed_event_type(event, &err) == FOLDDB_FEED_EVENT_KIND_ROW;
        folddb_feed_event_destroy(event);
    }
    OK(err);
    CHECK(rows == 2);
    folddb_feed_destroy(feed);
    CHECK(folddb_feed_drop(store, "copy", &err));

    /* compaction, figures, a backup */
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 300; i++) {
            char key[8];
            snprintf(key, sizeof key, "%03d", i);
            CHECK(folddb_put(people, S(key), S("{}"), &err));
        }
        CHECK(folddb_flush(store, &err));
    }
    OK(err);
    CHECK(folddb_table_stat(people, "runs", &err) == 2);
    CHECK(!folddb_compact(people, stops, NULL, &err));
    FAILED(err, FOLDDB_ERROR_STOPPED, "the compaction was stopped"); /* what is merged stays merged */
    CHECK(folddb_put(people, S("000"), S("{}"), &err) && folddb_flush(store, &err));
    CHECK(folddb_table_stat(people, "runs", &err) >= 2);
    told = 0;
    CHECK(folddb_compact(people, goes_on, &told, &err) && told > 0);
    OK(err);
    CHECK(folddb_table_stat(people, "runs", &err) == 1 && folddb_table_stat(people, "records", &err) == 302);
    CHECK(folddb_stat(store, "writes.commits", &err) > 4 && folddb_stat(store, "disk.bytes", &err) > 0);
    size_t names = 0;
    char **figures = folddb_stat_names(store, &names, &err);
    for (size_t i = 0; i < names; i++) CHECK(folddb_stat(store, figures[i], &err) >= 0);
    OK(err);
    CHECK(names > 20);
    folddb_free(figures);
    CHECK(folddb_stat(store, "luck", &err) == 0);
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "there is no figure `luck`");
    const char *backups = in(argv[1], "backups");
    CHECK(!folddb_backup(store, backups, NULL, stops, NULL, &err));
    FAILED(err, FOLDDB_ERROR_STOPPED, "");
    told = 0;
    CHECK(folddb_backup(store, backups, NULL, goes_on, &told, &err) && told > 0);
    OK(err);
    generations(store, people, backups, argv[1]);
    folddb_table_destroy(people);
    CHECK(folddb_close(store, &err));

    /* it is whole; its copy is the same */
    size_t findings = 9;
    told = 0;
    CHECK(folddb_verify(path, NULL, true, &findings, goes_on, &told, &err) && findings == 0 && told > 0);
    OK(err);
    const char *copy = in(argv[1], "copy.folddb");
    CHECK(!folddb_restore(backups, copy, NULL, NULL, stops, NULL, &err));
    FAILED(err, FOLDDB_ERROR_STOPPED, "");
    told = 0;
    CHECK(folddb_restore(backups, copy, NULL, NULL, goes_on, &told, &err) && told > 0);
    store = folddb_open(copy, NULL, &err);
    OK(err);
    people = folddb_table_open(store, "people", &err);
    CHECK(has(people, "bob", "{\"city\":\"Basel\"}"));
    folddb_table_destroy(people);

    /* rules with an index open their table again, and other ones do not */
    const char *with_index = "value=json\nindex=town:json:/town";
    for (int again = 0; again < 2; again++) {
        folddb_table *towns = folddb_table_open_or_create(store, "towns", with_index, &err);
        OK(err);
        folddb_table_destroy(towns);
    }
    CHECK(!folddb_table_open_or_create(store, "towns", "value=json\nindex=town:json:/place", &err));
    FAILED(err, FOLDDB_ERROR_RULES_MISMATCH, "town");
    CHECK(folddb_close(store, &err));
    CHECK(!folddb_restore(backups, copy, NULL, NULL, NULL, NULL, &err));
    FAILED(err, FOLDDB_ERROR_ALREADY_EXISTS, "copy.folddb");
    CHECK(!folddb_verify(in(argv[1], "nowhere"), NULL, false, NULL, NULL, NULL, &err));
    FAILED(err, FOLDDB_ERROR_STORE_NOT_FOUND, "nowhere");
    OK(err);
    return 0;
}
