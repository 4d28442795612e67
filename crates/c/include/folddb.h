#ifndef FOLDDB_H
#define FOLDDB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Beside the errors that its comment names, every function gives InvalidInput for a wrong handle
// (NULL, destroyed, of another type, or in use by another thread where only one may use it), Closed
// for a handle of a store that is closed and in a child that was forked since, and Panic.
//
// Stores, tables, snapshots, folddb_shared and feed events may be used by any number of threads at
// once; all other handles are for one thread at a time.

// The kind of an error, by what the caller can do about it. Numbers are never reused.
typedef enum {
    // There is no error.
    FOLDDB_ERROR_OK = 0,
    // The call itself is wrong: a handle that is NULL or was destroyed, a key too long, a rule
    // that does not parse. Fix the call.
    FOLDDB_ERROR_INVALID_INPUT = 1,
    // There is no store at this path.
    FOLDDB_ERROR_STORE_NOT_FOUND = 2,
    // There is something of this name already.
    FOLDDB_ERROR_ALREADY_EXISTS = 3,
    // The store has no table of this name.
    FOLDDB_ERROR_TABLE_NOT_FOUND = 4,
    // The table has different rules.
    FOLDDB_ERROR_RULES_MISMATCH = 5,
    // Another process, or another handle of this one, has the store open.
    FOLDDB_ERROR_LOCKED = 6,
    // The store was written by a newer version of FoldDB.
    FOLDDB_ERROR_NEWER_FORMAT = 7,
    // The operating system refuses access to a file.
    FOLDDB_ERROR_PERMISSION = 8,
    // The disk, or the store's own budget, is full. Writes resume when there is space again.
    FOLDDB_ERROR_NO_SPACE = 9,
    // A synced commit is written and visible, but the disk has not confirmed it.
    FOLDDB_ERROR_NOT_DURABLE = 10,
    // Bytes on disk are not what was written.
    FOLDDB_ERROR_CORRUPTION = 11,
    // An earlier write failed, so nothing more is written. Reads go on; reopen the store to write.
    FOLDDB_ERROR_POISONED = 12,
    // The fold of the table failed on this key. Other keys are untouched.
    FOLDDB_ERROR_FOLD_FAILED = 13,
    // What a transaction read has changed since. Nothing of it is written: begin again.
    FOLDDB_ERROR_CONFLICT = 14,
    // What a snapshot saw is no longer kept.
    FOLDDB_ERROR_SNAPSHOT_TOO_OLD = 15,
    // A feed has lost its place. Begin it again.
    FOLDDB_ERROR_FEED_LOST = 16,
    // The store or the table is for reading only.
    FOLDDB_ERROR_READ_ONLY = 17,
    // The store is closed, the table is dropped, or the process was forked since.
    FOLDDB_ERROR_CLOSED = 18,
    // A callback has asked to stop this work. What was done before stays done.
    FOLDDB_ERROR_STOPPED = 19,
    // Any other failure of the operating system.
    FOLDDB_ERROR_IO = 20,
    // A mistake in FoldDB itself. The handles of the call may be in any state: destroy them.
    FOLDDB_ERROR_PANIC = 21,
    // A kind that this version of the library does not know.
    FOLDDB_ERROR_UNKNOWN = 22,
} folddb_error;

// What has happened.
typedef enum {
    // A memtable has become a run.
    FOLDDB_EVENT_KIND_FLUSH = 0,
    // Some runs of a table have become one.
    FOLDDB_EVENT_KIND_MERGE = 1,
    // Live values were copied together, and the files that they were in are gone.
    FOLDDB_EVENT_KIND_RECLAIM = 2,
    // A writer had to wait for memory, and continues.
    FOLDDB_EVENT_KIND_STALL_MEMORY = 3,
    // A writer had to wait for range deletes, and continues.
    FOLDDB_EVENT_KIND_STALL_RANGE_DELETES = 4,
    // A write or a sync failed: the store writes no more until it is opened again.
    FOLDDB_EVENT_KIND_POISON = 5,
    // The function was slower than the store, which has forgotten some events.
    FOLDDB_EVENT_KIND_MISSED = 6,
    // Something that this version of the header has no name for.
    FOLDDB_EVENT_KIND_OTHER = 7,
} folddb_event_kind;

// What a feed gives.
typedef enum {
    // No event: the handle is none.
    FOLDDB_FEED_EVENT_KIND_NONE = 0,
    // Forget all that this feed has given before: now everything comes again.
    FOLDDB_FEED_EVENT_KIND_BEGIN = 1,
    // There is a table, which the change names.
    FOLDDB_FEED_EVENT_KIND_TABLE_CREATED = 2,
    // The table that the change names was dropped, with all its rows.
    FOLDDB_FEED_EVENT_KIND_TABLE_DROPPED = 3,
    // The value of a key.
    FOLDDB_FEED_EVENT_KIND_ROW = 4,
    // There are no more rows.
    FOLDDB_FEED_EVENT_KIND_ROWS_END = 5,
    // A batch, whole: its ops are the changes.
    FOLDDB_FEED_EVENT_KIND_BATCH = 6,
} folddb_feed_event_kind;

// What a change does to its key.
typedef enum {
    // It names a table, and has no key.
    FOLDDB_FEED_CHANGE_KIND_TABLE = 0,
    // Makes the value this one.
    FOLDDB_FEED_CHANGE_KIND_PUT = 1,
    // Gives an absent key this value.
    FOLDDB_FEED_CHANGE_KIND_PUT_IF_ABSENT = 2,
    // Folds this operand on.
    FOLDDB_FEED_CHANGE_KIND_FOLD = 3,
    // Makes the key absent.
    FOLDDB_FEED_CHANGE_KIND_DELETE = 4,
    // Makes all keys from the key on, and below the one given as the value, absent.
    FOLDDB_FEED_CHANGE_KIND_DELETE_RANGE = 5,
    // As Put, of a value too long for an event: read it from the store.
    FOLDDB_FEED_CHANGE_KIND_PUT_LONG = 6,
    // As PutIfAbsent, of such a value.
    FOLDDB_FEED_CHANGE_KIND_PUT_IF_ABSENT_LONG = 7,
    // As Fold, of such an operand.
    FOLDDB_FEED_CHANGE_KIND_FOLD_LONG = 8,
} folddb_feed_change_kind;

// When a commit is acknowledged.
typedef enum {
    // In memory. The last 10 ms or 256 KiB may be lost when the process dies.
    FOLDDB_DURABILITY_BUFFERED = 0,
    // Given to the operating system: survives the death of the process, not a power cut.
    FOLDDB_DURABILITY_PROCESS = 1,
    // On the disk: survives a power cut. Commits of several threads share one sync.
    FOLDDB_DURABILITY_SYNC = 2,
} folddb_durability;

