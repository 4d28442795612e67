// HEAD beside GET: the size of a value, without the value where the store can; of as many random objects as gets of whole ones,
// each time with nothing of the store in memory.

package work

import (
	"bytes"
	"time"

	"folddb/bench-rivals/generate"
	"folddb/bench-rivals/measure"
	"folddb/bench-rivals/rival"
)

// headsMax: and no more than a third of the objects, so that few are asked for twice.
const headsMax = 100_000

// headsBesideGets asks for heads, cold and warm, then for values, cold.
func (r *run) headsBesideGets(data versions) (err error) {
	say("asking for heads")
	r.Heads = &Heads{}
	if _, err = r.reopenCold(); err != nil {
		return err
	}
	if r.Heads.Cold, err = r.ask(data, head); err != nil {
		return err
	}
	if r.Heads.Warm, err = r.ask(data, head); err != nil {
		return err
	}
	if _, err = r.reopenCold(); err != nil {
		return err
	}
	r.Heads.ColdGets, err = r.ask(data, (&getter{}).get)
	r.Heads.ColdToColdGets = measure.Round(float64(r.Heads.Cold.PerS)/float64(max(r.Heads.ColdGets.PerS, 1)), 2)
	return err
}

// question says whether what a store says of a key agrees with the value.
type question func(reader rival.Reader, key, value []byte) (right bool, err error)

func head(reader rival.Reader, key, value []byte) (right bool, err error) {
	size, found, err := reader.SizeBytes(key)
	return found && size == uint64(len(value)), err
}

// getter has a buffer for values.
type getter struct{ value []byte }

func (g *getter) get(reader rival.Reader, key, value []byte) (right bool, err error) {
	is, found, err := reader.Get(key, g.value)
	g.value = is
	return found && bytes.Equal(is, value), err
}

func (r *run) ask(data versions, question question) (asked Asked, err error) {
	count := max(min(headsMax, uint64(len(data.last))/3), 1)
	latencies, reader, chance := measure.NewLatencies(), r.store.Reader(true), generate.NewChance(r.job.Seed)
	defer reader.Close()
	var key, value []byte
	total, readBefore := time.Duration(0), measure.ReadBytes()
	for range count {
		key, value = data.hit(&chance, key[:0], value[:0])
		before := time.Now()
		right, err := question(reader, key, value)
		took := time.Since(before)
		if err != nil {
			return asked, err
		}
		latencies.Note(took)
		total += took
		r.judge(right)
	}
	asked.Quantiles, asked.PerS = latencies.Quantiles(), measure.PerSecond(count, total)
	asked.ReadBytesEach = measure.Round(float64(measure.ReadBytes()-readBefore)/float64(count), 0)
	return asked, nil
}
