// Command rivals runs one workload on one store that is written in Go, as a child of the contest of bench-rivals: the same
// command line, the same data, and one JSON object as the last line of its output. Exit 1 when something failed; a wrong
// checksum is no failure here: the report says it.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"

	"folddb/bench-rivals/rival"
	"folddb/bench-rivals/work"
)

func main() {
	job := arguments()
	report, err := work.Run(job)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(report)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rivals:", err)
		os.Exit(1)
	}
}

func arguments() (job work.Job) {
	flag.StringVar(&job.Rival, "rival", "pebble", "one of "+strings.Join(rival.Names(), ", "))
	flag.StringVar(&job.Workload, "workload", "hugedb", "one of "+strings.Join(work.Names(), ", "))
	flag.Uint64Var(&job.Rows, "rows", 1_000_000, "rows, writes or appends")
	flag.Uint64Var(&job.Keys, "keys", 0, "keys of osmos, ydb, more-than-ram, leveled; a share of the rows if not given")
	flag.Uint64Var(&job.Batch, "batch", 1, "ops in a commit")
	flag.Int64Var(&job.MemoryBytes, "memory-bytes", 64<<20, "for buffers and caches together")
	flag.StringVar(&job.Durability, "durability", "process", "process: commits go to the operating system; sync: they are synced")
	flag.IntVar(&job.Threads, "threads", 1, "writers of commit; threads of leveled; readers of elliptics")
	flag.Uint64Var(&job.ValueBytes, "value-bytes", 8<<10, "bytes of a value of leveled")
	flag.Uint64Var(&job.Seed, "seed", 1, "decides the data")
	flag.StringVar(&job.Dir, "dir", "", "an empty directory, or one to be made, for the store")
	flag.Uint64Var(&job.BesideWritesPerS, "beside-writes-per-s", 0, "reading while writing: rows a second of the writer; 0: as many as it can")
	flag.Uint64Var(&job.BesideGetsPerS, "beside-gets-per-s", 0, "reading while writing: gets a second of the reader; 0: as many as it can")
	flag.BoolVar(&job.Optimize, "optimize", false, "also merge everything, and read again")
	flag.Parse()
	if job.Dir == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	return job
}
