// hugedb: random pairs of numbers, loaded, settled, then read. And open, which asks only how long opening takes then.

package work

import (
	"bytes"
	"time"

	"folddb/bench-rivals/check"
	"folddb/bench-rivals/generate"
	"folddb/bench-rivals/measure"
	"folddb/bench-rivals/rival"
)

const pairBytes = 16

func hugedb(r *run) error {
	data := pairs{generate.NewRandomRows(r.job.Seed), r.Rows}
	if err := r.loadPairs(data); err != nil {
		return err
	}
	// Misses ask for the indices behind the last row: new rows begin behind them.
	more := &pairWriter{rows: data.rows, index: 2 * data.count}
	return r.readAll(data, data.sum(), more.put)
}

func open(r *run) (err error) {
	data := pairs{generate.NewRandomRows(r.job.Seed), r.Rows}
	if err = r.loadPairs(data); err != nil {
		return err
	}
	r.Open = &Opened{}
	if r.Open.OpenMS, err = r.reopenCold(); err != nil {
		return err
	}
	if err = r.firstGet(data); err != nil {
		return err
	}
	found, err := r.scan(data, &Scan{})
	r.check(found, data.sum())
	return err
}

func (r *run) firstGet(data pairs) error {
	chance := generate.NewChance(r.job.Seed)
	key, wanted := data.hit(&chance, nil, nil)
	before := time.Now()
	reader := r.store.Reader(true)
	defer reader.Close()
	value, _, err := reader.Get(key, nil)
	r.Open.FirstGetUS = measure.Round(time.Since(before).Seconds()*1e6, 1)
	r.judge(bytes.Equal(value, wanted))
	return err
}

func (r *run) loadPairs(data pairs) error {
	if err := r.open(rival.Rows); err != nil {
		return err
	}
	writer := &pairWriter{rows: data.rows}
	if err := r.load(writer.put); err != nil {
		return err
	}
	return r.settle(r.Rows * pairBytes)
}

// pairs are the rows of a seed.
type pairs struct {
	rows  generate.RandomRows
	count uint64
}

func (p pairs) hit(chance *generate.Chance, key, value []byte) (hitKey, hitValue []byte) {
	number := p.rows.Key(chance.Below(p.count))
	return generate.AppendKey(key, number), generate.AppendValue(value, p.rows.Value(number))
}

func (p pairs) miss(chance *generate.Chance, key []byte) []byte {
	return generate.AppendKey(key, p.rows.Key(p.count+chance.Below(p.count)))
}

func (p pairs) mayBecome(was, found []byte) bool { return bytes.Equal(was, found) }

func (p pairs) numbers(key, value []byte) (number, is uint64, ok bool) {
	number, keyRight := generate.Key(key)
	is, valueRight := generate.Value(value)
	return number, is, keyRight && valueRight
}

// sum is what must be in the store, from the generator alone.
func (p pairs) sum() (sum check.RowSum) {
	for index := range p.count {
		key := p.rows.Key(index)
		sum.Add(key, p.rows.Value(key))
	}
	return sum
}

// pairWriter writes rows from an index on.
type pairWriter struct {
	rows       generate.RandomRows
	index      uint64
	key, value [8]byte
}

func (w *pairWriter) put(writer rival.Writer) error {
	key := w.rows.Key(w.index)
	w.index++
	return writer.Set(generate.AppendKey(w.key[:0], key), generate.AppendValue(w.value[:0], w.rows.Value(key)))
}
