// Badger, as its experts would set it for this work on two cores:
//
//   - no compression and no encryption: its tables are mapped, and blocks need no cache of its own (its documentation says to
//     set it to 0); they live in the page cache, beyond the memory that is counted here. Indices and filters stay in memory.
//   - memtables of a sixth of the memory, of which three may stand at once, each with some room above its size; the rest is for
//     filters and indices.
//   - values from 1 KiB on in its value log, in files of 64 MB, so that there are some to choose from at the sizes of these
//     runs. What is dead in them is known by compactions alone: stores of objects, whose memtables hold little but pointers, have
//     memtables of a 64th and compact level 0 from two tables on, or nothing would ever be collected in a run.
//   - its garbage collection is left to the program: every second, and when settling, files of which half is dead (what its
//     documentation recommends) are rewritten until there is none.
//   - one version of a key. No detection of conflicts: nobody writes the same keys.
//   - two compactors, the fewest that it takes. Bloom filters at its default of 1 %.
//   - sums and appends by read-modify-write, in one transaction. Very many appends to one key by its merge operator, which writes
//     every operand as a version and joins them in the background and at reads; read-modify-write would write 90 GB for 50,000
//     appends. For many keys it does not fit: it takes a goroutine and a timer for each. It puts operands together newest
//     first, which costs no copy for each, and the reader turns them round; so each has its length behind it.
//   - a batch that is more than a transaction takes (a seventh of a memtable) is committed in parts, as its WriteBatch does.
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

const badgerAbout = "memtables of 1/6 of the memory (1/64 where values are objects), 3 at once; tables mapped, without block " +
	"cache: they live in the page cache; indices and 1 % filters in memory; 2 compactors; no conflict detection; one version; " +
	"values from 1 KiB on in its value log (files of 64 MB), collected by the program every second where half is dead; " +
	"sums and appends by read-modify-write, very many appends to one key by its merge operator; no compression"

const (
	// mergeEvery is how often its merge operator joins what was appended.
	mergeEvery = 200 * time.Millisecond
	// smallestMemtable that its log files and arenas work with.
	smallestMemtable = 1 << 20
	// inValueLogFrom is the size from which values are in the value log.
	inValueLogFrom = 1 << 10
	valueLogFile   = 64 << 20
	// collectEvery is how often files of the value log are looked for of which deadShare is dead.
	collectEvery = time.Second
	deadShare    = 0.5
	// getTries: when the file of a value was collected since its key was found, Badger hands out nothing, and no error.
	getTries = 100
	// operandEnd is the length of an operand of the merge operator, behind it.
	operandEnd = 4
)

// badgerHeap is all of the memory: memtables, filters and indices are in the Go heap.
func badgerHeap(memoryBytes int64) int64 { return memoryBytes }

type badgerStore struct {
	options   badger.Options
	meaning   Meaning
	db        *badger.DB
	collector badgerCollector
	mutex     sync.Mutex
	appends   map[string]*badger.MergeOperator
}

func openBadger(settings Settings) (Store, error) {
	s := &badgerStore{options: badgerOptions(settings), meaning: settings.Meaning, appends: map[string]*badger.MergeOperator{}}
	return s, s.open()
}

func badgerOptions(settings Settings) badger.Options {
	memtable := max(settings.MemoryBytes/6, smallestMemtable)
	options := badger.DefaultOptions(settings.Dir).
		WithSyncWrites(settings.Sync).
		WithCompression(badgeroptions.None).
		WithBlockCacheSize(0).
		WithMemTableSize(memtable).
		WithNumMemtables(2).
		WithValueThreshold(inValueLogFrom).
		WithValueLogFileSize(valueLogFile).
		WithNumCompactors(2).
		WithDetectConflicts(false).
		WithMetricsEnabled(false).
		WithLogger(quiet{})
	switch settings.Meaning {
	case Objects:
		return options.WithMemTableSize(max(settings.MemoryBytes/64, smallestMemtable)).WithNumLevelZeroTables(2)
	case AppendToFew: // joined operands are soon joined again: they would be nothing but garbage in the value log
		return options.WithValueThreshold(min(1<<20, memtable/10))
	}
	return options
}

// open opens or reopens the store, and begins to collect.
func (s *badgerStore) open() (err error) {
	if s.db, err = badger.Open(s.options); err == nil {
		s.collector.start(s.db)
	}
	return err
}

// badgerCollector collects garbage of the value log from time to time.
type badgerCollector struct {
	stop    chan struct{}
	stopped sync.WaitGroup
}

func (c *badgerCollector) start(db *badger.DB) {
	c.stop = make(chan struct{})
	c.stopped.Go(func() {
		tick := time.NewTicker(collectEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				c.collect(db)
			case <-c.stop:
				return
			}
		}
	})
}

// collect rewrites files until there is none to be rewritten, or it shall stop.
func (c *badgerCollector) collect(db *badger.DB) {
	for db.RunValueLogGC(deadShare) == nil {
		select {
		case <-c.stop:
			return
		default:
		}
	}
}

func (c *badgerCollector) end() {
	close(c.stop)
	c.stopped.Wait()
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
	if r.store.meaning == AppendToFew {
		return getAppended(r.store.operator(key), into)
	}
	err = r.view(func(txn *badger.Txn) (err error) {
		value, found, err = badgerGet(txn, key, into)
		return err
	})
	return value, found, err
}

