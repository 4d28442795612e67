// Every workload runs on every rival at a tiny scale, and its final state is what it must be.

package work

import (
	"testing"

	"folddb/bench-rivals/rival"
)

func tiny(t *testing.T, change func(*Job)) *Report {
	t.Helper()
	gets = 2000
	job := Job{Rows: 20_000, Batch: 100, MemoryBytes: 16 << 20, Durability: "process", Threads: 2, Seed: 1, Dir: t.TempDir()}
	change(&job)
	report, err := Run(job)
	if err != nil {
		t.Fatal(err)
	}
	if !report.Verified || report.Checksum != report.ChecksumExpected {
		t.Fatalf("%s, %s expected: %+v", report.Checksum, report.ChecksumExpected, report)
	}
	return report
}

func TestEveryRivalVerifiesWhatItLeaves(t *testing.T) {
	rows := map[string]uint64{"append-one": 500, "commit": 50, "drain": 2000}
	for _, name := range rival.Names() {
		for _, workload := range Names() {
			t.Run(name+"/"+workload, func(t *testing.T) {
				tiny(t, func(job *Job) {
					job.Rival, job.Workload, job.Optimize = name, workload, true
					if fewer, small := rows[workload]; small {
						job.Rows, job.Batch = fewer, 1
					}
				})
			})
		}
	}
}

func TestSingleWritesAreTimedOneByOne(t *testing.T) {
	for _, name := range rival.Names() {
		report := tiny(t, func(job *Job) { job.Rival, job.Workload, job.Rows, job.Batch = name, "hugedb", 5000, 1 })
		if report.Commits.Count != 5000 || len(report.Load.ByTenth) != 10 || report.Written.DeviceBytes <= 0 {
			t.Errorf("%+v %+v %+v", report.Commits, report.Load, report.Written)
		}
	}
}

func TestTheSameDataWhateverTheRival(t *testing.T) {
	sums := map[string]bool{}
	for _, name := range rival.Names() {
		sums[tiny(t, func(job *Job) { job.Rival, job.Workload = name, "osmos" }).Checksum] = true
	}
	if len(sums) != 1 {
		t.Error(sums)
	}
}

func TestWrongNamesAreRefused(t *testing.T) {
	if _, err := Run(Job{Rival: "nobody", Workload: "hugedb"}); err == nil {
		t.Error("there is no such rival")
	}
	if _, err := Run(Job{Rival: "pebble", Workload: "nothing"}); err == nil {
		t.Error("there is no such workload")
	}
}
