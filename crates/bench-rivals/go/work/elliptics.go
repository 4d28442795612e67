// elliptics: blobs of about 4.4 KB under ids of 64 bytes, put once; then a cold opening, and gets of random ones by several
// goroutines, with nothing of them in memory.

package work

import (
	"bytes"
	"time"

	"folddb/bench-rivals/generate"
	"folddb/bench-rivals/measure"
	"folddb/bench-rivals/rival"
)

const (
	blobIDBytes  = 64
	blobBytesMin = 4000
	blobBytesMax = 4800
	// coldGetsMax are the gets of all threads; no more than a third of the blobs, so that few are asked for twice.
	coldGetsMax = 100_000
)

func elliptics(r *run) (err error) {
	if err = r.open(rival.Objects); err != nil {
		return err
	}
	shelf := newShelf(r.job.Seed, blobIDBytes, blobBytesMin, blobBytesMax)
	blobs := &objectWriter{shelf: shelf, keys: r.Rows}
	if err = r.load(blobs.put); err != nil {
		return err
	}
	if err = r.settle(blobs.bytes); err != nil {
		return err
	}
	data := versionsAfter(shelf, r.Rows, r.Rows)
	if err = r.putSpace(data.liveBytes()); err != nil {
		return err
	}
	if err = r.getCold(data); err != nil {
		return err
	}
	return r.checkAll(data)
}

// getCold opens cold, and gets random blobs by all threads.
func (r *run) getCold(data versions) (err error) {
	r.ColdGets = &ColdGets{}
	if r.ColdGets.OpenMS, err = r.reopenCold(); err != nil {
		return err
	}
	say("reading cold")
	count, threads := max(min(coldGetsMax, r.Rows/3), 1), uint64(max(r.Threads, 1))
	latencies := measure.NewLatencies()
	readBefore, started := measure.ReadBytes(), time.Now()
	err = together(threads, func(thread uint64) (func(), error) {
		share := count / threads
		if thread < count%threads {
			share++
		}
		mine, right, err := r.getRandom(data, share, r.job.Seed^(thread+1)<<40)
		return func() { latencies.Merge(mine); r.judge(right) }, err
	})
	took := time.Since(started)
	r.ColdGets.GetsPerS, r.ColdGets.Gets = measure.PerSecond(count, took), latencies.Quantiles()
	r.ColdGets.ReadBytesPerGet = measure.Round(float64(measure.ReadBytes()-readBefore)/float64(count), 0)
	return err
}

func (r *run) getRandom(data versions, count, seed uint64) (latencies *measure.Latencies, right bool, err error) {
	reader, chance := r.store.Reader(true), generate.NewChance(seed)
	defer reader.Close()
	latencies, right = measure.NewLatencies(), true
	var key, wanted, value []byte
	for range count {
		key, wanted = data.hit(&chance, key[:0], wanted[:0])
		before := time.Now()
		is, found, err := reader.Get(key, value)
		latencies.Note(time.Since(before))
		if err != nil {
			return latencies, false, err
		}
		value = is
		right = right && found && bytes.Equal(value, wanted)
	}
	return latencies, right, nil
}