// The outcome of a fold function.
typedef enum {
    // It has appended the value to its output.
    FOLDDB_FOLD_OUTCOME_VALUE = 0,
    // The value is the earlier one, as it is.
    FOLDDB_FOLD_OUTCOME_KEEP_EARLIER = 1,
    // The value is the later one, as it is.
    FOLDDB_FOLD_OUTCOME_KEEP_LATER = 2,
    // The key becomes absent, whatever came before these two.
    FOLDDB_FOLD_OUTCOME_DELETE = 3,
    // It cannot fold them; what it has appended to its output says why. So does any other number.
    FOLDDB_FOLD_OUTCOME_FAILED = 4,
} folddb_fold_outcome;

// How a value is written.
typedef enum {
    // It becomes the value of the key.
    FOLDDB_STREAM_OP_PUT = 0,
    // It becomes the value of the key, if that is absent.
    FOLDDB_STREAM_OP_PUT_IF_ABSENT = 1,
    // It is folded onto the value of the key.
    FOLDDB_STREAM_OP_FOLD = 2,
} folddb_stream_op;

// Ops on any tables of a store, which are committed together. One thread uses it at a time.
typedef struct folddb_batch folddb_batch;

// What a feed has given. Any number of threads use it at once.
typedef struct folddb_feed_event folddb_feed_event;

// Reads a feed. One thread uses it at a time.
typedef struct folddb_feed folddb_feed;

// A place in a scan. One thread uses it at a time.
typedef struct folddb_iterator folddb_iterator;

// The settings of a store. They are not stored: each opening chooses them.
typedef struct folddb_options folddb_options;

// Collects what a callback writes. It is valid while the callback runs, on its thread.
typedef struct folddb_output folddb_output;

// Reads one value, piece by piece. One thread uses it at a time.
typedef struct folddb_reader folddb_reader;

// A range of a table, and how it is walked. One thread uses it at a time, any number of times.
typedef struct folddb_scan folddb_scan;

// A budget of memory, a cache, three background threads, and a limit on what these write, for all
// stores that are opened with it. Any number of threads use it at once.
typedef struct folddb_shared folddb_shared;

// The whole store as it was when the snapshot was taken. Any number of threads read at it at once.
typedef struct folddb_snapshot folddb_snapshot;

// An open store: a directory of tables. Any number of threads use it at once.
typedef struct folddb_store folddb_store;

// A table of a store: as it is now, as a snapshot sees it, or in a transaction. Any number of
// threads use it at once; one in a transaction is used by one thread at a time.
typedef struct folddb_table folddb_table;

// Reads at one snapshot, and writes that are committed together, if what was read has not been
// written to since. One thread uses it at a time.
typedef struct folddb_transaction folddb_transaction;

// Writes one value, piece by piece. One thread uses it at a time.
typedef struct folddb_writer folddb_writer;

// Folds `later` onto `earlier`, which are values of `key`, and returns one of
// `folddb_fold_outcome`.
//
// It must be associative, byte for byte, and give equal bytes for equal bytes, in every process
// and version. It is called from any thread, by several at once, with locks held: it must not call
// the store that calls it. The pointers are valid during the call. A C++ exception must not leave
// it.
typedef int (*folddb_fold_function)(void *context,
                                    const char *key,
                                    size_t key_len,
                                    const char *earlier,
                                    size_t earlier_len,
                                    const char *later,
                                    size_t later_len,
                                    folddb_output *output);

// Releases a context, when the library no longer calls its function.
typedef void (*folddb_destroy_function)(void *context);

// Compares two keys: below zero where `a` comes first, above where `b` does. Zero leaves it to
// their bytes: keys are one key only where their bytes are the same.
//
// It must be an order, and the same one in every process, for as long as a table has it. It is
// called from any thread, by several at once, with locks held: it must not call the store that
// calls it. The pointers are valid during the call. A C++ exception must not leave it.
typedef int (*folddb_order_function)(void *context,
                                     const char *a,
                                     size_t a_len,
                                     const char *b,
                                     size_t b_len);

// An event in figures. Fields that it does not have are 0 or NULL.
typedef struct {
    // What has happened.
    folddb_event_kind kind;
    // The table of a flush or a merge.
    const char *table;
    // The plan of a merge, and what failed where the store is poisoned.
    const char *text;
    // The kind of failure that has poisoned the store.
    folddb_error error_kind;
    // Runs that were merged, segments that were reclaimed, events that were missed.
    uint64_t count;
    // Records that a merge has read.
    uint64_t records_in;
    // Records that a flush or a merge has written.
    uint64_t records_out;
    // Bytes that a merge has read, and that a reclaim has copied.
    uint64_t bytes_in;
    // Bytes that a flush has freed in memory, or a reclaim in files.
    uint64_t bytes_freed;
    // How long it took, in microseconds.
    uint64_t took_us;
} folddb_event;

// Is called with an event. The event, and the texts in it, are valid during the call.
//
// A thread of the store calls it, with one event at a time and no lock held: it may read and write
// the store, but not close it. Merges wait while it runs. A C++ exception must not leave it.
typedef void (*folddb_event_function)(void *context, const folddb_event *event);

// Does the work of a transaction, and returns whether it is to be committed. It is called again
// after a conflict, so it must do nothing else that cannot be done twice. It must neither commit
// nor destroy the transaction. A C++ exception must not leave it.
typedef bool (*folddb_transact_function)(void *context, folddb_transaction *transaction);

// What is known of a value without reading it. What is not known is 0.
typedef struct {
    // Bytes of the value.
    uint64_t size_bytes;
    // Hash of the value, seeded with its key.
    uint32_t hash;
    // In how many pieces it is stored: 1, but for values that were streamed or joined.
    uint32_t pieces;
    // Whether the value, or some of it, is separated from its key.
    bool is_separated;
    // Whether its version is known, as it is of a separated value.
    bool has_version;
    // Distinguishes the value from any other that its key has ever had in this store.
    uint64_t version;
    // When it was written, in milliseconds since 1970.
    uint64_t written_ms;
    // When it expires, in milliseconds since 1970; 0 where it lasts forever.
    uint64_t deadline_ms;
} folddb_value_head;

// Receives a row, and returns whether it wants the next one. The pointers are valid during the
// call. A C++ exception must not leave it.
typedef bool (*folddb_row_function)(void *context,
                                    const char *key,
                                    size_t key_len,
                                    const char *value,
                                    size_t value_len);

// Called with the progress of long work: how much is done, and of how much. Returns whether to
// continue. A C++ exception must not leave it.
typedef bool (*folddb_progress_function)(void *context, uint64_t done, uint64_t total);

// A change of an event. The pointers are valid until the event is destroyed.
typedef struct {
    // What it does.
    folddb_feed_change_kind kind;
    // The number of its table, which no other table of the store ever has.
    uint32_t table_id;
    // The name of its table.
    const char *table;
    // The key.
    const char *key;
    // Bytes of the key.
    size_t key_len;
    // The value, or the operand; NULL where it is long, or where there is none.
    const char *value;
    // Bytes of the value, also of one that is long.
    uint64_t value_len;
    // The seq of the op; 0 for rows and tables.
    uint64_t seq;
    // Until when the value lasts, in milliseconds since 1970; 0 where it lasts forever.
    uint64_t deadline_ms;
} folddb_feed_change;

