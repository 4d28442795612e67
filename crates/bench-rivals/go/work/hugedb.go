// hugedb: random pairs of numbers, loaded, settled, then read. And open, which asks only how long opening takes then.

package work

import (
	"time"

	"folddb/bench-rivals/check"
	"folddb/bench-rivals/generate"
	"folddb/bench-rivals/measure"
	"folddb/bench-rivals/rival"
)

const (
	pairBytes = 16
	// readSeed sets the chance of reads apart from that of writes.
	readSeed = 0x6e75_6d62_6572_7321
)

func hugedb(r *run) error {
	pairs := newPairs(r.job)
	if err := r.loadPairs(pairs); err != nil {
		return err
	}
	if err := r.readAll(pairs); err != nil {
		return err
	}
	// Rows beyond twice as many are new, and no read has taken them for a miss.
	pairs.written = 2 * r.Rows
	if err := r.readWhileWriting(pairs, pairs.put); err != nil {
		return err
	}
	r.judge(pairs.found, pairs.expected(), pairs.right)
	return nil
}

func open(r *run) (err error) {
	pairs := newPairs(r.job)
	if err = r.loadPairs(pairs); err != nil {
		return err
	}
	r.Open = &Opened{}
	if r.Open.OpenMS, err = r.reopenCold(); err != nil {
		return err
	}
	key := pairs.key(true, nil)
	before := time.Now()
	value, found, err := r.store.Get(key, nil)
	r.Open.FirstGetUS = measure.Round(time.Since(before).Seconds()*1e6, 1)
	if err != nil {
		return err
	}
	pairs.answered(key, value, found, true)
	if err = r.scan(pairs, &Scan{}); err != nil {
		return err
	}
	r.judge(pairs.found, pairs.expected(), pairs.right)
	return nil
}

func (r *run) loadPairs(pairs *pairs) error {
	if err := r.open(rival.NoFold); err != nil {
		return err
	}
	if err := r.load(pairs.put); err != nil {
		return err
	}
	return r.settle(r.Rows * pairBytes)
}

// pairs is the data of hugedb.
type pairs struct {
	source  generate.RandomRows
	chance  generate.Chance
	rows    uint64
	written uint64 // the index that put writes next
	keyBuf  [8]byte
	valBuf  [8]byte
	right   bool
	found   check.RowSum // of the last scan
	now     check.RowSum
	order   check.Ascending
}

func newPairs(job Job) *pairs {
	return &pairs{source: generate.NewRandomRows(job.Seed), chance: generate.NewChance(job.Seed ^ readSeed), rows: job.Rows, right: true}
}

func (p *pairs) put(writer rival.Writer) error {
	key := p.source.Key(p.written)
	p.written++
	return writer.Set(generate.AppendKey(p.keyBuf[:0], key), generate.AppendValue(p.valBuf[:0], p.source.Value(key)))
}

func (p *pairs) key(hit bool, into []byte) []byte {
	index := p.chance.Below(p.rows)
	if !hit {
		index += p.rows
	}
	return generate.AppendKey(into, p.source.Key(index))
}

func (p *pairs) answered(key, value []byte, found, hit bool) {
	if found != hit {
		p.right = false
	} else if found {
		number, _ := generate.Key(key)
		is, ok := generate.Value(value)
		p.right = p.right && ok && is == p.source.Value(number)
	}
}

func (p *pairs) row(key, value []byte) {
	number, keyRight := generate.Key(key)
	is, valueRight := generate.Value(value)
	p.right = p.right && keyRight && valueRight
	p.order.Next(number)
	p.now.Add(number, is)
}

// scanned ends a scan; each must have found the same.
func (p *pairs) scanned() {
	p.right = p.right && p.order.Holds() && (p.found == check.RowSum{} || p.found == p.now)
	p.found, p.now, p.order = p.now, check.RowSum{}, check.Ascending{}
}

// expected is what must be in the store, from the generator alone.
func (p *pairs) expected() (sum check.RowSum) {
	for index := range p.rows {
		key := p.source.Key(index)
		sum.Add(key, p.source.Value(key))
	}
	return sum
}
