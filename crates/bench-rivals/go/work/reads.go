// Reads of a store that is at rest, warm and cold.

package work

import (
	"time"

	"folddb/bench-rivals/measure"
)

// gets that are measured, half hits, half misses.
const gets = 100_000

// subject knows the data of a workload.
type subject interface {
	// key appends a random key that is there, or one that is not.
	key(hit bool, into []byte) []byte
	// answered takes the answer to a get of such a key, to judge it now or later.
	answered(key, value []byte, found, hit bool)
	// row takes the next row of a scan, and scanned its end.
	row(key, value []byte)
	scanned()
}

// readAll does the phases of reads that every load is followed by: warm, cold, and after a merge of everything if that
// is asked for.
func (r *run) readAll(subject subject) (err error) {
	r.Reads = &Temperatures{}
	if r.Reads.Warm, err = r.readWarm(subject); err != nil {
		return err
	}
	if r.Reads.Cold, err = r.readCold(subject); err != nil || !r.job.Optimize {
		return err
	}
	return r.optimize(subject)
}

func (r *run) readWarm(subject subject) (*Reads, error) {
	say("reading warm")
	reads := &Reads{}
	if err := r.getMany(subject, &Reads{}); err != nil {
		return nil, err
	}
	if err := r.getMany(subject, reads); err != nil {
		return nil, err
	}
	return reads, r.scan(subject, &reads.Scan)
}

// readCold opens cold for the gets, and once more for the scan, which would find much of the store in memory after them.
func (r *run) readCold(subject subject) (reads *Reads, err error) {
	say("reading cold")
	reads = &Reads{}
	if reads.OpenMS, err = r.reopenCold(); err != nil {
		return nil, err
	}
	if err = r.getMany(subject, reads); err != nil {
		return nil, err
	}
	if _, err = r.reopenCold(); err != nil {
		return nil, err
	}
	return reads, r.scan(subject, &reads.Scan)
}

func (r *run) optimize(subject subject) (err error) {
	say("optimizing")
	phase := measure.StartPhase(0)
	if err = r.store.Optimize(); err != nil {
		return err
	}
	figures := phase.End()
	r.Optimized = &Optimized{Seconds: figures.Seconds, CPU: figures.CPU}
	if r.Optimized.Reads.Warm, err = r.readWarm(subject); err != nil {
		return err
	}
	if r.Optimized.Reads.Cold, err = r.readCold(subject); err != nil {
		return err
	}
	return r.diskBytes(&r.Optimized.DiskBytes)
}

func (r *run) getMany(subject subject, reads *Reads) error {
	hits, misses := measure.NewLatencies(), measure.NewLatencies()
	var key, value []byte
	total := time.Duration(0)
	for index := range min(gets, 2*r.Rows) {
		hit, latencies := index%2 == 0, misses
		if hit {
			latencies = hits
		}
		key = subject.key(hit, key[:0])
		before := time.Now()
		into, found, err := r.store.Get(key, value)
		took := time.Since(before)
		if err != nil {
			return err
		}
		value = into
		total += took
		latencies.Note(took)
		subject.answered(key, value, found, hit)
	}
	reads.Hits, reads.Misses = hits.Quantiles(), misses.Quantiles()
	reads.GetsPerS = measure.PerSecond(min(gets, 2*r.Rows), total)
	return nil
}

func (r *run) scan(subject subject, figures *Scan) error {
	rows := uint64(0)
	took, err := timed(func() error {
		return r.store.Scan(nil, func(key, value []byte) bool {
			rows++
			subject.row(key, value)
			return true
		})
	})
	subject.scanned()
	*figures = Scan{measure.Round(took.Seconds(), 3), measure.PerSecond(rows, took)}
	return err
}
