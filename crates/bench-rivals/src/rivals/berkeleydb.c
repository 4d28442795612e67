/* Berkeley DB behind plain functions: its interface is methods in structs of hundreds of fields, which only its own header
 * knows. Every function gives 0 or an error of the library. Called by berkeleydb.rs alone, which states the settings. */

#include <db.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MILLION (1000 * 1000)

typedef struct {
	DB_ENV *env;
	DB *db;
	int is_append;
} Store;

typedef struct {
	Store *store;
	DBC *cursor;
	DBT key, value; /* memory of the library, reused */
} Reader;

static DBT dbt(const void *bytes, u_int32_t len) {
	DBT it;
	memset(&it, 0, sizeof it);
	it.data = (void *)bytes;
	it.size = len;
	return it;
}

static int open_env(Store *store, const char *dir, u_int64_t cache, int syncs, u_int32_t log_max) {
	DB_ENV *env;
	int error = db_env_create(&store->env, 0);
	if (error) return error;
	env = store->env;
	if (!error) error = env->set_cachesize(env, cache >> 30, cache & ((1u << 30) - 1), 1);
	if (!error) error = env->set_lg_bsize(env, 4 << 20);
	if (!error) error = env->set_lg_max(env, log_max);
	if (!error) error = env->set_lk_max_locks(env, MILLION / 10);
	if (!error) error = env->set_lk_max_objects(env, MILLION / 10);
	if (!error) error = env->set_lk_max_lockers(env, MILLION / 100);
	if (!error) error = env->set_lk_detect(env, DB_LOCK_MINWRITE);
	if (!error && !syncs) error = env->set_flags(env, DB_TXN_WRITE_NOSYNC, 1);
	if (!error) error = env->log_set_config(env, DB_LOG_AUTO_REMOVE, 1);
	if (!error) error = env->open(env, dir, DB_CREATE | DB_INIT_MPOOL | DB_INIT_LOCK | DB_INIT_LOG | DB_INIT_TXN
		| DB_RECOVER | DB_THREAD | DB_PRIVATE, 0);
	return error;
}

/* Appends are duplicates of their key, kept in the order in which they come. */
static int open_db(Store *store) {
	int error = db_create(&store->db, store->env, 0);
	DB *db = store->db;
	if (!error) error = db->set_pagesize(db, 4096);
	if (!error && store->is_append) error = db->set_flags(db, DB_DUP);
	if (!error) error = db->open(db, NULL, "rows.db", NULL, DB_BTREE, DB_CREATE | DB_THREAD | DB_AUTO_COMMIT, 0);
	return error;
}

int bdb_close(Store *store) {
	int error = 0, other = 0;
	if (store->db) error = store->db->close(store->db, 0);
	if (store->env) {
		if (!error) error = store->env->txn_checkpoint(store->env, 0, 0, DB_FORCE);
		other = store->env->close(store->env, 0);
	}
	free(store);
	return error ? error : other;
}

int bdb_open(const char *dir, u_int64_t cache, int syncs, int is_append, u_int32_t log_max, Store **out) {
	Store *store = calloc(1, sizeof *store);
	int error;
	if (!store) return ENOMEM;
	store->is_append = is_append;
	error = open_env(store, dir, cache, syncs, log_max);
	if (!error) error = open_db(store);
	if (error) bdb_close(store);
	else *out = store;
	return error;
}

int bdb_begin(Store *store, DB_TXN **out) { return store->env->txn_begin(store->env, NULL, out, 0); }
int bdb_commit(DB_TXN *txn) { return txn->commit(txn, 0); }
int bdb_abort(DB_TXN *txn) { return txn->abort(txn); }

int bdb_put(Store *store, DB_TXN *txn, const void *key, u_int32_t key_len, const void *value, u_int32_t len) {
	DBT k = dbt(key, key_len), v = dbt(value, len);
	return store->db->put(store->db, txn, &k, &v, 0);
}

/* A key that is not there is no error. */
int bdb_delete(Store *store, DB_TXN *txn, const void *key, u_int32_t key_len) {
	DBT k = dbt(key, key_len);
	int error = store->db->del(store->db, txn, &k, 0);
	return error == DB_NOTFOUND ? 0 : error;
}

/* Reads into memory of the caller, with a lock for writing: the first half of read, modify and write. len is 0 where
 * nothing is. */
