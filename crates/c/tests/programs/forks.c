/* A forked child gets an error from every handle of its parent, and writes nothing. */
#include "check.h"
#include <sys/wait.h>
#include <unistd.h>

/* Every handle that the parent had at the fork. */
static folddb_options *options;
static folddb_store *store;
static folddb_table *table;
static folddb_snapshot *snapshot;
static folddb_batch *batch;
static folddb_scan *scan;
static folddb_iterator *iterator;
static folddb_transaction *transaction;
static folddb_writer *writer;
static folddb_reader *reader;
static folddb_feed *feed;
static folddb_feed_event *event;
static folddb_shared *shared;

static void refused(char **err) {
    FAILED(*err, FOLDDB_ERROR_CLOSED, "before this process was forked");
}

static void child(const char *folder) {
    char *err = NULL;
    CHECK(!folddb_put(table, S("lost"), number(1), 8, &err));
    refused(&err);
    CHECK(!folddb_fold(table, S("a"), number(1), 8, &err));
    refused(&err);
    CHECK(!folddb_get(table, S("a"), NULL, &err));
    refused(&err);
    CHECK(!folddb_batch_commit(batch, FOLDDB_DURABILITY_SYNC, &err));
    refused(&err);
    CHECK(!folddb_iterator_seek_to_first(iterator, &err));
    refused(&err);
    CHECK(!folddb_iterator_create(scan, &err));
    refused(&err);
    CHECK(!folddb_snapshot_table(snapshot, table, &err));
    refused(&err);
    CHECK(!folddb_sync(store, &err));
    refused(&err);
    CHECK(!folddb_open(in(folder, "other.folddb"), options, &err));
    refused(&err);
    char byte;
    CHECK(!folddb_transaction_commit(transaction, FOLDDB_DURABILITY_SYNC, &err));
    refused(&err);
    CHECK(!folddb_writer_write(writer, "x", 1, &err));
    refused(&err);
    CHECK(!folddb_writer_finish(writer, &err));
    refused(&err);
    CHECK(!folddb_reader_read(reader, &byte, 1, &err));
    refused(&err);
    CHECK(!folddb_feed_next(feed, 0, &err));
    refused(&err);
    CHECK(!folddb_feed_acknowledge(feed, event, &err));
    refused(&err);
    CHECK(!folddb_feed_event_len(event, &err));
    refused(&err);
    CHECK(!folddb_shared_stores(shared, &err));
    refused(&err);
    CHECK(!folddb_close(store, &err));
    refused(&err);
    CHECK(!folddb_put(NULL, S("a"), S("b"), &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "NULL");
    folddb_iterator_destroy(iterator);
    folddb_table_destroy(table);
}

/* A child of a parent that has no store open uses one as any process does. */
static void child_alone(const char *path) {
    char *err = NULL;
    folddb_store *own = folddb_open(path, NULL, &err);
    folddb_table *counts_of_it = folddb_table_open(own, "counts", &err);
    OK(err);
    CHECK(folddb_fold(counts_of_it, S("a"), number(1), 8, &err) && counts(counts_of_it, "a", 3));
    for (int i = 0; i < 200; i++) folddb_table_destroy(folddb_table_open(own, "counts", &err));
    folddb_table_destroy(counts_of_it);
    CHECK(folddb_close(own, &err));
    OK(err);
}

/* Ends a child. What the threads of its parent had is lost in it, and no leak of this library: so it
 * ends as another program, which is not asked for leaks. */
static void leave(void) {
    execl("/bin/true", "true", (char *)NULL);
    _exit(9);
}

/* Forks, and lets the child live until the pipe is closed. */
static pid_t forked(int waits[2]) {
    CHECK(pipe(waits) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid > 0) close(waits[0]);
    return pid;
}

static void ended(pid_t pid) {
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    char *err = NULL;
    int waits[2];
    const char *path = in(argv[1], "forks.folddb");
    shared = folddb_shared_create(8 << 20, &err);
    options = folddb_options_create(&err);
    store = folddb_create(path, options, &err);
    table = folddb_table_create(store, "counts", "fold=sum:u64", &err);
    OK(err);
    folddb_table *blobs = folddb_table_create(store, "blobs", "", &err);
    CHECK(folddb_put(blobs, S("b"), S("long"), &err));
    transaction = folddb_transaction_create(store, &err);
    writer = folddb_writer_create(blobs, FOLDDB_STREAM_OP_PUT, S("c"), &err);
    reader = folddb_reader_create(blobs, S("b"), &err);
    feed = folddb_feed_open(store, "copy", NULL, NULL, 0, 0, false, &err);
    event = folddb_feed_next(feed, 0, &err);
    OK(err);
    CHECK(transaction && writer && reader && event);
    CHECK(folddb_fold(table, S("a"), number(1), 8, &err));
    snapshot = folddb_snapshot_create(store, &err);
    batch = folddb_batch_create(store, &err);
    CHECK(folddb_batch_fold(batch, table, S("a"), number(100), 8, &err));
    scan = folddb_scan_create(table, &err);
    iterator = folddb_iterator_create(scan, &err);
    OK(err);

    pid_t pid = forked(waits);
    if (pid == 0) {
        child(argv[1]);
        leave();
    }
    ended(pid);
    close(waits[1]);

    /* a child that lives on holds no lock of a store that its parent has closed */
    pid = forked(waits);
    if (pid == 0) {
        char byte;
        close(waits[1]);
        CHECK(read(waits[0], &byte, 1) == 0);
        leave();
    }
    CHECK(counts(table, "a", 1));
    CHECK(folddb_fold(table, S("a"), number(1), 8, &err));
    folddb_iterator_destroy(iterator);
    folddb_scan_destroy(scan);
    folddb_batch_destroy(batch);
    folddb_snapshot_destroy(snapshot);
    folddb_table_destroy(table);
    folddb_options_destroy(options);
    folddb_transaction_destroy(transaction);
    folddb_writer_destroy(writer);
    folddb_reader_destroy(reader);
    folddb_feed_event_destroy(event);
    folddb_feed_destroy(feed);
    folddb_table_destroy(blobs);
    folddb_shared_destroy(shared);
    CHECK(folddb_close(store, &err));
    store = folddb_open(path, NULL, &err);
    OK(err);
    table = folddb_table_open(store, "counts", &err);
    CHECK(counts(table, "a", 2) && has(table, "lost", NULL));
    folddb_table_destroy(table);
    CHECK(folddb_close(store, &err));
    close(waits[1]);
    ended(pid);

    pid = forked(waits);
    if (pid == 0) {
        child_alone(path);
        leave();
    }
    close(waits[1]);
    ended(pid);
    OK(err);
    return 0;
}
