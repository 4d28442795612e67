// Badger, as its experts would set it for this work on two cores:
//
//   - no compression and no encryption: its tables are mapped, and blocks need no cache of its own (its documentation says to
//     set it to 0); they live in the page cache, beyond the memory that is counted here. Indices and filters stay in memory.
//   - memtables of a sixth of the memory, of which three may stand at once, each with some room above its size; the rest is for
//     filters and indices.
//   - values in the tree: they are small. One version of a key. No detection of conflicts: nobody writes the same keys.
//   - two compactors, the fewest that it takes. Bloom filters at its default of 1 %.
//   - sums by read-modify-write, in one transaction. Appends by its merge operator, which writes every operand as a
//     version and joins them in the background and at reads; read-modify-write would write 90 GB for 50,000 appends.
//     The operator puts operands together newest first, which costs no copy for each, and the reader turns them round.
//   - commits: the log is a mapped file, so an acknowledged commit survives the process, not the machine (mode `process`);
//     SyncWrites in mode `sync`.

package rival

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"
	badgeroptions "github.com/dgraph-io/badger/v4/options"

	"folddb/bench-rivals/measure"
)

const badgerAbout = "memtables of 1/6 of the memory, 3 at once; tables mapped, without block cache: they live in the page cache; " +
	"indices and 1 % filters in memory; 2 compactors; no conflict detection; one version; values in the tree; " +
	"sums by read-modify-write, appends by its merge operator; no compression"

const (
	// mergeEvery is how often its merge operator joins what was appended.
	mergeEvery = 200 * time.Millisecond
	// smallestMemtable that its log files and arenas work with.
	smallestMemtable = 1 << 20
)

// badgerHeap is all of the memory: memtables, filters and indices are in the Go heap.
func badgerHeap(memoryBytes int64) int64 { return memoryBytes }

type badgerStore struct {
	options badger.Options
	fold    Fold
	db      *badger.DB
	mutex   sync.Mutex
	appends map[string]*badger.MergeOperator
}

func openBadger(settings Settings) (Store, error) {
	memtable := max(settings.MemoryBytes/6, smallestMemtable)
	options := badger.DefaultOptions(settings.Dir).
		WithSyncWrites(settings.Sync).
		WithCompression(badgeroptions.None).
		WithBlockCacheSize(0).
		WithMemTableSize(memtable).
		WithNumMemtables(2).
		WithValueThreshold(min(1<<20, memtable/10)).
		WithNumCompactors(2).
		WithDetectConflicts(false).
		WithMetricsEnabled(false).
		WithLogger(quiet{})
	db, err := badger.Open(options)
	if err != nil {
		return nil, err
	}
	return &badgerStore{options: options, fold: settings.Fold, db: db, appends: map[string]*badger.MergeOperator{}}, nil
}

// Reader has one transaction for all reads where nobody writes, and one for each otherwise.
func (s *badgerStore) Reader(atRest bool) Reader {
	reader := &badgerReader{store: s}
	if atRest {
		reader.txn = s.db.NewTransaction(false)
	}
	return reader
}

type badgerReader struct {
	store *badgerStore
	txn   *badger.Txn
}

func (r *badgerReader) Close() {
	if r.txn != nil {
		r.txn.Discard()
	}
}

// view calls with the transaction of a read.
func (r *badgerReader) view(call func(*badger.Txn) error) error {
	if r.txn != nil {
		return call(r.txn)
	}
	return r.store.db.View(call)
}

func (r *badgerReader) Get(key, into []byte) (value []byte, found bool, err error) {
	if r.store.fold == Append {
		return getAppended(r.store.operator(key), into)
	}
	err = r.view(func(txn *badger.Txn) (err error) {
		value, found, err = badgerGet(txn, key, into)
		return err
	})
	return value, found, err
}

func (r *badgerReader) Scan(from []byte, visit func(key, value []byte) bool) error {
	return r.view(func(txn *badger.Txn) error { return badgerScan(txn, from, visit) })
}

func badgerGet(txn *badger.Txn, key, into []byte) ([]byte, bool, error) {
	item, err := txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return into[:0], false, nil
	} else if err != nil {
		return into[:0], false, err
	}
	into, err = item.ValueCopy(into)
	return into, err == nil, err
}