int bdb_get_to_change(Store *store, DB_TXN *txn, const void *key, u_int32_t key_len, void *value, u_int32_t room,
	u_int32_t *len) {
	DBT k = dbt(key, key_len), v = dbt(value, 0);
	int error;
	v.ulen = room;
	v.flags = DB_DBT_USERMEM;
	error = store->db->get(store->db, txn, &k, &v, DB_RMW);
	*len = error ? 0 : v.size;
	return error == DB_NOTFOUND ? 0 : error;
}

/* A checkpoint where so much log was written since the last, 0 for one now; logs that are not needed go. */
int bdb_checkpoint(Store *store, u_int32_t log_kib) {
	return store->env->txn_checkpoint(store->env, log_kib, 0, log_kib ? 0 : DB_FORCE);
}

int bdb_compact(Store *store) { return store->db->compact(store->db, NULL, NULL, NULL, NULL, DB_FREE_SPACE, NULL); }

int bdb_reader(Store *store, Reader **out) {
	Reader *reader = calloc(1, sizeof *reader);
	if (!reader) return ENOMEM;
	reader->store = store;
	reader->key.flags = reader->value.flags = DB_DBT_REALLOC;
	*out = reader;
	return 0;
}

static void found(const DBT *from, const void **bytes, u_int32_t *len) {
	*bytes = from->data;
	*len = from->size;
}

/* The value of a key, in memory of the reader until its next call; null where nothing is. */
int bdb_get(Reader *reader, const void *key, u_int32_t key_len, const void **value, u_int32_t *len) {
	DBT k = dbt(key, key_len);
	DB *db = reader->store->db;
	int error = db->get(db, NULL, &k, &reader->value, 0);
	*value = NULL;
	if (!error) found(&reader->value, value, len);
	return error == DB_NOTFOUND ? 0 : error;
}

int bdb_end_scan(Reader *reader) {
	DBC *cursor = reader->cursor;
	reader->cursor = NULL;
	return cursor ? cursor->close(cursor) : 0;
}

/* Begins a scan, and puts the cursor's first key into memory of the reader. */
static int begin(Reader *reader, const void *key, u_int32_t key_len) {
	DB *db = reader->store->db;
	if (key) {
		void *memory = realloc(reader->key.data, key_len ? key_len : 1);
		if (!memory) return ENOMEM;
		memcpy(memory, key, key_len);
		reader->key.data = memory;
		reader->key.size = key_len;
	}
	return db->cursor(db, NULL, &reader->cursor, 0);
}

static int step(Reader *reader, u_int32_t how, const void **key, u_int32_t *key_len, const void **value, u_int32_t *len) {
	int error = reader->cursor->get(reader->cursor, &reader->key, &reader->value, how);
	*value = NULL;
	if (error) return error == DB_NOTFOUND ? 0 : error;
	found(&reader->key, key, key_len);
	found(&reader->value, value, len);
	return 0;
}

/* The first row of a scan from a key on (null for all), and the next ones; value is null behind the last. */
int bdb_first(Reader *reader, const void *from, u_int32_t from_len, const void **key, u_int32_t *key_len, const void **value,
	u_int32_t *len) {
	int error = begin(reader, from, from_len);
	return error ? error : step(reader, from ? DB_SET_RANGE : DB_FIRST, key, key_len, value, len);
}

int bdb_next(Reader *reader, const void **key, u_int32_t *key_len, const void **value, u_int32_t *len) {
	return step(reader, DB_NEXT, key, key_len, value, len);
}

/* The duplicates of a key, one by one, in the same way. */
int bdb_first_append(Reader *reader, const void *of, u_int32_t of_len, const void **value, u_int32_t *len) {
	const void *key;
	u_int32_t key_len;
	int error = begin(reader, of, of_len);
	return error ? error : step(reader, DB_SET, &key, &key_len, value, len);
}

int bdb_next_append(Reader *reader, const void **value, u_int32_t *len) {
	const void *key;
	u_int32_t key_len;
	return step(reader, DB_NEXT_DUP, &key, &key_len, value, len);
}

void bdb_reader_free(Reader *reader) {
	bdb_end_scan(reader);
	free(reader->key.data);
	free(reader->value.data);
	free(reader);
}

int bdb_is_deadlock(int error) { return error == DB_LOCK_DEADLOCK; }
