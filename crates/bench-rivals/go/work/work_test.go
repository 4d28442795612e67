// Every workload runs on every rival at a tiny scale, and its final state is what it must be.

package work

import (
	"testing"

	"folddb/bench-rivals/rival"
)

func tiny(t *testing.T, change func(*Job)) *Report {
	t.Helper()
	gets = 2000
	job := Job{Rows: 20_000, Batch: 100, MemoryBytes: 16 << 20, Durability: "process", Threads: 2, ValueBytes: 4096,
		Seed: 1, Dir: t.TempDir()}
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
	rows := map[string]uint64{"append-one": 500, "commit": 50, "drain": 2000, "ydb-rmw": 3000, "more-than-ram": 3000,
		"leveled": 6000, "elliptics": 1000}
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

// The sums are what the Rust program finds in FoldDB for the same job.
func TestTheSameDataWhateverTheRivalAndTheLanguage(t *testing.T) {
	for workload, wanted := range map[string]string{
		"ydb": "2ecb4f0e48828723", "ydb-rmw": "2ecb4f0e48828723", "more-than-ram": "88e7ea163ef2cce1",
		"leveled": "bfd0bf78b46549d5", "elliptics": "37bfe3dc4d72821c", "osmos": "267e465ec162773e", "hugedb": "64eb4f8985f8135b",
	} {
		for _, name := range rival.Names() {
			report := tiny(t, func(job *Job) { job.Rival, job.Workload, job.Rows = name, workload, 6000 })
			if report.Checksum != wanted {
				t.Errorf("%s %s: %s, and the Rust side has %s", name, workload, report.Checksum, wanted)
			}
		}
	}
}

func TestOpsOfLeveledAreCountedAndItsSpaceIsSeen(t *testing.T) {
	for _, name := range rival.Names() {
		report := tiny(t, func(job *Job) { job.Rival, job.Workload, job.Rows = name, "leveled", 3000 })
		gets, puts := report.Serve.Gets.Count, report.Serve.Puts.Count
		if gets+puts != 3000 || puts < 300 || len(report.Serve.DiskBytes) == 0 || report.Space.PerByte < 0.1 {
			t.Errorf("%+v %+v", report.Serve, report.Space)
		}
		if report.Heads.Cold.Count != 250 || report.Heads.Warm.PerS == 0 || report.Heads.ColdGets.PerS == 0 {
			t.Errorf("%+v", report.Heads)
		}
	}
}

func TestKeysThatAreNotWrittenAreNotThere(t *testing.T) {
	for _, name := range rival.Names() {
		report := tiny(t, func(job *Job) { job.Rival, job.Workload, job.Rows, job.Keys = name, "ydb", 500, 5000 })
		if report.Keys != 5000 {
			t.Errorf("%+v", report)
		}
	}
}

func TestAWriterKeepsToItsRate(t *testing.T) {
	report := tiny(t, func(job *Job) {
		job.Rival, job.Workload, job.Rows, job.BesideWritesPerS = "pebble", "hugedb", 500, 10_000
	})
	if rate := report.ReadWhileWriting.WritesPerS; rate == 0 || rate > 10_000 {
		t.Errorf("%v rows a second", rate)
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
