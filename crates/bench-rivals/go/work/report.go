// What a job says in the end: one JSON object, with the names that crates/bench-rivals/src/contest.rs reads.

package work

import (
	"time"

	"folddb/bench-rivals/check"
	"folddb/bench-rivals/measure"
	"folddb/bench-rivals/rival"
)

// Report of a job. Parts that its workload does not have are absent.
type Report struct {
	Rival              string             `json:"rival"`
	Version            string             `json:"version"`
	Workload           string             `json:"workload"`
	Rows               uint64             `json:"rows"`
	Batch              uint64             `json:"batch"`
	Threads            int                `json:"threads"`
	MemoryBytes        int64              `json:"memory_bytes"`
	Durability         string             `json:"durability"`
	Settings           string             `json:"settings"`
	Load               *measure.Figures   `json:"load,omitempty"`
	Commits            *measure.Quantiles `json:"commits,omitempty"`
	CommitsBySecond    []measure.Second   `json:"commits_by_second,omitempty"`
	Keys               uint64             `json:"keys,omitempty"`
	ValueBytes         uint64             `json:"value_bytes,omitempty"`
	Fill               *measure.Figures   `json:"fill,omitempty"`
	Serve              *Served            `json:"serve,omitempty"`
	Settle             *Settled           `json:"settle,omitempty"`
	Written            *Written           `json:"written,omitempty"`
	DiskBytes          int64              `json:"disk_bytes,omitempty"`
	PeakResidentBytes  int64              `json:"peak_resident_bytes,omitempty"`
	PeakAnonymousBytes int64              `json:"peak_anonymous_bytes,omitempty"`
	Space              *Space             `json:"space,omitempty"`
	Heads              *Heads             `json:"heads,omitempty"`
	ColdGets           *ColdGets          `json:"cold_gets,omitempty"`
	Reads              *Temperatures      `json:"reads,omitempty"`
	Optimized          *Optimized         `json:"optimized,omitempty"`
	ReadWhileWriting   *ReadWhileWriting  `json:"read_while_writing,omitempty"`
	Reader             *Reader            `json:"reader,omitempty"`
	GetMS              *GetMS             `json:"get_ms,omitempty"`
	Puts               *measure.Figures   `json:"puts,omitempty"`
	Deletes            *measure.Figures   `json:"deletes,omitempty"`
	Seeks              *Seeks             `json:"seeks,omitempty"`
	Open               *Opened            `json:"open,omitempty"`
	Checksum           string             `json:"checksum"`
	ChecksumExpected   string             `json:"checksum_expected"`
	Verified           bool               `json:"verified"`
}

// Settled is the end of the background work, and of writing files out.
type Settled struct {
	Seconds     float64 `json:"seconds"`
	CPU         float64 `json:"cpu_s"`
	SyncSeconds float64 `json:"sync_seconds"`
}

// Written is what went to the device for the user's bytes.
type Written struct {
	UserBytes     uint64  `json:"user_bytes"`
	DeviceBytes   int64   `json:"device_bytes"`
	Amplification float64 `json:"amplification"`
}

// Space that a store takes for what lives.
type Space struct {
	LiveBytes uint64  `json:"live_bytes"`
	DiskBytes int64   `json:"disk_bytes"`
	PerByte   float64 `json:"per_byte"`
}

// Served are the gets and puts of leveled.
type Served struct {
	measure.Figures
	Gets      measure.Quantiles `json:"gets"`
	Puts      measure.Quantiles `json:"puts"`
	DiskBytes []int64           `json:"disk_bytes_by_second"`
}

// Heads are HEAD beside GET.
type Heads struct {
	Warm           Asked   `json:"warm"`
	Cold           Asked   `json:"cold"`
	ColdGets       Asked   `json:"cold_gets"`
	ColdToColdGets float64 `json:"cold_to_cold_gets"`
}

// Asked are questions of one kind.
type Asked struct {
	measure.Quantiles
	PerS          uint64  `json:"per_s"`
	ReadBytesEach float64 `json:"read_bytes_each"`
}

// ColdGets are the gets of elliptics by all threads.
type ColdGets struct {
	OpenMS          float64           `json:"open_ms"`
	GetsPerS        uint64            `json:"gets_per_s"`
	Gets            measure.Quantiles `json:"gets"`
	ReadBytesPerGet float64           `json:"read_bytes_per_get"`
}

// Temperatures of reads.
type Temperatures struct {
	Warm *Reads `json:"warm,omitempty"`
	Cold *Reads `json:"cold,omitempty"`
}

// Reads are gets and a scan.
type Reads struct {
	OpenMS   float64           `json:"open_ms,omitempty"`
	Hits     measure.Quantiles `json:"hits"`
	Misses   measure.Quantiles `json:"misses"`
	GetsPerS uint64            `json:"gets_per_s"`
	Scan     Scan              `json:"scan"`
}

// Scan of all rows.
type Scan struct {
	Seconds  float64 `json:"seconds"`
	RowsPerS uint64  `json:"rows_per_s"`
}

// Optimized is what a merge of everything took, and how reads are then.
type Optimized struct {
	Seconds   float64      `json:"seconds"`
	CPU       float64      `json:"cpu_s"`
	DiskBytes int64        `json:"disk_bytes"`
	Reads     Temperatures `json:"reads"`
}

// ReadWhileWriting has one writer flat out beside one reader.
type ReadWhileWriting struct {
	WritesPerS uint64            `json:"writes_per_s"`
	Gets       measure.Quantiles `json:"gets"`
}

// Reader beside the load of osmos.
type Reader struct {
	Gets    measure.Quantiles `json:"gets"`
	Selects measure.Quantiles `json:"selects"`
}

// GetMS are the gets of append-one.
type GetMS struct {
	First      float64 `json:"first"`
	Second     float64 `json:"second"`
	AfterFlush float64 `json:"after_flush"`
}

// Seeks of drain.
type Seeks struct {
	OfAnEmptyTable measure.Quantiles `json:"of_an_empty_table"`
	Drained        measure.Quantiles `json:"drained"`
	Settled        measure.Quantiles `json:"settled"`
}

// Opened cold.
type Opened struct {
	OpenMS     float64 `json:"open_ms"`
	FirstGetUS float64 `json:"first_get_us"`
}

func newReport(job Job, settings string) Report {
	return Report{Rival: job.Rival, Version: rival.Version(job.Rival), Workload: job.Workload, Rows: job.Rows, Batch: job.Batch,
		Threads: job.Threads, MemoryBytes: job.MemoryBytes, Durability: job.Durability, Settings: settings, Verified: true}
}

// check notes the sum of what was found and of what should be.
func (r *Report) check(found, wanted check.RowSum) {
	r.Checksum, r.ChecksumExpected = found.String(), wanted.String()
	r.judge(found == wanted)
}

// judge notes whether all of something was right.
func (r *Report) judge(right bool) { r.Verified = r.Verified && right }

func timed(call func() error) (time.Duration, error) {
	before := time.Now()
	err := call()
	return time.Since(before), err
}

func milliseconds(took time.Duration) float64 { return measure.Round(took.Seconds()*1e3, 3) }
