// The load of a workload: one writer, flat out.

package work

import (
	"folddb/bench-rivals/measure"
	"folddb/bench-rivals/rival"
)

// load writes the rows of the job.
func (r *run) load(put func(writer rival.Writer) error) error { return r.loadRows(r.Rows, put) }

// loadRows writes so many rows by batches, each of which put brings to a writer.
func (r *run) loadRows(rows uint64, put func(writer rival.Writer) error) (err error) {
	say("loading")
	writer := r.store.Writer()
	phase, commits := measure.StartPhase(rows), measure.StartCommits()
	err = batches(writer, rows, r.Batch, put, func(done, rows uint64) { phase.Reached(done, commits.Note(rows)) })
	if err != nil {
		return err
	}
	r.putLoad(phase, commits)
	return writer.Close()
}

// putLoad notes what a load took.
func (r *run) putLoad(phase *measure.Phase, commits *measure.Commits) {
	r.Load, r.Commits = new(phase.End()), new(measure.Quantiles)
	*r.Commits, r.CommitsBySecond = commits.End()
}

// setOne sets a key as a commit of its own.
func setOne(writer rival.Writer, key, value []byte) error {
	if err := writer.Set(key, value); err != nil {
		return err
	}
	return writer.Commit()
}

// batches commits so many rows in batches, and tells after each.
func batches(writer rival.Writer, rows, batch uint64, put func(rival.Writer) error, tell func(done, rows uint64)) error {
	for done := uint64(0); done < rows; {
		count := min(max(batch, 1), rows-done)
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
