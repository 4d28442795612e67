// Three small workloads: append-one, very many operands on one key; drain, a queue that has been emptied; and commit,
// every commit synced, by one or more goroutines.

package work

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"time"

	"folddb/bench-rivals/check"
	"folddb/bench-rivals/generate"
	"folddb/bench-rivals/measure"
	"folddb/bench-rivals/rival"
)

const (
	seeks       = 100
	commitBytes = 100
	// operandBytes are what append-one appends at a time.
	operandBytes = 72
)

var oneKey = []byte("one")

func appendOne(r *run) error {
	if err := r.open(rival.AppendToFew); err != nil {
		return err
	}
	chance, operand, expected := generate.NewChance(r.job.Seed), make([]byte, operandBytes), []byte{}
	err := r.load(func(writer rival.Writer) error {
		chance.Fill(operand)
		expected = append(expected, operand...)
		return writer.Append(oneKey, operand)
	})
	if err != nil {
		return err
	}
	r.GetMS = &GetMS{}
	return r.getAppended(expected)
}

// getAppended gets the one value twice, and once more when it has been written to files.
func (r *run) getAppended(expected []byte) (err error) {
	if r.GetMS.First, _, err = r.getOne(expected); err != nil {
		return err
	}
	if r.GetMS.Second, _, err = r.getOne(expected); err != nil {
		return err
	}
	if err = r.settle(r.Rows * (uint64(len(oneKey)) + operandBytes)); err != nil {
		return err
	}
	found := check.RowSum{}
	r.GetMS.AfterFlush, found, err = r.getOne(expected)
	r.check(found, bytesSum(expected))
	return err
}

func (r *run) getOne(expected []byte) (tookMS float64, found check.RowSum, err error) {
	reader := r.store.Reader(false)
	defer reader.Close()
	before := time.Now()
	value, _, err := reader.Get(oneKey, nil)
	tookMS = milliseconds(time.Since(before))
	r.judge(bytes.Equal(value, expected))
	return tookMS, bytesSum(value), err
}

// bytesSum takes a value as numbers of 8 bytes.
func bytesSum(value []byte) (sum check.RowSum) {
	for index := uint64(0); len(value) > 0; index++ {
		word := [8]byte{}
		value = value[copy(word[:], value):]
		sum.Add(index, binary.LittleEndian.Uint64(word[:]))
	}
	return sum
}

func drain(r *run) (err error) {
	empty, err := rival.Open(r.Rival, rival.Settings{Dir: filepath.Join(r.job.Dir, "empty"), MemoryBytes: r.MemoryBytes / 8})
	if err != nil {
		return err
	}
	r.Seeks = &Seeks{}
	if err = seekFirst(empty, &r.Seeks.OfAnEmptyTable, &check.RowSum{}); err != nil {
		return err
	}
	if err = empty.Close(); err != nil {
		return err
	}
	if err = r.open(rival.Rows); err != nil {
		return err
	}
	if err = r.putAndDelete(); err != nil {
		return err
	}
	found := check.RowSum{}
	if err = seekFirst(r.store, &r.Seeks.Drained, &found); err != nil {
		return err
	}
	if err = r.settle(r.Rows * 24); err != nil {
		return err
	}
	if err = seekFirst(r.store, &r.Seeks.Settled, &found); err != nil {
		return err
	}
	return r.canary(found)
}

func (r *run) putAndDelete() (err error) {
	var item uint64
	var key, value []byte
	put := func(writer rival.Writer) error {
		key, value = generate.AppendKey(key[:0], item), generate.AppendValue(value[:0], generate.Mix(item))
		item++
		return writer.Set(key, value)
	}
	if err = r.load(put); err != nil {
		return err
	}
	r.Puts, item = r.Load, 0
	err = r.load(func(writer rival.Writer) error {
		key = generate.AppendKey(key[:0], item)
		item++
		return writer.Delete(key)
	})
	r.Deletes, r.Load = r.Load, nil
	return err
}

// seekFirst seeks the first row many times; what it finds is taken into found.
func seekFirst(store rival.Store, figures *measure.Quantiles, found *check.RowSum) error {
	latencies, reader := measure.NewLatencies(), store.Reader(false)
	defer reader.Close()
	for range seeks {
		before := time.Now()
		err := reader.Scan(nil, func(_, _ []byte) bool {
			found.Add(0, 0)
			return false
		})
		if err != nil {
			return err
		}
		latencies.Note(time.Since(before))
	}
	*figures = latencies.Quantiles()
	return nil
}

// canary: a drained store must still take a row and show it alone. What seeks found before counts against it.
func (r *run) canary(found check.RowSum) error {
	writer := r.store.Writer()
	if err := setOne(writer, generate.AppendKey(nil, 7), generate.AppendValue(nil, 77)); err != nil {
		return err
	}
	reader := r.store.Reader(false)
	defer reader.Close()
	err := reader.Scan(nil, func(key, value []byte) bool {
		number, _ := generate.Key(key)
		is, _ := generate.Value(value)
		found.Add(number, is)
		return true
	})
	wanted := check.RowSum{}
	wanted.Add(7, 77)
	r.check(found, wanted)
	return err
}

func commit(r *run) error {
	r.settings.Sync, r.Durability, r.Batch = true, "sync", 1
	if err := r.open(rival.Rows); err != nil {
		return err
	}
	if err := r.commitByThreads(); err != nil {
		return err
	}
	found, wanted, right := check.RowSum{}, check.RowSum{}, true
	reader := r.store.Reader(true)
	defer reader.Close()
	err := reader.Scan(nil, func(key, value []byte) bool {
		number, ok := generate.Key(key)
		right = right && ok && bytes.Equal(value, commitValue(number))
		found.Add(number, 0)
		return true
	})
	for index := range r.Rows {
		wanted.Add(generate.NewRandomRows(r.job.Seed).Key(index), 0)
	}
	r.judge(right)
	r.check(found, wanted)
	return err
}

// commitByThreads has each thread commit every so manieth row.
func (r *run) commitByThreads() error {
	r.Threads = max(r.Threads, 1)
	phase, latencies := measure.StartPhase(r.Rows), measure.NewLatencies()
	err := together(uint64(r.Threads), func(thread uint64) (func(), error) {
		mine := measure.NewLatencies()
		err := r.commitEvery(thread, mine)
		return func() { latencies.Merge(mine) }, err
	})
	r.Load, r.Commits = new(phase.End()), new(latencies.Quantiles())
	return err
}

func (r *run) commitEvery(index uint64, latencies *measure.Latencies) error {
	writer, rows := r.store.Writer(), generate.NewRandomRows(r.job.Seed)
	for ; index < r.Rows; index += uint64(r.Threads) {
		key := rows.Key(index)
		value := commitValue(key)
		before := time.Now()
		if err := setOne(writer, generate.AppendKey(nil, key), value); err != nil {
			return err
		}
		latencies.Note(time.Since(before))
	}
	return writer.Close()
}

func commitValue(key uint64) []byte {
	value, chance := make([]byte, commitBytes), generate.NewChance(key)
	chance.Fill(value)
	return value
}
