// The phases that only read: gets that hit and gets that miss, timed singly, and a scan of all; warm, after a merge of everything if
// that is asked for, and cold.

package work

import (
	"bytes"
	"math"
	"time"

	"folddb/bench-rivals/check"
	"folddb/bench-rivals/generate"
	"folddb/bench-rivals/measure"
	"folddb/bench-rivals/rival"
)

// gets of a phase; half of them hit. Tests have fewer.
var gets = uint64(100_000)

const readSeed = 0x6e75_6d62_6572_7321

// questions are what can be asked of a store, and what must come.
type questions interface {
	// hit appends a key that is there, and its value.
	hit(chance *generate.Chance, key, value []byte) (hitKey, hitValue []byte)
	// miss appends a key that is not there.
	miss(chance *generate.Chance, key []byte) []byte
	// mayBecome says whether a found value is right while others write.
	mayBecome(was, found []byte) bool
	// numbers are a row as two numbers, for the checksum; ok is false where it is none of the workload's.
	numbers(key, value []byte) (number, sum uint64, ok bool)
}

// readAll is all that reads, behind a load that has settled. put writes more rows.
func (r *run) readAll(data questions, wanted check.RowSum, put func(rival.Writer) error) error {
	if err := r.readStill(data, wanted); err != nil {
		return err
	}
	return r.readWhileWriting(data, put)
}

// readStill is what of it needs that nobody writes.
func (r *run) readStill(data questions, wanted check.RowSum) (err error) {
	r.Reads = &Temperatures{}
	found := check.RowSum{}
	if r.Reads.Warm, found, err = r.readWarm(data); err != nil {
		return err
	}
	r.check(found, wanted)
	if r.job.Optimize {
		if err = r.optimize(data, wanted); err != nil {
			return err
		}
	}
	r.Reads.Cold, err = r.readCold(data, wanted)
	return err
}

// readWarm gets to warm up, then gets what counts, then scans.
func (r *run) readWarm(data questions) (*Reads, check.RowSum, error) {
	say("reading warm")
	reads := &Reads{}
	if err := r.getMany(data, r.job.Seed+1, &Reads{}); err != nil {
		return nil, check.RowSum{}, err
	}
	if err := r.getMany(data, r.job.Seed, reads); err != nil {
		return nil, check.RowSum{}, err
	}
	found, err := r.scan(data, &reads.Scan)
	return reads, found, err
}

// readCold opens cold for the gets, and once more for the scan, which would find much of the store in memory after them.
func (r *run) readCold(data questions, wanted check.RowSum) (reads *Reads, err error) {
	say("reading cold")
	reads = &Reads{}
	if reads.OpenMS, err = r.reopenCold(); err != nil {
		return nil, err
	}
	if err = r.getMany(data, r.job.Seed, reads); err != nil {
		return nil, err
	}
	if _, err = r.reopenCold(); err != nil {
		return nil, err
	}
	found, err := r.scan(data, &reads.Scan)
	r.judge(found == wanted)
	return reads, err
}

func (r *run) optimize(data questions, wanted check.RowSum) error {
	say("optimizing")
	phase := measure.StartPhase(0)
	if err := r.store.Optimize(); err != nil {
		return err
	}
	figures := phase.End()
	warm, found, err := r.readWarm(data)
	if err != nil {
		return err
	}
	r.judge(found == wanted)
	r.Optimized = &Optimized{Seconds: figures.Seconds, CPU: figures.CPU, Reads: Temperatures{Warm: warm}}
	return r.diskBytes(&r.Optimized.DiskBytes)
}

func (r *run) getMany(data questions, seed uint64, reads *Reads) error {
	hits, misses := measure.NewLatencies(), measure.NewLatencies()
	reader, chance := r.store.Reader(true), generate.NewChance(seed^readSeed)
	defer reader.Close()
	var key, wanted, value []byte
	total := time.Duration(0)
	for index := range gets {
		isHit, latencies := index%2 == 0, misses
		if isHit {
			latencies = hits
			key, wanted = data.hit(&chance, key[:0], wanted[:0])
		} else {
			key, wanted = data.miss(&chance, key[:0]), wanted[:0]
		}
		before := time.Now()
		is, found, err := reader.Get(key, value)
		took := time.Since(before)
		if err != nil {
			return err
		}
		value = is
		total += took
		latencies.Note(took)
		r.judge(found == isHit && bytes.Equal(value, wanted))
	}
	reads.Hits, reads.Misses = hits.Quantiles(), misses.Quantiles()
	reads.GetsPerS = measure.PerSecond(gets, total)
	return nil
}

// scan sums all rows up; keys that do not ascend and rows that are none count against the run.
func (r *run) scan(data questions, figures *Scan) (sum check.RowSum, err error) {
	order, strange := check.Ascending{}, 0
	reader := r.store.Reader(true)
	defer reader.Close()
	took, err := timed(func() error {
		return reader.Scan(nil, func(key, value []byte) bool {
			number, is, ok := data.numbers(key, value)
			if !ok {
				strange++
				number = math.MaxUint64
			}
			order.Next(number)
			sum.Add(number, is)
			return true
		})
	})
	r.judge(order.Holds() && strange == 0)
	*figures = Scan{measure.Round(took.Seconds(), 3), measure.PerSecond(sum.Rows, took)}
	return sum, err
}