// SizeBytes is by the key alone: the value may be in the value log.
func (r *badgerReader) SizeBytes(key []byte) (bytes uint64, found bool, err error) {
	err = r.view(func(txn *badger.Txn) error {
		item, err := txn.Get(key)
		if errors.Is(err, badger.ErrKeyNotFound) {
			return nil
		}
		if err == nil {
			bytes, found = r.store.size(item), true
		}
		return err
	})
	return bytes, found, err
}

// size mends Badger's estimate of a value in the value log, in whose header it takes the lengths of key and value for three
// bytes: a short key's is one, a value's as many as its varint has.
func (s *badgerStore) size(item *badger.Item) uint64 {
	estimated := uint64(item.ValueSize())
	if int64(estimated) < s.options.ValueThreshold {
		return estimated
	}
	size, varint := estimated, []byte{}
	for range 2 { // at a border, the first step may be one too far
		varint = binary.AppendUvarint(varint[:0], size)
		size = estimated + 2 - uint64(len(varint))
	}
	return size
}

func (r *badgerReader) Scan(from []byte, visit func(key, value []byte) bool) error {
	prefetch := r.store.meaning == Objects // others stand beside their keys
	return r.view(func(txn *badger.Txn) error { return badgerScan(txn, from, prefetch, visit) })
}

func badgerGet(txn *badger.Txn, key, into []byte) ([]byte, bool, error) {
	for range getTries {
		item, err := txn.Get(key)
		if errors.Is(err, badger.ErrKeyNotFound) {
			return into[:0], false, nil
		} else if err != nil {
			return into[:0], false, err
		}
		into, err = item.ValueCopy(into)
		if err != nil || len(into) > 0 || item.ValueSize() == 0 {
			return into, err == nil, err
		}
	}
	return into[:0], false, errors.New("the file of a value is gone")
}

// getAppended turns the operands of a key round: the merge operator has the newest first, each with its length behind it.
func getAppended(operator *badger.MergeOperator, into []byte) ([]byte, bool, error) {
	reversed, err := operator.Get()
	if errors.Is(err, badger.ErrKeyNotFound) {
		return into[:0], false, nil
	}
	into = slices.Grow(into[:0], len(reversed))
	for end := len(reversed) - operandEnd; end >= 0; end -= operandEnd {
		start := end - int(binary.LittleEndian.Uint32(reversed[end:]))
		into = append(into, reversed[start:end]...)
		end = start
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

func badgerScan(txn *badger.Txn, from []byte, prefetch bool, visit func(key, value []byte) bool) error {
	options := badger.DefaultIteratorOptions
	options.PrefetchValues = prefetch
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

// Settle closes the store, which is how Badger flushes, opens it, and waits until no level is due to be compacted, no file
// of the value log to be collected, and the process does nothing.
func (s *badgerStore) Settle() error {
	if err := s.Close(); err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	for idle := 0; idle < 3; {
		before := measure.CPUSeconds()
		time.Sleep(100 * time.Millisecond)
		idle++
		isCollecting, err := s.collect()
		if err != nil {
			return err
		}
		if isCollecting || s.isDue() || measure.CPUSeconds()-before > 0.02 {
			idle = 0
		}
	}
	return nil
}

// collect collects a file of the value log, unless there is none to be collected.
func (s *badgerStore) collect() (isCollecting bool, err error) {
	err = s.db.RunValueLogGC(deadShare)
	if errors.Is(err, badger.ErrNoRewrite) {
		return false, nil
	}
	if errors.Is(err, badger.ErrRejected) { // the collector is at it
		return true, nil
	}
	return true, err
}

func (s *badgerStore) isDue() bool {
	return slices.ContainsFunc(s.db.Levels(), func(level badger.LevelInfo) bool { return level.Score >= 1 })
}

func (s *badgerStore) Optimize() error { return s.db.Flatten(2) }

func (s *badgerStore) Close() error {
	s.collector.end()
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

// change adds to the transaction; when that is full, to a new one.
func (w *badgerWriter) change(op func(*badger.Txn) error) error {
	err := op(w.begun())
	if errors.Is(err, badger.ErrTxnTooBig) {
		if err = w.Commit(); err == nil {
			err = op(w.begun())
		}
	}
	return err
}

func (w *badgerWriter) Set(key, value []byte) error {
	return w.change(func(txn *badger.Txn) error { return txn.Set(w.hold(key), w.hold(value)) })
}

func (w *badgerWriter) Delete(key []byte) error {
	return w.change(func(txn *badger.Txn) error { return txn.Delete(w.hold(key)) })
}

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

// Append to few commits at once: a merge operator has transactions of its own.
func (w *badgerWriter) Append(key, operand []byte) (err error) {
	if w.store.meaning == AppendToFew {
		ended := binary.LittleEndian.AppendUint32(slices.Clone(operand), uint32(len(operand)))
		return w.store.operator(key).Add(ended)
	}
	if w.value, _, err = badgerGet(w.begun(), key, w.value); err != nil {
		return err
	}
	w.value = append(w.value, operand...)
	return w.Set(key, w.value)
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
