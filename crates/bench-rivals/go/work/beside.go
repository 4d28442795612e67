// Reading while writing: one writer flat out, beside one reader that gets keys which are there.

package work

import (
	"time"

	"folddb/bench-rivals/generate"
	"folddb/bench-rivals/measure"
	"folddb/bench-rivals/rival"
)

const (
	// besideFor is how long one writes while another reads, and no further than to as many rows again as were loaded.
	besideFor  = 5 * time.Second
	besideSeed = 0x6265_7369_6465
)

// readWhileWriting writes more rows flat out, beside one reader, for some seconds or until as much again as was loaded is written.
func (r *run) readWhileWriting(data questions, put func(rival.Writer) error) error {
	say("reading while writing")
	stop, ended := make(chan struct{}), make(chan error, 1)
	gets := measure.NewLatencies()
	go func() { ended <- r.getUntil(stop, data, gets) }()
	written, took, err := r.writeFor(besideFor, put)
	close(stop)
	if readError := <-ended; err == nil {
		err = readError
	}
	r.ReadWhileWriting = &ReadWhileWriting{measure.PerSecond(written, took), gets.Quantiles()}
	return err
}

func (r *run) writeFor(limit time.Duration, put func(rival.Writer) error) (written uint64, took time.Duration, err error) {
	writer, started, pace := r.store.Writer(), time.Now(), newPace(r.job.BesideWritesPerS)
	for took < limit && written < r.Rows && err == nil {
		err = batches(writer, r.Batch, r.Batch, put, func(_, rows uint64) { written += rows })
		pace.done(r.Batch)
		took = time.Since(started)
	}
	if err == nil {
		err = writer.Close()
	}
	return written, took, err
}

func (r *run) getUntil(stop <-chan struct{}, data questions, gets *measure.Latencies) error {
	reader, chance := r.store.Reader(false), generate.NewChance(r.job.Seed^besideSeed)
	defer reader.Close()
	pace := newPace(r.job.BesideGetsPerS)
	var key, wanted, value []byte
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		key, wanted = data.hit(&chance, key[:0], wanted[:0])
		before := time.Now()
		is, found, err := reader.Get(key, value)
		gets.Note(time.Since(before))
		if err != nil {
			return err
		}
		value = is
		r.judge(found && data.mayBecome(wanted, value)) // nobody else judges meanwhile
		pace.done(1)
	}
}