// A backup in a folder for backups.
typedef struct {
    // Its number; a later backup has a higher one.
    uint64_t number;
    // The first seq that can be restored from it.
    uint64_t first_seq;
    // The last seq that can be restored from it: the state that it holds.
    uint64_t last_seq;
    // When it was made, in milliseconds since 1970, to the second.
    uint64_t made_ms;
    // How many files it has.
    uint64_t files;
    // The bytes of its files; linked ones take no space of their own.
    uint64_t bytes;
    // Whether its list is damaged or missing, so that it cannot be restored.
    bool is_damaged;
} folddb_backup_generation;

// A value that goes out. The data is for folddb_free; NULL where there is none.
typedef struct {
    // The bytes of the value.
    char *data;
    // How many there are.
    size_t len;
} folddb_value;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Data between C and Rust: bytes and texts that come in, buffers that go out. ---------------------

// Frees a buffer that a function of this header returned: a value, or the text of an error. NULL
// is ignored.
//
// Free each buffer once. Any thread may do it. Do not give handles to this function: each type of
// handle has a function of its own.
void folddb_free(void *memory);

// How a call fails: a text where C asked for it, that begins with the kind of the error. ----------

// The kind of the error whose text a function of this header has put into `errptr`.
//
// NULL is FOLDDB_OK. The text stays the caller's. Any thread may call it.
folddb_error folddb_error_kind(const char *error);

// What a function of C writes during its call: a value, or why there is none. ---------------------

// Appends bytes to the output of a callback. False where `output` is not that of the callback
// which runs on this thread at the moment; then nothing is appended.
//
// The bytes are copied.
bool folddb_output_append(folddb_output *output, const char *data, size_t data_len);

// What several stores share: a budget of memory, a cache, threads, and a limit on their writes. ---

// A budget of this many bytes, at least 4 MiB, for memtables, the cache and merges of all stores
// that are opened with options on which folddb_options_set_shared was called. NULL where it fails.
// Destroy it with folddb_shared_destroy.
//
// A store uses at most its own `memory_bytes` of it for memtables. One that is poisoned, or whose
// disk is full, stops no other.
//
// Errors: InvalidInput where there are too many handles.
folddb_shared *folddb_shared_create(size_t memory_bytes, char **errptr);

// Destroys the handle. NULL is ignored. Stores and options that have it continue to share it; its
// threads end with the last store.
void folddb_shared_destroy(folddb_shared *shared);

// Sets how many bytes per second background work of all stores may write; 0, the default, is no
// limit. Returns whether it was set. Merges, and work that moves values, wait; flushes count, but
// never wait. It applies from now on.
//
// Errors: only a wrong handle.
bool folddb_shared_set_background_bytes_per_s(folddb_shared *shared, uint64_t bytes, char **errptr);

// How many stores share it now; 0 where it fails, too.
//
// Errors: only a wrong handle.
size_t folddb_shared_stores(folddb_shared *shared, char **errptr);

// Bytes of the budget; 0 where it fails.
//
// Errors: only a wrong handle.
size_t folddb_shared_memory_bytes(folddb_shared *shared, char **errptr);

// Bytes that memtables and the cache of all stores hold now; 0 where it fails, too.
//
// Errors: only a wrong handle.
uint64_t folddb_shared_used_bytes(folddb_shared *shared, char **errptr);

// The settings that a store is opened with, and the functions of C that its tables name. ----------

// Options with every default. NULL where it fails.
//
// One thread sets them at a time; any number open stores with them. Destroy them when done; the
// stores that were opened with them stay as they are.
//
// Errors: InvalidInput where there are too many handles.
folddb_options *folddb_options_create(char **errptr);

// Destroys the handle. NULL is ignored. Functions that were added are released once the last store
// that was opened with them is closed, too.
void folddb_options_destroy(folddb_options *options);

// Sets one setting, by its name in Rust, to a value as text. Returns whether it did.
//
// Sizes are in bytes, times in milliseconds, both whole numbers. `none` is no bound.
//
//     memory_bytes, disk_bytes_max, disk_reserve_bytes, snapshot_age_max_ms, deletes_age_max_ms
//     durability: buffered, process or sync
//     background: threads or manual
//     merge_threads, merge_factor, background_nice, part_bytes, open_files_max, index_bytes_max,
//     lock_in_memory, mapped_log, segment_bytes, value_segment_bytes, stream_piece_bytes,
//     values_direct, value_space_max, snapshot_files_after_ms
//
// Errors: InvalidInput for an unknown name, and for a value that the setting cannot have.
bool folddb_options_set(folddb_options *options,
                        const char *name,
                        const char *value,
                        char **errptr);

// Lets stores that are opened with these options share what `shared` has with all others that do.
// Returns whether it was set. The options keep it: its handle may be destroyed.
//
// Errors: only a wrong handle.
bool folddb_options_set_shared(folddb_options *options, folddb_shared *shared, char **errptr);

// Registers a fold of C by name and version, so that tables whose rules name it
// (`custom_fold=NAME` and `fold_version=VERSION`) can be opened. Returns whether it did.
//
// The options own `context` from now on, also where this fails: `destroy`, unless it is NULL, is
// called with it once, when the options are destroyed and the last store that was opened with them
// is closed.
//
// Errors: InvalidInput where `fold` or the name is NULL.
bool folddb_options_add_fold(folddb_options *options,
                             const char *name,
                             uint32_t version,
                             folddb_fold_function fold,
                             void *context,
                             folddb_destroy_function destroy,
                             char **errptr);

// Registers a key order of C by name, so that tables whose rules name it (`order=NAME`) can be
// opened. Returns whether it did. For `context` and `destroy` see folddb_options_add_fold.
//
// Errors: InvalidInput where `order` or the name is NULL.
bool folddb_options_add_order(folddb_options *options,
                              const char *name,
                              folddb_order_function order,
                              void *context,
                              folddb_destroy_function destroy,
                              char **errptr);

// Calls `listener` with the events of the store. Returns whether it will.
//
// A later listener replaces an earlier one. For `context` and `destroy` see
// folddb_options_add_fold.
//
// Errors: InvalidInput where `listener` is NULL.
bool folddb_options_on_event(folddb_options *options,
                             folddb_event_function listener,
                             void *context,
                             folddb_destroy_function destroy,
                             char **errptr);

// Stores: opening, closing, and calls about a whole store. ----------------------------------------

// Opens a store that exists, to read it and to write to it. `options` may be NULL for the
// defaults. NULL where it fails. Close it with folddb_close.
//
// Errors: StoreNotFound, Locked, NewerFormat, Permission; ReadOnly where it is frozen; Corruption.
folddb_store *folddb_open(const char *path, folddb_options *options, char **errptr);

// Creates a store in a directory that does not exist yet, or is empty, and opens it. Otherwise as
// folddb_open.
//
// Errors: AlreadyExists; any failure of the operating system.
folddb_store *folddb_create(const char *path, folddb_options *options, char **errptr);

// Opens the store in a directory, and creates it where the directory does not exist or is empty.
// Otherwise as folddb_open.
folddb_store *folddb_open_or_create(const char *path, folddb_options *options, char **errptr);

