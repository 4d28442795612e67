// Pebble, as its experts would set it for this work on two cores:
//
//   - block cache of the whole memory: Pebble takes its memtables' memory out of the cache, so both together stay within
//     it. Memtables of a quarter, two of them before writers wait: larger flushes save merges. Memory is outside the Go heap (cgo).
//   - filters of 10 bits on all levels. Blocks of 4 KB: rows are small and reads are of single rows.
//   - writes stop late (L0StopWritesThreshold), compaction of L0 starts early, two compactions at once.
//   - no compactions caused by reads, as in CockroachDB. Newest format of files, with columnar blocks.
//   - folds by merge operator.
//   - `pebble-separated` keeps values from 512 bytes on in blob files (Experimental.ValueSeparationPolicy), as its own benchmark
//     program does, and has them rewritten when a tenth of them is garbage, whatever their age: CockroachDB waits for
//     minutes, in which these runs are over.
//   - commits: NoSync hands records to a queue, which a goroutine writes to the log a moment later. So an acknowledged commit may
//     be lost when the process is killed: weaker than the mode `process` of others. Pebble has nothing in between.

package rival

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

const (
	pebbleAbout          = "values in the tree; " + pebbleSettings
	pebbleSeparatedAbout = "values from 512 bytes on in blob files, rewritten from 1/10 of garbage on; " + pebbleSettings

	pebbleSettings = "block cache of the whole memory, memtables (1/4 each, 2) taken out of it; 10-bit filters on all levels; " +
		"4 KB blocks; 1 to 2 compactions; L0 starts at 4, stops at 20; merge operators; no compression; " +
		"NoSync leaves the newest commits in the process for a moment, weaker than `process`"
)

// pebbleHeap is enough for what is not cache and memtables, which are outside the Go heap.
func pebbleHeap(memoryBytes int64) int64 { return memoryBytes/2 + 64<<20 }

type pebbleStore struct {
	db    *pebble.DB
	write *pebble.WriteOptions
}

func openPebble(settings Settings) (Store, error) {
	return openPebbleBy(settings, pebble.ValueSeparationPolicy{})
}

func openPebbleSeparated(settings Settings) (Store, error) {
	return openPebbleBy(settings, pebble.ValueSeparationPolicy{
		Enabled: true, MinimumSize: 512, MaxBlobReferenceDepth: 10, TargetGarbageRatio: 0.1,
	})
}

func openPebbleBy(settings Settings, separation pebble.ValueSeparationPolicy) (Store, error) {
	options := &pebble.Options{
		CacheSize:                   settings.MemoryBytes,
		MemTableSize:                uint64(settings.MemoryBytes / 4),
		MemTableStopWritesThreshold: 2,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       20,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		FormatMajorVersion:          pebble.FormatNewest,
		MaxOpenFiles:                10_000,
		Merger:                      pebbleMerger(settings.Meaning),
		Logger:                      quiet{},
	}
	options.Experimental.ReadSamplingMultiplier = -1
	options.Experimental.ValueSeparationPolicy = func() pebble.ValueSeparationPolicy { return separation }
	options.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	for level := range options.Levels {
		options.Levels[level].FilterPolicy = bloom.FilterPolicy(10)
		options.Levels[level].BlockSize = 4 << 10
	}
	db, err := pebble.Open(settings.Dir, options)
	if err != nil {
		return nil, err
	}
	return &pebbleStore{db, &pebble.WriteOptions{Sync: settings.Sync}}, nil
}

// Reader is the store itself: its gets and iterators take the newest state for next to nothing. At rest, one iterator finds
// all sizes.
func (s *pebbleStore) Reader(atRest bool) Reader { return &pebbleReader{db: s.db, atRest: atRest} }

type pebbleReader struct {
	db     *pebble.DB
	atRest bool
	sizes  *pebble.Iterator
}

func (r *pebbleReader) Close() {
	if r.sizes != nil {
		_ = r.sizes.Close() // its errors were returned by what met them
	}
}

func (r *pebbleReader) Get(key, into []byte) ([]byte, bool, error) {
	value, closer, err := r.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return into[:0], false, nil
	} else if err != nil {
		return into[:0], false, err
	}
	into = append(into[:0], value...)
	return into, true, closer.Close()
}

// SizeBytes is by an iterator: it knows the length of a value in a blob file without the file.
func (r *pebbleReader) SizeBytes(key []byte) (bytes uint64, found bool, err error) {
	if r.sizes == nil {
		if r.sizes, err = r.db.NewIter(&pebble.IterOptions{UseL6Filters: true}); err != nil {
			return 0, false, err
		}
	}
	if r.sizes.SeekPrefixGE(key) {
		value := r.sizes.LazyValue()
		bytes, found = uint64(value.Len()), true
	}
	err = r.sizes.Error()
	if !r.atRest {
		err = errors.Join(err, r.sizes.Close())
		r.sizes = nil
	}
	return bytes, found, err
}

