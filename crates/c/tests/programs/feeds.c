/* A feed of a whole store: every kind of event and change, prefixes, waits, and a lost place. */
#include "check.h"
#include <poll.h>
#include <pthread.h>

static char seen[4096];

/* Notes all events that there are, in short, and acknowledges them. */
static void note_all(folddb_feed *feed) {
    static const char kinds[] = "t+?f-r!iF"; /* by the number of the change */
    char *err = NULL;
    seen[0] = 0;
    folddb_feed_event *event;
    while ((event = folddb_feed_next(feed, 0, &err)) != NULL) {
        folddb_feed_event_kind kind = folddb_feed_event_type(event, &err);
        static const char *const names[] = {"none", "begin", "created", "dropped", "row", "end", "batch"};
        strcat(seen, names[kind]);
        size_t len = folddb_feed_event_len(event, &err);
        OK(err);
        for (size_t i = 0; i < len; i++) {
            folddb_feed_change change;
            CHECK(folddb_feed_event_change(event, i, &change, &err));
            char text[64] = " ";
            text[1] = kinds[change.kind];
            snprintf(text + 2, sizeof text - 2, "%s/%.*s", change.table, (int)change.key_len, change.key ? change.key : "");
            strcat(seen, text);
            if (change.kind == FOLDDB_FEED_CHANGE_KIND_DELETE_RANGE) {
                CHECK(same(change.value, change.value_len, "z"));
            }
            if (change.kind == FOLDDB_FEED_CHANGE_KIND_FOLD_LONG || change.kind == FOLDDB_FEED_CHANGE_KIND_PUT_LONG) {
                CHECK(change.value == NULL && change.value_len == 17 << 20);
            }
            CHECK(kind == FOLDDB_FEED_EVENT_KIND_BATCH ? change.seq > 0 : change.seq == 0);
        }
        strcat(seen, ";");
        CHECK(folddb_feed_acknowledge(feed, event, &err));
        folddb_feed_event_destroy(event);
    }
    OK(err);
}

/* Writes a value that is longer than an event has. */
static void stream(folddb_table *table, folddb_stream_op op, const char *key) {
    static char piece[1 << 20];
    char *err = NULL;
    memset(piece, 'x', sizeof piece);
    folddb_writer *writer = folddb_writer_create(table, op, S(key), &err);
    for (int i = 0; i < 17; i++) folddb_writer_write(writer, piece, sizeof piece, &err);
    OK(err);
    CHECK(folddb_writer_finish(writer, &err));
    folddb_writer_destroy(writer);
    OK(err);
}

static void *writes_later(void *table) {
    char *err = NULL;
    poll(NULL, 0, 50);
    CHECK(folddb_put(table, S("late"), S("v"), &err));
    OK(err);
    return NULL;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    char *err = NULL;
    const char *path = in(argv[1], "f.folddb");
    folddb_options *options = folddb_options_create(&err);
    CHECK(folddb_options_set(options, "segment_bytes", "4194304", &err));
    folddb_store *store = folddb_create(path, options, &err);
    folddb_table *words = folddb_table_create(store, "words", "key=utf8\nfold=append\nseparate=4096", &err);
    OK(err);
    CHECK(folddb_put(words, S("a"), S("1"), &err));

    /* of the whole store: what there is, then what happens */
    folddb_feed *feed = folddb_feed_open(store, "all", NULL, NULL, 0, 0, false, &err);
    OK(err);
    note_all(feed);
    CHECK(strcmp(seen, "begin;created twords/;row +words/a;end;") == 0);
    folddb_table *others = folddb_table_create(store, "others", "key=utf8", &err);
    CHECK(folddb_put(others, S("b"), S("2"), &err) && folddb_fold(words, S("a"), S("3"), &err));
    CHECK(folddb_put_if_absent(words, S("c"), S("4"), &err) && folddb_delete(words, S("c"), &err));
    CHECK(folddb_delete_range(others, S("b"), S("z"), &err));
    stream(words, FOLDDB_STREAM_OP_PUT, "l");
    stream(words, FOLDDB_STREAM_OP_FOLD, "l");
    folddb_table_destroy(others);
    CHECK(folddb_drop_table(store, "others", &err));
    note_all(feed);
    CHECK(strcmp(seen, "created tothers/;batch +others/b;batch fwords/a;batch ?words/c;batch -words/c;batch rothers/b;"
                       "batch !words/l;batch Fwords/l;dropped tothers/;") == 0);
    folddb_reader *reader = folddb_reader_create(words, S("l"), &err);
    CHECK(folddb_reader_len(reader, &err) == 34 << 20);
    folddb_reader_destroy(reader);

    /* a wait ends with the next write, or with its time */
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, writes_later, words) == 0);
    folddb_feed_event *event = folddb_feed_next(feed, 60 * 1000, &err);
    CHECK(event != NULL && folddb_feed_event_type(event, &err) == FOLDDB_FEED_EVENT_KIND_BATCH);
    CHECK(pthread_join(thread, NULL) == 0);
    folddb_feed_event_destroy(event);
    CHECK(!folddb_feed_next(feed, 20, &err));
    OK(err);

    /* what was not acknowledged comes again, also after the store was closed */
    folddb_feed_destroy(feed);
    folddb_table_destroy(words);
    CHECK(folddb_close(store, &err));
    store = folddb_open(path, options, &err);
    feed = folddb_feed_open(store, "all", NULL, NULL, 0, 0, false, &err);
    OK(err);
    note_all(feed);
    CHECK(strcmp(seen, "batch +words/late;") == 0);
    folddb_feed_destroy(feed);

    /* of some keys of one table; and one that has lost its place */
    words = folddb_table_open(store, "words", &err);
    feed = folddb_feed_open(store, "some", "words", S("ab"), 1, true, &err);
    OK(err);
    CHECK(folddb_put(words, S("abc"), S("1"), &err) && folddb_put(words, S("b"), S("1"), &err));
    note_all(feed);
    CHECK(strcmp(seen, "batch +words/abc;") == 0);
    char value[1000];
    memset(value, 'v', sizeof value);
    for (int round = 0; folddb_stat(store, "background.feeds_lost", &err) == 0; round++) {
        for (int i = 0; i < 500; i++) CHECK(folddb_put(words, S("abc"), value, sizeof value, &err));
        CHECK(round < 100 && folddb_flush(store, &err) && folddb_settle(store, &err));
    }
    CHECK(!folddb_feed_next(feed, 0, &err));
    FAILED(err, FOLDDB_ERROR_FEED_LOST, "some");
    CHECK(folddb_feed_begin_again(feed, &err));
    note_all(feed);
    CHECK(strstr(seen, "begin;") && strstr(seen, "row +words/abc;end;"));
    folddb_feed_destroy(feed);
    folddb_table_destroy(words);
    CHECK(folddb_close(store, &err));
    folddb_options_destroy(options);
    OK(err);
    return 0;
}