// Opens a store to read it while no process writes: nothing on disk changes. Otherwise as
// folddb_open. This is how a frozen store is opened.
folddb_store *folddb_open_read_only(const char *path, folddb_options *options, char **errptr);

// Opens a store to read it while another process may write to it: it shows what was there when it
// was opened, and does not change; folddb_refresh opens it again. Otherwise as folddb_open.
folddb_store *folddb_open_secondary(const char *path, folddb_options *options, char **errptr);

// Opens a secondary again, as its store is now: another handle, which is closed separately. NULL
// where it fails.
//
// Errors: InvalidInput where the store was not opened by folddb_open_secondary; as folddb_open.
folddb_store *folddb_refresh(folddb_store *store, char **errptr);

// Flushes and closes a store, and ends the handle, also where it returns false for an error. NULL
// is an error.
//
// Handles of its tables, snapshots, iterators and the rest may outlive it: calls with them give
// Closed, and they are destroyed as always. Calls under way in other threads end first, or with
// that error. It must not be called by a function that listens to events of the store.
//
// Errors: as folddb_flush; what was committed is in the store all the same.
bool folddb_close(folddb_store *store, char **errptr);

// The names of the tables, in order. `count` is set to how many there are; it may be NULL, and
// NULL follows the last name. One folddb_free of the list frees all of it. NULL where it fails.
//
// Errors: only a wrong handle.
char **folddb_tables(folddb_store *store, size_t *count, char **errptr);

// Removes a table and everything in it. Handles of it give Closed from now on; readers that are
// under way end first. Returns whether it did.
//
// Errors: TableNotFound; ReadOnly; a failed write.
bool folddb_drop_table(folddb_store *store, const char *name, char **errptr);

// The seq of the last record that was committed; 0 where there is none, and where it fails.
//
// Errors: only a wrong handle.
uint64_t folddb_last_seq(folddb_store *store, char **errptr);

// Makes all that was committed so far survive a power cut. Returns whether it did.
//
// Errors: NotDurable, Poisoned, Closed.
bool folddb_sync(folddb_store *store, char **errptr);

// Writes all memtables out as runs. Returns whether it did. A store does this on its own, too.
//
// Errors: NoSpace, Poisoned, Closed; ReadOnly where the store was opened for reading; a failed
// write.
bool folddb_flush(folddb_store *store, char **errptr);

// Waits until no background work is due. Returns whether it reached that point.
//
// Errors: as folddb_flush.
bool folddb_settle(folddb_store *store, char **errptr);

// Freezes a store that no process has open: it can be opened only for reading, until it is thawed.
// Returns whether it did. `options` may be NULL.
//
// Errors: as folddb_open.
bool folddb_freeze(const char *path, folddb_options *options, char **errptr);

// Lets a frozen store be written to again. Returns whether it does. `options` may be NULL.
//
// Errors: as folddb_open.
bool folddb_thaw(const char *path, folddb_options *options, char **errptr);

// Whether a store is frozen. False where it fails, too.
//
// Errors: StoreNotFound where nothing is at `path`.
bool folddb_is_frozen(const char *path, folddb_options *options, char **errptr);

// Snapshots: the whole store as it was at one moment. ---------------------------------------------

// Takes a snapshot, which is free. While it lives, the store keeps what it sees: destroy it when
// done. NULL where it fails. folddb_snapshot_table reads at it.
//
// Errors: only a wrong handle.
folddb_snapshot *folddb_snapshot_create(folddb_store *store, char **errptr);

// A snapshot of the store as it was after the record of this seq. Only tables that keep their past
// (`keep=...` among the rules) can be read at it. NULL where it fails.
//
// Errors: InvalidInput for a seq that is not written yet; SnapshotTooOld.
folddb_snapshot *folddb_snapshot_at_seq(folddb_store *store, uint64_t seq, char **errptr);

// A snapshot of the store as it was at this time, in milliseconds since 1970. Otherwise as
// folddb_snapshot_at_seq.
folddb_snapshot *folddb_snapshot_at_time(folddb_store *store, uint64_t unix_ms, char **errptr);

// The seq of the last record that it sees; 0 where it fails, too.
//
// Errors: only a wrong handle.
uint64_t folddb_snapshot_seq(folddb_snapshot *snapshot, char **errptr);

// Destroys the handle. NULL is ignored. Tables and iterators that read at it keep what they need
// until they are destroyed.
void folddb_snapshot_destroy(folddb_snapshot *snapshot);

// Transactions: reads at one snapshot, and writes that happen only if what was read still holds. --

// Begins a transaction. NULL where it fails. folddb_transaction_table reads and writes in it.
//
// Errors: only a wrong handle.
folddb_transaction *folddb_transaction_create(folddb_store *store, char **errptr);

// Commits what was written, if what was read still holds, as durably as `durability` says, one of
// folddb_durability. Returns whether it did. The transaction is over in either case.
//
// Errors: Conflict where others have written to what was read: nothing is written, begin again;
// InvalidInput where something that was written was wrong: nothing is written; a failed write.
bool folddb_transaction_commit(folddb_transaction *transaction, int durability, char **errptr);

// Destroys the handle. NULL is ignored. What was not committed is discarded.
void folddb_transaction_destroy(folddb_transaction *transaction);

// Runs `work` in a transaction and commits it, again and again until there is no conflict. Returns
// whether it was committed: false with no error where `work` said no.
//
// Errors: as folddb_transaction_commit; Conflict after a thousand tries.
bool folddb_transact(folddb_store *store,
                     int durability,
                     folddb_transact_function work,
                     void *context,
                     char **errptr);

// Tables: created, opened, and read at a snapshot or in a transaction. ----------------------------

// Opens a table that exists. NULL where it fails. Destroy it with folddb_table_destroy.
//
// Errors: TableNotFound, with the names that there are.
folddb_table *folddb_table_open(folddb_store *store, const char *name, char **errptr);

// Creates a table under these rules, and opens it. NULL where it fails.
//
// Rules are a line for each that is not the default: `key=utf8\nfold=sum:u64`. docs/C.md lists
// them. The name of ready-made rules means those (`counter`, `stats`, ...); NULL means every
// default: sorted, keys and values of any bytes, a later value replaces the earlier one.
//
// Errors: AlreadyExists; InvalidInput for a bad name, and rules that cannot be.
folddb_table *folddb_table_create(folddb_store *store,
                                  const char *name,
                                  const char *rules,
                                  char **errptr);

// Opens a table, and creates it under these rules where the store has none of this name. Otherwise
// as folddb_table_create.
//
// Errors: RulesMismatch where the table has different rules, with the difference.
folddb_table *folddb_table_open_or_create(folddb_store *store,
                                          const char *name,
                                          const char *rules,
                                          char **errptr);

// Destroys the handle. NULL is ignored. The table itself remains.
void folddb_table_destroy(folddb_table *table);

// The name of the table, for folddb_free. NULL where it fails.
//
// Errors: only a wrong handle.
char *folddb_table_name(folddb_table *table, char **errptr);