func (r *pebbleReader) Scan(from []byte, visit func(key, value []byte) bool) error {
	rows, err := r.db.NewIter(&pebble.IterOptions{LowerBound: from})
	if err != nil {
		return err
	}
	for more := rows.First(); more; more = rows.Next() {
		value, err := rows.ValueAndErr()
		if err != nil {
			return errors.Join(err, rows.Close())
		}
		if !visit(rows.Key(), value) {
			break
		}
	}
	return rows.Close() // and what went wrong while it moved
}

// Settle flushes, then waits until no compaction has been running for a while: the next one starts at once when one is due.
func (s *pebbleStore) Settle() error {
	if err := s.db.Flush(); err != nil {
		return err
	}
	for idle := 0; idle < 10; time.Sleep(10 * time.Millisecond) {
		metrics := s.db.Metrics()
		if metrics.Compact.NumInProgress+metrics.Flush.NumInProgress > 0 {
			idle = 0
		} else {
			idle++
		}
	}
	return nil
}

func (s *pebbleStore) Optimize() error {
	if err := s.db.Flush(); err != nil {
		return err
	}
	return s.db.Compact(context.Background(), []byte{0}, slices.Repeat([]byte{0xff}, 64), true)
}

func (s *pebbleStore) Close() error { return s.db.Close() }

func (s *pebbleStore) Writer() Writer { return &pebbleWriter{batch: s.db.NewBatch(), write: s.write} }

type pebbleWriter struct {
	batch   *pebble.Batch
	write   *pebble.WriteOptions
	operand [8]byte
}

func (w *pebbleWriter) Set(key, value []byte) error { return w.batch.Set(key, value, nil) }

func (w *pebbleWriter) Delete(key []byte) error { return w.batch.Delete(key, nil) }

func (w *pebbleWriter) Add(key []byte, operand uint64) error {
	binary.LittleEndian.PutUint64(w.operand[:], operand)
	return w.batch.Merge(key, w.operand[:], nil)
}

func (w *pebbleWriter) Append(key, operand []byte) error { return w.batch.Merge(key, operand, nil) }

func (w *pebbleWriter) Commit() error {
	if err := w.batch.Commit(w.write); err != nil {
		return err
	}
	w.batch.Reset()
	return nil
}

func (w *pebbleWriter) Close() error { return w.batch.Close() }

func pebbleMerger(meaning Meaning) *pebble.Merger {
	switch {
	case meaning == Sum:
		return &pebble.Merger{Name: "sum:u64", Merge: func(_, value []byte) (pebble.ValueMerger, error) {
			sum := &pebbleSum{}
			return sum, sum.MergeOlder(value)
		}}
	case meaning.appends():
		return &pebble.Merger{Name: "append", Merge: func(_, value []byte) (pebble.ValueMerger, error) {
			return &pebbleAppend{newer: slices.Clone(value)}, nil
		}}
	}
	return pebble.DefaultMerger
}

// pebbleSum is the sum of the operands so far.
type pebbleSum struct{ sum uint64 }

func (s *pebbleSum) MergeOlder(value []byte) error {
	if len(value) != 8 {
		return errors.New("an operand of a sum is not a number")
	}
	s.sum += binary.LittleEndian.Uint64(value)
	return nil
}

func (s *pebbleSum) MergeNewer(value []byte) error { return s.MergeOlder(value) }

func (s *pebbleSum) Finish(bool) ([]byte, io.Closer, error) {
	return binary.LittleEndian.AppendUint64(nil, s.sum), nil, nil
}

// pebbleAppend keeps older operands apart, so that many of them cost no copy of all the others each, as they do with the
// merger that comes with Pebble.
type pebbleAppend struct {
	older [][]byte // newest first
	newer []byte
}

func (a *pebbleAppend) MergeOlder(value []byte) error {
	a.older = append(a.older, slices.Clone(value))
	return nil
}

func (a *pebbleAppend) MergeNewer(value []byte) error {
	a.newer = append(a.newer, value...)
	return nil
}

func (a *pebbleAppend) Finish(bool) ([]byte, io.Closer, error) {
	slices.Reverse(a.older)
	return slices.Concat(append(a.older, a.newer)...), nil, nil
}

// quiet lets no messages of a store out, but those on which it ends the process.
type quiet struct{}

func (quiet) Infof(string, ...any)    {}
func (quiet) Errorf(string, ...any)   {}
func (quiet) Warningf(string, ...any) {}
func (quiet) Debugf(string, ...any)   {}
func (quiet) Fatalf(format string, arguments ...any) {
	pebble.DefaultLogger.Fatalf(format, arguments...)
}
