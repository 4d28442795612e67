// The load of a workload: one writer, flat out.

package work

import (
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