// The rules of the table, as folddb_table_create accepts them, for folddb_free. NULL where it
// fails.
//
// Errors: only a wrong handle.
char *folddb_table_rules(folddb_table *table, char **errptr);

// The same table as a snapshot sees it: another handle, for reading. NULL where it fails.
//
// Errors: InvalidInput where the snapshot is of another store, or `table` is in a transaction.
folddb_table *folddb_snapshot_table(folddb_snapshot *snapshot, folddb_table *table, char **errptr);

// The same table in a transaction: another handle. Its writes are committed with the transaction,
// and its reads see them before that. NULL where it fails.
//
// Errors: InvalidInput where the transaction is of another store, or over.
folddb_table *folddb_transaction_table(folddb_transaction *transaction,
                                       folddb_table *table,
                                       char **errptr);

// The same table, whose writes are acknowledged when `durability` says, one of folddb_durability:
// another handle. NULL where it fails.
//
// Errors: InvalidInput for a number that is no durability.
folddb_table *folddb_table_with_durability(folddb_table *table, int durability, char **errptr);

// The same table, whose values last this many milliseconds after they are written: another handle.
// For tables whose values may expire (`expire=...` among the rules). NULL where it fails.
//
// Errors: only a wrong handle.
folddb_table *folddb_table_lasting_for(folddb_table *table, uint64_t ms, char **errptr);

// The same table, whose values last until this time, in milliseconds since 1970: another handle.
// Otherwise as folddb_table_lasting_for.
folddb_table *folddb_table_lasting_until(folddb_table *table, uint64_t unix_ms, char **errptr);

// Writes to one key, and to a range of keys. ------------------------------------------------------

// Makes the value of a key this one. Returns whether it did. Key and value are copied.
//
// Errors: InvalidInput for a key or a value that the rules of the table do not accept, or that is
// too long; ReadOnly, NoSpace, NotDurable, Poisoned, Closed. In a transaction, the commit reports
// a wrong key or value.
bool folddb_put(folddb_table *table,
                const char *key,
                size_t key_len,
                const char *value,
                size_t value_len,
                char **errptr);

// Gives a key this value if it is absent: the first wins. Otherwise as folddb_put.
bool folddb_put_if_absent(folddb_table *table,
                          const char *key,
                          size_t key_len,
                          const char *value,
                          size_t value_len,
                          char **errptr);

// Folds this operand onto the value of a key. It reads nothing. Otherwise as folddb_put.
bool folddb_fold(folddb_table *table,
                 const char *key,
                 size_t key_len,
                 const char *operand,
                 size_t operand_len,
                 char **errptr);

// Makes a key absent. Otherwise as folddb_put.
bool folddb_delete(folddb_table *table, const char *key, size_t key_len, char **errptr);

// Makes all keys from `from` on and below `to`, in the order of the table, absent. Otherwise as
// folddb_put.
//
// Errors: InvalidInput also for a hashed table, and for bounds in the wrong order.
bool folddb_delete_range(folddb_table *table,
                         const char *from,
                         size_t from_len,
                         const char *to,
                         size_t to_len,
                         char **errptr);

// Makes all keys whose bytes begin with `prefix` absent. Otherwise as folddb_put.
//
// Errors: InvalidInput also for a hashed table, and for one with an order of its own, in which
// such keys are not next to each other.
bool folddb_delete_prefix(folddb_table *table,
                          const char *prefix,
                          size_t prefix_len,
                          char **errptr);

// Reads of keys: the value of one, those of several, and what is known without reading them. ------

// The value of a key, for folddb_free, and its length. NULL where the key is absent, and where it
// fails. A NUL follows the value, and does not count.
//
// Errors: FoldFailed where the fold of the table fails on this key; Corruption, SnapshotTooOld,
// Closed; a failed read.
char *folddb_get(folddb_table *table,
                 const char *key,
                 size_t key_len,
                 size_t *value_len,
                 char **errptr);

// The value of a key, which is deleted in the same moment: as folddb_get, and of several threads
// that take one value, one gets it. An absent key is only read. A value that could not be handed
// over is deleted, too.
//
// Errors: as folddb_get and folddb_delete; Conflict if others wrote to the key during each of a
// thousand tries; ReadOnly in a snapshot.
char *folddb_take(folddb_table *table,
                  const char *key,
                  size_t key_len,
                  size_t *value_len,
                  char **errptr);

// Copies the value of a key into `buffer`, as much as it has room for, and sets `value_len` to the
// length of the value. Returns whether the key is there; false where it fails, too. Otherwise as
// folddb_get.
bool folddb_get_into(folddb_table *table,
                     const char *key,
                     size_t key_len,
                     char *buffer,
                     size_t buffer_len,
                     size_t *value_len,
                     char **errptr);

// The values of `count` keys as of one moment, in the order of the keys. `values` has room for
// `count`: each is set to the data of a value, for folddb_free, and its length, or to NULL where
// its key is absent. Returns whether it did; where it fails all are NULL.
//
// Errors: as folddb_get.
bool folddb_get_many(folddb_table *table,
                     size_t count,
                     const char *const *keys,
                     const size_t *key_lens,
                     folddb_value *values,
                     char **errptr);

// Whether a key is there. False where it fails, too. No separated value is read.
//
// Errors: as folddb_get.
bool folddb_contains(folddb_table *table, const char *key, size_t key_len, char **errptr);

// What is known of the value of a key without reading it: `head`, and as the result, for
// folddb_free, what the rules of the table take out of the value (`head=...`), with its length;
// empty where they take nothing. NULL where the key is absent, and where it fails.
//
// Errors: as folddb_get.
char *folddb_head(folddb_table *table,
                  const char *key,
                  size_t key_len,
                  folddb_value_head *head,
                  size_t *taken_len,
                  char **errptr);

// Batches: ops on any tables of a store, committed together. --------------------------------------

// An empty batch. NULL where it fails. Destroy it with folddb_batch_destroy.
//
// Errors: only a wrong handle.
folddb_batch *folddb_batch_create(folddb_store *store, char **errptr);

// Destroys the handle. NULL is ignored. What was not committed is forgotten.
void folddb_batch_destroy(folddb_batch *batch);

// Makes the value of a key this one, with the batch. Returns whether it was added. Key and value
// are copied.
//
// Errors: InvalidInput where a handle is wrong. The commit reports a wrong key or value, and a
// table of another store, and writes nothing then.
bool folddb_batch_put(folddb_batch *batch,
                      folddb_table *table,
                      const char *key,
                      size_t key_len,
                      const char *value,
                      size_t value_len,
                      char **errptr);

// Gives a key this value if it is absent, with the batch. Otherwise as folddb_batch_put.
bool folddb_batch_put_if_absent(folddb_batch *batch,
                                folddb_table *table,
                                const char *key,
                                size_t key_len,
                                const char *value,
                                size_t value_len,
                                char **errptr);

// Folds this operand onto the value of a key, with the batch. Otherwise as folddb_batch_put.
bool folddb_batch_fold(folddb_batch *batch,
                       folddb_table *table,
                       const char *key,
                       size_t key_len,
                       const char *operand,
                       size_t operand_len,
                       char **errptr);

