// The load of a workload: one writer, flat out.

package work

import (
	"time"

	"folddb/bench-rivals/measure"
	"folddb/bench-rivals/rival"
)

// load writes rows by batches, each of which put brings to a writer.
func (r *run) load(put func(writer rival.Writer) error) (err error) {
	say("loading")
	writer := r.store.Writer()
	phase, commits := measure.StartPhase(r.Rows), measure.StartCommits()
	err = batches(writer, r.Rows, r.Batch, put, func(done, rows uint64) { phase.Reached(done, commits.Note(rows)) })
	if err != nil {
		return err
	}
	r.Load, r.Commits = new(phase.End()), new(measure.Quantiles)
	*r.Commits, r.CommitsBySecond = commits.End()
	return writer.Close()
}

// batches commits so many rows in batches, and tells after each.
func batches(writer rival.Writer, rows, batch uint64, put func(rival.Writer) error, tell func(done, rows uint64)) error {
	for done := uint64(0); done < rows; {
		count := min(batch, rows-done)
		for range count {
			if err := put(writer); err != nil {
				return err
			}
		}
		if err := writer.Commit(); err != nil {
			return err
		}
		done += count
		tell(done, count)
	}
	return nil
}

const (
	// besideFor is how long one writes while another reads.
	besideFor = 3 * time.Second
	// besideAtMost is the share of the rows that is written then.
	besideAtMost = 5
)

// readWhileWriting writes more rows flat out, beside one reader, for some seconds.
func (r *run) readWhileWriting(subject subject, put func(rival.Writer) error) error {
	say("reading while writing")
	stop, ended := make(chan struct{}), make(chan error, 1)
	gets := measure.NewLatencies()
	go func() { ended <- r.getUntil(stop, subject, gets) }()
	written, seconds, err := r.writeFor(besideFor, put)
	close(stop)
	if readError := <-ended; err == nil {
		err = readError
	}
	r.ReadWhileWriting = &ReadWhileWriting{measure.PerSecond(written, seconds), gets.Quantiles()}
	return err
}

func (r *run) writeFor(limit time.Duration, put func(rival.Writer) error) (written uint64, took time.Duration, err error) {
	writer, started := r.store.Writer(), time.Now()
	for took < limit && written < max(r.Rows/besideAtMost, 1) && err == nil {
		err = batches(writer, r.Batch, r.Batch, put, func(_, rows uint64) { written += rows })
		took = time.Since(started)
	}
	if err == nil {
		err = writer.Close()
	}
	return written, took, err
}

func (r *run) getUntil(stop <-chan struct{}, subject subject, gets *measure.Latencies) (err error) {
	var key, value []byte
	for count := 0; err == nil; count++ {
		select {
		case <-stop:
			return nil
		default:
		}
		key = subject.key(count%2 == 0, key[:0])
		before := time.Now()
		value, _, err = r.store.Get(key, value)
		gets.Note(time.Since(before))
	}
	return err
}