// getAppended turns the operands of a key round: the merge operator has the newest first.
func getAppended(operator *badger.MergeOperator, into []byte) ([]byte, bool, error) {
	reversed, err := operator.Get()
	if errors.Is(err, badger.ErrKeyNotFound) {
		return into[:0], false, nil
	}
	into = slices.Grow(into[:0], len(reversed))
	for end := len(reversed); end >= AppendBytes; end -= AppendBytes {
		into = append(into, reversed[end-AppendBytes:end]...)
	}
	return into, err == nil, err
}

func newestFirst(older, newer []byte) []byte { return append(newer, older...) }

// operator of a key that is appended to: one for each key, since it has a goroutine.
func (s *badgerStore) operator(key []byte) *badger.MergeOperator {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	operator, known := s.appends[string(key)]
	if !known {
		operator = s.db.GetMergeOperator(slices.Clone(key), newestFirst, mergeEvery)
		s.appends[string(key)] = operator
	}
	return operator
}

func badgerScan(txn *badger.Txn, from []byte, visit func(key, value []byte) bool) error {
	options := badger.DefaultIteratorOptions
	options.PrefetchValues = false // they stand beside the keys
	rows := txn.NewIterator(options)
	defer rows.Close()
	for rows.Seek(from); rows.Valid(); rows.Next() {
		item, more := rows.Item(), true
		err := item.Value(func(value []byte) error {
			more = visit(item.Key(), value)
			return nil
		})
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// Settle closes the store, which is how Badger flushes, opens it, and waits until no level is due to be compacted and
// the process does nothing.
func (s *badgerStore) Settle() error {
	if err := s.Close(); err != nil {
		return err
	}
	db, err := badger.Open(s.options)
	if err != nil {
		return err
	}
	s.db = db
	for idle := 0; idle < 3; {
		before := measure.CPUSeconds()
		time.Sleep(100 * time.Millisecond)
		idle++
		if s.isDue() || measure.CPUSeconds()-before > 0.02 {
			idle = 0
		}
	}
	return nil
}

func (s *badgerStore) isDue() bool {
	return slices.ContainsFunc(s.db.Levels(), func(level badger.LevelInfo) bool { return level.Score >= 1 })
}

func (s *badgerStore) Optimize() error { return s.db.Flatten(2) }

func (s *badgerStore) Close() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, operator := range s.appends {
		operator.Stop()
	}
	clear(s.appends)
	return s.db.Close()
}

func (s *badgerStore) Writer() Writer { return &badgerWriter{store: s} }

// badgerWriter has a transaction from its first op to its commit. Badger keeps the slices that it is given until
// then, so they are copied to held.
type badgerWriter struct {
	store *badgerStore
	txn   *badger.Txn
	held  []byte
	value []byte
}

func (w *badgerWriter) begun() *badger.Txn {
	if w.txn == nil {
		w.txn = w.store.db.NewTransaction(true)
	}
	return w.txn
}

func (w *badgerWriter) hold(bytes []byte) []byte {
	start := len(w.held)
	w.held = append(w.held, bytes...)
	return w.held[start:len(w.held):len(w.held)]
}

func (w *badgerWriter) Set(key, value []byte) error { return w.begun().Set(w.hold(key), w.hold(value)) }

func (w *badgerWriter) Delete(key []byte) error { return w.begun().Delete(w.hold(key)) }

func (w *badgerWriter) Add(key []byte, operand uint64) (err error) {
	found := false
	w.value, found, err = badgerGet(w.begun(), key, w.value)
	if err != nil {
		return err
	}
	if found {
		operand += binary.LittleEndian.Uint64(w.value)
	}
	w.value = binary.LittleEndian.AppendUint64(w.value[:0], operand)
	return w.Set(key, w.value)
}

// Append commits at once: a merge operator has transactions of its own.
func (w *badgerWriter) Append(key, operand []byte) error {
	return w.store.operator(key).Add(slices.Clone(operand))
}

func (w *badgerWriter) Commit() error {
	if w.txn == nil {
		return nil
	}
	err := w.txn.Commit()
	w.txn, w.held = nil, w.held[:0]
	return err
}

func (w *badgerWriter) Close() error {
	if w.txn != nil {
		w.txn.Discard()
	}
	return nil
}