// Makes a key absent, with the batch. Otherwise as folddb_batch_put.
bool folddb_batch_delete(folddb_batch *batch,
                         folddb_table *table,
                         const char *key,
                         size_t key_len,
                         char **errptr);

// Makes all keys from `from` on and below `to` absent, with the batch. Otherwise as
// folddb_batch_put.
bool folddb_batch_delete_range(folddb_batch *batch,
                               folddb_table *table,
                               const char *from,
                               size_t from_len,
                               const char *to,
                               size_t to_len,
                               char **errptr);

// Makes all keys whose bytes begin with `prefix` absent, with the batch. Otherwise as
// folddb_batch_put.
bool folddb_batch_delete_prefix(folddb_batch *batch,
                                folddb_table *table,
                                const char *prefix,
                                size_t prefix_len,
                                char **errptr);

// How many ops it has; 0 where it fails, too.
//
// Errors: only a wrong handle.
size_t folddb_batch_len(folddb_batch *batch, char **errptr);

// Commits all ops together, as durably as `durability` says, one of folddb_durability. Returns
// whether it did. The batch is empty afterwards, in either case, and may be used again.
//
// Errors: InvalidInput where an op was wrong: nothing is written; ReadOnly, NoSpace, NotDurable,
// Poisoned, Closed.
bool folddb_batch_commit(folddb_batch *batch, int durability, char **errptr);

// Scans: a range of a table, which is then walked, counted, aggregated, or handed to a function. --

// A scan of all of a table: as it is now, as the snapshot sees it, or in the transaction,
// depending on the handle `table`. NULL where it fails. Destroy it with folddb_scan_destroy.
//
// A scan of a table as it is now sees the table at the time when the scan is walked.
//
// Errors: only a wrong handle.
folddb_scan *folddb_scan_create(folddb_table *table, char **errptr);

// Destroys the handle. NULL is ignored. Iterators of it remain valid.
void folddb_scan_destroy(folddb_scan *scan);

// Only keys from this one on, in the order of the table. Returns whether it was set. The key is
// copied.
//
// Errors: InvalidInput where the key is NULL and its length is not 0.
bool folddb_scan_from(folddb_scan *scan, const char *key, size_t key_len, char **errptr);

// Only keys after this one. Otherwise as folddb_scan_from, which it replaces.
bool folddb_scan_after(folddb_scan *scan, const char *key, size_t key_len, char **errptr);

// Only keys before this one. Otherwise as folddb_scan_from.
bool folddb_scan_before(folddb_scan *scan, const char *key, size_t key_len, char **errptr);

// Only keys up to this one, included. Otherwise as folddb_scan_before, which it replaces.
bool folddb_scan_through(folddb_scan *scan, const char *key, size_t key_len, char **errptr);

// Only keys that begin with these bytes. It replaces both bounds. Returns whether it was set.
//
// Errors: InvalidInput for a table with a custom order, in which the keys of a prefix are not
// a range.
bool folddb_scan_prefix(folddb_scan *scan, const char *prefix, size_t prefix_len, char **errptr);

// Reverses its direction: from the highest key down, or up again. Returns whether it was set.
//
// Errors: only a wrong handle.
bool folddb_scan_reverse(folddb_scan *scan, char **errptr);

// At most this many rows, the first ones in its direction; an iterator reaches no others, in
// either direction. Returns whether it was set.
//
// Errors: only a wrong handle.
bool folddb_scan_limit(folddb_scan *scan, size_t rows, char **errptr);

// Only keys: values are empty, and no separated one is read. Returns whether it was set.
//
// Errors: only a wrong handle.
bool folddb_scan_keys_only(folddb_scan *scan, char **errptr);

// Calls `visit` with each row, without copying any: the fastest way through a range. Returns
// whether it reached the end.
//
// Errors: FoldFailed, naming the key; Stopped where `visit` wants no more; Corruption,
// SnapshotTooOld, Closed; a failed read.
bool folddb_scan_each(folddb_scan *scan, folddb_row_function visit, void *context, char **errptr);

// Keys and values as JSON, both ways, as the command line shows and accepts them. -----------------

// The bytes of a key that is given as JSON, for folddb_free, and their length: `"UA"`, `7`, or for
// a tuple `["UA", "EWR"]`. NULL where it fails.
//
// Errors: InvalidInput, with what the table expects.
char *folddb_key_from_json(folddb_table *table, const char *json, size_t *key_len, char **errptr);

// Only keys that begin with what the JSON gives: for a tuple its first elements, `["UA"]`.
// Otherwise as folddb_scan_prefix.
//
// Errors: InvalidInput, with what the table expects, and for keys that are numbers.
bool folddb_scan_prefix_json(folddb_scan *scan, const char *json, char **errptr);

// A key as JSON, for folddb_free. NULL where it fails.
//
// Errors: InvalidInput for bytes that are no key of the table.
char *folddb_key_to_json(folddb_table *table, const char *key, size_t key_len, char **errptr);

// The bytes of a value or an operand that is given as JSON, for folddb_free, and their length:
// `12.5` for statistics, `["a", "b"]` for a set, `{"flights": 1, "delay": 12.5}` for a record.
// NULL where it fails.
//
// Errors: InvalidInput, with what the fold of the table expects.
char *folddb_value_from_json(folddb_table *table,
                             const char *json,
                             size_t *value_len,
                             char **errptr);

// A value as JSON, for folddb_free: statistics with their mean, a sketch with its estimate. NULL
// where it fails.
//
// Errors: InvalidInput for bytes that are no value of the table.
char *folddb_value_to_json(folddb_table *table, const char *value, size_t value_len, char **errptr);

// The aggregate of a range. -----------------------------------------------------------------------

// How many rows a scan has; 0 where it fails, too. In a table with summaries, most of it is known
// without reading the rows.
//
// Errors: Corruption, SnapshotTooOld, Closed; a failed read.
uint64_t folddb_scan_count(folddb_scan *scan, char **errptr);

// The fold of the values of a scan, for folddb_free, and its length; NULL where there are no rows,
// and where it fails. `rows` is set to the number of rows. In a table with summaries, most of it
// is known without reading the rows.
//
// Errors: InvalidInput for a scan with a limit, and for a table that replaces values; FoldFailed,
// naming the key; as folddb_scan_count.
char *folddb_scan_aggregate(folddb_scan *scan, uint64_t *rows, size_t *value_len, char **errptr);

// Iterators: a place in a scan, which goes both ways. ---------------------------------------------

// An iterator over the range that the scan has now. It is at no row yet, and sees the table as it
// is now, or as the snapshot or the transaction sees it. NULL where it fails. Destroy it with
// folddb_iterator_destroy; while it lives, the store keeps what it sees.
//
// Errors: SnapshotTooOld, Closed.
folddb_iterator *folddb_iterator_create(folddb_scan *scan, char **errptr);

// Destroys the handle. NULL is ignored.
void folddb_iterator_destroy(folddb_iterator *iterator);

