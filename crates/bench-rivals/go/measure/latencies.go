// Package measure has the stopwatches: latencies in a histogram, speed by the tenth of a run, and what the operating
// system says about this process. The figures have the names and units of crates/bench/src/measure.rs.
package measure

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// longest is what a histogram can hold; longer calls count as this long.
const longest = 10 * time.Minute

// Latencies are how long calls took: from a nanosecond to ten minutes, with three digits.
type Latencies struct {
	histogram *hdrhistogram.Histogram
	sum       time.Duration
}

// NewLatencies has seen no call.
func NewLatencies() *Latencies {
	return &Latencies{histogram: hdrhistogram.New(1, int64(longest), 3)}
}

// Note takes in a call.
func (l *Latencies) Note(took time.Duration) {
	l.sum += took
	_ = l.histogram.RecordValue(int64(min(max(took, 1), longest))) // it is within the bounds
}

// Count is how many calls there were.
func (l *Latencies) Count() int64 { return l.histogram.TotalCount() }

// Merge takes in the calls of others.
func (l *Latencies) Merge(others *Latencies) {
	l.sum += others.sum
	l.histogram.Merge(others.histogram)
}

// Reset forgets all calls.
func (l *Latencies) Reset() {
	l.histogram.Reset()
	l.sum = 0
}

// Quantiles are the figures of a report, in microseconds.
type Quantiles struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean_us"`
	P50   float64 `json:"p50_us"`
	P90   float64 `json:"p90_us"`
	P99   float64 `json:"p99_us"`
	P999  float64 `json:"p99_9_us"`
	Max   float64 `json:"max_us"`
}

// Quantiles of all calls so far.
func (l *Latencies) Quantiles() Quantiles {
	at := func(percent float64) float64 { return microseconds(l.histogram.ValueAtPercentile(percent)) }
	mean := int64(l.sum) / max(l.Count(), 1)
	return Quantiles{l.Count(), microseconds(mean), at(50), at(90), at(99), at(99.9), microseconds(l.histogram.Max())}
}

func microseconds(nanoseconds int64) float64 { return Round(float64(nanoseconds)/1000, 2) }

// Round rounds to so many digits behind the point.
func Round(value float64, digits int) float64 {
	unit := math.Pow10(digits)
	return math.Round(value*unit) / unit
}
