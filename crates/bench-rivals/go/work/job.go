// Package work has the workloads, written once against the interface of package rival; the same as those of
// crates/bench-rivals/src/work. Run is called by the program.
package work

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"folddb/bench-rivals/disk"
	"folddb/bench-rivals/measure"
	"folddb/bench-rivals/rival"
)

// Job is what is asked for on the command line.
type Job struct {
	Rival       string
	Workload    string
	Rows        uint64
	Keys        uint64
	Batch       uint64
	MemoryBytes int64
	Durability  string
	Threads     int
	ValueBytes  uint64
	Seed        uint64
	Dir         string
	Optimize    bool
	// Rates of reading while writing; 0: as many as it can.
	BesideWritesPerS uint64
	BesideGetsPerS   uint64
}

var workloads = map[string]func(*run) error{
	"hugedb":        hugedb,
	"osmos":         osmos,
	"append-one":    appendOne,
	"drain":         drain,
	"open":          open,
	"commit":        commit,
	"ydb":           ydb,
	"ydb-rmw":       ydbReadModifyWrite,
	"more-than-ram": moreThanRAM,
	"leveled":       leveled,
	"elliptics":     elliptics,
}

// run is a job under way: its store, and the report so far.
type run struct {
	job Job
	Report
	store    rival.Store
	settings rival.Settings
	watch    *measure.MemoryWatch
	written  int64 // device bytes before the load
}

// Run does a job and says what came of it.
func Run(job Job) (*Report, error) {
	workload, known := workloads[job.Workload]
	if !known {
		return nil, fmt.Errorf("there is no workload `%s`", job.Workload)
	}
	about, err := rival.Prepare(job.Rival, job.MemoryBytes)
	if err != nil {
		return nil, err
	}
	r := &run{job: job, Report: newReport(job, about), written: measure.DeviceBytes()}
	r.settings = rival.Settings{Dir: job.Dir, MemoryBytes: job.MemoryBytes, Sync: job.Durability == "sync"}
	r.watch = measure.WatchMemory()
	defer r.watch.Stop()
	err = workload(r)
	if r.store != nil && err == nil {
		err = r.store.Close()
	}
	return &r.Report, err
}

// putKeys notes the number of keys: what was asked for, or a share of the rows.
func (r *run) putKeys(rowsPerKey uint64) {
	r.Keys = r.job.Keys
	if r.Keys == 0 {
		r.Keys = max(r.Rows/rowsPerKey, 1)
	}
}

// open opens the store of the job, for what this meaning says.
func (r *run) open(meaning rival.Meaning) (err error) {
	if err = os.MkdirAll(r.job.Dir, 0o777); err != nil {
		return err
	}
	r.settings.Meaning = meaning
	r.store, err = rival.Open(r.Rival, r.settings)
	return err
}

// reopenCold closes the store, drops its files from the page cache and opens it again, timed.
func (r *run) reopenCold() (openMS float64, err error) {
	if err := r.store.Close(); err != nil {
		return 0, err
	}
	r.store = nil
	if err := disk.Drop(r.job.Dir); err != nil {
		return 0, err
	}
	took, err := timed(func() error { return r.open(r.settings.Meaning) })
	return milliseconds(took), err
}

// settle waits for the background work of a load, and says what the load wrote for so many bytes of keys and values, what
// it takes up, and the memory up to now.
func (r *run) settle(userBytes uint64) error {
	say("settling")
	phase := measure.StartPhase(0)
	if err := r.store.Settle(); err != nil {
		return err
	}
	figures := phase.End()
	syncing, err := timed(func() error { return disk.Sync(r.job.Dir) })
	if err != nil {
		return err
	}
	r.Settle = &Settled{figures.Seconds, figures.CPU, measure.Round(syncing.Seconds(), 3)}
	device := measure.DeviceBytes() - r.written
	r.Written = &Written{userBytes, device, measure.Round(float64(device)/float64(max(userBytes, 1)), 3)}
	r.PeakResidentBytes, r.PeakAnonymousBytes = r.watch.Peaks()
	return r.diskBytes(&r.DiskBytes)
}

// putSpace notes what the store takes on the disk for each byte of keys and values that live.
func (r *run) putSpace(liveBytes uint64) error {
	r.Space = &Space{LiveBytes: liveBytes}
	err := r.diskBytes(&r.Space.DiskBytes)
	r.Space.PerByte = measure.Round(float64(r.Space.DiskBytes)/float64(max(liveBytes, 1)), 3)
	return err
}

func (r *run) diskBytes(figure *int64) (err error) {
	*figure, err = disk.AllocatedBytes(r.job.Dir)
	return err
}

// say tells whoever watches how far the job is.
func say(what string) { fmt.Fprintln(os.Stderr, what) }

// Names of the workloads.
func Names() []string { return slices.Sorted(maps.Keys(workloads)) }