// Goes to the first row, in the direction of the scan. Returns whether there is one.
//
// Errors: FoldFailed where the fold of the table fails on the key there: folddb_iterator_next
// continues after it; InvalidInput for a hashed table whose scan has bounds; Corruption,
// SnapshotTooOld, Closed; a failed read.
bool folddb_iterator_seek_to_first(folddb_iterator *iterator, char **errptr);

// Goes to the last row, in the direction of the scan. Otherwise as folddb_iterator_seek_to_first.
bool folddb_iterator_seek_to_last(folddb_iterator *iterator, char **errptr);

// Goes to the first row at the key or after it, in the direction of the scan: in a reversed one,
// to the last key that is no higher. Otherwise as folddb_iterator_seek_to_first.
bool folddb_iterator_seek(folddb_iterator *iterator,
                          const char *key,
                          size_t key_len,
                          char **errptr);

// Goes to the next row, in the direction of the scan. Otherwise as folddb_iterator_seek_to_first.
bool folddb_iterator_next(folddb_iterator *iterator, char **errptr);

// Goes to the previous row. Otherwise as folddb_iterator_seek_to_first.
bool folddb_iterator_prev(folddb_iterator *iterator, char **errptr);

// Whether it is at a row. False for an invalid handle, too.
//
// Errors: only a wrong handle.
bool folddb_iterator_valid(folddb_iterator *iterator, char **errptr);

// The key of its row, and its length. NULL where it is at none. The pointer is valid until the
// iterator moves or is destroyed; it is not for folddb_free.
//
// Errors: InvalidInput where it is at no row.
const char *folddb_iterator_key(folddb_iterator *iterator, size_t *key_len, char **errptr);

// The value of its row, and its length. Otherwise as folddb_iterator_key.
const char *folddb_iterator_value(folddb_iterator *iterator, size_t *value_len, char **errptr);

// Secondary indexes: added, dropped, and queried. -------------------------------------------------

// Adds an index to a table, and builds it from the rows of the table before it returns, while
// writes go on. It is written `NAME:RULE`, such as `city:json:/address/city`; docs/C.md lists the
// rules. `progress` may be NULL; it is called after every few thousand keys with the keys that are
// in the index, and about how many there are. Returns whether the index is built. Adding it once
// more continues a stopped build.
//
// Errors: InvalidInput for a rule that does not parse or breaks the law of terms, for a hashed
// table, and where another index has this name; Stopped where `progress` wants it to: the index
// exists then, and refuses queries; a failed write.
bool folddb_index_add(folddb_table *table,
                      const char *rule,
                      folddb_progress_function progress,
                      void *context,
                      char **errptr);

// Drops an index of a table. Returns whether it did.
//
// Errors: InvalidInput where the table has no such index; a failed write.
bool folddb_index_drop(folddb_table *table, const char *index, char **errptr);

// The indexes of a table, each written as folddb_index_add takes it. Otherwise as folddb_tables.
//
// Errors: as folddb_index_drop, for a table at a snapshot or in a transaction.
char **folddb_indexes(folddb_table *table, size_t *count, char **errptr);

// Calls `function` with each record that an index has under a term, which is given as it is typed:
// `Berlin`, `7`; quotes make a text of anything. Returns whether it reached the end.
//
// Errors: InvalidInput where the table has no such index and for a term that it cannot have;
// Stopped where `function` wants no more; as folddb_scan_each.
bool folddb_find(folddb_table *table,
                 const char *index,
                 const char *term,
                 folddb_row_function function,
                 void *context,
                 char **errptr);

// The same for terms from `from` on and below `to`, in their order; NULL is no bound.
//
// Errors: as folddb_find.
bool folddb_find_range(folddb_table *table,
                       const char *index,
                       const char *from,
                       const char *to,
                       folddb_row_function function,
                       void *context,
                       char **errptr);

// Values of any length, written and read piece by piece. ------------------------------------------

// A writer of the value of a key, as `op` says, one of folddb_stream_op. Nothing is visible before
// folddb_writer_finish. NULL where it fails. Destroy it with folddb_writer_destroy.
//
// Errors: InvalidInput for a key that the table does not accept, and for a table in a transaction;
// ReadOnly, Closed.
folddb_writer *folddb_writer_create(folddb_table *table,
                                    int op,
                                    const char *key,
                                    size_t key_len,
                                    char **errptr);

// Appends the next bytes of the value. Returns whether it did; a writer that has failed stays
// failed.
//
// Errors: InvalidInput for a value that is too long; NoSpace, Poisoned, Closed; a failed write.
bool folddb_writer_write(folddb_writer *writer, const char *data, size_t data_len, char **errptr);

// Ends the value and commits it. Returns whether it did. Afterwards the writer can only be
// destroyed.
//
// Errors: as folddb_writer_write; NotDurable.
bool folddb_writer_finish(folddb_writer *writer, char **errptr);

// Destroys the handle. NULL is ignored. A value that was not finished was not written.
void folddb_writer_destroy(folddb_writer *writer);

// A reader of the value of a key. NULL where the key is absent, and where it fails. Destroy it
// with folddb_reader_destroy; while it lives, the store keeps its value.
//
// Errors: as folddb_get.
folddb_reader *folddb_reader_create(folddb_table *table,
                                    const char *key,
                                    size_t key_len,
                                    char **errptr);

// How many bytes the value has; 0 where it fails, too.
//
// Errors: only a wrong handle.
uint64_t folddb_reader_len(folddb_reader *reader, char **errptr);

// Reads at most this many bytes into `buffer`, and returns how many; 0 at the end, and where it
// fails.
//
// Errors: Corruption; a failed read.
size_t folddb_reader_read(folddb_reader *reader, char *buffer, size_t buffer_len, char **errptr);

// Goes to this byte of the value. Returns whether it did.
//
// Errors: only a wrong handle. Beyond the end nothing is read.
bool folddb_reader_seek(folddb_reader *reader, uint64_t at, char **errptr);

// Destroys the handle. NULL is ignored.
void folddb_reader_destroy(folddb_reader *reader);

// Change feeds: rows as of one moment, then every batch after it, in the order of commits. --------

// Opens the feed of this name for reading, and makes it where there is none: it begins with the
// rows of the present, and continues after the last acknowledged event. NULL where it fails.
// Destroy it with folddb_feed_destroy.
//
// `table` is the only table that it reports; NULL is all. It reports keys that begin with
// `prefix`. `bytes_max` bounds the bytes that are kept only for it; 0 leaves what it has, and
// gives a new one 1 GiB. With `from_now` it gives no rows, and begins with the next batch.
//
// Errors: Locked while another reader has it; InvalidInput for a bad name, and where there is one
// with another scope; ReadOnly; a failed write.
folddb_feed *folddb_feed_open(folddb_store *store,
                              const char *name,
                              const char *table,
                              const char *prefix,
                              size_t prefix_len,
                              uint64_t bytes_max,
                              bool from_now,
                              char **errptr);

// Destroys the handle, and lets others read the feed. NULL is ignored. The feed stays, and so
// does what is held for it, until folddb_feed_drop.
void folddb_feed_destroy(folddb_feed *feed);

// The names of the feeds of a store. Otherwise as folddb_tables.
char **folddb_feeds(folddb_store *store, size_t *count, char **errptr);

// Removes a feed, and what is held for it. Returns whether it did.
//
// Errors: InvalidInput where there is none of this name; Locked while it is being read; a failed
// write.
bool folddb_feed_drop(folddb_store *store, const char *name, char **errptr);

// The next event of a feed; waits for one, at most this many milliseconds. NULL where none came,
// and where it fails. Destroy it with folddb_feed_event_destroy.
//
// Errors: FeedLost where it has lost its place, see folddb_feed_begin_again; Closed; Corruption; a
// failed read or write.
folddb_feed_event *folddb_feed_next(folddb_feed *feed, uint64_t timeout_ms, char **errptr);

// Says, durably, that all up to this event has been dealt with: none of it is given again. Returns
// whether it did.
//
// Errors: FeedLost; InvalidInput for an event of another feed that this one has not reached; a
// failed write.
bool folddb_feed_acknowledge(folddb_feed *feed, folddb_feed_event *event, char **errptr);

// Forgets the place of the feed, and begins again with the rows of the present. Returns whether it
// did.
//
// Errors: as folddb_feed_next, but for FeedLost.
bool folddb_feed_begin_again(folddb_feed *feed, char **errptr);

// The kind of the event. FOLDDB_FEED_EVENT_KIND_NONE where it fails.
//
// Errors: InvalidInput for an event that this version does not know.
folddb_feed_event_kind folddb_feed_event_type(folddb_feed_event *event, char **errptr);

// How many changes the event has: the ops of a batch, one for a row or a table; 0 where it fails,
// too.
//
// Errors: only a wrong handle.
size_t folddb_feed_event_len(folddb_feed_event *event, char **errptr);

// One change of the event, counted from 0. Returns whether there is one.
//
// Errors: InvalidInput where there is none.
bool folddb_feed_event_change(folddb_feed_event *event,
                              size_t index,
                              folddb_feed_change *change,
                              char **errptr);

// Destroys the handle. NULL is ignored. Pointers into the event are no longer valid.
void folddb_feed_event_destroy(folddb_feed_event *event);

// Maintenance of a store: compact it, reclaim its space, check whether it is whole, back it up and 

// Merges all runs of a table into one, and those of its indexes, before it returns. `progress` may
// be NULL, and may stop it: what is merged by then stays merged. Returns whether all of it was
// done.
//
// Errors: NoSpace; Stopped where `progress` wants it to; a failed read or write.
bool folddb_compact(folddb_table *table,
                    folddb_progress_function progress,
                    void *context,
                    char **errptr);

// Reclaims the space of dead separated values at once, as long as that is worth it; a store does
// this on its own, too. Values that were overwritten count as live until a merge has met them, as
// folddb_compact does. Returns whether it did. `freed_bytes`, unless it is NULL, is set to the
// bytes by which the files of values have shrunk.
//
// Errors: NoSpace, Poisoned, Closed; ReadOnly where the store was opened for reading; a failed
// read or write.
bool folddb_reclaim(folddb_store *store, uint64_t *freed_bytes, char **errptr);

// Advice on the store, each a sentence or some, the most urgent first; none where all is well.
// Otherwise as folddb_tables.
//
// Errors: Closed; a file that cannot be read.
char **folddb_doctor(folddb_store *store, size_t *count, char **errptr);

// Adds a backup of the store, as it is now, to the folder for backups at `to`, which is created
// where nothing is there. Writes and reads continue. `progress` may be NULL; it is called with
// bytes that are copied and checked. Returns whether it did: the backup is durable then, and
// checked.
//
// `how` is NULL, or a line for each of these that is not the default: `keep=N`, to remove all
// generations afterwards except the newest N, of which this is one (all stay); `copy=true`, to
// copy files instead of linking them (`false`); `check_all=true`, to read every record of linked
// files, too (`false`).
//
// Errors: AlreadyExists where `to` is something else; InvalidInput where it holds backups of
// another store, and for a wrong line; Stopped where `progress` wants it to: no backup is added
// then; Locked, NoSpace, Poisoned; any other failure of the operating system.
bool folddb_backup(folddb_store *store,
                   const char *to,
                   const char *how,
                   folddb_progress_function progress,
                   void *context,
                   char **errptr);

// The backups in the folder at `place`, oldest first; `count`, unless it is NULL, is set to how
// many there are. `options` may be NULL. The list is for folddb_free. NULL where it fails.
//
// Errors: StoreNotFound where there is no backup; NewerFormat, Corruption; a failed read.
folddb_backup_generation *folddb_backups(const char *place,
                                         folddb_options *options,
                                         size_t *count,
                                         char **errptr);

// Creates a store at `to` from a backup at `from`. `options` and `progress` may be NULL; this is
// called with bytes that are checked and copied. Returns whether it did.
//
// `what` is NULL, or a line for each of these that is not the default: `generation=N` of
// folddb_backups (the newest); `at_seq=N`, for the state at that seq (all of the generation);
// `copy=true`, to copy files instead of linking them (`false`).
//
// Errors: StoreNotFound where there is no backup; InvalidInput for a wrong line, and for a
// generation or a seq that is not there; AlreadyExists where something is at `to`; Corruption;
// Stopped where `progress` wants it to: no store is at `to` then; any other failure of the
// operating system.
bool folddb_restore(const char *from,
                    const char *to,
                    const char *what,
                    folddb_options *options,
                    folddb_progress_function progress,
                    void *context,
                    char **errptr);

// Checks the files of a store that no process writes to; a deep check reads every record.
// `options` and `progress` may be NULL. Returns whether the store is whole. `findings`, unless it
// is NULL, is set to the number of things that are wrong.
//
// Errors: Corruption, with the first thing that is wrong; FoldFailed where nothing is damaged, but
// a program wrote values that their tables do not accept; NewerFormat where the rest is whole,
// but this build cannot read some parts; StoreNotFound, Locked; Stopped where `progress` wants it
// to; a folder that cannot be listed.
bool folddb_verify(const char *path,
                   folddb_options *options,
                   bool deep,
                   size_t *findings,
                   folddb_progress_function progress,
                   void *context,
                   char **errptr);

// Figures of a store and of a table, by name. -----------------------------------------------------

// A figure of a store, by its name in Rust: `disk.bytes`, `writes.commits`, `last_seq`;
// folddb_stat_names lists them. Counters begin at the opening. 0 where it fails, too.
//
// Errors: InvalidInput for an unknown name, with the names that exist.
double folddb_stat(folddb_store *store, const char *name, char **errptr);

// The names of the figures of a store. Otherwise as folddb_tables.
char **folddb_stat_names(folddb_store *store, size_t *count, char **errptr);

// A figure of a table, by its name in Rust's `TableStats`: `records`, `disk_bytes`, `runs`. 0
// where it fails, too.
//
// Errors: InvalidInput for an unknown name, with the names that exist; Closed.
double folddb_table_stat(folddb_table *table, const char *name, char **errptr);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FOLDDB_H */
